//! `cold` as its own helper process, started with a hidden first argument.

use std::ffi::OsString;
use std::os::unix::process::parent_id;
use std::process::ExitCode;

use cold_sys::{observe, supervise};

use crate::exit::{Exit, Failure};
use crate::leftovers;
use crate::ui::Ui;

/// Runs as a helper if the arguments say so. Results and most errors go to the caller over a socket.
pub(crate) fn run(arguments: &[OsString]) -> Option<ExitCode> {
    let [_, first, rest @ ..] = arguments else { return None };
    let parent = parent_id();
    let failed = if first == supervise::ARGUMENT {
        supervise::serve::serve(rest).err().map(Failure::from)
    } else if first == observe::HELPER_ARGUMENT {
        let socket = rest.first().and_then(|a| a.to_str()?.parse().ok())?;
        observe::serve(socket).err().map(Failure::from)
    } else {
        return None;
    };
    if parent_id() != parent {
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
