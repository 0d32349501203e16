//! A command that goes on running where a start ends with it: said early to whoever waits, with what would end its
//! starts. Otherwise the first word about a server without `--ready` comes when the time limit is over.

use std::time::{Duration, Instant};

use cold_sys::procfs::ProcFs;
use cold_sys::tree::descendants;

use crate::ready::Ready;
use crate::session::Progress;

/// Most programs that end by themselves have done so by then, and a person still waits.
pub(crate) const AFTER: Duration = Duration::from_secs(5);

/// Looks once, [`AFTER`] the beginning.
pub(crate) struct Lingering<'a> {
    command: &'a str,
    /// Whoever starts the command: what descends from it is the tree.
    root: i32,
    began: Instant,
    looked: bool,
    port: Option<u16>,
}

impl<'a> Lingering<'a> {
    /// For a start that ends when its tree has exited; others say themselves when they are ready.
    pub(crate) fn watch(ready: &Ready, command: &'a str, root: i32) -> Option<Self> {
        let by_exit = matches!(ready, Ready::Exit);
        by_exit.then(|| Self { command, root, began: Instant::now(), looked: false, port: None })
    }

    /// Looks when it is time, and tells.
    pub(crate) fn look(&mut self, progress: &mut dyn Progress) {
        if self.looked || self.began.elapsed() < AFTER {
            return;
        }
        self.looked = true;
        let proc = ProcFs::default();
        self.port = proc.tcp_ports_of(&descendants(&proc, self.root)).first().copied();
        let (name, seconds) = (self.command, AFTER.as_secs());
        match self.port {
            Some(port) => progress.warn(&format!(
                "{name} is still running after {seconds} s and listens on {port}: a server? With --ready \
                 port:{port} a start is over when it listens"
            )),
            None => progress.step(&format!(
                "{name} is still running after {seconds} s; if it does not end by itself, say with --ready when \
                 it is ready"
            )),
        }
    }

    /// The port on which it was found to listen.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }
}
