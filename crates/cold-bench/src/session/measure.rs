//! One run: state, proof, start, counters, taints.

use std::time::{Duration, Instant};

use cold_model::Shown as _;
use cold_model::bench::{Report, Residual, Run, State, Taint};
use cold_model::recording::manifest::Load;
use cold_model::{Bytes, FileId, Known};
use cold_plan::history::{self, LaunchKind};

use super::read_ahead::Window;
use super::{Progress, Rounds, Subject};
use crate::counters::{Activity, Reading};
use crate::diagnose::held_by;
use crate::fileset::{Cached, FileSet};
use crate::launch::{Launch, LaunchedStart};
use crate::taint::{Facts, load, taints};
use crate::{Error, Result, hooks};

/// Preparations of a state before a run is made in whatever state was reached.
const TRIES: u32 = 3;
/// Devices get this long to finish what the start has asked for.
const SETTLE: Duration = Duration::from_millis(200);

/// Which run of a benchmark this is.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    /// As [`Run::series`].
    pub(super) series: usize,
    /// As [`Run::round`].
    pub(super) round: u32,
    /// As [`Run::sequence`].
    pub(super) sequence: u32,
}

/// What was found out after a start, beside the machine's activity.
struct AfterStart {
    /// Bytes of the command's files that were cached before it and are no more.
    lost: u64,
    /// As [`Run::code`].
    code: Known<Bytes>,
    /// Why its launcher did not follow the plan, where it should have.
    not_prefetched: Option<String>,
    /// Why the setting of its state could not be made.
    not_set: Option<String>,
}

/// What was known just before the start.
struct Before {
    cached: Option<Cached>,
    residual: Known<Residual>,
    warm_bytes: u64,
    not_restored: Option<Taint>,
    missing: u64,
    expected: u64,
    changed: Option<std::path::PathBuf>,
    reading: Reading,
}

/// One measured start.
pub(super) struct Measured {
    /// As it goes into the report, its taints found.
    pub(super) run: Run,
    /// What it was judged from.
    pub(super) start: LaunchedStart,
    /// Bytes of its files whose residency was looked at before it.
    pub(super) checked: Bytes,
    /// What others did to the CPUs meanwhile.
    pub(super) load: Known<Load>,
}

impl<'a> Rounds<'a> {
    /// One run of `series`; `None` when interrupted.
    pub(super) fn one(
        &mut self,
        report: &Report,
        series: usize,
        round: u32,
        progress: &mut dyn Progress,
    ) -> Result<Option<Run>> {
        let (index, state) = (report.series[series].command, &report.series[series].state);
        progress.step(&format!("{} in round {}", report.series_name(series), round + 1));
        let sequence = u32::try_from(report.runs.len()).unwrap_or(u32::MAX);
        let measured = self.measured(index, state, Turn { series, round, sequence }, progress)?;
        Ok(measured.filter(|m| !m.start.interrupted).map(|m| m.run))
    }

    /// One start of a command from a state, judged; `None` when interrupted before it.
    pub(super) fn measured(
        &mut self,
        index: usize,
        state: &State,
        turn: Turn,
        progress: &mut dyn Progress,
    ) -> Result<Option<Measured>> {
        let subjects = self.subjects;
        let subject = &subjects[index];
        let round = turn.round;
        let window = Window::of(state, self.journal, &subject.devices);
        let Some((launch, before)) = self.prepared(index, state, round)? else { return Ok(None) };
        let replays = replays(subject, state);
        // An observed start has told it already; looking is work beside a measured one.
        let unobserved = subject.set.is_none();
        let start = launch.go(self.interrupt, unobserved.then_some(progress))?;
        // At once: what follows (the end of a recording above all) is this process' own work, not others'.
        let cpu = self.proc.cpu_times().ok();
        settle(self.proc, subject);
        let not_set = window.restore()?;
        self.around.gone(&start)?;
        let after = self.reading(subject).with_cpu(cpu);
        self.preparer.started(index, subject);
        if let Some(line) = &subject.spec.conclude {
            hooks::run("conclude", line, Some(round))?;
        }
        let code = code(subject, self.preparer.after(index));
        let lost = match (&before.cached, self.preparer.after(index)) {
            (Some(b), Some(a)) => b.taken_until(a),
            _ => 0,
        };
        let activity = after.since(&before.reading);
        let checked = Bytes(before.cached.as_ref().map_or(0, Cached::checked_bytes));
        let not_prefetched = replays.and_then(|before| not_prefetched(subject, before));
        let run = self.judged(
            subject,
            state,
            &start,
            before,
            &activity,
            AfterStart { lost, code, not_prefetched, not_set },
            turn,
        );
        let load = load(&activity, start.usage.user + start.usage.system);
        Ok(Some(Measured { run, start, checked, load }))
    }

