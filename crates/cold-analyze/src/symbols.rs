//! Use by function, only where a fault names one exactly.

use std::collections::{BTreeMap, HashMap};

use cold_model::Nanos;
use cold_model::layout::{FileLayout, Symbol};
use cold_model::recording::{FileIdx, Mapping, Touch, TouchKind};

use crate::context::Context;
use crate::model::{SymbolEvidence, SymbolUse};

/// At most this many functions are listed.
const LISTED: usize = 1000;

/// Which function a fault used, and how that is known; `None` where it names none exactly.
pub fn symbol_at(
    layout: &FileLayout,
    page_bytes: u64,
    page: u64,
    instruction: Option<u64>,
) -> Option<(&Symbol, SymbolEvidence)> {
    let from = page.saturating_mul(page_bytes);
    if let Some(offset) = instruction.filter(|o| *o / page_bytes == page) {
        return holding(layout, offset).map(|s| (s, SymbolEvidence::Instruction));
    }
    let symbol = holding(layout, from)?;
    let whole = symbol.offset.saturating_add(symbol.bytes) >= from.saturating_add(page_bytes);
    whole.then_some((symbol, SymbolEvidence::WholePage))
}

/// The symbol whose bytes hold the offset.
fn holding(layout: &FileLayout, offset: u64) -> Option<&Symbol> {
    let before = layout.symbols.partition_point(|s| s.offset <= offset);
    layout.symbols[..before].last().filter(|s| offset - s.offset < s.bytes)
}

/// Functions by stall time, then touches; the costliest, bounded.
pub(crate) fn symbols(cx: &Context<'_>) -> Vec<SymbolUse> {
    let instructions = Instructions::of(cx);
    let mut found: BTreeMap<(FileIdx, u64), SymbolUse> = BTreeMap::new();
    // Which symbol a thread's fault on a page was charged to, to charge the fault's wait likewise.
    let mut faults: HashMap<(u32, FileIdx, u64), (FileIdx, u64)> = HashMap::new();
    let touches = cx.recording.touches.iter().flatten();
    for t in touches.filter(|t| t.kind == TouchKind::Fault && cx.window.holds(t.at)) {
        let Some(layout) = cx.layouts.files.get(&t.file).filter(|l| !l.symbols.is_empty()) else { continue };
        let at = instructions.offset(cx, t);
        let Some((symbol, evidence)) = symbol_at(layout, cx.page, t.first_page, at) else { continue };
        let key = (t.file, symbol.offset);
        let first_use = cx.window.since_start(t.at);
        let entry = found.entry(key).or_insert_with(|| SymbolUse {
            file: t.file,
            symbol: symbol.name.clone(),
            touches: 0,
            stall: Nanos(0),
            first_use,
            evidence,
        });
        entry.touches += 1;
        entry.first_use = entry.first_use.min(first_use);
        entry.evidence = entry.evidence.max(evidence);
        faults.insert((t.tid, t.file, t.first_page), key);
    }
    for w in &cx.waits {
        let (Some(file), Some(page)) = (w.stall.file, w.stall.page) else { continue };
        if let Some(symbol) = faults.get(&(w.stall.tid, file, page)).and_then(|key| found.get_mut(key)) {
            symbol.stall += w.length();
        }
    }
    let mut out: Vec<_> = found.into_values().collect();
    out.sort_by(|a, b| (b.stall, b.touches, &a.symbol).cmp(&(a.stall, a.touches, &b.symbol)));
    out.truncate(LISTED);
    out
}

/// File offsets of faulting instructions, by the mappings of the touched file.
struct Instructions<'a> {
    mappings: HashMap<(u32, FileIdx), Vec<&'a Mapping>>,
}

impl<'a> Instructions<'a> {
    fn of(cx: &Context<'a>) -> Self {
        let mut mappings: HashMap<(u32, FileIdx), Vec<&'a Mapping>> = HashMap::new();
        for m in cx.recording.mappings.iter().flatten() {
            mappings.entry((m.pid, m.file)).or_default().push(m);
        }
        Self { mappings }
    }

    /// Offset of the faulting instruction in the touched file, if it lies in that file.
    fn offset(&self, cx: &Context<'_>, t: &Touch) -> Option<u64> {
        let ip = t.ip?;
        let stack = t.stack.and_then(|s| cx.recording.stacks.as_ref()?.get(s as usize));
        let by_frame =
            stack.and_then(|s| s.frames.first()).filter(|f| f.address == ip && f.file == Some(t.file));
        by_frame.map(|f| f.offset).or_else(|| {
            let of_file = self.mappings.get(&(t.pid, t.file))?.iter().rev();
            let holds = |m: &&&Mapping| m.at <= t.at && m.address <= ip && ip - m.address < m.bytes;
            of_file.clone().find(holds).map(|m| ip - m.address + m.offset)
        })
    }
}

#[cfg(test)]
mod tests;
