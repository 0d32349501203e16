//! Where the bytes that a start needs lie on a disk, and where they would lie one behind the other.

use cold_model::{Extent, Nanos};

/// Bytes of a file, in the order in which starts need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index in the list of files that were looked at.
    pub file: usize,
    /// First byte in it, a multiple of the block.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// Bytes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// First byte on the device.
    pub physical: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl Run {
    /// The byte behind it.
    pub fn end(&self) -> u64 {
        self.physical.saturating_add(self.bytes)
    }
}

/// Bytes of a file that go to a place in the donor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The bytes of a file that are moved.
    pub piece: Piece,
    /// First byte in the donor.
    pub donor: u64,
}

/// What reading pieces in their order asks of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spread {
    /// Places that do not begin where the last one ended, the first included.
    pub places: u64,
    /// Requests: each piece as often as its file is broken within it.
    pub requests: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// From the first to the last byte on the device.
    pub span: u64,
}

/// The pieces without what an earlier one has already.
pub fn distinct(pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    let mut seen: std::collections::BTreeMap<(usize, u64), u64> = std::collections::BTreeMap::new();
    let mut out = Vec::new();
    for piece in pieces {
        let mut at = piece.offset;
        while at < piece.end() {
            let before = seen.range(..=(piece.file, at)).next_back();
            if let Some((_, &end)) = before.filter(|((file, _), end)| *file == piece.file && **end > at) {
                at = end;
                continue;
            }
            let next = seen.range((piece.file, at)..).next();
            let next =
                next.filter(|((file, _), _)| *file == piece.file).map_or(u64::MAX, |((_, first), _)| *first);
            let end = piece.end().min(next);
            seen.insert((piece.file, at), end);
            out.push(Piece { file: piece.file, offset: at, bytes: end - at });
            at = end;
        }
    }
    out
}

/// Where the bytes of a piece lie, by its file's extents (sorted by offset); holes are nowhere.
pub fn runs_of(piece: &Piece, extents: &[Extent]) -> Vec<Run> {
    let first = extents.partition_point(|e| e.logical.saturating_add(e.bytes) <= piece.offset);
    let inside = extents.iter().skip(first).take_while(|e| e.logical < piece.end());
    let mut out: Vec<Run> = Vec::new();
    for e in inside {
        let from = e.logical.max(piece.offset);
        let to = e.logical.saturating_add(e.bytes).min(piece.end());
        let run =
            Run { physical: e.physical.saturating_add(from - e.logical), bytes: to.saturating_sub(from) };
        match out.last_mut() {
            // Extents have a greatest length: what goes on where one ends is no break.
            Some(last) if last.end() == run.physical => last.bytes = last.bytes.saturating_add(run.bytes),
            _ => out.push(run),
        }
    }
    out
}

/// Where the pieces lie, in their order; `extents` by file.
pub fn runs(pieces: &[Piece], extents: &[Vec<Extent>]) -> Vec<Run> {
    let of = |p: &Piece| extents.get(p.file).map_or(Vec::new(), |e| runs_of(p, e));
    pieces.iter().flat_map(of).collect()
}

/// Counts what reading the runs in their order asks of a disk.
pub fn spread(runs: &[Run]) -> Spread {
    let (first, last) = (runs.iter().map(|r| r.physical).min(), runs.iter().map(Run::end).max());
    let breaks = runs.windows(2).filter(|w| w[0].end() != w[1].physical).count();
    Spread {
        places: if runs.is_empty() { 0 } else { breaks as u64 + 1 },
        requests: runs.len() as u64,
        bytes: runs.iter().map(|r| r.bytes).sum(),
        span: last.unwrap_or(0).saturating_sub(first.unwrap_or(0)),
    }
}

/// The pieces one behind the other in a donor. `block` is that of the file system; a piece that ends within a block (at
/// the end of its file) takes the whole of it.
pub fn packed(pieces: &[Piece], block: u64) -> Vec<Move> {
    let mut donor = 0_u64;
    let place = |piece: &Piece| {
        let this = Move { piece: *piece, donor };
        donor = donor.saturating_add(piece.bytes.div_ceil(block.max(1)).saturating_mul(block.max(1)));
        this
    };
    pieces.iter().map(place).collect()
}

