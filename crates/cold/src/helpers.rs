//! `cold` as its own helper process, started with a hidden first argument.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::exit::{Exit, Failure};
use crate::ui::Ui;

/// Owns one process tree until it is gone. See [`cold_sys::supervise`].
pub(crate) fn supervise(args: &[OsString]) -> ExitCode {
    match cold_sys::supervise::serve::serve(args) {
        Ok(_) => Exit::Done.into(),
        Err(e) => {
            Ui::new(false).error(&Failure::from(e));
            Exit::Failed.into()
        }
    }
}
