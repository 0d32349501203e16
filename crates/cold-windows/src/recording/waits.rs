//! Which disk reads brought what a hard fault read: those that its thread made for its file while it waited, where
//! their sizes sum to the fault's. Only by that is a read's place in its file known.

use std::collections::HashMap;

use crate::evidence::Evidence;

use super::PAGE;

/// Offset in its file, in bytes, of each read (by row) that belongs to a hard fault.
pub(super) fn places(evidence: &Evidence) -> HashMap<usize, u64> {
    // Rows of reads by thread and file, by completion.
    let mut made: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    for (row, read) in evidence.reads.iter().enumerate() {
        if let (Some(tid), Some(file)) = (read.tid, read.file) {
            made.entry((tid, file)).or_default().push(row);
        }
    }
    let mut out = HashMap::new();
    for fault in &evidence.faults {
        let Some(rows) = fault.file.and_then(|file| made.get(&(fault.tid, file))) else { continue };
        let completed = |row: &usize| evidence.reads.get(*row).map_or(i64::MIN, |r| r.completed);
        let from = rows.partition_point(|row| completed(row) < fault.began);
        let to = rows.partition_point(|row| completed(row) <= fault.ended);
        let mut rows: Vec<(i64, usize, u64)> = rows
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .filter_map(|row| {
                evidence.reads.get(*row).map(|r| (r.began.unwrap_or(r.completed), *row, r.bytes.into()))
            })
            .collect();
        // A fault on the last page of a file may ask for more than there is: pages are compared.
        let sum: u64 = rows.iter().map(|(_, _, bytes)| bytes).sum();
        if sum.div_ceil(PAGE) != u64::from(fault.bytes).div_ceil(PAGE) {
            continue;
        }
        // A cluster in several pieces on the disk is asked for in the order of the file.
        rows.sort_unstable();
        let mut offset = fault.offset;
        for (_, row, bytes) in rows {
            out.insert(row, offset);
            offset = offset.saturating_add(bytes);
        }
    }
    out
}