/// Where the pieces will lie, in a donor with these extents.
pub fn planned(moves: &[Move], donor: &[Extent]) -> Vec<Run> {
    let of = |m: &Move| runs_of(&Piece { file: 0, offset: m.donor, bytes: m.piece.bytes }, donor);
    moves.iter().flat_map(of).collect()
}

/// The parts of a move whose bytes do not lie where `places` (runs in its order) say, by the extents that the file has
/// now. A move that was stopped halfway leaves the rest of it; one that was undone in part the other parts.
pub fn misplaced(m: &Move, places: &[Run], extents: &[Extent]) -> Vec<Move> {
    let mut left: Vec<Move> = Vec::new();
    let mut done = 0;
    for place in places {
        let part =
            Piece { file: m.piece.file, offset: m.piece.offset.saturating_add(done), bytes: place.bytes };
        let mut at = 0;
        for run in runs_of(&part, extents) {
            if run.physical != place.physical.saturating_add(at) {
                let piece =
                    Piece { file: part.file, offset: part.offset.saturating_add(at), bytes: run.bytes };
                let donor = m.donor.saturating_add(done).saturating_add(at);
                match left.last_mut() {
                    Some(last) if last.piece.end() == piece.offset => last.piece.bytes += piece.bytes,
                    _ => left.push(Move { piece, donor }),
                }
            }
            at = at.saturating_add(run.bytes);
        }
        done = done.saturating_add(place.bytes);
    }
    left
}

/// What of a piece lies in blocks that can be moved: the parts of it that have extents (sorted by offset), of a file of
/// `size` bytes on a file system with blocks of `block`; with `whole` only of blocks that the file fills.
pub fn movable(piece: &Piece, extents: &[Extent], size: u64, block: u64, whole: bool) -> Vec<Piece> {
    let blocks = if whole { size / block } else { size.div_ceil(block) };
    let end = piece.end().min(blocks.saturating_mul(block));
    let mut out: Vec<Piece> = Vec::new();
    for e in extents {
        let (from, to) = (e.logical.max(piece.offset), e.logical.saturating_add(e.bytes).min(end));
        if from >= to {
            continue;
        }
        match out.last_mut() {
            // Neighbouring extents are one piece: only holes part it.
            Some(last) if last.end() == from => last.bytes = last.bytes.saturating_add(to - from),
            _ => out.push(Piece { file: piece.file, offset: from, bytes: to - from }),
        }
    }
    out
}

/// Whether free space of `room` bytes has place for a donor of `bytes`: a tenth stays free, because the file system goes
/// on allocating meanwhile.
pub fn has_room(room: u64, bytes: u64) -> bool {
    room / 10 * 9 >= bytes
}

/// Whether the bytes would lie in few enough places to be worth a move: in at most half as many as before.
pub fn is_worth_moving(before: &Spread, after: &Spread) -> bool {
    after.places.saturating_mul(2) <= before.places
}

/// What arranging gains on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pays {
    /// The disk was not measured.
    Unknown,
    /// Its heads move for each place.
    Heads,
    /// No heads move; fewer requests gain a twentieth or more.
    Requests,
    /// No heads move, and the requests gain less than a twentieth.
    Nothing,
}

