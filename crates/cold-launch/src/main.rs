//! `cold-launch`: starts a program by its plan. See [`cold_launch`].
//!
//! It has a `main` of C: Rust's own runtime looks at descriptors, signals and stacks before `main`, changes them,
//! and ends the process where a system call for that fails. A launcher must start its program even then.
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml
#![cfg_attr(not(test), no_main)]
#![allow(unsafe_code)] // that `main`, and nothing else: an exported symbol, and the words it is given

mod arguments;

use std::ffi::{c_char, c_int};

use cold_launch::{Decision, Explanation, launch};
use cold_model::Shown as _;
use cold_sys::exec::Words;
use cold_sys::{emergency, stdio};

use arguments::{Asked, command_at, parse};

#[global_allocator]
static ALLOCATOR: emergency::Allocator = emergency::Allocator;

/// Wrong usage, and a result that cannot be written.
const USAGE: c_int = 2;
const FAILED: c_int = 1;

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn main(count: c_int, words: *mut *const c_char) -> c_int {
    // SAFETY: the C library calls this with its arguments, once.
    start(unsafe { Words::of_main(count, words) })
}

fn start(words: Words) -> c_int {
    // First of all, without memory: what is to be started, whatever happens.
    if let Some(command) = command_at(words.arguments()).and_then(|at| words.command(at + 1)) {
        emergency::arm(command);
    }
    let (options, verbose) = match parse(words.arguments().map(Into::into)) {
        Ok(Asked::Start(options, verbose)) => (options, verbose),
        Ok(Asked::Help) => return result(arguments::HELP),
        Ok(Asked::Version) => return result(&format!("cold-launch {}\n", env!("CARGO_PKG_VERSION"))),
        Err(why) => {
            say(&format!("{why}; see cold-launch --help"));
            return USAGE;
        }
    };
    let error = launch(&options, &mut |explanation| explain(explanation, verbose));
    let program = options.command.first().map(|p| p.shown().to_string()).unwrap_or_default();
    say(&format!("cannot execute {program}: {error}"));
    // As shells, env and nohup have it.
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// A line on standard error, where somebody can read it.
fn say(text: &str) {
    stdio::say(format!("cold-launch: {}\n", text.shown()).as_bytes());
}

/// A reader that has enough (`| head`) is no failure.
fn result(text: &str) -> c_int {
    match stdio::put(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("cannot write to standard output: {error}"));
            FAILED
        }
        _ => 0,
    }
}

fn explain(explanation: &Explanation, verbose: bool) {
    let Explanation { plan, seen, decision, took } = explanation;
    let said = match decision {
        Decision::Skip(skip) if skip.is_problem() || verbose => format!("no plan followed: {skip}"),
        Decision::Replay if verbose => {
            let plan = plan.as_deref().unwrap_or(std::path::Path::new("?")).shown();
            format!("{} of {} bytes are read ahead by {plan}", seen.bytes, seen.plan_bytes)
        }
        Decision::Control if verbose => {
            "a control start: the plan is not followed, for comparison".to_owned()
        }
        _ => return,
    };
    let took =
        if verbose { format!(" (decided and begun in {} µs)", took.as_micros()) } else { String::new() };
    say(&format!("{said}{took}"));
}
