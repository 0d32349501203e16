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
