//! `cold` as its own helper process, started with a hidden first argument.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cold_model::order::TracedFile;
use cold_probe::{toucher, worker};
use cold_sys::procfs::ProcFs;
use cold_sys::{observe, spawn, supervise};

use crate::exit::{Exit, Failure};
use crate::leftovers;
use crate::ui::Ui;

/// The functions of the files that a traced program maps.
struct Tables;

impl observe::FunctionTables for Tables {
    fn read(&mut self, file: File, meta: Metadata, path: &Path) -> Result<TracedFile, String> {
        let options = cold_symbols::Options::default();
        let read = cold_symbols::functions(file, meta, path, &options).map_err(|e| e.to_string())?;
        Ok(cold_layout::functions::traced(read, path))
    }
}

/// How often a parent that is ending is looked at.
const PATIENCE: Duration = Duration::from_millis(5);
/// The hidden first argument of the process that undoes what a killed experiment leaves.
pub(crate) const KEEPER: &str = "__probe-keeper";

/// Waits for the end of standard input, and then for that of its parent: a parent that ends in order kills
/// us before.
fn keep(parent: u32) {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let began = Instant::now();
    while parent_id() == parent && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(PATIENCE);
    }
}

/// Runs as a helper if the arguments say so. Results and most errors go to the caller over a socket.
pub(crate) fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first, rest @ ..] = arguments else { return None };
    let parent = parent_id();
    let failed = if first == supervise::ARGUMENT {
        supervise::serve::serve(rest).err().map(Failure::from)
    } else if first == observe::HELPER_ARGUMENT {
        observe::serve(rest, &mut Tables).err().map(Failure::from)
    } else if first == worker::ARGUMENT {
        worker::serve(rest).err().map(Failure::from)
    } else if first == toucher::ARGUMENT {
        toucher::serve(rest).err().map(Failure::from)
    } else if first == KEEPER {
        keep(parent);
        None
    } else if first == spawn::ARGUMENT {
        spawn::serve::serve(rest).err().map(Failure::from)
    } else {
        return None;
    };
    if is_orphaned(parent) {
        // `cold` was killed: we have ended the tree, and undo what it had changed.
        leftovers::repair_silently();
    }
    Some(match failed {
        None => Exit::Done.into(),
        Some(failure) => {
            Ui::new(false).error(&failure);
            Exit::Failed.into()
        }
    })
}

/// Whether `cold` has ended. A killed one closes its socket first and is our parent for a while yet: until
/// its BPF programs are freed, for instance, which was longer than the tree took to end on a slow machine.
fn is_orphaned(parent: u32) -> bool {
    const EXITING: u64 = 4; // PF_EXITING
    let proc = ProcFs::default();
    let exiting = || proc.stat(parent.cast_signed()).is_ok_and(|stat| stat.flags & EXITING != 0);
    while parent_id() == parent {
        if !exiting() && parent_id() == parent {
            return false;
        }
        std::thread::sleep(PATIENCE);
    }
    true
}
