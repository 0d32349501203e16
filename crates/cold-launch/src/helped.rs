//! A served start's reading in the program's own control group, so that its pages are charged to that group as they
//! would be without a service, and not to the service's.
//!
//! Reading begins in the service, which is there already; a helper in the program's group goes on with it 1.0 to 2.8 ms
//! later (ten starts). The two share a page of numbers, so that no step is done twice or left out.

use std::ffi::CStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::Nanos;
use cold_plan::format::View;
use cold_plan::plan::Gate;
use cold_sys::cgroup::{Hierarchies, MemoryGroup};
use cold_sys::copier::{Caller, Copied, Copier, MOST_FDS, NUMBERS, Order};
use cold_sys::detached;
use cold_sys::procfs::{Mount, ProcFs};
use cold_sys::shared::{SharedWords, file_of};
use cold_sys::time::monotonic;

use crate::engine::{Engine, Limits};
use crate::guard;
use crate::options::Skip;
use crate::prepare;

/// What helpers are called where processes are listed.
const NAME: &CStr = c"cold-reader";
/// The shared page and the plan.
const FIXED_FDS: usize = 2;
/// What limits take, before the devices' numbers in the plan.
const FIXED_NUMBERS: usize = 6;
/// Devices that a helper is given; a plan has one or two.
const DEVICES: usize = MOST_FDS - FIXED_FDS;
/// Plans of fewer bytes get no helper: about so much was asked for before one was there (2 to 6.6 MB of ten starts), and it
/// costs a millisecond of a processor. Starts of `git` (3.5 MB) and `perl` (5.3 MB) took 1.16 and 1.04 times as long with
/// one (A/A 1.04 and 1.02; 40 rounds).
const LEAST: u64 = 8 << 20;
/// Between two looks whether a helper still has to be waited for.
const LOOK: Duration = Duration::from_millis(5);

/// Who makes helpers.
#[derive(Debug)]
pub struct Helpers(Copier);

/// To which control group the pages of a followed start were charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charged {
    /// So many bytes to the program's own; the rest had been asked for before the helper was there. All of them where the
    /// program is in the service's group.
    Own(u64),
    /// All of them to the service's.
    Service(NotOwn),
}

/// Why nothing was charged to the program's own control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotOwn {
    /// No hierarchy of control groups charges memory here, or none that is mounted.
    Nowhere,
    /// There is nobody who could make helpers.
    NoHelpers,
    /// The program's group is not to be found: it has ended, or its group lies outside what is mounted.
    NotFound,
    /// The plan is too small for a helper to come in time.
    Small,
    /// The group has no room for it.
    Room,
    /// The kernel refuses (its words).
    Refused(String),
    /// Everything had been asked for before the helper was there.
    Late,
}

impl NotOwn {
    /// In words, behind "charged to the service: ".
    pub fn words(&self) -> String {
        match self {
            Self::Nowhere => "control groups do not charge memory here".into(),
            Self::NoHelpers => "nobody makes helpers".into(),
            Self::NotFound => "the program's control group was not found".into(),
            Self::Small => "the plan is so small that a helper would come too late".into(),
            Self::Room => "the program's control group has no room".into(),
            Self::Refused(why) => format!("no helper in the program's control group: {why}"),
            Self::Late => "all was asked for before the helper was there".into(),
        }
    }
}

impl Helpers {
    /// Makes the process that makes them. In the first thread, while there is no other.
    pub fn fork() -> cold_sys::Result<Self> {
        Copier::fork(NAME, &go_on).map(Self)
    }

    /// Helpers that the process makes which listens at `path`, with [`serve`] for who comes.
    pub fn connect(path: &Path) -> cold_sys::Result<Self> {
        Copier::connect(path).map(Self)
    }

    /// The process id of who makes them, where it is our own.
    pub fn pid(&self) -> Option<i32> {
        self.0.pid()
    }
}

/// Makes helpers for who is at the other end, until that is gone. In a process of one thread.
pub fn serve(orders: &impl AsFd) {
    cold_sys::copier::serve(orders, NAME, &go_on);
}

/// In a helper: does the steps that are left.
fn go_on(order: Order) {
    let (caller, numbers, fds) = order.into_parts();
    // Who is not told that it is finished takes the start for one that was not.
    let _ = read_on(&caller, &numbers, fds);
}

