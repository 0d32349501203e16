//! The start itself: decide, leave a helper behind, become the program.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::Nanos;
use cold_plan::Judgement;
use cold_plan::format::View;
use cold_plan::history::{self, LaunchKind, Record};
use cold_sys::detached;
use cold_sys::pidfd::PidFd;
use cold_sys::shared::SharedWords;
use cold_sys::time::{monotonic, process_cpu};

use crate::early;
use crate::engine::{Engine, Limits};
use crate::load::{self, Loaded, PlanPlace};
use crate::options::{Options, Skip};
use crate::places::Places;
use crate::prepare::{self, Conditions, Surroundings};
use crate::progress::{self, Progress};
use crate::record;
use crate::watch::{self, Target};
use crate::wrappers;

/// What is done for a start.
#[derive(Debug)]
pub enum Decision {
    /// The plan is followed.
    Replay,
    /// It could be followed, but this start goes without, for comparison.
    Control,
    /// It is not followed.
    Skip(Skip),
}

/// What a launch found and did.
#[derive(Debug)]
pub struct Explanation {
    /// The plan's file, where one was found.
    pub plan: Option<PathBuf>,
    /// What was seen.
    pub seen: Conditions,
    /// What is done.
    pub decision: Decision,
    /// Time that finding out took.
    pub took: Duration,
}

/// Everything a replay needs, found out but not begun.
struct Ready<'a> {
    view: View<'a>,
    places: Places,
    limits: Limits,
}

/// Says what [`launch`] would do now, and does nothing.
pub fn explain(options: &Options) -> Explanation {
    let began = Instant::now();
    let mut seen = Conditions::default();
    let loaded = match load::find(options, None) {
        Ok(loaded) => loaded,
        Err(skip) => {
            return Explanation { plan: None, seen, decision: Decision::Skip(skip), took: began.elapsed() };
        }
    };
    let ready = loaded.view().and_then(|view| ready(view, options, began, &mut seen));
    let decision = match ready {
        Ok(ready) if is_control(&loaded, ready.view, options) => Decision::Control,
        Ok(_) => Decision::Replay,
        Err(skip) => Decision::Skip(skip),
    };
    Explanation { plan: Some(loaded.path), seen, decision, took: began.elapsed() }
}

/// Starts the command by its plan, by becoming it. Returns only when the command itself cannot be
/// executed, with the kernel's reason. `tell` hears what was decided, just before.
///
/// Must be called while the process has one thread; with several the command starts without its plan.
pub fn launch(options: &Options, tell: &mut dyn FnMut(&Explanation)) -> std::io::Error {
    let (began, began_at) = (Instant::now(), monotonic());
    let early = early::ask(options);
    let other = match wrappers::instead(&options.command) {
        Ok(other) => other.map(|command| Options { command, ..options.clone() }),
        Err(endless) => return std::io::Error::other(endless),
    };
    let options = other.as_ref().unwrap_or(options);
    let mut seen = Conditions::default();
    let loaded = load::find(options, early);
    let plan = loaded.as_ref().ok().map(|l| l.path.clone());
    let decided = loaded.and_then(|loaded| decide(&loaded, options, (began, began_at), &mut seen));
    let decision = decided.unwrap_or_else(Decision::Skip);
    tell(&Explanation { plan, seen, decision, took: began.elapsed() });
    cold_sys::exec::become_program(&options.command)
}

