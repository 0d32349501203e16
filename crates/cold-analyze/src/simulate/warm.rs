//! What the program itself computes, taken from a warm recording of the same start.
//!
//! A processor that was idle while a page came goes on with cold caches of its own, and on a virtual machine another guest
//! had it meanwhile. So the same work takes longer in a start of many waits: python3 with eleven modules computed 109 ms
//! warm, and 161 to 226 ms in starts with exact needs, which waited 2868 times. A warm start tells the work, and what it
//! takes more in the other one is what its waits cost, as far as waits cost that much.
//!
//! A start with exact needs takes several times as long as others, and not only because it reads: Firefox recorded so, with
//! its computing scaled to that of a warm start, still took 1.3 s with every page there, the warm one 0.87. Threads spin or
//! wait in ways that nobody sees ended, or on timers, and all of that is stretched with the start. So the pace of all that
//! is no reading is set until the start takes what the warm one takes when nothing has to be read.

use cold_model::Nanos;
use cold_model::pages::Runs;
use cold_model::recording::{Recording, Stall};
use cold_sim::Policy;
use cold_sim::disk::Model;
use cold_sim::engine::{Costs, Machine, Step, Task};

use super::{Helper, Recorded, Setting, Windows, by_file};
use crate::clock::DependencyClock;
use crate::usage::{Window, replay};

/// Part of the pages that it needs which a warm start reads at most.
const WARM: f64 = 0.1;
/// No wait costs a processor more than this besides, in nanoseconds: what is beyond it is another load of the machine, or the
/// recorder's. Starts without a recorder in windows of 4 KiB (python3, java, Firefox, `LibreOffice`; 2,000 to 19,000 requests,
/// 28 November 2026) took 20 to 42 µs more CPU time for each request than warm ones: half of what a wait takes passes while the
/// disk works ([`Costs::wait_ns`]), and some belongs to the pages.
const MOST_NS: u64 = 10_000;
/// What a page takes a processor at its first use more when it was read for that than when it has been used before,
/// nanoseconds: none of it is in the processor's caches. In windows of 2048 KiB, where waits are few, six programs took 0.5 to
/// 12 µs more time in user mode for each page that they needed than warm, the median 5 (five starts each on `sata-ssd`, 28
/// November 2026).
const FIRST_USE_NS: u64 = 5_000;
/// The pace of a start is near enough where it takes so much more or less than it should, as a part of that.
const NEAR: f64 = 0.005;
/// So often a pace is tried.
const PACES: usize = 6;

/// Why a recording does not tell what a start computes warm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotWarm {
    /// Another program, or other arguments.
    #[error("it is a recording of another command")]
    OtherCommand,
    /// No times off the CPU: nothing tells computing from waiting.
    #[error("one of the two recordings does not tell when threads were off the CPU: that takes BPF")]
    NoClock,
    /// It read what it needed.
    #[error("it had to read more than a tenth of what it needed")]
    Cold,
}

/// What a warm recording says of a cold one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warmed {
    /// What the program computes now as a part of what it computed in the cold recording.
    pub part: f64,
    /// CPU time that each wait for storage costs, nanoseconds.
    pub wait_ns: u64,
}

impl Recorded {
    /// Lets the program compute what it does warm, and pass its time so that with every page there it takes what the warm start
    /// takes; each page that was not cached costs something at its first use. What it computed more in `own`, the recording of
    /// this start, its waits for storage cost, each the same. `took`: what warm starts take without a recorder, exec to ready, where that was
    /// measured. Then all of this is scaled to it: a single recorded one may take a quarter longer (python3: 60.7 ms, the
    /// median of ten 48.8), and a machine that computes slower while starts are measured a third less (node: 104 and
    /// 142 ms).
    ///
    /// # Errors
    /// [`NotWarm`]
    pub fn warm(
        &mut self,
        own: &Recording,
        warm: &Recording,
        took: Option<Nanos>,
    ) -> Result<Warmed, NotWarm> {
        if own.manifest.command != warm.manifest.command {
            return Err(NotWarm::OtherCommand);
        }
        if own.off_cpu.is_none() || warm.off_cpu.is_none() {
            return Err(NotWarm::NoClock);
        }
        let clock = DependencyClock::of(warm, Window::of(warm));
        if read_as_cold(warm) {
            return Err(NotWarm::Cold);
        }
        let cold = DependencyClock::of(own, Window::of(own)).computing();
        let scale = took.map_or(1.0, |took| took.0 as f64 / clock.window_ns().max(1) as f64);
        let work = (clock.computing() as f64 / cold.max(1) as f64).min(1.0);
        let pace = self.pace(work * scale, warm, scale);
        let part = work * scale * pace;
        let computed = computed(&self.tasks);
        let first_uses = self.read_pages().saturating_mul(FIRST_USE_NS);
        scale_tasks(&mut self.tasks, part + first_uses as f64 / computed.max(1) as f64, pace);
        let more = ((computed as f64 * (1.0 - work) * scale) as u64).saturating_sub(first_uses);
        let each = more.checked_div(waits(own).count() as u64).unwrap_or(0).min(MOST_NS);
        self.costs = Costs { wait_ns: Costs::default().wait_ns.saturating_add(each), ..self.costs };
        Ok(Warmed { part, wait_ns: self.costs.wait_ns })
    }

