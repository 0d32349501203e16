//! `cold`: measures, explains and removes the slowness of a program's first start.
//!
//! This crate parses arguments, calls the libraries and prints; it computes no results. It is the only
//! one that prints or exits. Start reading at [`cli`], then `commands/NAME.rs` for one command.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod cli;
mod commands;
mod database;
mod exit;
mod git;
mod helpers;
mod interrupt;
mod leftovers;
mod progress;
mod recorder;
mod results;
mod start;
mod table;
mod ui;
mod unwind;
mod values;
mod words;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Before anything else: helpers must stay single-threaded, and their arguments are no user's.
    if let Some(code) = helpers::run(&std::env::args_os().collect::<Vec<_>>()) {
        return code;
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => return ui::Ui::new(false).usage(&told).into(),
    };
    let ui = ui::Ui::new(cli.quiet);
    let exit = match commands::run(cli.command, &ui) {
        Ok(exit) => exit,
        Err(failure) => {
            ui.error(&failure);
            failure.exit
        }
    };
    ui.end(exit).into()
}
