//! `cold`: measures, explains and removes the slowness of a program's first start.
//!
//! This crate parses arguments, calls the libraries and prints; it computes no results. It is the only
//! one that prints or exits. Start reading at [`cli`], then `commands/NAME.rs` for one command.

mod cli;
mod commands;
mod exit;
mod ui;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(code) = observing_helper() {
        return code;
    }
    let cli = cli::Cli::parse();
    let ui = ui::Ui::new(cli.quiet);
    match commands::run(cli.command, &ui) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            ui.error(&failure);
            failure.exit.into()
        }
    }
}

/// Runs as the helper process of an observed start if called as one: before anything else, because the
/// helper must stay single-threaded and its arguments are no user's business. Its result and its errors
/// go to the caller over the socket.
fn observing_helper() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != cold_sys::observe::HELPER_ARGUMENT {
        return None;
    }
    let socket = args.next()?.to_str()?.parse().ok()?;
    Some(match cold_sys::observe::serve(socket) {
        Ok(()) => exit::Exit::Done.into(),
        Err(_) => exit::Exit::Failed.into(),
    })
}
