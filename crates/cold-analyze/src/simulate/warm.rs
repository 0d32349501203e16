//! What the program itself computes, taken from a warm recording of the same start.
//!
//! A processor that was idle while a page came goes on with cold caches of its own, and on a virtual machine another guest
//! had it meanwhile. So the same work takes longer in a start of many waits: python3 with eleven modules computed 109 ms
//! warm, and 161 to 226 ms in starts with exact needs, which waited 2868 times. A warm start tells the work, and what it
//! takes more in the other one is what its waits cost, as far as waits cost that much.

use cold_model::Nanos;
use cold_model::pages::Runs;
use cold_model::recording::{Recording, Stall};
use cold_sim::engine::{Costs, Step};

use super::{Recorded, by_file};
use crate::clock::DependencyClock;
use crate::usage::{Window, replay};

/// Part of the pages that it needs which a warm start reads at most.
const WARM: f64 = 0.1;
/// No wait costs a processor more than this besides, in nanoseconds: what is beyond it is another load of the machine, or the
/// recorder's. Starts without a recorder in windows of 4 KiB (python3, java, Firefox, `LibreOffice`; 2,000 to 19,000 requests,
/// 28 November 2026) took 20 to 42 µs more CPU time for each request than warm ones: about half of what a wait takes passes
/// while the disk works ([`Costs::wait_ns`]), and some belongs to the pages. In two series of 36 measured cells on `sata-ssd`,
/// 62 came out within 10 % so, 57 with up to 100 µs for each wait and nothing for a first use.
const MOST_NS: u64 = 10_000;
/// What a page takes a processor more at its first use, nanoseconds, where the program itself had to read it. In windows of
/// 2048 KiB, where waits are few, six programs took 0 to 3 µs more time in user mode for each page that they needed than
/// warm, the median 1.4 (ten starts each on a punctual `sata-ssd`, 29 November 2026; the day before, five each on a usual one,
/// 0.5 to 12, the median 5). Where a plan had read the pages it was not there: by
/// theirs `python3` and `node` took 150 and 128 ms where 151 and 133 were foretold without it, 165 and 152 with it. So it is
/// most likely the waiting that cools the processor's caches, and not the page that is new.
const FIRST_USE_NS: u64 = 1_500;

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
    /// Pages that the program itself had to read.
    pub first_uses: u64,
    /// By how much the first use of each of them takes longer, nanoseconds.
    pub first_use_ns: u64,
}

impl Recorded {
    /// Lets the program compute what it does warm, and each page that was not cached cost something at its first use. What it
    /// computed more in `own`, the recording of this start, its waits for storage cost, each the same. `took`: what warm
    /// starts take without a recorder, exec to ready, where that was measured. Then all of this is scaled to it: a single
    /// recorded one may take a quarter longer (python3: 60.7 ms, the median of ten 48.8), and a machine that computes slower
    /// while starts are measured a third less (node: 104 and 142 ms).
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
        if read_as_cold(warm) {
            return Err(NotWarm::Cold);
        }
        let clock = DependencyClock::of(warm, Window::of(warm));
        let cold = DependencyClock::of(own, Window::of(own)).computing();
        let scale = took.map_or(1.0, |took| took.0 as f64 / clock.window_ns().max(1) as f64);
        let work = (clock.computing() as f64 / cold.max(1) as f64).min(1.0);
        let part = work * scale;
        let read = self.read_pages();
        let first_uses = read.saturating_mul(FIRST_USE_NS);
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        let computed: u64 = steps
            .fold(0, |sum, step| if let Step::Compute(ns) = step { sum.saturating_add(*ns) } else { sum });
        let part_and_first_uses = part + first_uses as f64 / computed.max(1) as f64;
        self.first_use = if part > 0.0 { part_and_first_uses / part } else { 1.0 };
        for step in self.tasks.iter_mut().flat_map(|task| &mut task.steps) {
            if let Step::Compute(ns) = step {
                *ns = (*ns as f64 * part_and_first_uses) as u64;
            }
        }
        let more = ((computed as f64 * (1.0 - work) * scale) as u64).saturating_sub(first_uses);
        let each = more.checked_div(waits(own).count() as u64).unwrap_or(0).min(MOST_NS);
        self.costs = Costs { wait_ns: Costs::default().wait_ns.saturating_add(each), ..self.costs };
        Ok(Warmed { part, wait_ns: self.costs.wait_ns, first_uses: read, first_use_ns: FIRST_USE_NS })
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
