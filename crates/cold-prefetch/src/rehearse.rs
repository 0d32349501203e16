//! A recorded start on paper, with one plan and with another, before any disk is touched.
//!
//! Only such recordings serve that know every wait and who ended it: of others the simulated times hold for the
//! recorded disk alone. What the model is off by is the same for all plans of one start as far as it comes from
//! what the program computes; what is left of it, docs/concepts/simulation.md tells.

use cold_analyze::cost::{DeviceCost, bounds};
use cold_analyze::replay;
use cold_analyze::simulate::{self, Helper, Recorded, Setting, WaitsKnown, Windows};
use cold_model::recording::Recording;
use cold_model::{DeviceModel, Nanos};
use cold_plan::Plan;
use cold_sim::Policy;
use cold_sim::disk::Model;
use cold_sim::engine;

use crate::predict::{asked, at_most};

/// A plan is clearly faster than another where it saves more than this part of the start. Below, the order of what
/// happens at about the same time decides: for `python3` importing five modules the model gives 99.1, 102.8, 100.0 and
/// 104.0 ms with gaps of 0, 8, 32 and 256 KiB.
pub const CLEARLY: f64 = 0.05;

/// Why a start cannot be rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotRehearsed {
    /// The recording is none of a start that can be simulated.
    #[error(transparent)]
    Start(#[from] simulate::NotSimulated),
    /// Its threads take what they took, whoever reads faster.
    #[error("the recording does not show who waited for whom: that takes BPF")]
    Waits,
    /// Neither measured, nor are the start's requests enough to tell.
    #[error("nothing tells what reads cost on its disk")]
    Disk,
    /// It contradicts itself.
    #[error(transparent)]
    Contradiction(#[from] engine::Error),
}

/// A recorded start, and the disk on which it is simulated.
#[derive(Debug)]
pub struct Rehearsal<'a> {
    recording: &'a Recording,
    start: Recorded,
    disk: Model,
    in_measured_time: bool,
}

impl<'a> Rehearsal<'a> {
    /// With the touches that were seen: all of an exact start, of others no more than what was needed for certain.
    /// `device`: where it was measured; else the disk is fitted to the requests of the recording.
    pub fn seen(recording: &'a Recording, device: Option<&DeviceModel>) -> Result<Self, NotRehearsed> {
        Self::of(recording, Recorded::of(recording)?, device)
    }

    /// With all that may have been needed, as far as `plan` does not know better ([`at_most`]).
    pub fn at_most(
        recording: &'a Recording,
        plan: Option<&Plan>,
        device: Option<&DeviceModel>,
    ) -> Result<Self, NotRehearsed> {
        Self::of(recording, at_most(recording, plan, || replay(recording))?, device)
    }

    fn of(
        recording: &'a Recording,
        mut start: Recorded,
        device: Option<&DeviceModel>,
    ) -> Result<Self, NotRehearsed> {
        if start.waits_known != WaitsKnown::All {
            return Err(NotRehearsed::Waits);
        }
        let request = bounds(recording);
        let fitted = || DeviceCost::of(recording).filter(DeviceCost::knows_sizes);
        let disk = device.map(Model::measured).or_else(|| Some(fitted()?.disk(request)));
        let disk = Model { request, ..disk.ok_or(NotRehearsed::Disk)? };
        // What was measured or fitted is one disk: the files of others cost what they did.
        start.keep_disks_but(recording, device.map(|d| d.dev));
        Ok(Self { recording, start, disk, in_measured_time: false })
    }

    /// The same with what the program computes in a warm recording of it, where there is one and it tells that: in a start
    /// of many waits the same work takes longer, and a plan takes these waits away. `took`: as in [`Recorded::warm`].
    #[must_use]
    pub fn computing_as_in(mut self, warm: Option<&Recording>, took: Option<Nanos>) -> Self {
        if let Some(warm) = warm {
            // One that does not tell changes nothing: the start keeps its own times.
            let told = self.start.warm(self.recording, warm, took);
            self.in_measured_time = told.is_ok() && took.is_some();
        }
        self
    }

    /// The program computes as long as it does in warm starts that were measured, so what is simulated compares with
    /// measured starts.
    pub fn is_in_measured_time(&self) -> bool {
        self.in_measured_time
    }

    /// Time to ready with the plan's steps, from the launcher's exec on.
    pub fn with(&self, plan: &Plan) -> Result<Nanos, NotRehearsed> {
        let mut start = self.start.clone();
        let asked = asked(plan, self.recording, &mut start);
        self.time(&start, start.policy, Helper::Plan(&asked.replay))
    }

    /// Time to ready without any plan.
    pub fn without(&self) -> Result<Nanos, NotRehearsed> {
        self.time(&self.start, self.start.policy, Helper::None)
    }

