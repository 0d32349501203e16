//! What client and helper say to each other (`helper`).

use std::ffi::OsString;
use std::path::PathBuf;

use cold_model::observed::ObservedStart;
use cold_model::order::{TracedStart, Tracing};
use cold_model::path_text;
use serde::{Deserialize, Serialize};

use super::error::ObserveError;

/// From the client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Comes first.
    Observe(Request),
    /// Comes first: follow the functions that are entered.
    Entries(Request, Tracing),
    /// End the tree now.
    End,
}

/// What to observe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(with = "path_text::words")]
    pub(super) argv: Vec<OsString>,
    /// `NAME=value`.
    #[serde(with = "path_text::words")]
    pub(super) env: Vec<OsString>,
    /// One directory, or none for the helper's own.
    #[serde(with = "path_text::list")]
    pub(super) cwd: Vec<PathBuf>,
    pub(super) deadline_ns: Option<u64>,
    pub(super) grace_ns: u64,
}

/// What the helper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The program runs, as this process.
    Started(i32),
    /// The tree is gone.
    Done(Box<ObservedStart>),
    /// The tree is gone, and these functions were entered.
    Entered(Box<TracedStart>),
    /// It did not work; the tree is gone.
    Failed(ObserveError),
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn request() -> Request {
        let not_utf8 = OsString::from_vec(b"a\xff\nb".to_vec());
        Request {
            argv: vec!["ls".into(), not_utf8.clone(), "".into()],
            env: vec!["A=ö".into()],
            cwd: vec![PathBuf::from(&not_utf8)],
            deadline_ns: None,
            grace_ns: u64::MAX,
        }
    }

    #[test]
    fn names_that_are_not_utf8_survive() {
        let line = serde_json::to_vec(&request()).unwrap();
        assert_eq!(serde_json::from_slice::<Request>(&line).unwrap(), request());
    }
}
