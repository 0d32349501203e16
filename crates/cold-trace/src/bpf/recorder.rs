//! One recording by BPF, from loading to the last event.

use std::collections::BTreeMap;
use std::io::Write;
use std::thread;
use std::time::Duration;

use cold_model::Nanos;
use cold_model::recording::manifest::{ProgramCost, Tier};
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};

use super::consumer::Consumer;
use super::loaded::Loaded;
use super::support::{PROGRAMS, When};
use super::{BpfCosts, BpfOptions, Error, Follow, load};
use crate::raw::LOSSES;
use crate::record::{CallCount, facts};
use crate::waiting::KernelFunction;

/// After the programs are detached, those that were running have ended by then (they take microseconds).
const QUIET: Duration = Duration::from_millis(20);
/// Places of the map that tells which processes may be in the tree, as in state.h.
const MEMBERS: u32 = 8192;

/// Attached programs and the thread that reads them.
pub struct BpfRecorder<W> {
    // Order of dropping: links first, so that nothing runs without its reader.
    links: Vec<Link>,
    consumer: Consumer<W>,
    loaded: Loaded,
    /// It waits for its start: not everything is attached yet.
    asleep: bool,
}

impl<W: Write + Send + 'static> BpfRecorder<W> {
    /// Loads and attaches everything; from now on events flow to `sink`, in pieces of whole records
    /// ([`crate::raw`]). Of [`super::Scope::Tree`] nothing is followed yet: see [`BpfRecorder::follow`].
    ///
    /// # Errors
    /// [`Error`]; nothing stays loaded.
    pub fn attach(options: &BpfOptions, sink: W) -> Result<Self, Error> {
        Self::attach_loaded(Loaded::new(options)?, sink)
    }

    /// The same with programs that are loaded already: those of [`BpfRecorder::finish_and_keep`].
    ///
    /// # Errors
    /// [`Error`]; nothing stays loaded.
    pub fn attach_loaded(loaded: Loaded, sink: W) -> Result<Self, Error> {
        let armed = loaded.options().armed;
        let events = MapHandle::try_from(&loaded.map("events")?)
            .map_err(|source| Error::Map { action: "open the buffer of events", source })?;
        let consumer = Consumer::start(events, sink, armed).map_err(Error::Sink)?;
        let links = load::attach(loaded.object(), |program| !armed || program.when == When::Waiting)?;
        Ok(Self { links, consumer, loaded, asleep: armed })
    }

    /// The tier that is recorded.
    pub fn tier(&self) -> Tier {
        self.loaded.tier()
    }

    /// Its events tell what is mapped where ([`crate::raw::Event::Area`]); else perf events have to.
    pub fn tells_areas(&self) -> bool {
        self.loaded.tells_areas()
    }

    /// Adds to the tree. Call it before what it is about begins: what happened earlier is not recorded. Answers from when
    /// on all pages that it touches are seen (`CLOCK_MONOTONIC`).
    ///
    /// # Errors
    /// [`Error::Map`], and [`Error::Load`] of what was not attached before.
    pub fn follow(&mut self, whom: Follow) -> Result<Nanos, Error> {
        let (Follow::ChildrenOf(pid) | Follow::Running(pid)) = whom;
        self.member(pid, if whom == Follow::Running(pid) { 1 } else { 2 })?;
        let seen = if std::mem::take(&mut self.asleep) { self.wake()? } else { monotonic() };
        if whom == Follow::Running(pid) {
            self.follow_running(pid)?;
        }
        Ok(seen)
    }

    /// The start has come: attaches the others. Answers when pages began to be seen.
    fn wake(&mut self) -> Result<Nanos, Error> {
        self.consumer.comes();
        self.links.extend(load::attach(self.loaded.object(), |program| program.when == When::First)?);
        let seen = monotonic();
        self.links.extend(load::attach(self.loaded.object(), |program| program.when == When::Then)?);
        Ok(seen)
    }

    /// Which of the kernel's functions tell what a wait is for; none where the kernel hides its addresses.
    pub fn kernel_functions(&self) -> &[KernelFunction] {
        self.loaded.functions()
    }

    /// Forks are followed from when their parent is in the tree, so children that were missed by one
    /// look were born before it and are there for the next.
    fn follow_running(&self, root: u32) -> Result<(), Error> {
        let proc = ProcFs::new("/proc");
        let mut known = vec![root];
        loop {
            let new: Vec<_> =
                facts::tree(&proc, root).into_iter().filter(|pid| !known.contains(pid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for pid in &new {
                self.member(*pid, 1)?;
            }
            known.extend(new);
        }
    }

    fn member(&self, pid: u32, how: u32) -> Result<(), Error> {
        let failed = |source| Error::Map { action: "add a process to the tree", source };
        // First: by the tree alone no program finds it.
        let slot = pid % MEMBERS;
        self.loaded.map("members")?.update(&slot.to_ne_bytes(), &[1], MapFlags::ANY).map_err(failed)?;
        self.loaded.map("tree")?.update(&pid.to_le_bytes(), &how.to_le_bytes(), MapFlags::ANY).map_err(failed)
    }

    /// Detaches everything, takes the last events, and says what was lost and what it cost.
    ///
    /// # Errors
    /// [`Error::Sink`] when events could not be written, [`Error::Map`], [`Error::Reader`].
    pub fn finish(self) -> Result<(BpfCosts, W), Error> {
        self.end().map(|(costs, sink, _)| (costs, sink))
    }

    /// The same, and gives back the programs, emptied, for the next recording; none where that did not succeed.
    ///
    /// # Errors
    /// As [`BpfRecorder::finish`].
    pub fn finish_and_keep(self) -> Result<(BpfCosts, W, Option<Loaded>), Error> {
        let (costs, sink, loaded) = self.end()?;
        Ok((costs, sink, loaded.emptied().ok()))
    }

    fn end(self) -> Result<(BpfCosts, W, Loaded), Error> {
        let Self { links, consumer, loaded, .. } = self;
        drop(links);
        thread::sleep(QUIET);
        let taken = consumer.end().ok_or(Error::Reader)?.map_err(Error::Sink)?;
        taken.result.map_err(Error::Sink)?;
        let missed = loaded.missed();
        let object = loaded.object();
        let mut lost = losses(object)?;
        if missed > 0 {
            lost.insert("programs_skipped".into(), missed);
        }
        let finished = BpfCosts {
            lost,
            programs: costs(object)?,
            recorder_cpu: taken.cpu,
            events: taken.events,
            bytes: taken.bytes,
            buffer: loaded.buffer(),
            calls: calls(object)?,
        };
        Ok((finished, taken.sink, loaded))
    }
}

/// Lost events per class, summed over CPUs.
fn losses(object: &Object) -> Result<BTreeMap<String, u64>, Error> {
    let map = load::map(object, "lost")?;
    let mut lost = BTreeMap::new();
    for (class, name) in (0_u32..).zip(LOSSES) {
        let [count] = sums(&map, class, "read the counts of lost events")?;
        if count > 0 {
            lost.insert(name.to_owned(), count);
        }
    }
    Ok(lost)
}

/// The 64-bit numbers of a slot, each summed over CPUs.
fn sums<const N: usize>(map: &impl MapCore, slot: u32, action: &'static str) -> Result<[u64; N], Error> {
    let per_cpu = map
        .lookup_percpu(&slot.to_le_bytes(), MapFlags::ANY)
        .map_err(|source| Error::Map { action, source })?
        .unwrap_or_default();
    let mut sums = [0; N];
    for cpu in &per_cpu {
        for (sum, word) in sums.iter_mut().zip(cpu.as_chunks().0) {
            *sum += u64::from_le_bytes(*word);
        }
    }
    Ok(sums)
}

/// What each program cost, by the programs' own count (`costs.h`).
fn costs(object: &Object) -> Result<Vec<ProgramCost>, Error> {
    let map = load::map(object, "costs")?;
    let mut costs = Vec::new();
    for (slot, program) in (0_u32..).zip(&PROGRAMS) {
        // `struct cold_cost`: runs, then nanoseconds.
        let [runs, time] = sums(&map, slot, "read what the BPF programs cost")?;
        if runs > 0 {
            costs.push(ProgramCost { name: program.name.to_owned(), runs, time: Nanos(time) });
        }
    }
    Ok(costs)
}

/// What was called, where that was counted.
fn calls(object: &Object) -> Result<Vec<CallCount>, Error> {
    let map = load::map(object, "call_counts")?;
    let counts = map.keys().filter_map(|key| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        // `struct call_key`: pid, number; `struct call_count`: calls, bytes, nanoseconds.
        let half = |at: usize| Some(u32::from_le_bytes(*key.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u64::from_le_bytes(*value.get(at..)?.first_chunk()?));
        Some(CallCount {
            pid: half(0)?,
            number: half(4)?.cast_signed(),
            calls: word(0)?,
            bytes: word(8)?,
            time: Nanos(word(16)?),
        })
    });
    Ok(counts.collect())
}
