//! How much of what a start needed is uncertain, and what certainty would cost. Pure.

use cold_model::Nanos;
use cold_model::recording::Recording;

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
        let own = recording.device_reads.iter().flatten().filter(|r| r.in_tree);
        let times = own.filter_map(|r| Some(r.completed?.saturating_sub(r.queued).0));
        let (n, total) = times.fold((0_u64, 0_u64), |(n, sum), t| (n + 1, sum.saturating_add(t)));
        let each = total.checked_div(n);
        Self {
            uncertain: pages(true),
            pages: pages(false),
            page_by_page: each.map(|each| Nanos(each.saturating_mul(pages(false)))),
        }
    }

    /// Whether a start with exact faults is worth making.
    pub fn is_worth_an_exact_start(&self) -> bool {
        self.uncertain as f64 >= LEAST_PART * self.pages.max(1) as f64
            && self.page_by_page.is_some_and(|time| time <= LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
