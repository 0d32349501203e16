//! Accesses: what they read, sent as requests, and the wait for it.

use crate::disk::Bounds;
use crate::op::{Access, FileId, Op, PageCache, Why};

use super::super::outcome::{Done, Error, Filled, Kind, Sent};
use super::{Due, Engine, Phase};

/// An access that waits for pages which come at once, so often in a row, will never get them.
const FRUITLESS: u8 = 3;

impl<C: PageCache + ?Sized> Engine<'_, C> {
    /// Asks the cache. False: the task has left its slot, or computes.
    pub(super) fn access(&mut self, slot: usize, task: usize, op: &Op) -> Result<bool, Error> {
        self.reads.clear();
        let of = &mut self.tasks[task];
        of.phase = Phase::Next;
        let then = self.cache.access(op, &mut of.progress, &mut self.reads);
        if self.reads.is_empty() {
            return match then {
                Access::Done => {
                    self.done(task, *op);
                    Ok(true)
                }
                Access::Waits { .. } | Access::GoesOn => {
                    of.own = false;
                    self.then(slot, task, *op, then)
                }
            };
        }
        Ok(self.ask(slot, task, *op, then))
    }

    fn done(&mut self, task: usize, op: Op) {
        let of = &mut self.tasks[task];
        of.fruitless = 0;
        let (began_ns, waited) = of.access;
        if task < self.input.tasks.len() && matches!(op, Op::Touch { .. } | Op::Read { .. }) {
            self.done.push(Done { task, op, began_ns, done_ns: self.now, waited });
        }
    }

    /// The reads of an access become requests, which the task pays for before it sends them.
    fn ask(&mut self, slot: usize, task: usize, op: Op, then: Access) -> bool {
        let mut pages = 0_u64;
        for read in &self.reads {
            pages = pages.saturating_add(read.pages);
            self.filled.push(Filled { task, at_ns: self.now, read: *read });
            if let Some(file) = self.files.get_mut(read.file.0 as usize) {
                file.add(read.why, read.pages);
            }
        }
        let own = match then {
            Access::Waits { file, page } => self.reads.iter().any(|r| {
                r.file == file && r.why != Why::Advice && page >= r.first && page - r.first < r.pages
            }),
            Access::Done | Access::GoesOn => false,
        };
        let disks = &self.disks;
        let bounds = |disk: usize| disks.get(disk).map_or_else(Bounds::default, |d| d.model().request);
        let submission = self.input.layout.submission(&self.reads, bounds);
        let (requests, at_once) = self.flight.enter(submission);
        for read in at_once {
            self.cache.arrived(&read);
        }
        let costs = self.machine.costs;
        let made = (requests.len() as u64).saturating_mul(costs.request_ns);
        let ns = made.saturating_add(pages.saturating_mul(costs.page_ns));
        let of = &mut self.tasks[task];
        of.own = own;
        // It got further: a read or what is populated may wait for many pages, one after another.
        of.fruitless = 0;
        of.pending = requests.into();
        of.phase = Phase::Sending(op, then);
        if ns == 0 {
            return true;
        }
        of.doing = Kind::Reading;
        self.lives[task].turn(self.now, Kind::Reading, usize::MAX);
        self.pass(slot, ns)
    }

    /// Sends what is pending. False: a disk's queue is full, and the task waits for it.
    pub(super) fn send(&mut self, slot: usize, task: usize) -> Result<bool, Error> {
        while let Some(request) = self.tasks[task].pending.pop_front() {
            let number = request.disk;
            let disks = self.disks.len();
            let (Some(disk), Some((under_way, waiting))) =
                (self.disks.get_mut(number), self.queues.get_mut(number))
            else {
                return Err(Error::NoDisk { disk: number, disks });
            };
            if *under_way >= disk.model().queue.max(1) {
                waiting.push_back(task);
                self.tasks[task].pending.push_front(request);
                self.block(slot, task, Kind::Queue);
                return Ok(false);
            }
            *under_way += 1;
            let done_ns = disk.submit(self.now, request.offset, request.bytes).done_ns;
            let first = request.bios.first().and_then(|bio| self.flight.read(*bio));
            let of = first.map_or((FileId(u32::MAX), Why::Demand), |read| (read.file, read.why));
            if let Some(file) = self.files.get_mut(of.0.0 as usize) {
                file.requests += 1;
            }
            self.sent.push(Sent {
                disk: number as u32,
                offset: request.offset,
                bytes: request.bytes,
                sent_ns: self.now,
                done_ns,
                of,
            });
            self.plan(done_ns, Due::Came(request));
        }
        Ok(true)
    }

    /// What comes after an access: the next step, or a wait and the access again.
    pub(super) fn then(&mut self, slot: usize, task: usize, op: Op, then: Access) -> Result<bool, Error> {
        let of = &mut self.tasks[task];
        let Access::Waits { file, page } = then else {
            if then == Access::GoesOn {
                of.phase = Phase::Again(op);
            } else {
                of.phase = Phase::Next;
                self.done(task, op);
            }
            return Ok(true);
        };
        of.phase = Phase::Again(op);
        let Some(bio) = self.flight.bringing(file, page) else {
            // It came while the task paid for its requests, or lies on no disk.
            of.fruitless += 1;
            let never = of.fruitless >= FRUITLESS;
            return if never { Err(Error::NotInFlight { file: file.0, page }) } else { Ok(true) };
        };
        of.fruitless = 0;
        let kind = match (bio.read.why, of.own) {
            (Why::Advice, _) => Kind::Advice,
            (_, true) => Kind::Demand,
            (_, false) => Kind::Ahead,
        };
        bio.waiting.push(task);
        self.block(slot, task, kind);
        Ok(false)
    }
}
