//! Where another build of an ELF file has what a page of this one holds.
//!
//! Between two builds sections become a little longer or shorter, and all that follows moves by whole pages; inside of a
//! section, code moves by what changed before it, about as much more as it lies further behind. So a place is carried over by
//! its part of its section. Measured between two security updates (python3.11 deb12u8, deb12u9; libssl3 3.0.20, 3.0.22), pages
//! known by exact starts, of those that an exact start of the other version needs: in the executable 713 of 867 at the
//! same places, 794 by sections; in `libcrypto.so.3` 404 and 468 of 471 (docs/guides/fleet.md).

use serde::{Deserialize, Serialize};

use crate::plan::{PAGE, Range};

/// More sections of a file are not told. Linked programs have about 30 that are loaded.
const MOST: usize = 64;

/// A loaded section: name, offset in the file and length, both in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part(pub String, pub u64, pub u64);

/// A file's sections, in order and apart from each other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Part>", into = "Vec<Part>")]
pub struct Parts(Vec<Part>);

impl From<Vec<Part>> for Parts {
    /// What overlaps one before it, or is one too many, is left out: the text may be anybody's.
    fn from(mut parts: Vec<Part>) -> Self {
        parts.sort_by_key(|Part(_, offset, _)| *offset);
        let mut end = 0;
        parts.retain(|Part(_, offset, bytes)| {
            let apart = *bytes > 0 && *offset >= end && offset.checked_add(*bytes).is_some();
            end = if apart { offset + bytes } else { end };
            apart
        });
        parts.truncate(MOST);
        Self(parts)
    }
}

impl From<Parts> for Vec<Part> {
    fn from(parts: Parts) -> Self {
        parts.0
    }
}

impl Parts {
    /// Nothing is known of the file, or it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As JSON, as the portable form has them; empty for none.
    pub fn text(&self) -> String {
        if self.is_empty() { String::new() } else { serde_json::to_string(self).unwrap_or_default() }
    }

    /// From [`Parts::text`]; none from what is none.
    pub fn of_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    fn named(&self, name: &str) -> Option<&Part> {
        self.0.iter().find(|part| part.0 == name)
    }
}

/// The pages of another build in which lies what `range` holds in this one. What is in no section that both have stays
/// where it is.
pub(super) fn moved(range: Range, was: &Parts, is: &Parts) -> Vec<Range> {
    let begin = range.first_page.saturating_mul(PAGE);
    let end = begin.saturating_add(u64::from(range.pages).saturating_mul(PAGE));
    let mut out = Vec::new();
    for Part(name, offset, bytes) in &was.0 {
        let (first, last) = (begin.max(*offset), end.min(offset + bytes));
        let Some(Part(_, to, room)) = is.named(name).filter(|_| first < last) else { continue };
        // Both ends of the piece, as parts of the section; the last byte belongs to it.
        let at =
            |place: u64| to + (u128::from(place - offset) * u128::from(*room) / u128::from(*bytes)) as u64;
        let (from, until) = (at(first), at(last).max(at(first).saturating_add(1)));
        let (first_page, end_page) = (from / PAGE, until.div_ceil(PAGE));
        let pages = u32::try_from(end_page - first_page).unwrap_or(u32::MAX);
        out.push(Range { first_page, pages, ..range });
    }
    if out.is_empty() { vec![range] } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(parts: &[(&str, u64, u64)]) -> Parts {
        parts
            .iter()
            .map(|(name, page, pages)| Part((*name).to_owned(), page * PAGE, pages * PAGE))
            .collect::<Vec<_>>()
            .into()
    }

    fn pages(range: (u64, u32), was: &Parts, is: &Parts) -> Vec<(u64, u32)> {
        let range =
            Range { file: 0, first_page: range.0, pages: range.1, need_ns: 5, uses: 1, around: false };
        moved(range, was, is).iter().map(|r| (r.first_page, r.pages)).collect()
    }

    #[test]
    fn a_place_is_carried_over_by_its_part_of_its_section() {
        let was = parts(&[(".text", 1, 100), (".data", 101, 10), (".gone", 120, 10)]);
        // Half as long again, so all behind it moves by 50 pages; the last one is no more.
        let is = parts(&[(".text", 1, 150), (".data", 151, 10)]);
        assert_eq!(pages((1, 1), &was, &is), [(1, 2)], "its first page lies in two");
        assert_eq!(pages((61, 2), &was, &is), [(91, 3)]);
        assert_eq!(pages((105, 3), &was, &is), [(155, 3)], "as far behind its beginning");
        assert_eq!(pages((100, 2), &was, &is), [(149, 2), (151, 1)], "across two sections");
        assert_eq!(pages((0, 1), &was, &is), [(0, 1)], "before all sections");
        assert_eq!(pages((121, 2), &was, &is), [(121, 2)]);
        assert_eq!(pages((7, 2), &was, &Parts::default()), [(7, 2)]);
    }

    #[test]
    fn made_up_sections_do_no_harm() {
        let wild = [(0, u64::MAX), (5, u64::MAX - 5), (7, 0), (1 << 40, 9), (3, 2)];
        let wild = wild.map(|(offset, bytes)| Part("x".to_owned(), offset, bytes));
        let wild = Parts::from(wild.to_vec());
        assert_eq!(wild.0.len(), 1, "all others overlap the first: {wild:?}");
        let small = parts(&[("x", 0, 1)]);
        for (was, is) in [(&wild, &small), (&small, &wild), (&wild, &wild)] {
            for range in [(0, 1), (u64::MAX / PAGE, u32::MAX), (1 << 50, 1)] {
                assert!(pages(range, was, is).len() <= 1);
            }
        }
        assert_eq!(Parts::from(vec![Part(String::new(), 0, 0)]), Parts::default());
        let many = (0..1000).map(|n| Part(n.to_string(), n * PAGE, PAGE)).collect::<Vec<_>>();
        assert_eq!(Parts::from(many).0.len(), MOST);
    }
}