    /// Hook, state, supervisor, quiet, proof: everything up to the start.
    fn prepared(&mut self, index: usize, state: &State, round: u32) -> Result<Option<(Launch<'a>, Before)>> {
        let subjects = self.subjects;
        let subject = &subjects[index];
        if let Some(line) = &subject.spec.prepare {
            hooks::run("prepare", line, Some(round))?;
        }
        let (mut tries, mut last) = (0, None::<Cached>);
        loop {
            tries += 1;
            if !self.reach(index, state)? || self.interrupted() {
                return Ok(None);
            }
            let launcher = subject.spec.launcher.as_ref().filter(|_| *state == State::Prefetched);
            let cgroups = self.cgroups.directories();
            let launch = Launch::prepare(self.config, subject.spec, launcher, cgroups, Some(round))?;
            let files = subject.set.iter().flat_map(|s| &s.files).map(|f| f.path.clone()).collect::<Vec<_>>();
            self.around.waiting(launch.supervisor(), &files)?;
            std::thread::sleep(self.config.idle_gap);
            let mut before = self.before(index, state);
            // One more eviction for a few pages that came back; then a small rest is only marked.
            let absent = before.residual.value().is_none_or(|r| r.bytes == Bytes(0));
            let good = match state {
                cold if cold.begins_cold() && self.config.require_cold => absent,
                cold if cold.begins_cold() => absent || tries > 1 && self.is_reached(state, &before),
                _ => self.is_reached(state, &before),
            };
            // Where no page went that stayed the last time, somebody holds them, and another try changes nothing.
            let pair = last.as_ref().zip(before.cached.as_ref());
            let held = state.begins_cold() && pair.is_some_and(|(last, now)| last.not_in(now) == 0);
            if good || held || tries == TRIES || self.as_found {
                if self.config.require_cold && state.begins_cold() {
                    require_cold(subject, &before)?;
                }
                if state.begins_cold() && !self.as_found && self.preparer.drop_looked_up()? {
                    before.reading = self.reading(subject);
                }
                return Ok(Some((launch, before)));
            }
            drop(launch);
            last = before.cached;
            self.preparer.not_warm(index);
        }
    }

    /// Brings the cache into the state; false when interrupted.
    fn reach(&mut self, index: usize, state: &State) -> Result<bool> {
        if self.as_found {
            return Ok(true);
        }
        let subject = &self.subjects[index];
        match state {
            State::Cold | State::Prefetched | State::ReadAhead(_) => self.preparer.evict(subject)?,
            State::Light => {
                self.preparer.evict(subject)?;
                if !self.untimed(index)? {
                    return Ok(false);
                }
                self.preparer.sham()?;
            }
            State::Warm => {
                while self.preparer.starts(index) < self.config.warmup.max(1) {
                    if !self.untimed(index)? {
                        return Ok(false);
                    }
                }
                self.preparer.sham()?;
            }
            State::Snapshot(file) => self.preparer.restore(index, file, subject)?,
        }
        Ok(true)
    }

    /// A start that only warms the cache; false when interrupted.
    fn untimed(&mut self, index: usize) -> Result<bool> {
        let subject = &self.subjects[index];
        let launch = Launch::prepare(self.config, subject.spec, None, self.cgroups.directories(), None)?;
        let start = launch.go(self.interrupt, None)?;
        if let Some(line) = &subject.spec.conclude {
            hooks::run("conclude", line, None)?;
        }
        if let Some(line) = &subject.spec.prepare {
            hooks::run("prepare", line, None)?;
        }
        self.preparer.started(index, subject);
        Ok(!start.interrupted)
    }

