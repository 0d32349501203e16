//! Who first asked for a file, or for names in a directory.

use std::collections::HashMap;

use cold_gate::Asked;
use cold_model::Nanos;
use cold_model::recording::{FileIdx, StackIdx};

use crate::context::{Context, is_miss};
use crate::stacks::frames;

/// One event that asked for something.
#[derive(Debug, Clone, Copy)]
struct Asking {
    at: Nanos,
    pid: u32,
    stack: Option<StackIdx>,
}

/// The first events about each file and each searched directory.
pub(super) struct Askers {
    files: HashMap<FileIdx, Asking>,
    directories: HashMap<String, Asking>,
}

impl Askers {
    /// Of every file and directory: the first event that has a stack, else the first.
    pub(super) fn of(cx: &Context<'_>) -> Self {
        let (mut files, mut directories) = (HashMap::new(), HashMap::new());
        for (_, l) in cx.lookups() {
            let event = Asking { at: l.at, pid: l.pid, stack: l.stack };
            if let Some(file) = l.file.filter(|_| l.result >= 0) {
                note(&mut files, file, event);
            }
            if is_miss(l) {
                note(&mut directories, crate::misses::directory(l), event);
            }
        }
        for t in cx.recording.touches.iter().flatten().filter(|t| cx.window.holds(t.at)) {
            note(&mut files, t.file, Asking { at: t.at, pid: t.pid, stack: t.stack });
        }
        Self { files, directories }
    }

    pub(super) fn of_file(&self, cx: &Context<'_>, file: FileIdx) -> Option<Asked> {
        self.files.get(&file).map(|e| e.told(cx))
    }

    pub(super) fn of_directory(&self, cx: &Context<'_>, directory: &str) -> Option<Asked> {
        self.directories.get(directory).map(|e| e.told(cx))
    }
}

fn note<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Asking>, key: K, event: Asking) {
    let rank = |e: &Asking| (e.stack.is_none(), e.at);
    map.entry(key).and_modify(|e| *e = if rank(&event) < rank(e) { event } else { *e }).or_insert(event);
}

impl Asking {
    fn told(self, cx: &Context<'_>) -> Asked {
        let images = cx.recording.processes.iter().filter(|p| p.pid == self.pid && p.began <= self.at);
        let process = images.max_by_key(|p| p.began).map_or_else(|| "?".to_owned(), |p| p.name.clone());
        let stack = self.stack.map(|s| frames(cx, Some(s))).unwrap_or_default();
        Asked { process, pid: self.pid, stack }
    }
}
