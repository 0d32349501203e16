//! Reads what is likely to be wanted next, while nobody wants anything (`cold_service::keep` says when and what).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cold_launch::{Completed, Held, Options, Skip};
use cold_model::{Bytes, Nanos, path_text};
use cold_service::keep::{self, Candidate, Facts, Keeper, Reading, Uses, Why};
use cold_sys::detached::{IoPriority, set_io_priority};
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;
use serde::{Deserialize, Serialize};

use super::history::{Entry, Name, Used};
use super::loans::Loans;
use super::programs::{Planned, Program};
use super::serve::{Shared, options};
use super::status;
use crate::words::plural;

/// Between two looks at the machine.
const LOOK: Duration = Duration::from_secs(2);
/// A plan that takes longer on an idle disk is left half done.
const LONGEST: Duration = Duration::from_secs(5);

/// Between two looks whether all plans together do harm.
const JUDGE: Duration = Duration::from_mins(10);

/// A day in nanoseconds.
const DAY: f64 = 86_400e9;

/// What was read before anybody wanted it, since the service began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// Times that something had emptied the cache and it was read again.
    pub(crate) times: u64,
    /// Plans gone through the last time.
    pub(crate) plans: u64,
    /// Bytes asked for the last time: of steps that lacked a page, as far as the kernel tells.
    pub(crate) bytes: u64,
    /// Bytes asked for all times, by those too that a cold start cut short, which are no time, and of what had gone
    /// again behind them.
    pub(crate) all_bytes: u64,
    /// Plans that were not read the last time, or will not be the next time: their disks are so fast that it does not pay.
    pub(crate) too_fast: u64,
    /// Bytes of memory given back, of all times: what nobody had come for when memory was wanted.
    pub(crate) given_back: u64,
}

/// What readings have told, as long as the service runs.
#[derive(Debug, Default)]
struct Told {
    loans: Loans,
    /// Numbers of plans whose disks are so fast that reading them again does not pay.
    too_fast: HashSet<u64>,
}

/// Looks until the process ends, writes down when something has emptied the cache, and reads then where it may.
pub(crate) fn run(shared: &Shared, may_read: bool) {
    // Whoever wants something goes first, where the disk's scheduler knows classes.
    set_io_priority(IoPriority::NOBODY_WAITS);
    let (proc, mut keeper, mut told) = (ProcFs::default(), Keeper::default(), Told::default());
    let mut judged: Option<Instant> = None;
    loop {
        std::thread::sleep(LOOK);
        if judged.is_none_or(|at| at.elapsed() >= JUDGE) {
            judged = Some(Instant::now());
            judge(shared);
        }
        give_back(&proc, shared, &mut told.loans);
        let Some(facts) = facts(&proc, shared) else { continue };
        if keeper.tells_emptied(facts) {
            let detail = "dropped or reclaimed".to_owned();
            shared.recorder.add(Entry::Event { what: "emptied", detail });
        }
        let rests = shared.rests();
        let Some(why) = keeper.is_time(facts, monotonic()) else { continue };
        if !may_read || (!rests && read_all(&proc, shared, why, &mut told)) {
            // What this reading itself moved is no reason for another one.
            keeper.has_read(why, self::facts(&proc, shared).unwrap_or(facts), monotonic());
        }
    }
}

/// Follows no plan any more where all together do harm, which the history knows after a new start of the service as well.
fn judge(shared: &Shared) {
    let Ok(rows) = shared.recorder.rows() else { return };
    let programs = shared.machine().programs.clone();
    let followed: Vec<Name> =
        programs.iter().flat_map(|p| p.plans.iter().map(|planned| Name::of(planned.held.key()))).collect();
    if let Some(why) = status::harm(&rows, &followed)
        && shared.harm.set(why.clone()).is_ok()
    {
        shared.recorder.add(Entry::Event { what: "harm", detail: why });
    }
}

/// `None` where the kernel does not tell of waits: then nothing is read, because it might be in somebody's way.
fn facts(proc: &ProcFs, shared: &Shared) -> Option<Facts> {
    let vmstat = proc.vmstat().ok()?;
    let of = |name: &str| vmstat.get(name).copied().unwrap_or(0);
    let stall = |kind| Some(proc.pressure(kind).ok()?.some.total_us);
    Some(Facts {
        reclaimed_pages: of("pgsteal_file") + of("pgsteal_anon"),
        drops: of("drop_pagecache"),
        memory_stall_us: stall("memory")?,
        io_stall_us: stall("io")?,
        busy: shared.busy.load(Ordering::Relaxed) > 0,
    })
}