fn read_on(caller: &Caller, numbers: &[u64; NUMBERS], fds: Vec<OwnedFd>) -> Result<(), Skip> {
    let mut fds = fds.into_iter();
    let (Some(page), Some(plan)) = (fds.next(), fds.next()) else { return Ok(()) };
    let path = Path::new("a plan of the service");
    let failed = |e| cold_sys::Error::io("read", "a plan of the service", e);
    let mut bytes = Vec::new();
    File::from(plan).read_to_end(&mut bytes).map_err(failed)?;
    let view = View::parse(&bytes).map_err(|why| Skip::Format { path: path.to_owned(), why })?;
    let (places, _) = prepare::places(view)?;
    let shared = SharedWords::open(page)?;
    let limits = limits_of(numbers);
    let engine = Engine::new(view, &places, &shared, limits);
    for (index, device) in numbers.iter().skip(FIXED_NUMBERS).zip(fds) {
        engine.give_device(u32::try_from(*index).unwrap_or(u32::MAX), File::from(device));
    }
    detached::make_room_for_files(limits.most_open());
    let engine = engine.going_on();
    std::thread::scope(|scope| {
        let watch = || {
            while Instant::now() < limits.deadline && !caller.is_gone(LOOK * 20) {}
            // Not by returning: a thread that a dead disk holds would be waited for.
            detached::end()
        };
        // Without a second thread there is nobody to end it in time: then the service reads on.
        if std::thread::Builder::new().stack_size(128 << 10).spawn_scoped(scope, watch).is_ok() {
            engine.progress().take_over();
            engine.run();
            engine.progress().finish();
        }
        detached::end()
    })
}

fn numbers_of(limits: Limits) -> [u64; FIXED_NUMBERS] {
    let left = limits.deadline.saturating_duration_since(Instant::now());
    let end = monotonic().0.saturating_add(left.as_nanos() as u64);
    let Limits { bytes, in_flight, chunk, threads, files, .. } = limits;
    [bytes, in_flight, chunk, threads as u64, files as u64, end]
}

fn limits_of(numbers: &[u64; NUMBERS]) -> Limits {
    let [bytes, in_flight, chunk, threads, files, end, ..] = *numbers;
    let left = Nanos(end).saturating_sub(monotonic()).0;
    Limits {
        bytes,
        in_flight,
        chunk,
        threads: usize::try_from(threads).unwrap_or(1),
        files: usize::try_from(files).unwrap_or(1),
        deadline: Instant::now() + Duration::from_nanos(left),
        gate: Gate::None,
        absent_only: false,
    }
}

#[derive(Debug)]
enum Ordered {
    Helper(Copied),
    /// None: the program is in our own group.
    Same,
    Not(NotOwn),
}

/// A start's helper, if it gets one: shared by the thread that reads and the one that watches.
#[derive(Debug)]
pub(crate) struct Helped<'a> {
    helpers: Option<&'a Helpers>,
    mounts: &'a [Mount],
    pid: i32,
    is_small: bool,
    /// What became of the order, once it was made.
    ordered: OnceLock<Ordered>,
    /// Nobody wants its reading any more.
    is_over: AtomicBool,
}

impl<'a> Helped<'a> {
    /// For the process `pid`, and a plan of so many bytes.
    pub(crate) fn new(helpers: Option<&'a Helpers>, mounts: &'a [Mount], pid: i32, bytes: u64) -> Self {
        let (ordered, is_over) = (OnceLock::new(), false.into());
        Self { helpers, mounts, pid, is_small: bytes < LEAST, ordered, is_over }
    }

    /// The numbers that it shares with a reading.
    pub(crate) fn numbers(&self) -> cold_sys::Result<SharedWords> {
        if self.helpers.is_some() && !self.is_small { SharedWords::with_fd() } else { SharedWords::new() }
    }

