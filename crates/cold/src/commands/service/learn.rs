//! Learning without being asked: who starts cold is noticed, its next start recorded, its plan made.
//!
//! Three threads. One looks at young processes a few times ([`cold_service::learning::LOOKS`]). One keeps a recorder
//! armed while there is something to learn, and follows the start that it waited for. The third makes the plan of what was
//! recorded (0.1 to 0.3 s), while a recorder waits again. No start waits for any of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cold_launch::may_hang;
use cold_model::{Nanos, path_text};
use cold_plan::plan::{Key, Standing};
use cold_plan::store::{MOST_USERS, Private};
use cold_plan::{Match, Plan, Store};
use cold_service::learning::Waits;
use cold_service::{Candidates, Opened};
use cold_sys::exec_watch::{ExecWatch, ExecutedFile};
use cold_sys::procfs::ProcFs;
use cold_sys::time::{monotonic, thread_cpu};
use cold_trace::record::Spare;
use serde::{Deserialize, Serialize};

use super::arguments::{self, Given};
use super::history::{Entry, Name};
use super::lesson::{Armed, Lesson, Recorded};
use super::programs::Chosen;
use super::serve::Shared;

mod awaited;
mod checks;
mod notice;

use awaited::Awaited;
use checks::Checks;
use notice::notice;

/// Between two looks at what is wanted, and whether the service ends.
const LOOK: Duration = Duration::from_millis(500);
/// Young processes that are looked at at the same time.
const MOST_YOUNG: usize = 64;
/// Starts that are told to a thread and not yet taken.
const QUEUE: usize = 64;
/// A recorder that has waited for so long lets go of the code that lessons ran, 13 MB: the next one may be days away. Not
/// at once: behind an emptied cache it would have to read its own code first, and come too late for short programs (2 to
/// 7 of 27 learnt; 22 to 27 with it).
const IDLE: Nanos = Nanos(120_000_000_000);
/// After a recorder could not be armed.
const REFUSED: Nanos = Nanos(600_000_000_000);

/// A start that was heard of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Young {
    pub(super) pid: i32,
    /// When it was heard (`CLOCK_MONOTONIC`).
    pub(super) at: Nanos,
    /// The file that was executed.
    file: ExecutedFile,
    /// What the same process opened to execute just before: of a script that itself.
    before: Option<ExecutedFile>,
}

/// What `cold service status` tells of learning.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Learning {
    /// Why nothing can be learnt here; none: it can.
    pub(crate) problem: Option<String>,
    /// A recorder waits for the next start of a program.
    pub(crate) armed: bool,
    /// Plans, and what users need beside them, learnt since the service began.
    pub(crate) learnt: u64,
    /// CPU time that recording and evaluating took in the last hour, nanoseconds.
    pub(crate) cpu_ns: u64,
    /// Programs that were cold and have no plan, or nothing beside it for their user.
    pub(crate) waiting: Vec<Waiting>,
}

/// A program that is to be learnt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    #[serde(flatten)]
    pub(crate) name: Name,
    /// Why its last start was not learnt; none: its next one will be recorded.
    pub(crate) why: Option<String>,
    /// It is not tried again.
    pub(crate) given_up: bool,
}

impl Waiting {
    /// Its name, and what it waits for.
    pub(crate) fn words(&self) -> String {
        let what = match (&self.why, self.given_up) {
            (None, _) => "started cold; its next start is recorded".to_owned(),
            (Some(why), false) => format!("tried again after a minute: {why}"),
            (Some(why), true) => format!("given up: {why}"),
        };
        format!("{} ({}): {what}", self.name.program(), self.name.scenario)
    }

    /// Whether it is called so: by its path or its last name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let paths = [Some(&self.name.executable), self.name.script.as_ref()];
        paths.into_iter().flatten().any(|path| path == name || path_text::base(path) == name)
    }
}

/// What the threads know.
pub(super) struct Inner {
    pub(super) store: Store,
    /// Where what is known of devices lies.
    pub(super) state: PathBuf,
    chosen: Chosen,
    shared: Arc<Shared>,
    candidates: Mutex<Candidates<Name>>,
    awaited: Mutex<Awaited>,
    checks: Mutex<Checks>,
    /// A start was cold that the recorder may not wait for yet.
    added: AtomicBool,
    told: Mutex<(Option<String>, u64)>,
    pub(super) end: AtomicBool,
}

