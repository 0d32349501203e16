//! Reads by `read` and `pread`.

use crate::cached::{Cached, Folio};
use crate::linux::Remembers;
use crate::op::{Access, FileId, OpenId, PageRead, Progress};
use crate::policy::Policy;

use super::Cache;

impl Cache {
    pub(super) fn read(
        &mut self,
        open: OpenId,
        offset: u64,
        bytes: u64,
        progress: &mut Progress,
        reads: &mut Vec<PageRead>,
    ) -> Access {
        let Some(o) = self.opens.get(&open) else { return Access::Done };
        let file = o.file;
        let Some(f) = self.files.get(file.0 as usize) else { return Access::Done };
        let page_bytes = self.paging.page_bytes;
        let asked_end = offset.saturating_add(bytes);
        let end = asked_end.min(f.about.bytes);
        loop {
            let at = offset.saturating_add(progress.copied);
            if at >= end {
                if progress.copied > 0 {
                    self.remember(open, at, true);
                }
                return Access::Done;
            }
            let page = at / page_bytes;
            // What lies behind the end of the file counts as asked for, too.
            let last = asked_end.div_ceil(page_bytes);
            let Some(ready) = self.batch(open, file, page, last, reads) else { return Access::Done };
            if ready == page {
                return Access::Waits { file, page };
            }
            let copied_to = ready.saturating_mul(page_bytes).min(end);
            progress.copied = copied_to.saturating_sub(offset);
            if self.lru.is_some() {
                let before = self.opens.get(&open).and_then(|o| o.ra.previous?.checked_sub(1));
                self.copied(file, page, copied_to.div_ceil(page_bytes), before.map(|byte| byte / page_bytes));
            }
            self.remember(open, copied_to, false);
        }
    }

    /// Makes pages from `page` on come; one past the last one that can be copied now.
    fn batch(
        &mut self,
        open: OpenId,
        file: FileId,
        page: u64,
        last: u64,
        reads: &mut Vec<PageRead>,
    ) -> Option<u64> {
        if let Policy::Linux(_) = self.policy {
            let mut reader = self.reader(open, reads)?;
            if !reader.file.page(page).present() {
                reader.miss(page, last - page);
            }
            let (ready, marked) = ready_run(reader.file, page, last);
            if let Some(folio) = marked {
                reader.marker(folio.first, folio, last.saturating_sub(folio.first));
            }
            return Some(ready);
        }
        // Who says that he reads at random gets what he asks for.
        let random = self.opens.get(&open).is_some_and(|o| o.ra.exact);
        let policy = if random { Policy::Nothing } else { self.policy };
        let f = self.files.get_mut(file.0 as usize)?;
        if !f.cached.page(page).present() {
            policy.read(&mut f.cached, file, page, last, reads);
        }
        Some(ready_run(&f.cached, page, last).0)
    }

    /// Remembers where a read has come to.
    fn remember(&mut self, open: OpenId, at: u64, ended: bool) {
        let Policy::Linux(version) = self.policy else { return };
        let Some(o) = self.opens.get_mut(&open) else { return };
        match version.rules().remembers {
            Remembers::LastPage if ended => o.ra.previous = at.checked_sub(1),
            Remembers::Copied => o.ra.previous = Some(at),
            Remembers::End if ended => o.ra.previous = Some(at),
            Remembers::LastPage | Remembers::End => {}
        }
    }
}

/// The pages from `page` on, before `last`, that are ready in one run, up to and with the first folio that carries
/// a marker; and that folio, which may still be coming.
fn ready_run(file: &Cached, page: u64, last: u64) -> (u64, Option<Folio>) {
    let mut at = page;
    while at < last {
        let Some(folio) = file.folio(at) else { break };
        let state = file.page(at);
        if state.ready() {
            at = folio.end().min(last);
        }
        if state.marked() {
            return (at, Some(folio));
        }
        if !state.ready() {
            break;
        }
    }
    (at, None)
}
