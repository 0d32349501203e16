//! `cold layout trace`: first entries of functions.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cold_model::bench::Ending;
use cold_model::order::{Crash, Exclude, StartFacts, Trace, TracedStart, Tracing};
use cold_model::{Nanos, Shown as _, path_text};
use cold_sys::observe::{Client, ObserveError, ObserveSpec, Streams};
use cold_sys::procfs::ProcFs;
use cold_sys::{caps, search};

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::ui::Ui;
use crate::words::plural;

/// Names tried for a directory that is not named.
const NAMES: u32 = 1000;

/// Flags of `cold layout trace`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout trace -- ./rg foo t.txt                          writes rg.order
  cold layout trace --scenario help -r 1 -o help.order -- ./rg --help
  cold layout trace --exclude libcrypto.so.3: -- python3 -c 'import ssl'
")]
pub(crate) struct Args {
    /// Name of the scenario: what the start does
    #[arg(long, value_name = "NAME", default_value = "default")]
    scenario: String,

    /// Starts that are traced; threads take turns differently in each
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,

    /// Directory to write; by default PROGRAM.order, or the next free PROGRAM-N.order
    #[arg(short, long, value_name = "DIRECTORY")]
    output_directory: Option<PathBuf>,

    /// Replace an earlier trace of that name
    #[arg(long)]
    overwrite: bool,

    /// Leave out code that is copied or looked at by the program itself: `FILE:`, `[FILE:]FUNCTION` or
    /// `[FILE:]0xFIRST-0xEND`; a function's name may begin or end with `*`. May be repeated
    #[arg(long, value_name = "WHAT", value_parser = Exclude::parse)]
    exclude: Vec<Exclude>,

    /// Go on in a process that handles SIGTRAP itself (LLVM's tools do, to report crashes). Where it blocks the signal
    /// while it enters a function, it loses its handler, which a remark says
    #[arg(long)]
    own_traps: bool,

    /// Longest time for a start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    timeout: f64,

    /// Keep the trace of a start whose command fails
    #[arg(short, long)]
    ignore_failure: bool,

    /// Program and arguments; it runs with this terminal's input and output, as often as --repeat says
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let timeout = crate::values::seconds("--timeout", args.timeout)?;
    let program = program(&args.command)?;
    refuse(&program)?;
    let directory = directory(args, &program)?;
    let interrupt = interrupt()?;
    let mut trace = Trace {
        scenario: args.scenario.clone(),
        command: args.command.iter().map(path_text::encode).collect(),
        kernel: ProcFs::default().sysctl("kernel.osrelease").unwrap_or_default(),
        ..Trace::default()
    };
    let mut failed = None;
    for _ in 0..args.repeat {
        let start = start(args, timeout, &|| !interrupt.load(Ordering::Relaxed))?;
        if interrupt.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
        let facts = &start.facts;
        let died = facts.crashes.iter().find(|c| facts.ending == Ending::Signal(c.signal));
        if let Some(crash) = died.filter(|_| !args.ignore_failure) {
            return Err(crashed(crash));
        }
        failed = failed.or(failure(facts.ending));
        trace.add(start);
    }
    tell(ui, &trace);
    if trace.repeats.iter().all(|r| r.entries.is_empty()) {
        return Err(Failure::from(anyhow::anyhow!("no function was entered that could be traced")));
    }
    if let Some(why) = &failed
        && !args.ignore_failure
    {
        let failure = Failure::from(anyhow::anyhow!("{why}; nothing is written"));
        return Err(failure.hint("--ignore-failure, where that is how this start ends"));
    }
    cold_recording::order::write(&directory, &trace, args.overwrite)?;
    ui.note(format!("written: {}   next: cold layout order {0}", directory.shown()));
    Ok(Exit::Done)
}

fn start(args: &Args, timeout: Duration, goes_on: &dyn Fn() -> bool) -> Result<TracedStart, Failure> {
    let spec = ObserveSpec {
        argv: args.command.clone(),
        env: None,
        cwd: None,
        deadline: Some(timeout),
        grace: Duration::from_secs(2),
    };
    let streams = Streams { stdin: Stdio::inherit(), stdout: Stdio::inherit(), stderr: Stdio::inherit() };
    let tracing = Tracing { exclude: args.exclude.clone(), own_traps: args.own_traps };
    let client = Client::start_entries(OsStr::new("/proc/self/exe"), &spec, &tracing, streams);
    let failed = |e: ObserveError| Failure::from(anyhow::Error::from(e));
    client.map_err(failed)?.wait_entries(goes_on).map_err(failed)
}

/// The file that the command means.
fn program(command: &[OsString]) -> Result<PathBuf, Failure> {
    let name = command.first().ok_or_else(|| Failure::usage("no command is named"))?;
    if name.as_encoded_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH");
    search::find(name, path.as_deref(), Path::new("."))
        .ok_or_else(|| Failure::from(anyhow::anyhow!("{}: command not found in PATH", name.shown())))
}