/// By the kind of the disk (`rotational`: it has heads) and the times that reading takes before and after.
pub fn pays(rotational: Option<bool>, times: Option<(Nanos, Nanos)>) -> Pays {
    match (rotational, times) {
        (Some(true), _) => Pays::Heads,
        (Some(false), Some((was, is))) if is.0.saturating_mul(20) > was.0.saturating_mul(19) => Pays::Nothing,
        (Some(false), Some(_)) => Pays::Requests,
        _ => Pays::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    fn piece(file: usize, block: u64, blocks: u64) -> Piece {
        Piece { file, offset: block * BLOCK, bytes: blocks * BLOCK }
    }

    fn extent(logical: u64, physical: u64, blocks: u64) -> Extent {
        Extent { logical: logical * BLOCK, physical: physical * BLOCK, bytes: blocks * BLOCK }
    }

    #[test]
    fn pieces_count_once_where_they_are_needed_first() {
        let pieces = [piece(0, 4, 4), piece(1, 4, 1), piece(0, 0, 12), piece(0, 5, 1)];
        let own = [piece(0, 4, 4), piece(1, 4, 1), piece(0, 0, 4), piece(0, 8, 4)];
        assert_eq!(distinct(pieces), own);
    }

    #[test]
    fn places_and_requests_are_counted_in_the_order_of_need() {
        // Two extents of file 0 that follow each other on the disk, one of file 1 behind them.
        let extents = vec![vec![extent(0, 100, 8), extent(8, 108, 8)], vec![extent(0, 116, 4)]];
        let told = |pieces: &[Piece]| spread(&runs(pieces, &extents));
        let whole = told(&[piece(0, 0, 16), piece(1, 0, 4)]);
        assert_eq!(whole, Spread { places: 1, requests: 2, bytes: 20 * BLOCK, span: 20 * BLOCK });
        let back = told(&[piece(1, 0, 4), piece(0, 0, 4), piece(0, 6, 4)]);
        assert_eq!((back.places, back.requests, back.bytes), (3, 3, 12 * BLOCK));
        assert_eq!(told(&[]), Spread::default());
        // A hole is nowhere.
        assert_eq!(told(&[piece(1, 2, 8)]).bytes, 2 * BLOCK);
    }

    #[test]
    fn packed_pieces_are_one_place_of_a_whole_donor() {
        let pieces = [piece(0, 4, 2), Piece { file: 1, offset: 0, bytes: 100 }, piece(2, 9, 1)];
        let moves = packed(&pieces, BLOCK);
        assert_eq!(moves.iter().map(|m| m.donor / BLOCK).collect::<Vec<_>>(), [0, 2, 3]);
        let donor = [extent(0, 1000, 4)];
        let there = planned(&moves, &donor);
        assert_eq!(there[2], Run { physical: 1003 * BLOCK, bytes: BLOCK });
        assert_eq!(spread(&planned(&moves[..2], &donor)).places, 1);
    }

    #[test]
    fn what_is_at_its_place_is_not_moved_again() {
        let m = Move { piece: piece(0, 10, 6), donor: 0 };
        let places =
            runs_of(&Piece { file: 0, offset: 0, bytes: 6 * BLOCK }, &[extent(0, 500, 4), extent(4, 900, 2)]);
        let moved = [extent(10, 500, 4), extent(14, 900, 2)];
        assert_eq!(misplaced(&m, &places, &moved), []);
        // Stopped after two blocks: the other four are left, also where they lie in two places.
        let halfway = [extent(10, 500, 2), extent(12, 30, 3), extent(15, 70, 1)];
        assert_eq!(misplaced(&m, &places, &halfway), [Move { piece: piece(0, 12, 4), donor: 2 * BLOCK }]);
        let nothing = [extent(0, 0, 16)];
        assert_eq!(misplaced(&m, &places, &nothing), [m]);
    }

    #[test]
    fn only_what_has_extents_is_moved_and_holes_part_it() {
        // Blocks 0 to 7 in two extents, a hole of two, one more; the file ends within its last block.
        let extents = [extent(0, 100, 4), extent(4, 500, 4), extent(10, 700, 1)];
        let size = 10 * BLOCK + 100;
        let of = |piece: Piece, whole| movable(&piece, &extents, size, BLOCK, whole);
        assert_eq!(of(piece(3, 2, 20), false), [piece(3, 2, 6), piece(3, 10, 1)]);
        assert_eq!(of(piece(3, 2, 20), true), [piece(3, 2, 6)], "its last block is not full");
        assert_eq!(of(piece(3, 8, 2), false), []);
    }

    #[test]
    fn a_move_must_halve_the_places_and_leave_a_tenth_of_the_room() {
        let spread = |places| Spread { places, ..Spread::default() };
        assert!(is_worth_moving(&spread(9), &spread(4)) && !is_worth_moving(&spread(9), &spread(5)));
        assert!(!is_worth_moving(&spread(1), &spread(1)));
        assert!(has_room(100, 90) && !has_room(100, 91));
    }

    #[test]
    fn without_heads_a_gain_below_a_twentieth_does_not_pay() {
        let times = |was, is| Some((Nanos(was), Nanos(is)));
        assert_eq!(pays(Some(true), None), Pays::Heads);
        assert_eq!(pays(Some(false), times(100, 95)), Pays::Requests);
        assert_eq!(pays(Some(false), times(100, 96)), Pays::Nothing);
        assert_eq!([pays(None, times(2, 1)), pays(Some(false), None)], [Pays::Unknown; 2]);
    }
}