/// The threads, and what the one that hears tells them.
pub(super) struct Learner {
    inner: Arc<Inner>,
    young: SyncSender<Young>,
    starts: SyncSender<Young>,
    opened: Opened<ExecutedFile>,
    threads: Vec<JoinHandle<()>>,
}

impl Learner {
    pub(super) fn start(
        store: Store,
        state: PathBuf,
        chosen: Chosen,
        shared: Arc<Shared>,
    ) -> std::io::Result<Self> {
        let inner = Arc::new(Inner {
            store,
            state,
            chosen,
            shared,
            candidates: Mutex::new(Candidates::expected(monotonic())),
            awaited: Mutex::default(),
            checks: Mutex::default(),
            added: AtomicBool::new(false),
            told: Mutex::default(),
            end: AtomicBool::new(false),
        });
        let (young, looks) = sync_channel(QUEUE);
        let (starts, waits) = sync_channel(1);
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        // More than one that waits would only be held up longer.
        let (recorded, evaluates) = sync_channel(1);
        let (one, two, three) = (Arc::clone(&inner), Arc::clone(&inner), Arc::clone(&inner));
        let threads = vec![
            thread("notice").stack_size(256 << 10).spawn(move || notice(&one, &looks))?,
            thread("learn").spawn(move || learn(&two, &waits, &recorded))?,
            // Assembling and analysing a recording wants a usual stack.
            thread("evaluate").spawn(move || evaluate(&three, &evaluates))?,
        ];
        Ok(Self { inner, young, starts, opened: Opened::default(), threads })
    }

    /// A process opened a file to execute it. `busy`: so many do that none is looked at.
    pub(super) fn heard(&mut self, file: ExecutedFile, pid: i32, at: Nanos, busy: bool) {
        let before = self.opened.heard(pid, file, at);
        let young = Young { pid, at, file, before };
        if self.inner.awaited().takes(&file, pid) {
            // One start at a time: the next one is as good.
            let _one_is_recorded: Result<(), TrySendError<Young>> = self.starts.try_send(young);
        } else if !busy {
            // Where the thread does not keep up the next start will do.
            let _left_out = self.young.try_send(young);
        }
    }

    /// The recorder waits for a start of this file.
    pub(super) fn awaits(&self, file: &ExecutedFile) -> bool {
        self.inner.awaited().has(file)
    }

    /// Its executable is another one than the plan was learnt with.
    pub(super) fn is_outdated(&self, key: &Key) {
        self.inner.candidates().was_cold(Name::of(key), monotonic());
    }

    pub(super) fn inner(&self) -> Arc<Inner> {
        Arc::clone(&self.inner)
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        self.inner.end.store(true, Ordering::Relaxed);
        // What is recorded is given up, and its directory removed.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Inner {
    fn candidates(&self) -> MutexGuard<'_, Candidates<Name>> {
        self.candidates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, (Option<String>, u64)> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// For `cold service status`.
    pub(super) fn status(&self) -> Learning {
        let (problem, learnt) = self.told().clone();
        let candidates = self.candidates();
        let waiting = candidates.all().map(|(name, waits)| {
            let given_up = matches!(waits, Waits::GivenUp(_));
            let why = match waits {
                Waits::ForAStart => None,
                Waits::Rests(why) | Waits::GivenUp(why) => Some(why),
            };
            Waiting { name: name.clone(), why, given_up }
        });
        let waiting = waiting.collect();
        let cpu_ns = candidates.spent_lately(monotonic()).0;
        drop(candidates);
        Learning { problem, armed: self.awaited().files.is_some(), learnt, cpu_ns, waiting }
    }

    /// What the plan of a start is kept by; none where that cannot be told (yet), is not chosen, or is nobody else's
    /// business: what is learnt here everybody may read.
    pub(super) fn key_of(&self, young: &Young) -> Option<Key> {
        let executable = ProcFs::default().exe(young.pid).ok()?;
        let is = |path: &Path, file| ExecWatch::ids_of(path).is_ok_and(|ids| ids.contains(&file));
        let mounts = Arc::clone(&self.shared.machine().mounts);
        // Of another root directory the path leads to another file here, or to none.
        if may_hang(&mounts, &executable) || !is(&executable, young.file) {
            return None;
        }
        let script =
            young.before.and_then(|before| arguments::script(young.pid, &mounts, &|path| is(path, before)));
        let Given::Plan(key) = arguments::given(young.pid, &executable, script.as_deref(), &mounts) else {
            return None;
        };
        let open = self.is_open(&key.executable) && key.script.as_deref().is_none_or(|s| self.is_open(s));
        let told = cold_service::learning::may_be_told(&key.scenario);
        (open && told && self.chosen.has(&key)).then_some(*key)
    }

    /// Everybody may read this file, and no server is asked for that.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        let mounts = Arc::clone(&self.shared.machine().mounts);
        !may_hang(&mounts, path) && cold_sys::place::everybody_may_read(path)
    }