/// Says before the start what would come to nothing. Scripts are left to the kernel.
fn refuse(program: &Path) -> Result<(), Failure> {
    const SET_ID: u32 = 0o6000;
    let (file, meta) = cold_sys::open::regular(program, true)?;
    let cannot = |why: String| Failure::from(anyhow::anyhow!("{} cannot be traced: {why}", program.shown()));
    if meta.mode() & SET_ID != 0 && caps::effective_user() != 0 {
        let why =
            "it is set-user-ID or set-group-ID, and runs without its privileges while another user traces it";
        return Err(cannot(why.to_owned()).hint("run cold as root"));
    }
    let options = cold_symbols::Options::default();
    let read = match cold_symbols::functions(file, meta, program, &options) {
        Ok(read) => read,
        Err(cold_symbols::Error::NotElf { .. }) => return Ok(()),
        Err(e) => return Err(cannot(e.to_string())),
    };
    if !read.functions.is_empty() {
        return Ok(());
    }
    let why = if read.is_go {
        "Go's linker describes functions by a table of its own, and the symbols are stripped"
    } else {
        "it has neither symbols nor unwind tables, so nobody knows where its functions begin"
    };
    Err(cannot(why.to_owned()).hint("build it without stripping, or install its debug file"))
}

fn directory(args: &Args, program: &Path) -> Result<PathBuf, Failure> {
    if let Some(dir) = &args.output_directory {
        if !args.overwrite && dir.join("order.json").exists() {
            return Err(Failure::usage(format!("{} exists; --overwrite replaces it", dir.shown())));
        }
        return Ok(dir.clone());
    }
    let stem = program.file_name().unwrap_or(OsStr::new("program"));
    let name = |n: u32| {
        let mut name = stem.to_owned();
        name.push(if n == 1 { ".order".to_owned() } else { format!("-{n}.order") });
        PathBuf::from(name)
    };
    let free = (1..=NAMES).map(name).find(|dir| dir.symlink_metadata().is_err());
    free.ok_or_else(|| Failure::usage("all names for the trace exist: name one with -o, or clean up"))
}

/// Why a start failed, in words.
fn failure(ending: Ending) -> Option<String> {
    match ending {
        Ending::Code(0) | Ending::Ended => None,
        Ending::Code(c) => Some(format!("the command failed (exit code {c})")),
        Ending::Signal(s) => Some(format!("the command was killed by signal {s}")),
        Ending::TimedOut => Some("the command did not end within --timeout".to_owned()),
    }
}

/// A death that breakpoints would explain.
fn crashed(crash: &Crash) -> Failure {
    let Crash { signal, place, copied, exclude, .. } = crash;
    let what = match copied {
        Some(copied) => format!("it executed a copy of {copied}, with a breakpoint in it"),
        None => format!("it was in {place}; it may copy, read or check its own code"),
    };
    let failure = Failure::from(anyhow::anyhow!("the traced command was killed by signal {signal}: {what}"));
    failure.hint(match exclude {
        Some(exclude) => format!("--exclude '{exclude}'"),
        None => "--exclude FILE: or --exclude FUNCTION; --ignore-failure, where it ends so untraced too"
            .to_owned(),
    })
}

/// What was traced and what that took, on stderr: standard output is the command's.
fn tell(ui: &Ui, trace: &Trace) {
    for (repeat, n) in trace.repeats.iter().zip(1..) {
        ui.note(format!("start {n}: {}", took(&repeat.facts, repeat.entries.len() as u64)));
    }
    let mut notes: Vec<&String> = trace.repeats.iter().flat_map(|r| &r.facts.notes).collect();
    notes.sort();
    notes.dedup();
    for note in notes {
        ui.note(note);
    }
    for crash in trace.repeats.iter().flat_map(|r| &r.facts.crashes) {
        ui.warn(format!("process {} was killed by signal {} in {}", crash.pid, crash.signal, crash.place));
    }
}

/// What one start came to. What a stop costs is told at most: two switches between program and tracer are in it, and
/// what the program does itself.
fn took(facts: &StartFacts, entries: u64) -> String {
    let StartFacts {
        processes,
        threads,
        reading_ns,
        planted,
        planting_ns,
        stops,
        handling_ns,
        duration_ns,
        ..
    } = *facts;
    let rest = duration_ns.saturating_sub(reading_ns).saturating_sub(planting_ns);
    let beside = if threads > 0 { format!(" and {}", plural(threads, "more thread")) } else { String::new() };
    format!(
        "{} entered by {}{beside}; {} under tracing: {} to find the functions of its files, {} to set {}, the rest for \
         {}, each {} at most with the program's own time ({} of it in the tracer)",
        plural(entries, "function"),
        plural(processes, "process"),
        Nanos(duration_ns),
        Nanos(reading_ns),
        Nanos(planting_ns),
        plural(planted, "breakpoint"),
        plural(stops, "stop"),
        Nanos(rest / stops.max(1)),
        Nanos(handling_ns / stops.max(1)),
    )
}
