//! Writes a recording as a Perfetto trace and a Firefox profile, and says how long that took: to load the
//! files in the viewers, and to measure.
//!
//! `cargo run --release --example export -- EVENTS|NAME.cold DIRECTORY`: a made-up recording of so many
//! events, or a real one.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use cold_model::layout::Layouts;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(directory)) = (arguments.next(), arguments.next()) else {
        return Err("usage: export EVENTS|NAME.cold DIRECTORY".into());
    };
    let recording = match what.parse() {
        Ok(events) => cold_recording::sample::firefox_like(events, 1),
        Err(_) => cold_recording::read(Path::new(&what))?,
    };
    println!("{:?}", recording.counts());
    let (layouts, directory) = (Layouts::default(), Path::new(&directory));
    let analysis = cold_analyze::analyze(&recording, &layouts);
    let measured = |name: &str, began: Instant| -> std::io::Result<()> {
        let bytes = directory.join(name).metadata()?.len();
        println!("{name}: {bytes} bytes in {:.0} ms", began.elapsed().as_secs_f64() * 1e3);
        Ok(())
    };
    let (name, began) = ("trace.pftrace", Instant::now());
    let mut out = std::fs::File::create(directory.join(name))?;
    cold_report::perfetto::write(&recording, &analysis, &layouts, &mut out)?;
    measured(name, began)?;
    let (name, began) = ("profile.json", Instant::now());
    let mut out = std::fs::File::create(directory.join(name))?;
    cold_report::firefox::write(&recording, &analysis, &layouts, &mut out)?;
    measured(name, began)?;
    Ok(())
}