    /// What lies there may be kept in the part of a plan that only this service reads: not left out by choice, encrypted,
    /// or behind a server.
    pub(super) fn may_keep(&self, path: &Path) -> bool {
        let mounts = Arc::clone(&self.shared.machine().mounts);
        !self.chosen.excepts(path) && !may_hang(&mounts, path) && !cold_sys::place::is_encrypted(path)
    }

    /// The plan that was learnt with this executable, if there is one.
    pub(super) fn good_plan(&self, key: &Key) -> Result<Option<Plan>, String> {
        let plan = self.store.load(key).map_err(|e| e.to_string())?;
        let same = |plan: &Plan| {
            let meta = key.executable.metadata();
            meta.is_ok_and(|meta| plan.key.identity.matches(&meta) != Match::Changed)
        };
        Ok(plan.filter(same))
    }

    /// Whether there is something to learn from a program that started cold for this user: it has no good plan, or one
    /// that was followed and knows nothing of what starts of this user need. What cannot be read is left alone.
    fn is_worth(&self, key: &Key, user: Option<u32>) -> bool {
        match self.good_plan(key) {
            Err(_) => false,
            Ok(None) => true,
            Ok(Some(plan)) => !matches!(plan.standing, Standing::Off(_)) && self.lacks_part(key, user),
        }
    }

    /// Whether nothing is known of what starts of this user need beside the plan, and can be kept.
    pub(super) fn lacks_part(&self, key: &Key, user: Option<u32>) -> bool {
        let lacks =
            |parts: Vec<Private>| parts.len() < MOST_USERS && parts.iter().all(|p| Some(p.user) != user);
        user.is_some() && self.store.private(key).is_ok_and(lacks)
    }

    /// Whether a recorder is to wait.
    fn is_recorder_wanted(&self) -> bool {
        !self.shared.rests() && self.candidates().is_recorder_wanted(monotonic())
    }

