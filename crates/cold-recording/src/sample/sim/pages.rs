//! How the simulated program gets its pages: faults, reads, and the windows around both.

use cold_model::Nanos;
use cold_model::recording::FileIdx;
use cold_model::recording::tables::{FillCause, Readahead, ReadaheadKind, StallCause, Touch, TouchKind};

use super::{Ask, PAGE, SampleTask, Sim, WINDOW, address};

impl Sim {
    pub(super) fn fault(&mut self, task: &mut SampleTask) {
        let (file, pages) = (task.file, self.specs[task.file].pages);
        let key = |page: u64| (file as u64) << 40 | page;
        let mut page = task.page;
        // The next page that this process has not mapped; where there is none for long, it reads instead.
        let Some(found) = (page..pages).take(64).find(|p| !self.mapped.contains(&(task.pid, key(*p)))) else {
            task.page = self.r.below(pages);
            return self.read(task);
        };
        page = found;
        let began = task.clock;
        if self.ready[file][page as usize] == 0 {
            let first = page.saturating_sub(WINDOW / 2);
            let ask = Ask { task: *task, demand: FillCause::DemandFault, around: FillCause::ReadAround };
            self.window(task, file, page, first, ReadaheadKind::Order);
            self.bring_around(ask, file, page, first, WINDOW);
        }
        let until = self.ready[file][page as usize];
        self.wait(task, until, StallCause::Fault, file, page, None);
        self.touch(task, began, file, page, 1, TouchKind::Fault);
        self.mapped.insert((task.pid, key(page)));
        // Fault-around: what is there in the aligned 64 KiB and not yet mapped.
        let around = page & !15..(page | 15).min(pages - 1) + 1;
        let mut run: Option<(u64, u64)> = None;
        for p in around.clone().chain([u64::MAX]) {
            let there = p != u64::MAX
                && (1..=task.clock).contains(&self.ready[file][p as usize])
                && self.mapped.insert((task.pid, key(p)));
            match (&mut run, there) {
                (Some((_, n)), true) => *n += 1,
                (None, true) => run = Some((p, 1)),
                (Some((first, n)), false) => {
                    let (first, n) = (*first, *n);
                    self.touch(task, began, file, first, n as u32, TouchKind::FaultAround);
                    run = None;
                }
                (None, false) => {}
            }
        }
        task.page = page + 1 + self.r.below(24);
        if task.page >= pages {
            task.page = self.r.below(pages);
        }
    }

    pub(super) fn read(&mut self, task: &mut SampleTask) {
        let (file, pages) = (task.file, self.specs[task.file].pages);
        let page = task.page.min(pages - 1);
        let n = (1 + self.r.below(4)).min(pages - page);
        let last = page + n - 1;
        let demand = FillCause::BufferedRead;
        if (page..=last).any(|p| self.ready[file][p as usize] == 0) {
            self.window(task, file, page, page, ReadaheadKind::Sync);
            let ask = Ask { task: *task, demand, around: FillCause::ReadAhead };
            // Pages asked for are demand, those behind them are ahead.
            self.bring(Ask { around: demand, ..ask }, file, page, n);
            self.bring(
                Ask { demand: FillCause::ReadAhead, ..ask },
                file,
                last + 1,
                WINDOW.min(pages - last - 1),
            );
        }
        let until = (page..=last).map(|p| self.ready[file][p as usize]).max().unwrap_or(0);
        let slow = (page..=last).find(|p| self.ready[file][*p as usize] == until).unwrap_or(page);
        self.wait(task, until, StallCause::Read, file, slow, None);
        self.touch(task, task.clock, file, page, n as u32, TouchKind::Read);
        task.page = if last + 1 < pages { last + 1 } else { self.r.below(pages) };
    }

    pub(super) fn window(
        &mut self,
        task: &SampleTask,
        file: usize,
        index: u64,
        first: u64,
        kind: ReadaheadKind,
    ) {
        self.out.readahead.get_or_insert_default().push(Readahead {
            at: Nanos(task.clock),
            pid: task.pid,
            tid: task.tid,
            in_tree: true,
            file: file as FileIdx,
            kind,
            index,
            window_first: first,
            window_pages: WINDOW as u32,
            async_pages: WINDOW as u32 / 4,
            asked_pages: u32::from(kind == ReadaheadKind::Sync),
            limit_pages: WINDOW as u32,
            mmap_miss: self.r.below(100) as u32,
        });
        self.events += 1;
    }

    pub(super) fn touch(
        &mut self,
        task: &SampleTask,
        at: u64,
        file: usize,
        first_page: u64,
        pages: u32,
        kind: TouchKind,
    ) {
        let exact = kind == TouchKind::Fault;
        let offset = self.r.below(160 * u64::from(PAGE));
        self.out.touches.get_or_insert_default().push(Touch {
            at: Nanos(at),
            pid: task.pid,
            tid: task.tid,
            file: file as FileIdx,
            first_page,
            pages,
            kind,
            major: None,
            ip: exact.then(|| address(0, offset)),
            stack: (kind != TouchKind::FaultAround).then_some(offset as u32 % 200),
            call: (kind == TouchKind::Read).then_some(Nanos(at)),
            end: (kind == TouchKind::Read)
                .then(|| (first_page + u64::from(pages)) * u64::from(PAGE) - offset % 7),
        });
        self.events += 1;
    }
}
