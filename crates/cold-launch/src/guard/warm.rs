//! Are the plan's pages there already?

use std::fs::File;

use cold_model::pages::{Range, Runs};
use cold_plan::format::View;
use cold_plan::plan::{FileKind, Op, Step};
use cold_sys::readahead::page_is_ready;
use cold_sys::residency::cachestat;

use crate::files::Files;

/// How closely is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Places looked at in a warm start.
    places: u64,
}

impl Look {
    /// While the program waits for the answer. With 16 places, two absent ones are more than a tenth.
    pub(crate) const BRIEF: Self = Self { places: 16 };
    /// While nobody waits.
    pub(crate) const FINE: Self = Self { places: 64 };
}

/// So many absent ones settle it.
const ENOUGH: u32 = 2;

/// What a look at some of the plan's steps said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Steps looked at.
    pub looked: u32,
    /// Of these, steps whose pages were not all cached; one that the kernel told by reading counts twice.
    pub absent: u32,
    /// Most of the program's own file is absent.
    pub own_absent: bool,
}

impl Sample {
    /// The start is warm as far as can be seen. A plan without pages is never warm: its lookups are cheap.
    pub fn is_warm(self) -> bool {
        self.looked > 0 && self.absent < ENOUGH && !self.own_absent
    }
}

/// Pages of some steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pages {
    all: u64,
    absent: u64,
    /// The kernel told it by reading, so absent ones are on their way, and with them what it reads ahead.
    by_reading: bool,
}

impl Pages {
    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.absent += other.absent;
        self.by_reading |= other.by_reading;
    }

    /// At least half are. Where asking brings pages, those behind an absent one may be there for that alone.
    fn are_mostly_absent(self) -> bool {
        self.absent > 0 && (self.by_reading || self.absent * 2 >= self.all)
    }
}

/// Looks at steps spread evenly over the plan's bytes, in order of need, until enough are found absent.
/// What changed or vanished counts as neither.
///
/// The program's own file comes first, and settles it alone: whoever executes a file that is not cached waits, however
/// much of its libraries others keep. Of a small program they are nearly all. And it is there to be asked: the inode of
/// a library that nobody keeps is read first, directory after directory, before anything of the plan is (`php` on a
/// volume of 0.8 ms for each read: 3.7 ms for two libraries).
pub(crate) fn sample(view: View<'_>, files: &Files<'_>, look: Look) -> Sample {
    let mut own = Pages::default();
    own_steps(view).filter_map(|step| pages(view, files, step)).for_each(|pages| own.add(pages));
    if own.are_mostly_absent() {
        return Sample { looked: 1, absent: 1, own_absent: true };
    }
    let mut sample = Sample::default();
    let total = view.read_bytes();
    let (mut passed, mut next) = (0, 0);
    for step in view.steps().filter(|s| s.op == Op::Read) {
        passed += u64::from(step.bytes);
        // The place in the middle of each of the equal parts.
        if passed * 2 * look.places <= total * (2 * next + 1) {
            continue;
        }
        next = passed * look.places / total.max(1) + 1;
        let Some(pages) = pages(view, files, step) else { continue };
        sample.looked += 1;
        // Where asking brings pages, later places may be there for that alone: the first absent one settles it.
        let counts = if pages.by_reading { ENOUGH } else { 1 };
        sample.absent += if pages.absent > 0 { counts } else { 0 };
        if sample.absent >= ENOUGH {
            break;
        }
    }
    sample
}

/// The first steps of the program's own file; so many settle it.
fn own_steps(view: View<'_>) -> impl Iterator<Item = Step> {
    const MOST: usize = 16;
    let own = view.files().position(|file| file.path() == view.key().executable);
    view.steps().filter(move |s| s.op == Op::Read && Some(s.file as usize) == own).take(MOST)
}

/// How many pages the step has, and lacks. `None` when the file is not there as planned, or nobody can say.
fn pages(view: View<'_>, files: &Files<'_>, step: Step) -> Option<Pages> {
    if view.file(step.file)?.kind() != FileKind::Regular {
        return None;
    }
    let file = files.get(step.file)?;
    if let Some(pages) = counted(view, &file, step) {
        return Some(pages);
    }
    // Other people's files: the kernel says only by reading. An absent page is on its way from here on,
    // which the replay wants anyway. The first and the last page stand for those between.
    let last = (step.offset + u64::from(step.bytes)).saturating_sub(1);
    let is_cached = page_is_ready(&file, step.offset)? && page_is_ready(&file, last)?;
    let all = planned_pages(view, step)?;
    Some(Pages { all, absent: if is_cached { 0 } else { all }, by_reading: true })
}

/// Runs of pages of the step that are not cached, nor on their way; `None` where the kernel does not tell.
pub(crate) fn absent_runs(view: View<'_>, file: &File, step: Step) -> Option<Vec<Range>> {
    let pages = counted(view, file, step)?;
    let page = cold_sys::page::page_size();
    let all = step.offset / page..step.offset / page + pages.all;
    if pages.absent == 0 {
        return Some(Vec::new());
    }
    if pages.absent == pages.all {
        return Some(vec![all]);
    }
    // A call for each page: nobody waits.
    let is_absent =
        |at: &u64| cachestat(file, at * page, page).is_ok_and(|s| s.is_some_and(|s| s.cached == 0));
    Some(Runs::of(all.filter(is_absent).map(|at| at..at + 1).collect()).runs().to_vec())
}

/// As the kernel counts them; `None` where it does not tell.
fn counted(view: View<'_>, file: &File, step: Step) -> Option<Pages> {
    let all = planned_pages(view, step)?;
    let stat = cachestat(file, step.offset, u64::from(step.bytes)).ok()??;
    Some(Pages { all, absent: all.saturating_sub(stat.cached), by_reading: false })
}

/// Pages of the step that its file has. A plan may end beyond a file's last page by rounding, never by more; a device has
/// no size here.
fn planned_pages(view: View<'_>, step: Step) -> Option<u64> {
    let planned = view.file(step.file)?;
    let size = if planned.kind() == FileKind::Regular { planned.identity().size } else { u64::MAX };
    let end = step.offset.saturating_add(u64::from(step.bytes)).min(size);
    Some(end.saturating_sub(step.offset).div_ceil(cold_sys::page::page_size()))
}
