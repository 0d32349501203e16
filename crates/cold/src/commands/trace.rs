//! `cold trace`: record one start, or what runs already.

mod args;
mod build;
mod show;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_bench::config::Config;
use cold_bench::session::single::{self, Single};
use cold_model::bench::Ending;
use cold_model::recording::Manifest;
use cold_model::recording::manifest::{EndedBy, StackMethod, Subject};
use cold_sys::pidfd::PidFd;
use cold_trace::record::RecordOptions;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::recorder::{Watch, Whom, manifest};
use crate::ui::Ui;
use build::Followed;

pub(crate) use args::Args;

/// How often the end of a recording without a command is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let followed = build::followed(args)?;
    let duration = args.duration.map(|s| crate::values::seconds("--duration", s)).transpose()?;
    let options = options(args)?;
    let only_file = args.only_file.as_deref().map(build::only_file).transpose()?;
    let place = build::directory(args, &followed)?;
    let directory = place.path().to_owned();
    let interrupt = interrupt()?;
    let (subject, argv): (_, &[OsString]) = match &followed {
        Followed::Command(config) => {
            (Subject::Command, config.commands.first().map(|c| c.argv.as_slice()).unwrap_or_default())
        }
        Followed::Process(held) => (Subject::Process { pid: held.pid().cast_unsigned() }, &[]),
        Followed::Machine => (Subject::Machine, &[]),
    };
    let before = Manifest { only_file, ..manifest::before(subject, argv, &args.start.ready_means()) };
    let mut line = Line::new(ui);
    let mut watch = Watch::new(place, options, before);
    let ended = match &followed {
        Followed::Command(config) => start(config, args, &mut watch, &mut line, &interrupt).map(Some),
        Followed::Process(held) => {
            wait(Some(held), duration, &mut watch, &mut line, &interrupt).map(|()| None)
        }
        Followed::Machine => wait(None, duration, &mut watch, &mut line, &interrupt).map(|()| None),
    };
    line.step("writing the recording");
    let recorded = ended.and_then(|single| watch.finish(single).map_err(Failure::from));
    line.clear();
    let recording = recorded?;
    show::summary(ui, &recording, &directory, args.json);
    Ok(exit(args, &recording.manifest, ui, interrupt.load(Ordering::Relaxed)))
}

fn options(args: &Args) -> Result<RecordOptions, Failure> {
    Ok(RecordOptions {
        tier: args.recorded.tier(),
        stacks: match args.stacks.as_str() {
            _ if args.no_stacks || args.only_file.is_some() => Some(StackMethod::None),
            "dwarf" => Some(StackMethod::UnwindTables),
            "fp" => Some(StackMethod::FramePointers),
            _ => None,
        },
        buffer: build::buffer(args)?,
        ..RecordOptions::default()
    })
}

/// One prepared start of the command.
fn start(
    config: &Config,
    args: &Args,
    watch: &mut Watch,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Result<Single, Failure> {
    single::run(config, args.recorded.exact_need, watch, line, interrupt).map_err(super::bench::failure)
}

/// Records one process, or everybody, until the time is over, the process has ended, or the user has seen
/// enough.
fn wait(
    process: Option<&PidFd>,
    duration: Option<Duration>,
    watch: &mut Watch,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    watch.begin(process.map_or(Whom::Everybody, |p| Whom::Process(p.pid().cast_unsigned())), &[])?;
    line.step(match duration {
        Some(_) => "recording",
        None => "recording until Ctrl-C",
    });
    let began = Instant::now();
    let by = loop {
        let left = duration.map(|d| d.saturating_sub(began.elapsed()));
        if interrupt.load(Ordering::Relaxed) {
            break EndedBy::Interrupt;
        } else if left == Some(Duration::ZERO) {
            break EndedBy::Duration;
        }
        let look = left.unwrap_or(LOOK).min(LOOK);
        match process {
            Some(held) if held.wait(look).map_err(|e| Failure::from(anyhow::Error::from(e)))? => {
                break EndedBy::Exit;
            }
            Some(_) => {}
            None => std::thread::sleep(look),
        }
    };
    Ok(watch.end(|m| m.ended_by = Some(by))?)
}

/// How it ends: an interrupt first, then the command's own failure.
fn exit(args: &Args, m: &Manifest, ui: &Ui, interrupted: bool) -> Exit {
    // What already ran was not started by us: Ctrl-C is its recording's ordinary end, and its failure its own.
    if m.subject != Subject::Command {
        return Exit::Done;
    }
    if interrupted {
        return Exit::Interrupted;
    }
    let why = match m.ending {
        Some(Ending::Code(c)) if c != 0 => format!("the command failed (exit code {c})"),
        Some(Ending::Signal(s)) => format!("the command was killed by signal {s}"),
        Some(Ending::TimedOut) => {
            let by_exit = m.is_ready_at_exit();
            format!(
                "the command was not ready within --timeout ({})",
                super::bench::ready_hint(None, by_exit)
            )
        }
        _ => return Exit::Done,
    };
    ui.warn(format!("{why}; the recording is kept"));
    if args.start.ignore_failure { Exit::Done } else { Exit::Failed }
}
