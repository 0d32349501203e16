//! A program that reads ahead by its own plan, first thing in `main`:
//!
//!     cargo run -p cold-launch --example replays-itself -- PLAN
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Duration;

use cold_launch::{Options, replay_self};

fn main() {
    let Some(plan) = std::env::args_os().nth(1) else {
        println!("usage: replays-itself PLAN");
        return;
    };
    // Whatever is wrong with the plan, the program goes on.
    match replay_self(Path::new(&plan), &Options::new(Vec::new())) {
        Ok(replay) => {
            // Only where the first work is sure to need the first pages; otherwise go on at once.
            replay.wait_critical(Duration::from_millis(200));
            println!("the first part is on its way");
            // … the program's own work; joining is only for this report.
            if let Some(tally) = replay.join() {
                println!("{} bytes of {} files asked for in {} calls", tally.bytes, tally.files, tally.calls);
            }
        }
        Err(skip) => println!("started without a plan: {skip}"),
    }
}
