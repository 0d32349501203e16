//! For starts that somebody else makes: a service hears of them, and has their plans in memory.
//!
//! The same steps, questions, control starts and history as in a launch. Different are only who starts the program
//! (it runs already, so nothing is held back) and that everything happens in threads of one long-lived process:
//! plans are read into memory, as a mapped one that is cut short would end it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::Nanos;
use cold_plan::format::{StandingView, View};
use cold_plan::history::{self, LaunchKind, Record};
use cold_plan::plan::{Gate, Key, Learnt, Standing};
use cold_plan::{Judgement, Plan, Store};
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::Mount;
use cold_sys::shared::SharedWords;
use cold_sys::time::process_cpu;

use crate::brought::{Brought, Completed, Wanted};
use crate::engine::{Engine, Limits, Tally};
use crate::files::Files;
use crate::guard::Weather;
use crate::helped::{Charged, Helped, Helpers};
use crate::load::PlanPlace;
use crate::options::{Options, Skip};
use crate::places::Places;
use crate::prepare::{self, Conditions, Surroundings};
use crate::record;
use crate::watch::{self, Seen, Target};

/// A plan in memory, checked when it was taken there.
#[derive(Debug)]
pub struct Held {
    bytes: Vec<u8>,
    path: PathBuf,
    /// Where its starts are entered; `None` for one that was made up.
    place: Option<PlanPlace>,
    key: Key,
    id: u64,
}

impl Held {
    /// The plan of this key; `None` where the store has none.
    pub fn open(store: &Store, key: &Key) -> Result<Option<Self>, Skip> {
        let Some(opened) = store.open(key)? else { return Ok(None) };
        let (bytes, path) = (opened.bytes()?, opened.path);
        let (history, key) = (store.history_of(key), key.clone());
        let place = PlanPlace { store: store.clone(), key: key.clone(), history };
        let held = Self { bytes, path, place: Some(place), key, id: 0 };
        let id = {
            let view = held.checked()?;
            if !view.is_for(&held.key) {
                return Err(cold_plan::store::Error::OtherKey { path: held.path }.into());
            }
            view.id()
        };
        Ok(Some(Self { id, ..held }))
    }

    /// A plan that is in no store, and whose starts are entered nowhere.
    pub fn made(plan: &Plan) -> Result<Self, Skip> {
        let path = PathBuf::from("a plan in memory");
        let format = |why| Skip::Format { path: path.clone(), why };
        let bytes = cold_plan::format::encode(plan).map_err(format)?;
        let id = View::parse(&bytes).map_err(format)?.id();
        Ok(Self { bytes, path: path.clone(), place: None, key: plan.key.clone(), id })
    }

    /// The same plan as another one for its starts says it: entered in the same history, as starts of this one.
    pub fn followed_as(&self, plan: &Plan) -> Result<Self, Skip> {
        let format = |why| Skip::Format { path: self.path.clone(), why };
        let bytes = cold_plan::format::encode(plan).map_err(format)?;
        View::parse(&bytes).map_err(format)?;
        let (path, place, key) = (self.path.clone(), self.place.clone(), self.key.clone());
        Ok(Self { bytes, path, place, key, id: self.id })
    }

