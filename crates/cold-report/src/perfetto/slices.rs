//! Slices of one track that nest, and lanes for slices that do not.

/// An interval and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice<T> {
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) what: T,
}

/// A step through the slices of a track, in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<T> {
    Begin(u64, T),
    End(u64),
}

/// The begins and ends of slices that should nest. One that outlasts the slice it began in is cut at that
/// one's end: an end names no slice, so a viewer would take it for another's.
pub(super) fn nested<T: Copy>(slices: &mut [Slice<T>]) -> Vec<Step<T>> {
    slices.sort_by_key(|s| (s.began, std::cmp::Reverse(s.ended)));
    let mut steps = Vec::with_capacity(2 * slices.len());
    let mut open: Vec<u64> = Vec::new();
    for slice in slices {
        while let Some(end) = open.pop_if(|end| *end <= slice.began) {
            steps.push(Step::End(end));
        }
        let outer = open.last().copied().unwrap_or(u64::MAX);
        steps.push(Step::Begin(slice.began, slice.what));
        open.push(slice.ended.max(slice.began).min(outer));
    }
    steps.extend(open.into_iter().rev().map(Step::End));
    steps
}

/// Distributes slices that overlap over lanes in which none do; each lane is in order of time.
pub(super) fn lanes<T: Copy>(slices: &mut [Slice<T>]) -> Vec<Vec<Slice<T>>> {
    slices.sort_by_key(|s| s.began);
    let mut lanes: Vec<Vec<Slice<T>>> = Vec::new();
    for slice in slices {
        let free = |lane: &&mut Vec<Slice<T>>| lane.last().is_none_or(|last| last.ended <= slice.began);
        match lanes.iter_mut().find(free) {
            Some(lane) => lane.push(*slice),
            None => lanes.push(vec![*slice]),
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(began: u64, ended: u64, what: char) -> Slice<char> {
        Slice { began, ended, what }
    }

    #[test]
    fn slices_that_overlap_without_nesting_are_cut() {
        use Step::{Begin, End};
        let mut slices = [slice(5, 30, 'b'), slice(0, 20, 'a'), slice(20, 25, 'c'), slice(20, 20, 'd')];
        let steps = nested(&mut slices);
        let expected = [
            Begin(0, 'a'),
            Begin(5, 'b'),
            End(20),
            End(20),
            Begin(20, 'c'),
            Begin(20, 'd'),
            End(20),
            End(25),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn no_lane_has_two_slices_at_once() {
        let mut slices = [slice(0, 10, 'a'), slice(5, 15, 'b'), slice(10, 12, 'c'), slice(11, 20, 'd')];
        let lanes = lanes(&mut slices);
        let names: Vec<String> = lanes.iter().map(|l| l.iter().map(|s| s.what).collect()).collect();
        assert_eq!(names, ["ac", "b", "d"]);
    }
}
