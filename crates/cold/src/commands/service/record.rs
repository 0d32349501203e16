//! The thread that writes the history down, so that no start waits for a disk.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::history::{Entry, History, Row, Used};
use super::place;
use crate::database::Problem;

/// Entries wait so long to be written together.
const BATCH: Duration = Duration::from_secs(2);
/// More entries than this are not kept while the history cannot be written.
const MOST: usize = 4096;
/// Between two attempts to open one that could not be opened.
const AGAIN: Duration = Duration::from_mins(1);
/// Between two looks for what is too old.
const SHORTEN: Duration = Duration::from_hours(1);

enum Message {
    Entry(Box<Entry>),
    Rows(SyncSender<Result<Vec<Row>, String>>),
    Uses(SyncSender<Result<Vec<Used>, String>>),
    Forget(Option<String>, SyncSender<Result<u64, String>>),
    End,
}

/// Writes for all threads of the service.
#[derive(Debug)]
pub(crate) struct Recorder {
    to: SyncSender<Message>,
    thread: Option<std::thread::JoinHandle<()>>,
    problem: Arc<Mutex<Option<String>>>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}

impl Recorder {
    /// Into the database at `path`.
    pub(crate) fn start(path: PathBuf) -> std::io::Result<Self> {
        let (to, from) = sync_channel(MOST);
        let problem = Arc::new(Mutex::new(None));
        let mut writer =
            Writer { path, history: None, tried: None, waiting: Vec::new(), problem: Arc::clone(&problem) };
        let thread = std::thread::Builder::new().name("history".into()).stack_size(512 << 10);
        let thread = thread.spawn(move || writer.run(&from))?;
        Ok(Self { to, thread: Some(thread), problem })
    }

    /// Adds a line. Where the writer does not keep up it is left out: no start waits for it.
    pub(crate) fn add(&self, entry: Entry) {
        let _ = self.to.try_send(Message::Entry(Box::new(entry)));
    }

    /// Figures of every plan, everything written down before.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, String> {
        self.ask(Message::Rows)
    }

    /// See [`History::uses`].
    pub(crate) fn uses(&self) -> Result<Vec<Used>, String> {
        self.ask(Message::Uses)
    }

    /// See [`History::forget`].
    pub(crate) fn forget(&self, program: Option<String>) -> Result<u64, String> {
        self.ask(|back| Message::Forget(program, back))
    }

    fn ask<T>(&self, message: impl FnOnce(SyncSender<Result<T, String>>) -> Message) -> Result<T, String> {
        let (back, answer) = sync_channel(1);
        let gone = || "the thread that writes the history has ended".to_owned();
        self.to.send(message(back)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }

    /// Why there is no history just now.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.to.send(Message::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Writer {
    path: PathBuf,
    history: Option<History>,
    /// When it was last tried to open it.
    tried: Option<Instant>,
    waiting: Vec<Entry>,
    problem: Arc<Mutex<Option<String>>>,
}

impl Writer {
    fn run(&mut self, from: &Receiver<Message>) {
        let mut shortened: Option<Instant> = None;
        // Whether it can be written shows before it is needed.
        self.flush();
        loop {
            match from.recv_timeout(BATCH) {
                Ok(Message::Entry(entry)) => {
                    if self.waiting.len() < MOST {
                        self.waiting.push(*entry);
                    }
                    if self.gather(from) {
                        return;
                    }
                }
                Ok(message) => {
                    if self.answer(message) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if shortened.is_none_or(|at| at.elapsed() >= SHORTEN) {
                shortened = Some(Instant::now());
                // Where there is none, nothing has become well by this.
                if let Some(done) = self.history.as_mut().map(History::shorten) {
                    self.note(done);
                }
            }
        }
    }

    /// Waits for what comes together, then writes it; a question ends the waiting. Whether that was the end.
    fn gather(&mut self, from: &Receiver<Message>) -> bool {
        let end = Instant::now() + BATCH;
        loop {
            match from.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Message::Entry(entry)) if self.waiting.len() < MOST => self.waiting.push(*entry),
                Ok(Message::Entry(_)) => {}
                Ok(message) => return self.answer(message),
                Err(_) => {
                    self.flush();
                    return false;
                }
            }
        }
    }

    /// Whether that was the end.
    fn answer(&mut self, message: Message) -> bool {
        self.flush();
        match message {
            Message::Rows(back) => drop(back.send(self.asked(|h| h.rows()))),
            Message::Uses(back) => drop(back.send(self.asked(|h| h.uses()))),
            Message::Forget(program, back) => {
                self.waiting.clear();
                drop(back.send(self.asked(|h| h.forget(program.as_deref()))));
            }
            Message::Entry(_) => {}
            Message::End => return true,
        }
        false
    }

    /// The history's answer, or why there is no history.
    fn asked<T>(&mut self, ask: impl FnOnce(&mut History) -> Result<T, Problem>) -> Result<T, String> {
        match self.history.as_mut() {
            Some(history) => ask(history).map_err(|e| e.to_string()),
            None => {
                Err(self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default())
            }
        }
    }

    fn flush(&mut self) {
        if self.history.is_none() && self.tried.is_none_or(|at| at.elapsed() >= AGAIN) {
            self.tried = Some(Instant::now());
            let opened = self.open();
            self.history = self.note(opened);
        }
        let Some(history) = self.history.as_mut().filter(|_| !self.waiting.is_empty()) else { return };
        let done = history.add(&self.waiting);
        // What could not be written is tried again as long as there is room for it.
        if self.note(done).is_some() {
            self.waiting.clear();
        }
    }

    fn open(&self) -> Result<History, Problem> {
        let dir = self.path.parent().unwrap_or(&self.path);
        place::private(dir).map_err(|f| Problem::of_directory(&self.path, f.error.to_string()))?;
        History::open(&self.path)
    }

    fn note<T>(&mut self, done: Result<T, Problem>) -> Option<T> {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match done {
            Ok(value) => {
                *problem = None;
                Some(value)
            }
            Err(e) => {
                if !e.may_pass {
                    self.history = None;
                }
                *problem = Some(e.to_string());
                None
            }
        }
    }
}
