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
mod tests {
    use std::io::Cursor;
    use std::sync::mpsc::channel;

    use super::*;

    /// Gives out at most so many bytes at a time, as a pipe whose writer is slow.
    struct Slow(Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let most = self.1.min(buf.len());
            self.0.read(&mut buf[..most])
        }
    }

    /// How often `marker` was reported in `text`, and what was copied.
    fn followed(marker: &str, text: &[u8], at_a_time: usize) -> (usize, Vec<u8>) {
        let marker = regex::bytes::RegexBuilder::new(marker).multi_line(true).build().unwrap();
        let file = tempfile::tempfile().unwrap();
        let (found, reports) = channel();
        let stream = Slow(Cursor::new(text.to_vec()), at_a_time);
        follow(stream, Some(marker), Some(file.try_clone().unwrap()), found).unwrap();
        // The sender goes with the thread, so this waits for its end.
        let reports = reports.iter().count();
        let mut copied = vec![0; file.metadata().unwrap().len() as usize];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut copied, 0).unwrap();
        (reports, copied)
    }

    #[test]
    fn a_marker_is_found_across_reads_and_told_once() {
        let text = b"starting\nready on 80\nready on 81\n";
        for at_a_time in [1, 5, 4096] {
            assert_eq!(followed("^ready on [0-9]+$", text, at_a_time), (1, text.to_vec()), "{at_a_time}");
        }
        assert_eq!(followed("^on", text, 1).0, 0);
    }

    #[test]
    fn output_that_is_no_text_is_copied_and_searched_all_the_same() {
        let text = b"\xff\xfe\0ready\0";
        assert_eq!(followed("ready", text, 2), (1, text.to_vec()));
    }

    #[test]
    fn a_marker_behind_megabytes_of_other_output_is_found() {
        let mut text = vec![b'.'; 3 * KEEP];
        text.extend(b"\nready\n");
        assert_eq!(followed("^ready$", &text, 64 << 10).0, 1);
    }

    #[test]
    fn what_is_forgotten_of_a_long_line_does_not_make_its_middle_the_beginning() {
        let mut text = vec![b'a'];
        text.resize(KEEP + (128 << 10), b'b');
        for marker in ["^b", r"\Ab"] {
            assert_eq!(followed(marker, &text, 64 << 10).0, 0, "{marker}");
        }
    }

    #[test]
    fn a_full_or_closed_copy_does_not_stop_the_stream() {
        let (found, reports) = channel();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let text = [vec![b'.'; 200 << 10], b"ready".to_vec()].concat();
        follow(Slow(Cursor::new(text), 4096), Some(Regex::new("ready").unwrap()), Some(full), found).unwrap();
        assert_eq!(reports.iter().count(), 1);
    }

    #[test]
    fn an_output_file_is_emptied_first_and_one_that_cannot_be_opened_fails_before_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "of the last start").unwrap();
        let stream = Stream::File(path.clone());
        let sink = Sink::open(&stream).unwrap();
        assert_eq!(path.metadata().unwrap().len(), 0);
        let mut copy = sink.copy(&std::io::stdout()).unwrap().unwrap();
        copy.write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let bad = Stream::File(dir.path().join("missing/out"));
        let why = Sink::open(&bad).err().unwrap().to_string();
        assert!(why.contains("missing/out"), "{why}");
    }

    #[test]
    fn nowhere_is_no_file_and_only_a_wanted_pipe_is_one() {
        for (stream, piped) in [(Stream::Null, false), (Stream::Pipe, true)] {
            let sink = Sink::open(&stream).unwrap();
            assert_eq!((sink.wants_pipe(), sink.copy(&std::io::stdout()).unwrap().is_some()), (piped, false));
        }
    }
}