    /// A recorder waits from now on: for all whose next start is to be recorded.
    fn await_wanted(&self) {
        // The paths are looked at without the lock, which no start is to wait for: a program that is noticed meanwhile
        // may find no list to add itself to.
        loop {
            self.added.store(false, Ordering::Relaxed);
            let files = self.files();
            self.awaited().files = Some(files);
            if !self.added.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// The files whose next start is to be recorded.
    fn files(&self) -> Vec<ExecutedFile> {
        let candidates = self.candidates();
        let wanted = candidates.awaited(monotonic()).map(|w| path_text::decode(&w.executable));
        wanted.flat_map(|path| ExecWatch::ids_of(&path).unwrap_or_default()).collect()
    }

    /// A start of it was recorded for so much CPU time, and what comes of it will be told: no other one is recorded until then.
    fn recorded(&self, key: &Key, cpu: Nanos) {
        let now = monotonic();
        let mut candidates = self.candidates();
        candidates.spent(cpu, now);
        candidates.recorded(&Name::of(key), now);
        drop(candidates);
        self.checks().tried(&Name::of(key));
    }

    /// What came of a recorded start, which cost so much CPU time.
    fn done(&self, lesson: &Lesson, cpu: Nanos) {
        let now = monotonic();
        let mut candidates = self.candidates();
        candidates.spent(cpu, now);
        match lesson {
            Lesson::Learnt(key) | Lesson::Checked(key, _) => candidates.forget(&Name::of(key)),
            Lesson::Failed(key, why) => candidates.failed(&Name::of(key), why.clone(), now),
            Lesson::Missed { key, missed, took } => {
                let why =
                    format!("of its last start ({took}) {missed} were over when its pages began to be seen");
                candidates.rests(&Name::of(key), why, now);
            }
            Lesson::Other => {}
        }
        drop(candidates);
        if let Lesson::Checked(key, check) = lesson {
            self.is_checked(key, *check);
        }
        if let Lesson::Learnt(key) = lesson {
            self.told().1 += 1;
            let name = Name::of(key);
            self.tell("learnt", format!("{} ({})", name.program(), name.scenario));
        }
    }

    /// Writes down that this happened.
    pub(super) fn tell(&self, what: &'static str, detail: String) {
        self.shared.recorder.add(Entry::Event { what, detail });
    }

    /// It started cold: its next start is to be recorded. By a recorder that waits already that may be the very next
    /// moment; none is armed for it at once, as that takes the processor from the start that was seen.
    fn was_cold(&self, key: &Key, young: &Young) {
        let name = Name::of(key);
        let mut candidates = self.candidates();
        candidates.was_cold(name.clone(), monotonic());
        let wanted = candidates.wants(&name, monotonic());
        drop(candidates);
        if wanted {
            let files = ExecWatch::ids_of(&key.executable).unwrap_or_default();
            self.await_next(&files, std::iter::once(*young));
        }
    }

    /// A recorder that waits does so for the next start of these files, too; `before` is the one before.
    fn await_next(&self, files: &[ExecutedFile], before: impl Iterator<Item = Young>) {
        self.added.store(true, Ordering::Relaxed);
        let mut awaited = self.awaited();
        before.for_each(|young| awaited.was_cold(young));
        if let Some(awaited) = awaited.files.as_mut() {
            awaited.extend(files);
        }
    }

    /// Whether the next start of this kind is to be recorded.
    pub(super) fn wants(&self, key: &Key) -> bool {
        self.candidates().wants(&Name::of(key), monotonic())
    }
}

/// Keeps a recorder armed while something is to be learnt, and records what comes, until the service ends.
fn learn(inner: &Inner, from: &Receiver<Young>, to: &SyncSender<Recorded>) {
    let (mut armed, mut rests_until): (Option<Armed>, Nanos) = (None, Nanos(0));
    let (mut spare, mut worked): (Spare, Option<Nanos>) = (Spare::default(), None);
    while !inner.ends() {
        if !inner.is_recorder_wanted() {
            armed = None;
            spare = Spare::default();
        } else if armed.is_none() && monotonic() >= rests_until {
            let before = thread_cpu();
            match Armed::new(&spare) {
                Ok(one) => {
                    // Loading took tens of MB, and it may wait for days.
                    cold_sys::heap::give_back();
                    inner.told().0 = None;
                    (armed, worked) = (Some(one), Some(monotonic()));
                    // Starts that came while another one was recorded are over.
                    while from.try_recv().is_ok() {}
                }
                Err(why) => {
                    inner.told().0 = Some(why);
                    rests_until = monotonic() + REFUSED;
                }
            }
            inner.candidates().spent(thread_cpu().saturating_sub(before), monotonic());
        }
        if worked.is_some_and(|at| monotonic().saturating_sub(at) >= IDLE) {
            worked = None;
            cold_sys::own_code::give_back();
        }
        match armed {
            Some(_) => inner.await_wanted(),
            None => inner.awaited().files = None,
        }
        match from.recv_timeout(LOOK) {
            Ok(young) => {
                inner.awaited().files = None;
                let Some(one) = armed.take() else { continue };
                let before = thread_cpu();
                let recorded = one.record(inner, &young);
                let cpu = thread_cpu().saturating_sub(before);
                match recorded {
                    Ok(recorded) => {
                        inner.recorded(recorded.key(), cpu);
                        // Where the other thread is not done with the one before, no start is recorded meanwhile.
                        let Ok(()) = to.send(recorded) else { return };
                    }
                    Err(lesson) => {
                        inner.done(&lesson, cpu);
                        if matches!(lesson, Lesson::Other) {
                            inner.awaited().was_other(young.file);
                        }
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Makes plans of what was recorded, until nothing more comes.
fn evaluate(inner: &Inner, from: &Receiver<Recorded>) {
    while let Ok(recorded) = from.recv() {
        if inner.ends() {
            return;
        }
        let before = thread_cpu();
        let (lesson, others) = recorded.evaluate(inner);
        // The tables of a recording are tens of MB, and the next lesson may be days away.
        cold_sys::heap::give_back();
        inner.done(&lesson, thread_cpu().saturating_sub(before) + others);
    }
}