    fn before(&self, index: usize, state: &State) -> Before {
        let subject = &self.subjects[index];
        let cached = subject.set.as_ref().map(FileSet::cached);
        let residual = Cached::known_residual(cached.as_ref(), state.begins_cold(), &subject.why_no_set);
        let (expected, missing) = match (self.preparer.after(index), &cached) {
            (Some(then), Some(now)) => (then.bytes(), then.not_in(now)),
            _ => (0, 0),
        };
        let changed = subject.set.as_ref().and_then(FileSet::changed);
        let reading = self.reading(subject);
        let warm_bytes = self.preparer.warm_bytes(index);
        let not_restored = self.preparer.not_restored().map(|n| Taint::NotRestored {
            missing: Bytes(n.missing),
            extra: Bytes(n.extra),
            files: n.files,
        });
        Before { cached, residual, warm_bytes, not_restored, missing, expected, changed, reading }
    }

    fn reading(&self, subject: &Subject<'_>) -> Reading {
        Reading::take(self.proc, &subject.devices.devices, self.cgroups.stall_group())
    }

    fn is_reached(&self, state: &State, before: &Before) -> bool {
        let quiet = Activity::default();
        let facts = facts(self, state, before, &quiet, 0, None);
        let other = |t: &Taint| {
            matches!(t, Taint::NotCold { .. } | Taint::NotWarm { .. } | Taint::NotRestored { .. })
        };
        !taints(&facts).iter().any(other)
    }

    #[allow(clippy::too_many_arguments)]
    fn judged(
        &self,
        subject: &Subject<'_>,
        state: &State,
        start: &LaunchedStart,
        before: Before,
        activity: &Activity,
        AfterStart { lost, code, not_prefetched, not_set }: AfterStart,
        Turn { series, round, sequence }: Turn,
    ) -> Run {
        let facts =
            Facts { not_prefetched, not_set, ..facts(self, state, &before, activity, lost, Some(start)) };
        let found = taints(&facts);
        let u = &start.usage;
        let foreign = found.iter().any(|t| matches!(t, Taint::ForeignReads { .. }));
        Run {
            series,
            round,
            sequence,
            serving: match start.serving {
                Some(at) => Known::Value(at),
                None => Known::unknown(match self.config.first_request {
                    Some(_) => "it was never ready for a first request",
                    None => "no first request was made",
                }),
            },
            ready: start.ready.unwrap_or(start.gone),
            exit: if u.ended {
                Known::unknown("cold ended it once it was ready")
            } else {
                Known::Value(start.gone)
            },
            first_exit: match start.first_gone.filter(|_| !u.ended) {
                Some(at) => Known::Value(at),
                None => Known::unknown("cold ended it once it was ready"),
            },
            user: u.user,
            system: u.system,
            major_faults: u.major_faults,
            minor_faults: u.minor_faults,
            read_bytes: read_bytes(self.proc, u.read_bytes),
            read_requests: match activity.device_reads {
                _ if foreign => Known::unknown("other processes read from the same devices"),
                Some(n) => Known::Value(n),
                None => Known::unknown(no_devices(subject)),
            },
            stall: activity.stall(u.major_faults > 0 && u.read_bytes > 0, self.cgroups.why_no_stall()),
            peak_memory: if u.peak_memory > u.peak_memory_floor {
                Known::Value(Bytes(u.peak_memory))
            } else {
                Known::unknown(format!("at most {}, the launcher's own", Bytes(u.peak_memory_floor)))
            },
            code,
            residual: before.residual,
            processes: u.reaped,
            killed_by_force: u.killed_by_force,
            ending: start.ending,
            taints: found,
        }
    }
}

fn facts<'f>(
    rounds: &Rounds<'_>,
    state: &'f State,
    before: &'f Before,
    activity: &'f Activity,
    lost: u64,
    start: Option<&LaunchedStart>,
) -> Facts<'f> {
    let usage = start.map(|s| s.usage).unwrap_or_default();
    Facts {
        state,
        activity,
        tree_bytes: usage.read_bytes,
        tree_cpu: usage.user + usage.system,
        reclaimed: rounds.preparer.reclaimed(),
        residual: &before.residual,
        warm_bytes: before.warm_bytes,
        not_prefetched: None,
        not_set: None,
        not_restored: before.not_restored.clone(),
        missing: before.missing,
        expected: before.expected,
        lost,
        changed: before.changed.clone(),
        ending: start.map_or(cold_model::bench::Ending::Ended, |s| s.ending),
        never_ready: start.is_some_and(|s| s.ready.is_none()),
        limit: rounds.config.timeout.into(),
        ignore_failure: rounds.config.ignore_failure,
    }
}

