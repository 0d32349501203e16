//! From flags to what is to be recorded; whatever can be wrong is found here, before anything is done.

use std::path::Path;

use cold_bench::config::Config;
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::ProcFs;

use super::Args;
use crate::exit::Failure;
use crate::recorder::Directory;

type Result<T> = std::result::Result<T, Failure>;

/// What is followed.
pub(super) enum Followed {
    /// A command that is started.
    Command(Box<Config>),
    /// A process that runs already, held so that its pid stays its own.
    Process(PidFd),
    /// All processes but `cold` itself.
    Machine,
}

/// What the flags ask to follow.
pub(super) fn followed(args: &Args) -> Result<Followed> {
    if let Some(pid) = args.attach {
        return running(pid).map(Followed::Process);
    }
    if args.all {
        return Ok(Followed::Machine);
    }
    let states = match args.state.as_str() {
        "warm" => vec![State::Warm],
        "as-is" => Vec::new(),
        _ => vec![State::Cold],
    };
    let disk_limit = args.disk_limit.as_deref().map(crate::values::disk_limit).transpose()?;
    if disk_limit.is_some() && states.is_empty() {
        return Err(Failure::usage(
            "--disk-limit needs to know the devices of the command's files, which --state as-is does not look for",
        ));
    }
    Ok(Followed::Command(Box::new(Config { disk_limit, ..args.start.single(&args.argv, states)? })))
}

/// A process that can be followed.
fn running(pid: u32) -> Result<PidFd> {
    let none = || Failure::usage(format!("there is no process {pid} to attach to"));
    let number = i32::try_from(pid).map_err(|_| none())?;
    let proc = ProcFs::default();
    // The kernel refuses threads with EINVAL (ENOENT since 6.9).
    match proc.process_field(number, "status", "Tgid") {
        Ok(Some(process)) if process != u64::from(pid) => {
            return Err(Failure::usage(format!("{pid} is a thread of process {process}: attach to that")));
        }
        _ => {}
    }
    let held = PidFd::open(number).map_err(|e| Failure::usage(e.to_string()))?.ok_or_else(none)?;
    match proc.stat(number).map_err(|_| none())? {
        s if matches!(s.state, 'Z' | 'X') => Err(Failure::usage(format!(
            "process {pid} has ended already: its parent only has to take notice"
        ))),
        _ if pid == std::process::id() => Err(Failure::usage("cold cannot follow itself")),
        _ => Ok(held),
    }
}

/// Where the recording goes, made now: as wished, or named after the program where no file of that name is.
pub(super) fn directory(args: &Args, followed: &Followed) -> Result<Directory> {
    let stem = match followed {
        Followed::Command(config) => {
            let program = config.commands.first().and_then(|c| c.program.file_name());
            program.map_or_else(|| "recording".to_owned(), |n| n.to_string_lossy().into_owned())
        }
        Followed::Process(held) => {
            let name = ProcFs::default().comm(held.pid()).ok();
            name.unwrap_or_default()
        }
        Followed::Machine => "machine".to_owned(),
    };
    Directory::chosen(args.output_directory.as_deref(), args.overwrite, &stem)
}

/// The one file whose pages are wanted, by the name that recordings have for it.
pub(super) fn only_file(path: &Path) -> Result<String> {
    let wrong = |why: String| Failure::usage(format!("--only-file {}: {why}", path.shown()));
    let found = path.canonicalize().map_err(|e| wrong(e.to_string()))?;
    let meta = found.metadata().map_err(|e| wrong(e.to_string()))?;
    if !meta.is_file() {
        return Err(wrong("it is no regular file".to_owned()));
    }
    Ok(cold_model::path_text::encode(&found))
}

/// Size of the kernel's buffer per CPU in bytes, if one is wished.
pub(super) fn buffer(args: &Args) -> Result<Option<usize>> {
    let Some(text) = &args.buffer else { return Ok(None) };
    match crate::values::count(text) {
        Some(n @ 65_536..=1_073_741_824) => Ok(usize::try_from(n).ok()),
        _ => Err(Failure::usage(format!("--buffer {text:?} is not a size from 64Ki to 1Gi"))),
    }
}
