//! Which of the starts that are heard of is recorded.

use std::collections::VecDeque;

use cold_model::Nanos;
use cold_sys::exec_watch::ExecutedFile;
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;

use super::{MOST_YOUNG, Young};

/// A file whose start was another one than wanted (an interpreter with another script, one that was over too soon) is not
/// followed again for so long: to follow it and to arm again takes 30 ms of CPU time.
const OTHER: Nanos = Nanos(10_000_000_000);
/// What a cold start executes of its own file within so long belongs to it.
const FIRST_TIME: Nanos = Nanos(30_000_000_000);
/// Parents that are looked at, at most.
const MOST_PARENTS: usize = 64;

/// Whose start the recorder waits for.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// None while there is no recorder.
    pub(super) files: Option<Vec<ExecutedFile>>,
    /// Not for these, until then: see [`OTHER`].
    others: Vec<(ExecutedFile, Nanos)>,
    /// Nor for what these execute of their own file in their first time: they are the starts that were cold, and a browser
    /// executes itself for each of its pages. (What a shell starts later are starts of their own.)
    cold: VecDeque<Young>,
}

impl Awaited {
    /// Whether this start is recorded.
    pub(super) fn takes(&self, file: &ExecutedFile, pid: i32) -> bool {
        self.has(file) && !self.is_of_cold(file, pid)
    }

    pub(super) fn has(&self, file: &ExecutedFile) -> bool {
        let rests = |(other, until): &(ExecutedFile, Nanos)| other == file && monotonic() < *until;
        self.files.as_ref().is_some_and(|files| files.contains(file)) && !self.others.iter().any(rests)
    }

    /// Whether a process that executes this file belongs to a start that was cold.
    fn is_of_cold(&self, file: &ExecutedFile, pid: i32) -> bool {
        let now = monotonic();
        let is_young = |y: &&Young| y.file == *file && now.saturating_sub(y.at) < FIRST_TIME;
        let cold: Vec<i32> = self.cold.iter().filter(is_young).map(|y| y.pid).collect();
        let proc = ProcFs::default();
        let parent = |pid: &i32| proc.stat(*pid).ok().map(|stat| stat.ppid).filter(|parent| *parent > 1);
        let mut line = std::iter::successors(Some(pid), parent).take(MOST_PARENTS);
        !cold.is_empty() && line.any(|pid| cold.contains(&pid))
    }

    pub(super) fn was_cold(&mut self, young: Young) {
        if self.cold.len() >= MOST_YOUNG {
            self.cold.pop_front();
        }
        self.cold.push_back(young);
    }

    pub(super) fn was_other(&mut self, file: ExecutedFile) {
        let now = monotonic();
        self.others.retain(|(_, until)| now < *until);
        self.others.push((file, Nanos(now.0.saturating_add(OTHER.0))));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};

    use cold_sys::exec_watch::ExecWatch;

    use super::*;

    fn file(path: &str) -> ExecutedFile {
        let ids = ExecWatch::ids_of(Path::new(path)).expect("a file on a disk");
        *ids.first().expect("a number")
    }

    #[test]
    fn what_a_cold_start_executes_of_its_own_file_is_no_start_of_its_own() {
        let (own, other) = (file("/bin/sh"), file("/bin/cat"));
        // A child that waits, as a child of a start that was cold: this process.
        let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().expect("started");
        let pid = child.id().cast_signed();
        let young = |file, at| Young { pid: std::process::id().cast_signed(), at, file, before: None };
        let mut awaited = Awaited { files: Some(vec![own, other]), ..Awaited::default() };
        assert!(awaited.takes(&own, pid));
        awaited.was_cold(young(own, monotonic()));
        assert!(!awaited.takes(&own, pid) && awaited.takes(&other, pid), "of another file it is one");
        assert!(awaited.takes(&own, 1), "and so is one of another process");
        awaited.was_cold(young(other, monotonic().saturating_sub(FIRST_TIME)));
        assert!(awaited.takes(&other, pid), "later, too");
        child.kill().and_then(|()| child.wait()).expect("ended");
    }

    #[test]
    fn a_file_of_another_start_rests_and_nothing_else() {
        let (own, other) = (file("/bin/sh"), file("/bin/cat"));
        let mut awaited = Awaited { files: Some(vec![own, other]), ..Awaited::default() };
        awaited.was_other(own);
        assert!(!awaited.has(&own) && awaited.has(&other));
        awaited.files = None;
        assert!(!awaited.has(&other), "no recorder waits");
    }
}
