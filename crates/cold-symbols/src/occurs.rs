//! Which pages and frames of which files occur in a recording: only these are looked up.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::{FileIdx, Frame, Recording};

/// What occurs of one file.
#[derive(Debug, Default)]
pub(crate) struct Occurs {
    /// Ranges of bytes, sorted, without overlap.
    ranges: Vec<(u64, u64)>,
    /// Frames, each with the offset of the instruction it stands for.
    pub(crate) frames: Vec<(Frame, u64)>,
    /// A process could execute it, or it has a build-id: it should be an ELF file.
    pub(crate) program: bool,
}

impl Occurs {
    /// Whether `first..end` (bytes of the file) shares a page with what occurs.
    pub(crate) fn any_in(&self, first: u64, end: u64) -> bool {
        let after = self.ranges.partition_point(|r| r.1 <= first);
        self.ranges.get(after).is_some_and(|r| r.0 < end)
    }

    /// As if all of a file of `bytes` occurred, with a frame at every 11th byte.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn everything(bytes: u64) -> Self {
        let frame = |offset| (Frame { address: offset, file: None, offset, generated: false }, offset);
        Self {
            ranges: vec![(0, u64::MAX)],
            frames: (0..bytes).step_by(11).map(frame).collect(),
            program: true,
        }
    }
}

/// Per file what occurs of it in the tables of touches, fills, stalls and stacks.
pub(crate) fn of(recording: &Recording) -> BTreeMap<FileIdx, Occurs> {
    let page = recording.page_bytes();
    let mut files: BTreeMap<FileIdx, Occurs> = BTreeMap::new();
    let mut add = |file: FileIdx, first: u64, pages: u64| {
        let ranges = &mut files.entry(file).or_default().ranges;
        let (first, end) = (first.saturating_mul(page), first.saturating_add(pages).saturating_mul(page));
        // Rows come in runs of neighbours; joining these here keeps a million rows small.
        match ranges.last_mut() {
            Some(last) if last.0 <= first && first <= last.1 => last.1 = last.1.max(end),
            _ => ranges.push((first, end)),
        }
    };
    for t in recording.touches.iter().flatten() {
        add(t.file, t.first_page, u64::from(t.pages));
    }
    for f in recording.fills.iter().flatten() {
        add(f.file, f.first_page, u64::from(f.pages));
    }
    for (file, first) in recording.stalls.iter().flatten().filter_map(|s| Some((s.file?, s.page?))) {
        add(file, first, 1);
    }
    let mut frames: HashMap<Frame, u64> = HashMap::new();
    for stack in recording.stacks.iter().flatten() {
        for (depth, frame) in stack.frames.iter().enumerate() {
            let Some(file) = frame.file else { continue };
            // A return address may be the first byte of the next function; the call lies before it.
            let offset = if depth == 0 { frame.offset } else { frame.offset.saturating_sub(1) };
            let known = frames.entry(*frame).or_insert_with(|| {
                add(file, offset / page, 1);
                offset
            });
            *known = (*known).min(offset);
        }
    }
    for (frame, offset) in frames {
        if let Some(file) = frame.file {
            files.entry(file).or_default().frames.push((frame, offset));
        }
    }
    for mapping in recording.mappings.iter().flatten().filter(|m| m.executable) {
        files.entry(mapping.file).or_default().program = true;
    }
    for (file, occurs) in &mut files {
        let row = recording.files.get(*file as usize);
        occurs.program |= !occurs.frames.is_empty() || row.is_some_and(|f| f.build_id.is_some());
        occurs.frames.sort_unstable_by_key(|(frame, offset)| (*offset, frame.address));
        merge(&mut occurs.ranges);
    }
    files
}

fn merge(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_asked() {
        let mut occurs = Occurs { ranges: vec![(8, 9), (0, 4), (3, 6), (4, 5)], ..Occurs::default() };
        merge(&mut occurs.ranges);
        assert_eq!(occurs.ranges, [(0, 6), (8, 9)]);
        for (first, end, expected) in
            [(6, 8, false), (5, 8, true), (6, 9, true), (9, 99, false), (8, 8, false)]
        {
            assert_eq!(occurs.any_in(first, end), expected, "{first}..{end}");
        }
    }
}
