//! One thread's loop: think, seek, act, compute.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_stats::Histogram;
use cold_stats::Pcg;
use cold_sys::usage;
use rustix::process::setpriority_process;

use super::compute::{Memory, Speed};
use super::file::{Target, clock_cost, own_cost};
use super::{ThreadReport, Tick};
use crate::gate::Gate;
use crate::spec::{Act, Crew, Limit, Mode, Work};
use crate::variate::Seeker;

/// Most intervals kept: an hour of seconds.
const MOST_TICKS: u64 = 3600;

/// Turns of the computing loop between two looks at the trial's end: a tenth of a millisecond or so.
const TURNS: u64 = 500;

/// When a trial is over.
struct End<'a> {
    stop: &'a AtomicBool,
    at: Option<Instant>,
}

impl End<'_> {
    fn reached(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// A thread that is ready to begin.
pub(super) struct Prepared<'a> {
    work: &'a Work,
    limit: Limit,
    target: Target,
    memory: Option<(Memory, Speed)>,
    seeker: Seeker,
    rng: Pcg,
    own_ns: f64,
    clock_ns: f64,
    tick: Duration,
    watch: bool,
}

/// What is counted while it runs.
struct Count {
    records: Histogram,
    cycles: Histogram,
    /// Records since the start, counted or not.
    turn: u64,
    asked: u64,
    missed: u64,
    acted_ns: u64,
    ticks: Vec<Tick>,
    /// Counted part: since when, and what had been used before.
    since: Instant,
    used: usage::ThreadUsage,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(work: &'a Work, crew: &Crew, stream: u64, speed: Option<Speed>) -> io::Result<Self> {
        let target = Target::open(work)?;
        let memory = match speed.filter(|_| !work.cpu.is_zero()) {
            Some(speed) => Some((Memory::new(work).map_err(io::Error::other)?, speed)),
            None => None,
        };
        // A record past the cache is never in it.
        let watch = work.watch > 0 && work.mode != Mode::Direct && target.is_cached(0).is_some();
        Ok(Self {
            work,
            limit: crew.limit,
            target,
            memory,
            seeker: Seeker::new(work.seek, work.variate, work.records()),
            rng: Pcg::new(crew.seed, stream),
            own_ns: own_cost(work)?,
            clock_ns: clock_cost(),
            tick: Duration::from_millis(crew.tick_ms),
            watch,
        })
    }

    pub(super) fn run(mut self, gate: &Gate, stop: &AtomicBool) -> io::Result<ThreadReport> {
        let (time, settle) = match self.limit {
            Limit::Records { .. } => (None, Duration::ZERO),
            Limit::Time { ms, settle } => {
                let time = Duration::from_millis(ms);
                (Some(time), time.mul_f64(settle.clamp(0.0, 0.99)))
            }
        };
        // Of this thread alone: Linux has no priorities of processes.
        let refused = self.work.nice != 0 && setpriority_process(None, self.work.nice).is_err();
        let mut c = Count::new(self.tick, time.unwrap_or_default());
        if !gate.pass() {
            return self.report(c);
        }
        let began = Instant::now();
        let end = End { stop, at: time.and_then(|t| began.checked_add(t)) };
        c.settle();
        let mut settled = settle.is_zero();
        let mut done = 0_u64;
        while !end.reached() {
            if matches!(self.limit, Limit::Records { records } if done >= records) {
                break;
            }
            if !settled && began.elapsed() >= settle {
                settled = true;
                c.settle();
            }
            done += self.cycle(&mut c, settled, began, &end)?;
        }
        // The first to end ends all.
        stop.store(true, Ordering::Relaxed);
        Ok(ThreadReport { nice_refused: refused, ..self.report(c)? })
    }

    /// One cycle; returns its records.
    fn cycle(&mut self, c: &mut Count, counts: bool, began: Instant, end: &End<'_>) -> io::Result<u64> {
        let work = self.work;
        if !work.think.is_zero() {
            let ms = work.think.draw_positive(work.variate, &mut self.rng);
            let left = end.at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            std::thread::sleep(Duration::from_secs_f64(ms / 1e3).min(left));
        }
        let repeats = work.repeats.draw_positive(work.variate, &mut self.rng).round() as u64;
        let mut ns = 0.0;
        for _ in 0..repeats {
            if end.reached() {
                // Cut short, it is no cycle.
                return Ok(0);
            }
            ns += self.actions(c, counts, began)?;
            ns += self.compute(end);
        }
        if repeats == 0 {
            // The documentation's example of pure computing says so.
            ns += self.compute(end);
        }
        if counts && !end.reached() {
            c.cycles.add(ns.max(0.0).round() as u64);
        }
        Ok(repeats * work.action.len() as u64)
    }