    fn checked(&self) -> Result<View<'_>, Skip> {
        View::parse(&self.bytes).map_err(|why| Skip::Format { path: self.path.clone(), why })
    }

    /// Which plan it is.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Its number, which another save of it does not have.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that its steps read.
    pub fn read_bytes(&self) -> u64 {
        self.checked().map_or(0, |view| view.read_bytes())
    }

    /// All of it, as values.
    pub fn plan(&self) -> Result<Plan, Skip> {
        self.checked()?.to_plan().map_err(|why| Skip::Format { path: self.path.clone(), why })
    }

    /// How it was learnt.
    pub fn learnt(&self) -> Option<Learnt> {
        Some(self.checked().ok()?.learnt())
    }

    /// Why it is switched off, if it is.
    pub fn off(&self) -> Option<String> {
        match self.checked().ok()?.standing() {
            StandingView::Off(why) => Some(why.to_owned()),
            StandingView::Untried | StandingView::Proven => None,
        }
    }

    /// A gain is shown.
    pub fn is_proven(&self) -> bool {
        self.checked().is_ok_and(|view| view.standing() == StandingView::Proven)
    }

    /// Its starts that followed it, or were controls: what the count of controls goes by. 0 where they cannot be
    /// read.
    pub fn eligible_starts(&self) -> u64 {
        let records = self.place.as_ref().and_then(|p| history::read(&p.history).ok()).unwrap_or_default();
        let eligible = |r: &&Record| matches!(r.kind, LaunchKind::Prefetched | LaunchKind::Control);
        records.iter().filter(eligible).count() as u64
    }

    /// Gives pages back that [`Prospect::complete`] brought, without those that anybody may want. Returns how many bytes
    /// of memory are free for it.
    pub fn give_back(&self, brought: &Brought, wanted: &Wanted, mounts: &[Mount]) -> Result<u64, Skip> {
        let view = self.checked()?;
        let places = Places::new(mounts, view.key().executable);
        Ok(brought.give_back(view, &Files::new(view, &places, 1), wanted))
    }

    /// Its starts may have used what it reads.
    pub fn want(&self, wanted: &mut Wanted) -> Result<(), Skip> {
        wanted.add(self.checked()?);
        Ok(())
    }

    /// What can be done for a start now, by these mounts, this weather of late and with these limits: the same
    /// questions as in a launch, in the same order. An error says why not; [`Skip::Warm`] is the usual one.
    pub fn prospect<'a>(
        &'a self,
        mounts: &'a [Mount],
        weather: Weather,
        options: &Options,
    ) -> Result<Prospect<'a>, Skip> {
        let began = Instant::now();
        let view = self.checked()?;
        prepare::usable(view)?;
        let places = Places::new(mounts, view.key().executable);
        let mut seen = Conditions::default();
        let around = Surroundings { mounts, weather: Some(weather) };
        let limits = prepare::limits(view, &places, around, options, began, &mut seen)?;
        Ok(Prospect { held: self, view, places, mounts, limits, seen })
    }
}

/// A start that is going on.
#[derive(Debug)]
pub struct Began {
    process: PidFd,
    at: Nanos,
    cpu_before: Nanos,
}

impl Began {
    /// That of the process `pid`, which began to execute its program at this time (`CLOCK_MONOTONIC`); `None` when
    /// it has ended already.
    pub fn of(pid: i32, at: Nanos) -> Option<Self> {
        let process = PidFd::open(pid).ok()??;
        Some(Self { cpu_before: process_cpu(pid).unwrap_or(Nanos(0)), process, at })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// When it began.
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// Waits for its end; whether it has come within `limit`.
    pub fn has_ended(&self, limit: Duration) -> bool {
        self.process.wait(limit).unwrap_or(true)
    }
}

/// Everything found out for a replay, and nothing done yet.
#[derive(Debug)]
pub struct Prospect<'a> {
    held: &'a Held,
    view: View<'a>,
    places: Places,
    mounts: &'a [Mount],
    limits: Limits,
    seen: Conditions,
}

/// What was done for a start.
#[derive(Debug)]
pub struct Served {
    /// As it stands in the plan's history.
    pub record: Record,
    /// What the reading did; `None` of a control.
    pub tally: Option<Tally>,
    /// What daily use says now; after controls only.
    pub judgement: Option<Judgement>,
    /// To whom its pages were charged; `None` of a control.
    pub charged: Option<Charged>,
    /// The plan's history cannot take it (a full disk, one that may not be written). The service goes on without.
    pub entered: bool,
}

