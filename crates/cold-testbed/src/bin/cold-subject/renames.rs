//! Saving files as programs do: written beside the old one, synced, renamed over it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;

use crate::Failure;

#[derive(Args)]
pub(crate) struct Renames {
    dir: PathBuf,
    /// Threads, each of which saves files of its own
    threads: u32,
    /// Files that each of them saves
    files: u32,
}

impl Renames {
    pub(crate) fn run(self) -> Result<(), Failure> {
        thread::scope(|scope| {
            let (dir, files) = (&self.dir, self.files);
            let all: Vec<_> = (0..self.threads)
                .map(|thread| scope.spawn(move || (0..files).try_for_each(|n| save(dir, thread, n))))
                .collect();
            all.into_iter().try_for_each(|t| Ok(t.join().map_err(|_| "a thread panicked")??))
        })
    }
}

fn save(dir: &Path, thread: u32, n: u32) -> io::Result<()> {
    let saved = dir.join(format!("saved{thread}-{n}"));
    let new = saved.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(&[b'x'; 8192])?;
    file.sync_all()?;
    fs::rename(new, saved)
}
