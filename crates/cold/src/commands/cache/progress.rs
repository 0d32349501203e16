//! Progress on stderr for whatever takes longer than a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use cold_cache::Progress;
use cold_model::Bytes;
use indicatif::ProgressBar;

use crate::ui::Ui;
use crate::words::count;

/// Nothing is drawn before this: most calls are over by then.
const PATIENCE: Duration = Duration::from_secs(1);

/// The latest figures.
#[derive(Default)]
pub(super) struct Counter {
    files: AtomicU64,
    bytes: AtomicU64,
    total: AtomicU64,
}

impl Progress for Counter {
    fn files(&self, done: u64) {
        self.files.fetch_max(done, Ordering::Relaxed);
    }
    fn bytes(&self, done: u64, total: u64) {
        self.bytes.fetch_max(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }
}

impl Counter {
    fn text(&self, label: &str) -> String {
        let (files, bytes) = (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed));
        let total = self.total.load(Ordering::Relaxed);
        if total > 0 {
            format!("{label}: {} of at most {}", Bytes(bytes), Bytes(total))
        } else if files > 0 {
            format!("{label}: {}", count(files))
        } else {
            label.to_owned()
        }
    }
}

/// Runs `work`; after a second, what it reports is drawn until it is done.
pub(super) fn during<T>(ui: &Ui, label: &str, work: impl FnOnce(&Counter) -> T) -> T {
    let counter = Counter::default();
    if !ui.shows_progress() {
        return work(&counter);
    }
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        // Without a thread there is no progress to be seen.
        let _ = std::thread::Builder::new().spawn_scoped(scope, || {
            let wait = wait;
            if wait.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner();
            while wait.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                bar.set_message(counter.text(label));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        let result = work(&counter);
        drop(done);
        result
    })
}