    /// The action string once; returns its time.
    fn actions(&mut self, c: &mut Count, counts: bool, began: Instant) -> io::Result<f64> {
        self.seeker.seek(&mut self.rng);
        let (mut last, mut sum) = (None, 0.0);
        for act in &self.work.action {
            let at = match (act, last) {
                (Act::W, Some(at)) => at,
                _ => self.seeker.here(),
            };
            if *act == Act::R || last.is_none() {
                self.seeker.advance(at);
            }
            last = (*act == Act::R).then_some(at).or(last);
            let due = self.watch && c.turn.is_multiple_of(u64::from(self.work.watch));
            c.turn += 1;
            let cached = if due { self.target.is_cached(at) } else { None };
            let before = Instant::now();
            let result = self.target.act(*act, at);
            let took = before.elapsed().as_nanos() as u64;
            result?;
            self.target.mark(at);
            let ns = took as f64 - self.own_ns;
            sum += ns;
            c.tick(began, self.tick, ns, cached);
            if counts {
                c.records.add(took);
                c.acted_ns += took;
                c.asked += u64::from(cached.is_some());
                c.missed += u64::from(cached == Some(false));
            }
        }
        Ok(sum)
    }

    fn compute(&mut self, end: &End<'_>) -> f64 {
        let Some((memory, speed)) = &mut self.memory else { return 0.0 };
        let ms = self.work.cpu.draw_positive(self.work.variate, &mut self.rng);
        let mut turns = (ms * speed.loops_per_ms).round() as u64;
        let before = Instant::now();
        while turns > 0 && !end.reached() {
            let some = turns.min(TURNS);
            (0..some).for_each(|_| memory.turn(self.work, &mut self.rng));
            turns -= some;
        }
        before.elapsed().as_nanos() as f64 - self.clock_ns
    }

    fn report(self, c: Count) -> io::Result<ThreadReport> {
        let ns = c.since.elapsed().as_nanos() as u64;
        let used = usage::thread().since(c.used);
        let records = c.records.closed_less(self.own_ns);
        let between = ns.saturating_sub(c.acted_ns) as f64 / records.count.max(1) as f64;
        let flush = if self.work.writes() {
            let before = Instant::now();
            self.target.flush()?;
            Some(before.elapsed().as_nanos() as u64)
        } else {
            None
        };
        Ok(ThreadReport {
            records,
            cycles: c.cycles.closed(),
            ns,
            used: used.into(),
            asked: self.watch.then_some(c.asked),
            missed: self.watch.then_some(c.missed),
            touched_bytes: self.target.touched_bytes(),
            own_ns: self.own_ns,
            between_ns: between,
            ticks: c.ticks,
            flush_ns: flush,
            nice_refused: false,
        })
    }
}

impl Count {
    fn new(tick: Duration, time: Duration) -> Self {
        let ticks = if tick.is_zero() { 0 } else { (time.as_millis() / tick.as_millis().max(1)) as u64 + 2 };
        let mut series = [Histogram::default(), Histogram::default()];
        series.iter_mut().for_each(Histogram::reserve);
        let [records, cycles] = series;
        Self {
            records,
            cycles,
            turn: 0,
            asked: 0,
            missed: 0,
            acted_ns: 0,
            ticks: Vec::with_capacity(ticks.min(MOST_TICKS) as usize),
            since: Instant::now(),
            used: usage::thread(),
        }
    }

    /// From here on it counts.
    fn settle(&mut self) {
        self.since = Instant::now();
        self.used = usage::thread();
    }

    fn tick(&mut self, began: Instant, tick: Duration, ns: f64, cached: Option<bool>) {
        if tick.is_zero() {
            return;
        }
        let at = (began.elapsed().as_nanos() / tick.as_nanos()) as usize;
        if at >= self.ticks.len() && at < MOST_TICKS as usize {
            self.ticks.resize(at + 1, Tick::default());
        }
        if let Some(t) = self.ticks.get_mut(at) {
            t.records += 1;
            t.ns += ns;
            t.asked += u64::from(cached.is_some());
            t.missed += u64::from(cached == Some(false));
        }
    }
}

#[cfg(test)]
mod tests;
