//! The command's output streams: where they go, and looking for the ready marker in them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Sender;

use cold_model::Nanos;
use cold_sys::time::monotonic;
use regex::bytes::Regex;

use crate::config::Stream;
use crate::{Error, Result};

/// Bytes of a stream kept for matching; a marker longer than half of it is not found.
const KEEP: usize = 1 << 20;

/// Where output goes.
pub(super) struct Sink<'a> {
    stream: &'a Stream,
    file: Option<File>,
}

impl<'a> Sink<'a> {
    /// Opens (and empties) an output file, so that a bad path fails before the start.
    pub(super) fn open(stream: &'a Stream) -> Result<Self> {
        let file = match stream {
            Stream::File(p) => Some(cold_sys::open::for_output(p).map_err(|source| Error::File {
                action: "open",
                path: p.clone(),
                source,
            })?),
            _ => None,
        };
        Ok(Self { stream, file })
    }

    /// Whether output goes through a pipe even when nobody looks for a marker in it.
    pub(super) fn wants_pipe(&self) -> bool {
        matches!(self.stream, Stream::Pipe)
    }

    /// Another handle on where output goes, or `None` for nowhere. `own` is cold's own stream of that kind.
    pub(super) fn copy(&self, own: &impl AsFd) -> Result<Option<File>> {
        let duplicate = |fd: &dyn Fn() -> std::io::Result<OwnedFd>| {
            fd().map(File::from).map(Some).map_err(|source| Error::File {
                action: "duplicate",
                path: "an output stream".into(),
                source,
            })
        };
        match (self.stream, &self.file) {
            (Stream::Inherit, _) => duplicate(&|| own.as_fd().try_clone_to_owned()),
            (_, Some(f)) => duplicate(&|| f.try_clone().map(Into::into)),
            _ => Ok(None),
        }
    }
}

/// Empties `stream` in a thread until its end; tells the time when `marker` matched first.
pub(super) fn follow(
    mut stream: impl Read + Send + 'static,
    mut marker: Option<Regex>,
    mut copy: Option<File>,
    found: Sender<Nanos>,
) -> Result<()> {
    let reads = std::thread::Builder::new().spawn(move || {
        let mut text: Vec<u8> = Vec::new();
        // Once something is forgotten, the first byte that is left only says what stood before the second: where
        // it was cut begins no line.
        let mut from = 0;
        let mut buf = vec![0_u8; 64 << 10];
        while let Ok(n @ 1..) = stream.read(&mut buf) {
            let at = monotonic();
            if let Some(m) = &marker {
                text.extend_from_slice(&buf[..n]);
                if m.is_match_at(&text, from) {
                    // Nobody listens any more when the start has timed out meanwhile.
                    let _ = found.send(at);
                    marker = None;
                    text = Vec::new();
                } else if text.len() > KEEP {
                    text.drain(..KEEP / 2);
                    from = 1;
                }
            }
            if let Some(c) = &mut copy
                && c.write_all(&buf[..n]).is_err()
            {
                copy = None;
            }
        }
    });
    let refused =
        |source| Error::File { action: "read", path: "the command's output in a thread".into(), source };
    reads.map(drop).map_err(refused)
}

#[cfg(test)]
mod tests;
