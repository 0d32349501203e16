//! How much of what a start needed is uncertain, and what certainty would cost. Pure.

use cold_analyze::page_bytes;
use cold_model::Nanos;
use cold_model::recording::Recording;
use cold_plan::plan::PAGE;
use cold_stats::quantile;

use super::ObservedStart;

/// A start with exact faults is not worth its time where less than this part of the pages is uncertain.
const LEAST_PART: f64 = 0.02;
/// Nor where it would take longer than this: it reads page by page.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// What is not known of a start's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Pages that may only have been mapped around faults.
    pub uncertain: u64,
    /// All pages that were learnt.
    pub pages: u64,
    /// What reading each page by itself takes, as long as this start's requests took; `None`: none was seen.
    pub page_by_page: Option<Nanos>,
}

impl Doubt {
    /// Of a start and its recording.
    pub fn of(recording: &Recording, start: &ObservedStart) -> Self {
        let pages = |around: bool| {
            let ranges = start.ranges.iter().filter(|r| r.around || !around);
            ranges.map(|r| u64::from(r.pages)).sum::<u64>()
        };
        let each = one_page(recording);
        // The start reads pages of this machine, of which one may be several of a plan.
        let read = (pages(false) * PAGE).div_ceil(page_bytes(recording));
        Self {
            uncertain: pages(true),
            pages: pages(false),
            page_by_page: each.map(|each| Nanos(each.0.saturating_mul(read))),
        }
    }

    /// Whether a start with exact faults is worth making.
    pub fn is_worth_an_exact_start(&self) -> bool {
        self.uncertain as f64 >= LEAST_PART * self.pages.max(1) as f64
            && self.page_by_page.is_some_and(|time| time <= LONGEST)
    }
}

/// What a request for one page takes: as long as the quickest quarter of the start's requests. Most of them are of
/// many pages, and stand in a queue behind others.
fn one_page(recording: &Recording) -> Option<Nanos> {
    let own = recording.device_reads.iter().flatten().filter(|r| r.in_tree);
    let took = own.filter_map(|r| Some(r.completed?.saturating_sub(r.issued?).0 as f64));
    quantile(&took.collect::<Vec<_>>(), 0.25).map(|ns| Nanos(ns as u64))
}

#[cfg(test)]
mod tests {
    use cold_model::sample::empty;

    use super::*;

    #[test]
    fn a_page_takes_as_long_as_the_quickest_quarter_of_requests() {
        let mut r = empty();
        assert_eq!(one_page(&r), None);
        let f = r.file("/a", 1 << 30);
        // They take 1 to 8 ms.
        for n in 0..8_u64 {
            r.request(1, 1 + n, f, n * 100..n * 100 + 1);
        }
        assert_eq!(one_page(&r), Some(Nanos(2_750_000)));
    }

    #[test]
    fn an_exact_start_is_made_where_much_is_uncertain_and_it_does_not_take_long() {
        let doubt = |uncertain, seconds: Option<u64>| Doubt {
            uncertain,
            pages: 1000,
            page_by_page: seconds.map(|s| Nanos(s * 1_000_000_000)),
        };
        assert!(doubt(20, Some(60)).is_worth_an_exact_start());
        for not in [doubt(19, Some(1)), doubt(900, Some(61)), doubt(900, None)] {
            assert!(!not.is_worth_an_exact_start(), "{not:?}");
        }
    }
}