    /// Of all that is no reading, beside the computing that is scaled by `part` already: by what it has to be scaled so that
    /// this start takes what the warm one takes, times `scale`, both with nothing to be read. At most 1, and 1 where the warm
    /// start cannot be simulated.
    fn pace(&self, part: f64, warm: &Recording, scale: f64) -> f64 {
        let warm = Self::of(warm).ok().and_then(|warm| warm.without_reading(1.0, 1.0));
        let Some(wanted) = warm.map(|ns| ns as f64 * scale) else { return 1.0 };
        let mut pace = 1.0;
        let mut last: Option<(f64, f64)> = None;
        for _ in 0..PACES {
            let Some(took) = self.without_reading(part * pace, pace).map(|ns| ns as f64) else { return 1.0 };
            if (took - wanted).abs() < NEAR * wanted || (took < wanted && pace >= 1.0) {
                break;
            }
            let next = match last {
                Some((other, then)) if (took - then).abs() > 1.0 => {
                    pace + (wanted - took) * (pace - other) / (took - then)
                }
                _ => pace * wanted / took,
            };
            last = Some((pace, took));
            pace = next.clamp(pace * 0.3, (pace * 2.0).min(1.0));
        }
        pace
    }

    /// Nanoseconds that it takes with its computing and everything else that passes scaled so, on a disk that takes no time
    /// and with reading that costs nothing.
    fn without_reading(&self, computing: f64, pace: f64) -> Option<u64> {
        let mut start = self.clone();
        start.keep_no_disks();
        scale_tasks(&mut start.tasks, computing, pace);
        let setting = Setting {
            policy: Policy::Nothing,
            windows: Windows::Usual,
            disk: &Model::default(),
            seed: 0,
            helper: Helper::None,
            machine: Machine { processors: self.processors, costs: Costs::NONE },
            memory: None,
        };
        start.simulate(&setting).ok().map(|simulated| simulated.time.0)
    }

    /// Pages that it needs and that were not cached before it.
    fn read_pages(&self) -> u64 {
        let cached = by_file(self.cached.iter().copied());
        let none = Runs::default();
        let read =
            self.needed.iter().map(|(file, runs)| runs.minus(cached.get(file).unwrap_or(&none)).pages());
        read.fold(0, u64::saturating_add)
    }
}

/// Nanoseconds that tasks compute.
fn computed(tasks: &[Task]) -> u64 {
    let steps = tasks.iter().flat_map(|task| &task.steps);
    steps.fold(0, |sum, step| if let Step::Compute(ns) = step { sum.saturating_add(*ns) } else { sum })
}

fn scale_tasks(tasks: &mut [Task], computing: f64, pace: f64) {
    for step in tasks.iter_mut().flat_map(|task| &mut task.steps) {
        match step {
            Step::Compute(ns) => *ns = (*ns as f64 * computing) as u64,
            Step::Sleep(ns) => *ns = (*ns as f64 * pace) as u64,
            _ => {}
        }
    }
}

/// Whether a start that was to be warm had to read what it needed: others had emptied the cache between its preparation
/// and it. Where touches or reads are not recorded this is not known, and the answer is no.
///
/// How long it waited does not tell: no two starts need quite the same pages, and the 50 of 6,200 that a warm Firefox
/// had to read took 0.38 of its 1.39 s on a disk with heads. The clock leaves such waits out.
pub fn read_as_cold(warm: &Recording) -> bool {
    if warm.touches.is_none() {
        return false;
    }
    let pages = replay(warm)
        .iter()
        .fold((0, 0), |(read, needed), file| (read + file.read.pages(), needed + file.exact.pages()));
    pages.0 as f64 > WARM * pages.1 as f64
}

/// Waits for pages up to ready.
fn waits(recording: &Recording) -> impl Iterator<Item = &Stall> {
    let window = Window::of(recording);
    let of_pages = move |s: &&Stall| s.cause.is_reading() && window.holds(s.began);
    recording.stalls.iter().flatten().filter(of_pages)
}
