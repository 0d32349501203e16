//! Looks after a replay and after the start it is for: ends the one in time, notes how the other went.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::Nanos;
use cold_plan::history::Mark;
use cold_plan::plan::Learnt;
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::ProcFs;
use cold_sys::time::{monotonic, process_cpu};

use crate::engine::Engine;
use crate::guard::Hunger;

/// Between two looks at the program's CPU time. The mark is interpolated between them.
const LOOK: Duration = Duration::from_millis(5);
/// The same when it has been running for [`LATER`].
const LOOK_LATER: Duration = Duration::from_millis(25);
const LATER: Duration = Duration::from_secs(2);
/// A program that goes on after it is ready has come to rest when it slept for so long. Servers that look about
/// twice a second (Python's `serve_forever`) use some 30 µs for it.
const REST: Nanos = Nanos(500_000_000);

/// For how long a start is watched for its mark, at least and at most, beside the time that its plan may take.
const WATCH: std::ops::RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_mins(2);

/// For how long a start of such a plan is watched that may take `reading` beside. One that its plan holds up for as
/// long as it may must be known, too.
pub(crate) fn patience(learnt: &Learnt, reading: Duration) -> Duration {
    let usual = Duration::from_nanos(learnt.cold_ready_ns.saturating_mul(4));
    usual.clamp(*WATCH.start(), *WATCH.end()).saturating_add(reading)
}

/// The program that was started.
pub(crate) struct Target {
    /// Held before it became the program; exec keeps it.
    pub(crate) process: PidFd,
    /// When the start began.
    pub(crate) began: Nanos,
    /// CPU time it had used before it became the program.
    pub(crate) cpu_before: Nanos,
    /// CPU time of its own at which a start of this plan is ready; 0 when not known.
    pub(crate) ready_cpu_ns: u64,
    /// It goes on after it is ready: its end is no mark, but its coming to rest is.
    pub(crate) goes_on: bool,
    /// For how long it is watched at most.
    pub(crate) watch: Duration,
}

/// How a watched start went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// When it passed its mark; `None`: not while it was watched, or nobody can tell ([`watch`]).
    pub(crate) mark: Option<Mark>,
    /// Everything was issued.
    pub(crate) finished: bool,
}

/// Watches until the replay is `done` (or has to end) and the mark is passed. Returns at once when the
/// program ends. Says how long after the start began the program had used the CPU time of a start, or
/// ended, or came to rest where it is one that goes on; `None` when it did nothing of that while it was watched, or
/// that CPU time is not known. `read` is told as soon as the reading has ended, if the mark is not passed by then.
///
/// Counted from the beginning of the launch, not from the exec: what the launcher costs is part of the
/// start, and a control run's exec comes earlier.
pub(crate) fn watch(
    target: &Target,
    engine: Option<&Engine<'_>>,
    done: &AtomicBool,
    deadline: Instant,
    read: &mut dyn FnMut(Seen),
) -> Seen {
    let hunger = engine.and_then(|_| Hunger::since_now(&ProcFs::default()));
    let started = Instant::now();
    let cpu_ns = target.ready_cpu_ns;
    let since = |at: Nanos| Mark {
        wall_ns: at.0.saturating_sub(target.began.0),
        cpu_ns,
        exited: false,
        rested: false,
    };
    let (mut mark, mut marking) = (None, cpu_ns > 0);
    let mut last = Look { at: target.began, cpu: 0 };
    let (mut awake, mut told) = (target.began, engine.is_none());
    loop {
        let pause = if started.elapsed() > LATER { LOOK_LATER } else { LOOK };
        // A process that cannot be waited for counts as gone: nothing must stay behind.
        let exited = target.process.wait(pause).unwrap_or(true);
        let now = monotonic();
        let finished = done.load(Ordering::Acquire);
        if exited {
            let ended = (marking && !target.goes_on).then(|| Mark { exited: true, ..since(now) });
            return Seen { mark: mark.or(ended), finished };
        }
        if marking {
            let look = Look::at(now, target);
            mark = look.and_then(|l| l.passed(last, target)).map(since);
            if let Some(look) = look.filter(|_| target.goes_on && mark.is_none()) {
                if !look.rests(last, target) {
                    awake = now;
                } else if now.saturating_sub(awake) >= REST {
                    mark = Some(Mark { rested: true, ..since(awake) });
                }
            }
            last = look.unwrap_or(last);
            marking = mark.is_none() && started.elapsed() < target.watch;
        }
        if let Some(engine) = engine.filter(|_| !finished)
            && (hunger.as_ref().is_some_and(Hunger::is_felt) || Instant::now() > deadline)
        {
            engine.stop();
        }
        // A thread that hangs in the kernel is not waited for.
        let ended = finished || Instant::now() > deadline;
        if !marking && ended {
            return Seen { mark, finished };
        }
        if ended && !std::mem::replace(&mut told, true) {
            read(Seen { mark: None, finished });
        }
    }
}

#[derive(Clone, Copy)]
struct Look {
    at: Nanos,
    /// CPU time of the program itself.
    cpu: u64,
}

impl Look {
    fn at(at: Nanos, target: &Target) -> Option<Self> {
        let cpu = process_cpu(target.process.pid())?;
        Some(Self { at, cpu: cpu.0.saturating_sub(target.cpu_before.0) })
    }

    /// When the mark was passed; `None` when it was not.
    fn passed(self, last: Self, target: &Target) -> Option<Nanos> {
        let mark = target.ready_cpu_ns;
        if self.cpu < mark {
            return None;
        }
        let (time, work) = (self.at.0.saturating_sub(last.at.0), self.cpu.saturating_sub(last.cpu).max(1));
        let part = u128::from(time) * u128::from(mark.saturating_sub(last.cpu)) / u128::from(work);
        Some(Nanos(last.at.0 + part as u64))
    }

    /// It has done most of its start and slept since `last`, but for less than a tenth of one CPU. With its pages
    /// read ahead it needs less CPU time than the recorded starts, of which the mark is the median.
    fn rests(self, last: Self, target: &Target) -> bool {
        let (time, work) = (self.at.0.saturating_sub(last.at.0), self.cpu.saturating_sub(last.cpu));
        self.cpu >= target.ready_cpu_ns / 2
            && work * 10 < time
            && ProcFs::default().is_asleep(target.process.pid())
    }
}
