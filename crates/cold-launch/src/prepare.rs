//! What is to be done for a start, found out before anything is done.

use std::time::{Duration, Instant};

use cold_plan::format::{StandingView, View};
use cold_plan::plan::{Gate, Op};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use crate::engine::Limits;
use crate::files::Files;
use crate::guard::{self, Look, Sample, Waits, Weather};
use crate::options::{Options, Skip};
use crate::places::Places;

/// Files kept open at a time, where the process may have more than four times as many.
const OPEN_FILES: u64 = 512;
/// The least and most bytes of one call, whatever a plan says.
const CHUNK: std::ops::RangeInclusive<u64> = 4096..=64 << 20;
/// Threads that read, whatever a plan says.
const MOST_THREADS: u8 = 32;

/// What was seen on the way to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions {
    /// A look at the plan's pages; `None` when not looked.
    pub sample: Option<Sample>,
    /// Free memory for this start; `None` when not asked, or nothing tells.
    pub room: Option<u64>,
    /// Bytes of the whole plan.
    pub plan_bytes: u64,
    /// Bytes that may be read ahead.
    pub bytes: u64,
}

/// What the plan says of itself.
pub(crate) fn usable(view: View<'_>) -> Result<(), Skip> {
    match view.standing() {
        StandingView::Off(reason) => Err(Skip::Off(reason.to_owned())),
        _ if view.steps().len() == 0 => Err(Skip::Empty),
        _ => Ok(()),
    }
}

/// The mounts as they are now.
pub(crate) fn places(view: View<'_>) -> Result<(Places, Vec<cold_sys::procfs::Mount>), Skip> {
    let mounts = ProcFs::default().mounts()?;
    Ok((Places::new(&mounts, view.key().executable), mounts))
}

/// What is asked of the machine: the mounts, and free memory and waits where these are known already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) mounts: &'a [cold_sys::procfs::Mount],
    pub(crate) weather: Option<Weather>,
}

/// Asks every question whose answer could be "not now". `began` is when the start began.
pub(crate) fn limits(
    view: View<'_>,
    places: &Places,
    around: Surroundings<'_>,
    options: &Options,
    began: Instant,
    seen: &mut Conditions,
) -> Result<Limits, Skip> {
    seen.plan_bytes = view.read_bytes();
    let open_files = OPEN_FILES.min(cold_sys::exec::open_files_limit() / 4).max(1) as usize;
    if options.guards.warm {
        let look = if options.guards.finely { Look::FINE } else { Look::BRIEF };
        let sample = guard::sample(view, &Files::new(view, places, open_files), look);
        seen.sample = Some(sample);
        if sample.is_warm() {
            return Err(Skip::Warm);
        }
    }
    let (proc, sys) = (ProcFs::default(), SysFs::default());
    if options.guards.pressure {
        let waits = around.weather.map_or_else(|| Waits::now(&proc), |weather| weather.waits);
        if let Some(why) = guard::is_busy(waits, &sys, view) {
            return Err(Skip::Busy(why));
        }
    }
    seen.bytes = budget(view, around, options, &proc, seen)?;
    let knobs = view.knobs();
    let threads = knobs.threads.clamp(1, MOST_THREADS);
    Ok(Limits {
        bytes: seen.bytes,
        in_flight: u64::from(knobs.in_flight_bytes),
        chunk: u64::from(knobs.chunk_bytes).clamp(*CHUNK.start(), *CHUNK.end()),
        threads: usize::from(threads),
        files: open_files,
        deadline: began + options.deadline,
        gate: options.gate.unwrap_or(knobs.gate),
        absent_only: false,
    })
}

/// How many bytes may be read: all of the plan, or the part that half of the free memory holds, as long as
/// that is what is needed first.
fn budget(
    view: View<'_>,
    around: Surroundings<'_>,
    options: &Options,
    proc: &ProcFs,
    seen: &mut Conditions,
) -> Result<u64, Skip> {
    let all = view.read_bytes();
    let wanted = options.budget.map_or(all, |b| b.min(all));
    if !options.guards.memory {
        return Ok(wanted);
    }
    seen.room = around.weather.map_or_else(|| guard::room(proc, around.mounts), |weather| weather.room);
    // The other half is for the program itself.
    let room = seen.room.map_or(wanted, |r| r / 2);
    let critical: u64 = view.critical_steps().filter(|s| s.op == Op::Read).map(|s| u64::from(s.bytes)).sum();
    let needed = if critical > 0 { critical } else { all };
    if room < needed && room < wanted {
        return Err(Skip::Memory { room, needed });
    }
    Ok(room.min(wanted))
}

/// A server or disk that does nothing for so long will not be quicker for being waited for.
pub(crate) const WITHOUT_PROGRESS: Duration = Duration::from_millis(200);

/// How long the program is held back at most, and for how long without progress.
pub(crate) fn patience(gate: Gate, options: &Options) -> (Duration, Duration) {
    let most = if gate == Gate::None { Duration::ZERO } else { options.deadline };
    (most, WITHOUT_PROGRESS.min(most))
}
