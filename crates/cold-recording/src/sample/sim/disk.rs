//! What brings pages into the simulated cache.

use cold_model::Nanos;
use cold_model::recording::FileIdx;
use cold_model::recording::tables::{DeviceRead, Fill, FillCause, Transfer};

use super::{Ask, BYSTANDER, DISK, PAGE, SampleTask, Sim};

impl Sim {
    /// The window from `first`, of which `page` is the one needed.
    pub(super) fn bring_around(&mut self, ask: Ask, file: usize, page: u64, first: u64, n: u64) {
        let end = (first + n).min(self.specs[file].pages);
        let mut p = first;
        while p < end {
            let absent = (p..end).take_while(|p| self.ready[file][*p as usize] == 0).count() as u64;
            if absent == 0 {
                p += 1;
                continue;
            }
            self.request(ask, file, p, absent, Some(page));
            p += absent;
        }
    }

    /// Those of the pages that are absent, all for the same reason.
    pub(super) fn bring(&mut self, ask: Ask, file: usize, first: u64, n: u64) {
        self.bring_around(Ask { around: ask.demand, ..ask }, file, u64::MAX, first, n);
    }

    /// One request for a run of absent pages: its fills, its transfer, its time on the disk.
    fn request(&mut self, ask: Ask, file: usize, first: u64, n: u64, needed: Option<u64>) {
        let SampleTask { pid, tid, clock, .. } = ask.task;
        let in_tree = pid != BYSTANDER;
        let mut p = first;
        while p < first + n {
            // Folios are aligned powers of two; every second file has large ones.
            let most = if file.is_multiple_of(2) { 16 } else { 1 };
            let mut size = 1;
            while size * 2 <= most && p.is_multiple_of(size * 2) && p + size * 2 <= first + n {
                size *= 2;
            }
            let demand = needed.is_some_and(|needed| (p..p + size).contains(&needed));
            self.out.fills.get_or_insert_default().push(Fill {
                at: Nanos(clock + 300),
                pid,
                tid,
                in_tree,
                file: file as FileIdx,
                first_page: p,
                pages: size as u32,
                cause: if demand { ask.demand } else { ask.around },
            });
            self.events += 1;
            p += size;
        }
        let issued = (clock + 900).max(self.disk_free);
        let completed = issued + 80_000 + n * 20_000 + self.r.below(40_000);
        self.disk_free = completed;
        for p in first..first + n {
            self.ready[file][p as usize] = completed;
        }
        let requests = self.out.device_reads.get_or_insert_default();
        let request = requests.len() as u32;
        // Files lie one behind the other, each with room for 2^20 pages.
        let sector = 2048 + ((file as u64) << 23) + first * u64::from(PAGE / 512);
        requests.push(DeviceRead {
            queued: Nanos(clock + 600),
            issued: Some(Nanos(issued)),
            completed: Some(Nanos(completed)),
            dev: DISK,
            sector,
            bytes: n as u32 * PAGE,
            pid,
            tid,
            in_tree,
            metadata: ask.demand == FillCause::Metadata,
            readahead: needed.is_none_or(|p| p == u64::MAX || !(first..first + n).contains(&p)),
            file: None,
        });
        let row = Transfer { request, file: Some(file as FileIdx), first_page: first, pages: n as u32 };
        self.out.transfers.get_or_insert_default().push(row);
        self.events += 2;
    }
}