fn decide(
    loaded: &Loaded,
    options: &Options,
    (began, began_at): (Instant, Nanos),
    seen: &mut Conditions,
) -> Result<Decision, Skip> {
    let view = loaded.view()?;
    let ready = ready(view, options, began, seen).inspect_err(|skip| note(loaded, view, options, skip))?;
    let shared = SharedWords::new()?;
    if detached::gets_orphans() {
        return read_first(loaded, view, options, &ready, &shared);
    }
    // What cannot be entered cannot be counted: then every start would be a control, for ever.
    let control = is_control(loaded, view, options)
        && entered_at(loaded, options).is_some_and(|place| history::can_grow(&place.history));
    let target = target(view, began_at, options.deadline)?;
    let process = target.process.as_fd().as_raw_fd();
    let mut help = || {
        detached::drop_inherited(c"cold-launch", &[process]);
        detached::make_room_for_files(ready.limits.most_open());
        let places = ready.places.closed();
        let engine = (!control).then(|| Engine::new(view, &places, &shared, ready.limits));
        let mut entered = None;
        attend(&target, engine.as_ref(), ready.limits.deadline, |seen| match &entered {
            None => entered = enter(loaded, view, options, engine.as_ref(), seen),
            Some((place, record)) => {
                if let Some(mark) = seen.mark {
                    record::add_mark(place, record, mark);
                }
            }
        });
    };
    detached::run(&mut help)?;
    if control {
        return Ok(Decision::Control);
    }
    let (most, still) = prepare::patience(ready.limits.gate, options);
    hold(&shared, most, still);
    Ok(Decision::Replay)
}

/// Enters a start in the history, and says where and what. In a helper, because a write may wait for a disk.
fn enter<'a>(
    loaded: &'a Loaded,
    view: View<'_>,
    options: &Options,
    engine: Option<&Engine<'_>>,
    seen: watch::Seen,
) -> Option<(&'a Path, Record)> {
    let place = entered_at(loaded, options)?;
    let kind = match engine {
        None => LaunchKind::Control,
        Some(e) if e.is_stale() => LaunchKind::Skipped(history::Skip::Stale),
        Some(_) => LaunchKind::Prefetched,
    };
    let done = engine.map(|e| (e.tally(), seen.finished));
    // Nobody is left to be told; a start less in the history is no harm.
    let (record, _) = record::append(&place.history, view.id(), kind, seen.mark, done);
    if engine.is_none() {
        switch_off(place, view);
    }
    Some((&place.history, record))
}

/// Switches the plan off when its history, of which a control is the latest, shows that it does harm or nothing.
/// In a helper. Of the system's plans only root can.
fn switch_off(place: &PlanPlace, view: View<'_>) {
    if let Some(Judgement::Disable { why }) = record::judge(place, view) {
        // Where it cannot be written it is followed on, and the next control finds the same.
        let _ = place.store.switch_off(&place.key, view.id(), why);
    }
}

/// The first process of a container, and every other to whom orphans fall, cannot leave a helper behind: the
/// program would get a child that it does not know. So all of the plan is read before the program begins, which
/// on every disk measured takes less time than the program waits without. Nobody watches the program, so there
/// is no mark, and no control.
fn read_first(
    loaded: &Loaded,
    view: View<'_>,
    options: &Options,
    ready: &Ready<'_>,
    shared: &SharedWords,
) -> Result<Decision, Skip> {
    let mut help = || {
        detached::drop_inherited(c"cold-launch", &[]);
        detached::make_room_for_files(ready.limits.most_open());
        let places = ready.places.closed();
        let engine = Engine::new(view, &places, shared, ready.limits);
        engine.run();
        let seen = watch::Seen { mark: None, finished: true };
        enter(loaded, view, options, Some(&engine), seen);
    };
    let mut patience = Patience::new(options.deadline, prepare::WITHOUT_PROGRESS);
    detached::run_to_end(&mut help, &mut || !patience.left(shared, progress::STEPS).is_zero())?;
    Ok(Decision::Replay)
}

fn ready<'a>(
    view: View<'a>,
    options: &Options,
    began: Instant,
    seen: &mut Conditions,
) -> Result<Ready<'a>, Skip> {
    prepare::usable(view)?;
    let (places, mounts) = prepare::places(view)?;
    let around = Surroundings { mounts: &mounts, weather: None };
    let limits = prepare::limits(view, &places, around, options, began, seen)?;
    Ok(Ready { view, places, limits })
}