    /// Orders a helper that goes on with this engine's reading. Takes a tenth of a millisecond, so it is for a thread
    /// that does not read.
    pub(crate) fn order(&self, engine: &Engine<'_>, plan: &[u8]) {
        let (proc, groups) = (ProcFs::default(), Hierarchies::of(self.mounts));
        let [own, group] =
            [std::process::id().cast_signed(), self.pid].map(|pid| groups.memory_of(&proc, pid));
        let ordered = if group.is_some() && group == own {
            Ordered::Same
        } else if group.is_none() && groups.charges_memory().is_none() {
            Ordered::Not(NotOwn::Nowhere)
        } else {
            self.ask(engine, plan, group).map_or_else(Ordered::Not, Ordered::Helper)
        };
        let _ = self.ordered.set(ordered);
    }

    fn ask(&self, engine: &Engine<'_>, plan: &[u8], group: Option<MemoryGroup>) -> Result<Copied, NotOwn> {
        let helpers = self.helpers.ok_or(NotOwn::NoHelpers)?;
        if self.is_small {
            return Err(NotOwn::Small);
        }
        let group = group.ok_or(NotOwn::NotFound)?;
        // A group that is gone went with its program.
        let entrance = group.entrance().map_err(|e| match e.kind() {
            ErrorKind::NotFound => NotOwn::NotFound,
            _ => NotOwn::Refused(e.to_string()),
        })?;
        let mut limits = engine.limits();
        if let Some(room) = guard::room_of(&group) {
            // The other half is for the program itself.
            limits.bytes = limits.bytes.min(room / 2);
            if limits.bytes <= engine.progress().bytes() {
                return Err(NotOwn::Room);
            }
        }
        let page = engine.progress().fd().ok_or(NotOwn::NoHelpers)?;
        let plan = file_of(plan).map_err(|e| NotOwn::Refused(e.to_string()))?;
        let devices: Vec<_> = engine.devices().take(DEVICES).collect();
        let fixed = numbers_of(limits);
        let all = fixed.into_iter().chain(devices.iter().map(|(index, _)| u64::from(*index)));
        let mut numbers = [0; NUMBERS];
        numbers.iter_mut().zip(all).for_each(|(number, value)| *number = value);
        let fds: Vec<BorrowedFd<'_>> =
            [page, plan.as_fd()].into_iter().chain(devices.iter().map(|(_, file)| file.as_fd())).collect();
        helpers.0.order(entrance.as_fd(), numbers, &fds).map_err(|e| NotOwn::Refused(e.to_string()))
    }

    /// By the thread that reads, when its own reading has ended: waits until that of a helper has, too, or nobody wants
    /// it any more. Whether all was asked for.
    pub(crate) fn wait(&self, engine: &Engine<'_>) -> bool {
        let progress = engine.progress();
        if !progress.is_taken_over() {
            return true;
        }
        loop {
            let over = self.is_over.load(Ordering::Acquire);
            match self.ordered.get() {
                Some(Ordered::Helper(helper)) if helper.has_ended(LOOK) => break,
                Some(Ordered::Helper(_)) if !over => {}
                // It was ordered, or would not have taken over: that is about to be noted.
                None if !over => std::thread::sleep(LOOK / 50),
                _ => break,
            }
        }
        progress.is_finished()
    }

    /// By the thread that watches, when there is nothing more to watch: a helper must not stay in the program's group.
    pub(crate) fn end(&self, engine: &Engine<'_>) {
        if engine.progress().is_taken_over() {
            engine.stop();
        }
        self.is_over.store(true, Ordering::Release);
    }

    /// What became of it; ends a helper that is still there.
    pub(crate) fn charged(self, engine: &Engine<'_>) -> Charged {
        let progress = engine.progress();
        match self.ordered.into_inner() {
            None => Charged::Service(NotOwn::Late),
            Some(Ordered::Same) => Charged::Own(progress.bytes()),
            Some(Ordered::Not(why)) => Charged::Service(why),
            Some(Ordered::Helper(_)) if progress.is_taken_over() => {
                match progress.bytes().saturating_sub(progress.bytes_before()) {
                    0 => Charged::Service(NotOwn::Late),
                    bytes => Charged::Own(bytes),
                }
            }
            Some(Ordered::Helper(helper)) => {
                let refusal = helper.has_ended(Duration::ZERO).then(|| helper.refusal()).flatten();
                Charged::Service(refusal.map_or(NotOwn::Late, |e| NotOwn::Refused(e.to_string())))
            }
        }
    }
}
