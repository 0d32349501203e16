//! `cold-launch`: starts a program by its plan. See [`cold_launch`].
#![allow(clippy::print_stderr, clippy::print_stdout)] // a program of its own, without the machinery of `cold`

mod arguments;

use std::process::ExitCode;

use cold_launch::{Decision, Explanation, launch};

use arguments::{Asked, parse};

fn main() -> ExitCode {
    let (options, verbose) = match parse(std::env::args_os().skip(1)) {
        Ok(Asked::Start(options, verbose)) => (options, verbose),
        Ok(Asked::Help) => {
            print!("{}", arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Version) => {
            println!("cold-launch {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("cold-launch: {why}; see cold-launch --help");
            return ExitCode::from(2);
        }
    };
    let error = launch(&options, &mut |explanation| tell(explanation, verbose));
    let program = options.command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    eprintln!("cold-launch: cannot execute {program}: {error}");
    // As shells, env and nohup have it.
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

fn tell(explanation: &Explanation, verbose: bool) {
    let Explanation { plan, seen, decision, took } = explanation;
    let said = match decision {
        Decision::Skip(skip) if skip.is_problem() || verbose => format!("no plan followed: {skip}"),
        Decision::Replay if verbose => {
            let plan = plan.as_deref().unwrap_or(std::path::Path::new("?")).display();
            format!("{} of {} bytes are read ahead by {plan}", seen.bytes, seen.plan_bytes)
        }
        Decision::Control if verbose => "a control run: the plan is not followed, for comparison".to_owned(),
        _ => return,
    };
    let took =
        if verbose { format!(" (decided and begun in {} µs)", took.as_micros()) } else { String::new() };
    eprintln!("cold-launch: {said}{took}");
}
