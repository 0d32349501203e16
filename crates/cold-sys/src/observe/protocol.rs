//! What client and helper say to each other: JSON in frames with a length, over a socket pair. After
//! the request the client sends at most one byte, which means "end the tree now".

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;

use cold_model::observed::ObservedStart;
use cold_model::path_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{ObserveError, Result};

/// Larger than any result: 1 GiB holds some millions of files.
const MAX_FRAME: u64 = 1 << 30;

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
    /// It did not work; the tree is gone.
    Failed(ObserveError),
}

pub(super) fn send(mut to: impl Write, message: &impl Serialize) -> Result<()> {
    let body = serde_json::to_vec(message).map_err(ObserveError::protocol)?;
    let mut frame = (body.len() as u64).to_le_bytes().to_vec();
    frame.extend(body);
    to.write_all(&frame).map_err(|e| ObserveError::os("write to the observing process", &e))
}

/// The next message; `None` when the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(mut from: impl Read) -> Result<Option<T>> {
    let mut length = [0u8; 8];
    if from.read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let length = u64::from_le_bytes(length);
    if length > MAX_FRAME {
        return Err(ObserveError::protocol(format!("a message of {length} bytes")));
    }
    let mut body = Vec::new();
    match from.take(length).read_to_end(&mut body) {
        Ok(n) if n as u64 == length => {
            serde_json::from_slice(&body).map(Some).map_err(ObserveError::protocol)
        }
        _ => Ok(None),
    }
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
        let mut wire = Vec::new();
        send(&mut wire, &request()).unwrap();
        assert_eq!(receive::<Request>(wire.as_slice()).unwrap(), Some(request()));
    }

    #[test]
    fn a_message_cut_off_anywhere_is_an_end_and_nonsense_is_an_error() {
        let mut wire = Vec::new();
        send(&mut wire, &request()).unwrap();
        for n in 0..wire.len() {
            assert_eq!(receive::<Request>(&wire[..n]).unwrap(), None, "{n} bytes");
        }
        assert!(receive::<Request>([0xff; 16].as_slice()).is_err(), "a length beyond reason");
        assert!(receive::<Request>(b"\x02\0\0\0\0\0\0\0{}".as_slice()).is_err());
    }
}
