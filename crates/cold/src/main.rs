//! `cold`: measures, explains and removes the slowness of a program's first start.
//!
//! This crate parses arguments, calls the libraries and prints; it computes no results. It is the only
//! one that prints or exits. Start reading at [`cli`], then `commands/NAME.rs` for one command.

mod cli;
mod commands;
mod exit;
mod helpers;
mod ui;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if let [_, first, rest @ ..] = arguments.as_slice()
        && first == cold_sys::supervise::ARGUMENT
    {
        return helpers::supervise(rest);
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