/// Whether it came to an end: a cold start, or a pause, goes first.
fn read_all(proc: &ProcFs, shared: &Shared, why: Why, told: &mut Told) -> bool {
    let programs = shared.machine().programs.clone();
    let now = monotonic();
    let all: Vec<Candidate> = programs.iter().map(|program| program.candidate(now)).collect();
    let likely = keep::order(&all).into_iter().filter_map(|i| programs.get(i));
    let plans: Vec<_> = likely.flat_map(|program| own_plans(program).map(move |p| (program, p))).collect();
    let (mut read, mut bytes) = (0, 0);
    for (program, planned) in &plans {
        if told.too_fast.contains(&planned.held.id()) {
            continue;
        }
        if shared.busy.load(Ordering::Relaxed) > 0 || shared.rests() {
            shared.counts().tally.kept.all_bytes += bytes;
            return false;
        }
        let room = room(proc);
        if room == 0 {
            break;
        }
        let at = monotonic();
        // What cannot be followed now is no loss: its start is followed, or not, by itself.
        if let Ok(completed) = complete(planned.whole(), room, shared) {
            read += 1;
            bytes += completed.tally.bytes;
            told.judge(planned, completed.tally.bytes, monotonic().saturating_sub(at), shared);
            told.loans.add(program, planned, at, completed.brought);
        }
    }
    let mut counts = shared.counts();
    let kept = &mut counts.tally.kept;
    kept.all_bytes += bytes;
    kept.too_fast = plans.iter().filter(|(_, p)| told.too_fast.contains(&p.held.id())).count() as u64;
    if why == Why::Emptied {
        (kept.times, kept.plans, kept.bytes) = (kept.times + 1, read, bytes);
        drop(counts);
        let detail = format!("{}, {}", plural(read, "plan"), Bytes(bytes));
        shared.recorder.add(Entry::Event { what: "kept", detail });
    }
    true
}

impl Told {
    /// By what reading it took; the next version of the plan is judged anew.
    fn judge(&mut self, planned: &Planned, bytes: u64, took: Nanos, shared: &Shared) {
        let whole = planned.whole();
        let reading = Reading { plan: whole.read_bytes(), bytes, took };
        let computing = whole.learnt().map_or(Nanos(0), |learnt| Nanos(learnt.cpu_ns));
        let Some(saves) = reading.too_little(computing) else { return };
        if self.too_fast.insert(planned.held.id()) {
            let name = Name::of(planned.held.key());
            let detail = format!(
                "{}: saves {saves} of a start that computes {computing}, its disks are so fast",
                name.program()
            );
            shared.recorder.add(Entry::Event { what: "not read again", detail });
        }
    }
}

/// An interpreter's plans of scripts are counted with their scripts.
fn own_plans(program: &Arc<Program>) -> impl Iterator<Item = Arc<Planned>> {
    let has_script = program.script.is_some();
    let own = program.plans.iter().filter(move |p| p.held.key().script.is_some() == has_script);
    own.cloned().collect::<Vec<_>>().into_iter()
}

fn room(proc: &ProcFs) -> u64 {
    memory(proc).map_or(0, |(free, total)| keep::room(free, total))
}

/// Bytes that are free, and all.
fn memory(proc: &ProcFs) -> Option<(u64, u64)> {
    let memory = proc.meminfo().ok()?;
    Some((*memory.get("MemFree")?, *memory.get("MemTotal")?))
}

/// Also while it rests.
fn give_back(proc: &ProcFs, shared: &Shared, loans: &mut Loans) {
    if loans.is_empty() {
        return;
    }
    let lacking = memory(proc).map_or(0, |(free, total)| keep::lacking(free, total));
    if lacking == 0 {
        return;
    }
    let machine = shared.machine().clone();
    let (bytes, plans) = loans.give_back(lacking, &machine.programs, &machine.mounts);
    if bytes > 0 {
        shared.counts().tally.kept.given_back += bytes;
        let detail = format!("{}, {}", plural(plans, "plan"), Bytes(bytes));
        shared.recorder.add(Entry::Event { what: "given back", detail });
    }
}

fn complete(held: &Held, room: u64, shared: &Shared) -> Result<Completed, Skip> {
    let machine = shared.machine().clone();
    let mut options = Options { budget: Some(room), deadline: LONGEST, ..options() };
    // A plan of which nearly all is there lacks the rest all the same.
    options.guards.warm = false;
    held.prospect(&machine.mounts, machine.weather, &options)?.complete()
}

/// Knows no more of earlier starts than the history does, of which something was deleted.
pub(crate) fn forget(shared: &Shared) {
    let programs = shared.machine().programs.clone();
    for program in &programs {
        program.uses().forget();
    }
    recall(&programs, &shared.recorder.uses().unwrap_or_default());
}

/// What the history says of earlier starts.
pub(crate) fn recall(programs: &[Arc<Program>], used: &[Used]) {
    let now = monotonic();
    for program in programs {
        let executable = path_text::encode(&program.executable);
        let script = program.script.as_ref().map(path_text::encode);
        for used in
            used.iter().filter(|u| u.executable == executable && (script.is_none() || u.script == script))
        {
            let mut uses: std::sync::MutexGuard<'_, Uses> = program.uses();
            uses.add_earlier(used.starts as f64, Nanos((used.days_ago * DAY) as u64), now);
        }
    }
}