/// Replays that the launcher's history holds before a start through it; `None` for other starts.
fn replays(subject: &Subject<'_>, state: &State) -> Option<usize> {
    let launcher = subject.spec.launcher.as_ref().filter(|_| *state == State::Prefetched)?;
    Some(history::read(&launcher.history).map_or(0, |records| records.len()))
}

/// Why the start after `before` records was none with its plan.
fn not_prefetched(subject: &Subject<'_>, before: usize) -> Option<String> {
    let launcher = subject.spec.launcher.as_ref()?;
    match history::read(&launcher.history) {
        Ok(records) => match records.get(before..).and_then(<[_]>::last) {
            Some(record) => match record.kind {
                LaunchKind::Prefetched => None,
                LaunchKind::Control => Some("it made a control start, without the plan".to_owned()),
                LaunchKind::Skipped(why) => Some(why.words().to_owned()),
            },
            None => Some("it recorded nothing of what it did".to_owned()),
        },
        Err(e) => Some(e.to_string()),
    }
}

/// How much of the program's code is cached, where that is asked.
fn code(subject: &Subject<'_>, after: Option<&Cached>) -> Known<Bytes> {
    let spec = subject.spec;
    if spec.code.is_empty() {
        return Known::unknown("it was not asked for");
    }
    let Some(after) = after else { return Known::unknown(&*subject.why_no_set) };
    let id = spec.program.metadata().map(|meta| FileId::of(&meta));
    let found = id.ok().and_then(|id| after.within(id, &spec.code));
    found.map_or_else(
        || Known::unknown("residency of the program's file is not known"),
        |n| Known::Value(Bytes(n)),
    )
}

fn require_cold(subject: &Subject<'_>, before: &Before) -> Result<()> {
    let fail =
        |bytes, why| Err(Error::NotCold { command: subject.spec.name.clone(), bytes: Bytes(bytes), why });
    match &before.residual {
        Known::Unknown { unknown } => fail(0, format!("; nothing is proved: {unknown}")),
        Known::Value(r) if r.bytes.0 > 0 => {
            let by = held_by(&r.held(), usize::MAX).map_or_else(String::new, |by| format!(", {by}"));
            fail(r.bytes.0, by)
        }
        Known::Value(r) if r.unknown_bytes.0 > 0 => fail(
            0,
            format!(
                "; another {} cannot be checked (the kernel tells only their owner and root)",
                r.unknown_bytes
            ),
        ),
        Known::Value(_) => Ok(()),
    }
}

fn no_devices(subject: &Subject<'_>) -> String {
    match subject.devices.without.first() {
        Some((kind, path)) => {
            format!("{} is on {kind}, which has no block device we can see", path.shown())
        }
        None if subject.set.is_none() => "its files are unknown".into(),
        None => "its devices are not in /proc/diskstats".into(),
    }
}

/// The tree's reads, where the kernel keeps account (`CONFIG_TASK_IO_ACCOUNTING` shows as /proc/self/io).
fn read_bytes(proc: &cold_sys::procfs::ProcFs, bytes: u64) -> Known<Bytes> {
    if proc.path("self/io").exists() {
        Known::Value(Bytes(bytes))
    } else {
        Known::unknown("this kernel keeps no account of I/O per task")
    }
}

/// Waits until the devices have nothing in flight: read-ahead may outlive the program.
fn settle(proc: &cold_sys::procfs::ProcFs, subject: &Subject<'_>) {
    let until = Instant::now() + SETTLE;
    let busy = || {
        let disks = proc.diskstats().unwrap_or_default();
        disks.iter().any(|d| d.in_flight > 0 && subject.devices.devices.contains(&d.dev))
    };
    while busy() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests;