/// Where this start is to be entered, if anywhere.
fn entered_at<'a>(loaded: &'a Loaded, options: &Options) -> Option<&'a PlanPlace> {
    loaded.place.as_ref().filter(|_| options.history)
}

fn is_control(loaded: &Loaded, view: View<'_>, options: &Options) -> bool {
    entered_at(loaded, options).is_some_and(|p| record::is_control(&p.history, view, options.control_every))
}

/// Enters a start without replay in the history. In a helper, because a write may wait for a disk.
fn note(loaded: &Loaded, view: View<'_>, options: &Options, skip: &Skip) {
    let (Some(place), Some(kind)) = (entered_at(loaded, options), record::kind_of(skip)) else { return };
    let mut write = || {
        detached::drop_inherited(c"cold-launch", &[]);
        record::append(&place.history, view.id(), kind, None, None);
    };
    // A line less in the history is no reason to say anything, and none to give the program a child.
    if !detached::gets_orphans() {
        let _ = detached::run(&mut write);
    }
}

fn target(view: View<'_>, began: Nanos, deadline: Duration) -> Result<Target, Skip> {
    let pid = std::process::id().cast_signed();
    let gone = || cold_sys::Error::io("open", format!("pid {pid}"), std::io::ErrorKind::NotFound.into());
    let learnt = view.learnt();
    Ok(Target {
        process: PidFd::open(pid)?.ok_or_else(gone)?,
        began,
        cpu_before: process_cpu(pid).unwrap_or(Nanos(0)),
        ready_cpu_ns: learnt.own_cpu_ns,
        goes_on: learnt.goes_on,
        watch: watch::patience(&learnt, deadline),
    })
}

/// In the helper: replays while a second thread watches; that thread ends the process. `tell` hears when the
/// reading has ended and when the watching has, or both at once.
fn attend(
    target: &Target,
    engine: Option<&Engine<'_>>,
    deadline: Instant,
    mut tell: impl FnMut(watch::Seen) + Send,
) {
    let done = AtomicBool::new(engine.is_none());
    let mut watch = || {
        let seen = watch::watch(target, engine, &done, deadline, &mut tell);
        if let Some(engine) = engine {
            engine.stop();
        }
        tell(seen);
        // Not by returning: a thread that a dead server or disk holds would be waited for.
        detached::end()
    };
    let Some(engine) = engine else { watch() };
    std::thread::scope(|scope| {
        // Without a second thread there is nobody to end the replay in time: then there is none.
        if std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, watch).is_ok() {
            engine.run();
            done.store(true, Ordering::Release);
        } else {
            engine.stop();
        }
    });
}

/// Holds the start back until its critical prefix is there, at most `most`, and no longer than `still`
/// without progress.
fn hold(shared: &SharedWords, most: Duration, still: Duration) {
    let mut patience = Patience::new(most, still);
    while !Progress(shared).is_open() {
        let left = patience.left(shared, progress::CRITICAL);
        if left.is_zero() {
            return;
        }
        Progress(shared).wait_for_gate(left);
    }
}

/// For how long a helper is waited for.
struct Patience {
    began: Instant,
    most: Duration,
    still: Duration,
    /// What the helper had counted, and since when.
    seen: (u32, Instant),
}

impl Patience {
    /// At most `most`, and no longer than `still` without progress.
    fn new(most: Duration, still: Duration) -> Self {
        let began = Instant::now();
        Self { began, most, still, seen: (0, began) }
    }

    /// What is left of it, while the helper counts in this word.
    fn left(&mut self, shared: &SharedWords, word: usize) -> Duration {
        let count = Progress(shared).word(word).load(Ordering::Relaxed);
        let now = Instant::now();
        if count != self.seen.0 {
            self.seen = (count, now);
        }
        self.most.saturating_sub(now - self.began).min(self.still.saturating_sub(now - self.seen.1))
    }
}