impl Prospect<'_> {
    /// What was seen on the way.
    pub fn seen(&self) -> Conditions {
        self.seen
    }

    /// The start can be written down, so it may be a control: what is not counted would be one for ever.
    pub fn can_be_entered(&self) -> bool {
        self.held.place.as_ref().is_some_and(|p| history::can_grow(&p.history))
    }

    /// Reads ahead and returns when everything has been asked for, or `is_enough` says so, which is asked before each
    /// chunk. Called for what comes before it is known which plan a start has.
    pub fn read_until(&self, is_enough: &mut dyn FnMut() -> bool) -> Result<Tally, Skip> {
        Ok(self.read_within(self.ungated(), is_enough)?.tally)
    }

    /// The same for what may be there already: asks only for steps that lack a page, as far as the kernel tells, and
    /// returns when their pages have come and each was touched.
    pub fn complete(&self) -> Result<Completed, Skip> {
        self.read_within(Limits { absent_only: true, ..self.ungated() }, &mut || false)
    }

    /// By this thread: making another takes 30 to 60 µs before the first request, and the whole plan follows soon.
    fn read_within(&self, limits: Limits, is_enough: &mut dyn FnMut() -> bool) -> Result<Completed, Skip> {
        let shared = SharedWords::new()?;
        let engine = Engine::new(self.view, &self.places, &shared, limits);
        let priority = cold_sys::detached::io_priority();
        engine.run_until(is_enough);
        engine.touch();
        cold_sys::detached::set_io_priority(priority);
        Ok(Completed { tally: engine.tally(), brought: engine.brought() })
    }

    /// Follows the plan, or for a `control` only watches, until the program has passed its mark; enters the start in
    /// the plan's history, and after a control judges by that. A helper in the program's control group reads, where there
    /// can be one, as soon as it is there.
    pub fn serve(&self, began: &Began, control: bool, helpers: Option<&Helpers>) -> Result<Served, Skip> {
        let helped = Helped::new(helpers, self.mounts, began.pid(), self.view.read_bytes());
        let shared = helped.numbers()?;
        let engine = (!control).then(|| Engine::new(self.view, &self.places, &shared, self.ungated()));
        let seen = self.attend(began, engine.as_ref(), &helped)?;
        let charged = engine.as_ref().map(|engine| helped.charged(engine));
        let kind = match &engine {
            None => LaunchKind::Control,
            Some(e) if e.is_stale() => LaunchKind::Skipped(history::Skip::Stale),
            Some(_) => LaunchKind::Prefetched,
        };
        let tally = engine.map(|e| e.tally());
        let done = tally.map(|tally| (tally, seen.finished));
        let (record, entered) = match &self.held.place {
            Some(place) => record::append(&place.history, self.held.id, kind, seen.mark, done),
            None => (record::record(self.held.id, kind, seen.mark, done), false),
        };
        let judged = self.held.place.as_ref().filter(|_| control && entered);
        let judgement = judged.and_then(|place| record::judge(place, self.view));
        Ok(Served { record, tally, judgement, charged, entered })
    }

    /// Nobody is held back.
    fn ungated(&self) -> Limits {
        Limits { gate: Gate::None, ..self.limits }
    }

    /// One thread reads, another orders a helper and watches. A read that a dead disk holds keeps its thread, and only
    /// that.
    fn attend(&self, began: &Began, engine: Option<&Engine<'_>>, helped: &Helped<'_>) -> Result<Seen, Skip> {
        // By number it could be another process by now.
        let target = Target::of(began.process.duplicate()?, self.view, began, self.limits.deadline);
        let done = AtomicBool::new(engine.is_none());
        let watch = || watch::watch(&target, engine, &done, self.limits.deadline, &mut |_| {});
        let Some(engine) = engine else { return Ok(watch()) };
        let order_and_watch = || {
            helped.order(engine, &self.held.bytes);
            let seen = watch();
            helped.end(engine);
            seen
        };
        let priority = cold_sys::detached::io_priority();
        let seen = std::thread::scope(|scope| {
            let watcher =
                std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, order_and_watch);
            engine.run();
            let all = helped.wait(engine);
            done.store(true, Ordering::Release);
            // Without a second thread (a limit) nobody watches: the start has no mark.
            let seen = watcher.ok().and_then(|w| w.join().ok());
            seen.map_or(Seen { mark: None, finished: true }, |seen| Seen {
                finished: seen.finished && all,
                ..seen
            })
        });
        cold_sys::detached::set_io_priority(priority);
        Ok(seen)
    }
}

impl Target {
    fn of(process: PidFd, view: View<'_>, began: &Began, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        let learnt = view.learnt();
        Self {
            process,
            began: began.at,
            cpu_before: began.cpu_before,
            ready_cpu_ns: learnt.own_cpu_ns,
            goes_on: learnt.goes_on,
            watch: watch::patience(&learnt, left),
        }
    }
}

/// The plan's standing by this judgement, written into its store where it changes.
pub fn apply(held: &Held, judgement: &Judgement) -> Result<Option<Standing>, Skip> {
    let Some(place) = &held.place else { return Ok(None) };
    let old = held.plan()?;
    let Some(standing) = judgement.standing(&old.standing) else { return Ok(None) };
    let new = Plan { standing: standing.clone(), ..old.clone() };
    Ok(place.store.replace(&old, &new)?.then_some(standing))
}