    /// Time to ready without any plan, were all its files on this disk, in the same places.
    pub fn without_on(&self, device: &DeviceModel) -> Result<Nanos, NotRehearsed> {
        let disk = Model { request: self.disk.request, ..Model::measured(device) };
        let mut start = self.start.clone();
        start.keep_no_disks();
        Rehearsal { start, disk, ..*self }.without()
    }

    /// Time to ready where nothing is read ahead: that of a start which is recorded with exact needs.
    pub fn page_by_page(&self) -> Result<Nanos, NotRehearsed> {
        self.time(&self.start, Policy::Nothing, Helper::None)
    }

    fn time(&self, start: &Recorded, policy: Policy, helper: Helper<'_>) -> Result<Nanos, NotRehearsed> {
        let machine = start.machine();
        let (windows, memory) = (Windows::Usual, None);
        let setting = Setting { policy, windows, disk: &self.disk, seed: 0, helper, machine, memory };
        Ok(start.simulate(&setting)?.time)
    }
}

#[cfg(test)]
mod tests {
    use cold_model::Dev;

    use super::*;
    use crate::exact::tests::{disk, plan, recorded};
    use crate::{compile, knobs_for};

    #[test]
    fn on_another_disk_each_page_takes_what_that_disk_takes() {
        let pages: Vec<u64> = (0..100).map(|n| n * 1000).collect();
        let (slow, fast) = (disk(1000.0, 10.0), disk(100.0, 10.0));
        let start = recorded(&pages, 0);
        let rehearsal = Rehearsal::at_most(&start, None, Some(&slow)).expect("waits are known");
        let today = rehearsal.without().expect("it adds up");
        assert_eq!(rehearsal.without_on(&slow), Ok(today), "the same disk");
        let there = rehearsal.without_on(&fast).expect("it adds up");
        // A hundred pages, each 0.9 ms earlier.
        let saved = (today.0 - there.0) as f64 / 1e6;
        assert!((saved - 90.0).abs() < 2.0, "{saved} of {today}");
    }

    #[test]
    fn files_on_another_disk_than_the_plans_cost_what_they_did() {
        let pages: Vec<u64> = (0..100).map(|n| n * 1000).collect();
        let mut start = recorded(&pages, 0);
        let own = start.files[0].dev;
        for (n, page) in pages.iter().enumerate() {
            start.request(2 * n as u64 + 1, 1, 0, *page..page + 1);
        }
        // One page of a file on a second disk, for which the plan is made.
        let other = Dev::new(8, 16);
        let mut device = start.manifest.devices[0].clone();
        device.dev = other;
        start.manifest.devices.push(device);
        let file = start.file("/other", 4096);
        start.files[file as usize].dev = other;
        start.touch(0, file, 0..1, cold_model::recording::TouchKind::Fault);
        let without = |dev: Dev| {
            let fast = DeviceModel { dev, ..disk(10.0, 1.0) };
            let rehearsal = Rehearsal::at_most(&start, None, Some(&fast)).expect("waits are known");
            rehearsal.without().expect("it adds up").0 / 1_000_000
        };
        // A hundred requests of 1 ms each, on the disk that they were made to; the plan's disk has one page of it.
        assert!((100..=120).contains(&without(other)), "{}", without(other));
        assert!(without(own) <= 20, "{}", without(own));
        // A disk of another machine, or of another boot: it stands for all.
        assert_eq!(without(Dev::new(99, 1)), without(own));
    }

    #[test]
    fn pages_that_an_exact_start_did_not_need_are_not_read_beside_its_plan() {
        let pages: Vec<u64> = (0..100).map(|n| n * 1000).collect();
        let device = disk(1000.0, 10.0);
        let mut plan = plan(&pages, 0);
        let knobs = knobs_for(&plan, Some(&device));
        compile(&mut plan, &knobs, Some(&device), &|_| None);
        // The kernel mapped 15 pages around each one, which nothing touched.
        let start = recorded(&pages, 15);
        let time = |known: Option<&Plan>| {
            let rehearsal = Rehearsal::at_most(&start, known, Some(&device)).expect("waits are known");
            (rehearsal.without().expect("it adds up"), rehearsal.with(&plan).expect("it adds up"))
        };
        let ((_, doubtful), (without, with)) = (time(None), time(Some(&plan)));
        assert!(with.0 * 10 < without.0 * 9, "the plan helps: {with:?} of {without:?}");
        assert!(with < doubtful, "{with:?}, and with pages that nobody needs {doubtful:?}");
        // As much as in a start that is known to need no more.
        let exact = recorded(&pages, 0);
        let exact = Rehearsal::at_most(&exact, None, Some(&device)).expect("waits are known");
        assert_eq!(Ok(with), exact.with(&plan));
    }
}
