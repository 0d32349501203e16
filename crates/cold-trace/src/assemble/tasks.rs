//! Processes and threads over time. Pure.

use std::collections::{HashMap, HashSet};

use cold_model::Nanos;
use cold_model::recording::tables::Began;
use cold_model::recording::{FileIdx, Process, Thread};

/// The tables of processes and threads, and who belongs to the start.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) processes: Vec<Process>,
    pub(super) threads: Vec<Thread>,
    /// Row of the image that a process runs now.
    images: HashMap<u32, usize>,
    /// Row of a living thread.
    alive: HashMap<u32, usize>,
    /// Threads whose end was seen.
    ended: HashSet<u32>,
    /// The living threads of a process.
    members: HashMap<u32, HashSet<u32>>,
    /// Processes of the start.
    tree: HashSet<u32>,
    /// Processes that are followed but are not the start: the supervisor.
    parents: HashSet<u32>,
    /// The whole machine is recorded: every process belongs to the start, but for `parents`.
    pub(super) everybody: bool,
}

impl Tasks {
    pub(super) fn follow(&mut self, pid: u32, itself: bool) {
        if itself {
            self.tree.insert(pid);
        } else {
            self.parents.insert(pid);
        }
    }

    /// Whether a process belongs to the start, by what is known of forks.
    pub(super) fn in_tree(&self, pid: u32) -> bool {
        (self.everybody || self.tree.contains(&pid)) && !self.parents.contains(&pid)
    }

    /// Whether its children belong to the start, though it does not itself.
    pub(super) fn is_parent(&self, pid: u32) -> bool {
        self.parents.contains(&pid)
    }

    /// The same as [`Self::in_tree`] where the event itself says so.
    pub(super) fn said_in_tree(&mut self, pid: u32, said: bool) -> bool {
        if said && !self.parents.contains(&pid) {
            self.tree.insert(pid);
        }
        self.in_tree(pid)
    }

    /// A process that already ran, with its threads. /proc goes on listing what has ended until its parent has
    /// asked for its status; had its number been given away again, that fork would have been seen.
    pub(super) fn existing(&mut self, at: u64, pid: u32, parent: u32, name: &str, threads: &[(u32, String)]) {
        if self.ended.contains(&pid) {
            return;
        }
        if !self.images.contains_key(&pid) {
            self.image(at, Began::Existing, pid, parent, name);
        }
        self.thread(at, pid, pid, name);
        for (tid, name) in threads {
            if !self.ended.contains(tid) {
                self.thread(at, pid, *tid, name);
            }
        }
    }

    /// A thread, or a process with its first one.
    pub(super) fn fork(&mut self, at: u64, pid: u32, tid: u32, parent: u32, name: Option<&str>) {
        if pid != parent && (self.in_tree(parent) || self.parents.contains(&parent)) {
            self.tree.insert(pid);
        }
        let inherited = self.images.get(&parent).and_then(|i| self.processes.get(*i)).map(|p| p.name.clone());
        let name = name.map_or_else(|| inherited.unwrap_or_default(), str::to_owned);
        // Born between the first look at the forks and the survey of what runs: known already.
        let surveyed = self.current(pid).is_some_and(|p| p.how == Began::Existing);
        if pid == tid && pid != parent && !surveyed {
            self.image(at, Began::Fork, pid, parent, &name);
        }
        self.thread(at, pid, tid, &name);
    }

    /// A new image of a process; the other threads are gone.
    pub(super) fn exec(&mut self, at: u64, pid: u32, name: &str) {
        let parent = self.current(pid).map_or(0, |p| p.parent);
        let members = self.members.remove(&pid).unwrap_or_default();
        for tid in members.iter().filter(|tid| **tid != pid) {
            self.thread_ends(at, *tid);
        }
        self.members.entry(pid).or_default().extend(members.contains(&pid).then_some(pid));
        if let Some(first) = self.alive.get(&pid).and_then(|i| self.threads.get_mut(*i)) {
            name.clone_into(&mut first.name);
        }
        self.image(at, Began::Exec, pid, parent, name);
        self.thread(at, pid, pid, name);
    }

    pub(super) fn executable(&mut self, pid: u32, file: Option<FileIdx>) {
        if let Some(image) = self.current(pid) {
            image.executable = image.executable.or(file);
        }
    }

    /// Whether the executable of the image is still to be learnt.
    pub(super) fn lacks_executable(&self, pid: u32) -> bool {
        let image = self.images.get(&pid).and_then(|i| self.processes.get(*i));
        image.is_some_and(|p| p.executable.is_none() && p.how == Began::Exec)
    }

    pub(super) fn arguments(&mut self, pid: u32, arguments: Vec<String>) {
        if let Some(image) = self.current(pid)
            && image.how != Began::Fork
            && !arguments.is_empty()
        {
            image.arguments.get_or_insert(arguments);
        }
    }

    pub(super) fn rename(&mut self, pid: u32, tid: u32, name: &str) {
        if let Some(thread) = self.alive.get(&tid).and_then(|i| self.threads.get_mut(*i)) {
            name.clone_into(&mut thread.name);
        }
        if pid == tid
            && let Some(image) = self.current(pid)
        {
            name.clone_into(&mut image.name);
        }
    }

    /// The end of a thread; true when it was the last of its process.
    pub(super) fn exit(
        &mut self,
        at: u64,
        pid: u32,
        tid: u32,
        last: Option<bool>,
        status: Option<i32>,
    ) -> bool {
        self.thread_ends(at, tid);
        self.ended.insert(tid);
        let none_left = self.members.get_mut(&pid).is_none_or(|members| {
            members.remove(&tid);
            members.is_empty()
        });
        let last = last.unwrap_or(none_left);
        if last {
            if let Some(image) = self.images.remove(&pid).and_then(|i| self.processes.get_mut(i)) {
                image.ended = Some(Nanos(at));
                image.status = status;
            }
            self.members.remove(&pid);
            self.tree.remove(&pid);
        }
        last
    }

    fn thread_ends(&mut self, at: u64, tid: u32) {
        if let Some(thread) = self.alive.remove(&tid).and_then(|i| self.threads.get_mut(i)) {
            thread.ended = Some(Nanos(at));
        }
    }

    fn current(&mut self, pid: u32) -> Option<&mut Process> {
        self.images.get(&pid).and_then(|i| self.processes.get_mut(*i))
    }

    fn image(&mut self, at: u64, how: Began, pid: u32, parent: u32, name: &str) {
        if let Some(before) = self.current(pid) {
            before.ended = Some(Nanos(at));
        }
        self.images.insert(pid, self.processes.len());
        self.processes.push(Process {
            began: Nanos(at),
            how,
            pid,
            parent,
            name: name.to_owned(),
            executable: None,
            arguments: None,
            in_tree: self.in_tree(pid),
            ended: None,
            status: None,
        });
    }

    fn thread(&mut self, at: u64, pid: u32, tid: u32, name: &str) {
        // A tid that lives on in another process was reused without its end being seen.
        let stale = self.alive.get(&tid).and_then(|i| self.threads.get(*i)).is_some_and(|t| t.pid != pid);
        if self.alive.contains_key(&tid) && !stale {
            return;
        }
        self.alive.insert(tid, self.threads.len());
        self.ended.remove(&tid);
        self.members.entry(pid).or_default().insert(tid);
        self.threads.push(Thread {
            began: Nanos(at),
            tid,
            pid,
            name: name.to_owned(),
            in_tree: self.in_tree(pid),
            ended: None,
        });
    }
}
