//! Functions by first entry: traces of the same build joined with the waits of a recording, and what linking in that
//! order would bring.

use std::collections::HashMap;

use cold_layout::merge::{Algorithm, merged, nameable};
use cold_layout::predict::{CodeRead, predicted};
use cold_model::layout::{FileLayout, Traced, TracedScenario};
use cold_model::order::Linked;
use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};

use crate::context::Context;
use crate::model::{EnteredFunction, FirstEntries, OrderGain, OrderRead};
use crate::simulate::kernel_of;

/// At most this many functions of a file are listed.
const LISTED: usize = 1000;

/// Per traced file of the recording, the longest waited for first.
pub(crate) fn first_entries(cx: &Context<'_>) -> Vec<FirstEntries> {
    let mut out: Vec<FirstEntries> =
        cx.layouts.traced.iter().filter_map(|(file, traced)| of_file(cx, *file, traced)).collect();
    out.sort_by_key(|f| (std::cmp::Reverse((f.stall, f.entered)), f.file));
    out
}

fn of_file(cx: &Context<'_>, file: FileIdx, traced: &Traced) -> Option<FirstEntries> {
    let own = traced.of_command(&cx.recording.manifest.command);
    let scenario = own.or(traced.scenarios.first())?;
    let lists: Vec<Vec<u32>> = traced.scenarios.iter().map(|s| s.entered.clone()).collect();
    let entered = merged(&lists, Algorithm::FirstTouch);
    let mut functions = functions(traced, &entered, cx.layouts.files.get(&file));
    charge(cx, file, &mut functions);
    let stall = functions.iter().map(|f| f.stall).sum();
    functions.truncate(LISTED);
    let all = entered.len() as u64;
    let order = nameable(&entered, &traced.file.functions);
    Some(FirstEntries {
        file,
        scenarios: traced.scenarios.iter().map(|s| s.name.clone()).collect(),
        scenario: scenario.name.clone(),
        same_command: own.is_some(),
        is_program: traced.file.linked != Linked::Library,
        entered: all,
        named: order.len() as u64,
        stall,
        predicted: gain(cx, file, traced, &order, scenario),
        functions,
        from: traced.scenarios.iter().map(|s| s.from.clone()).collect(),
    })
}

fn gain(
    cx: &Context<'_>,
    file: FileIdx,
    traced: &Traced,
    order: &[u32],
    scenario: &TracedScenario,
) -> Option<OrderGain> {
    if order.is_empty() {
        return None;
    }
    let all = predicted(&traced.file, order, &scenario.entered, &kernel_of(cx.recording, file))?;
    let read = |r: CodeRead| OrderRead { pages: r.touched, requests: r.requests, read: r.read };
    Some(OrderGain { today: read(all.today), ordered: read(all.ordered) })
}

/// The functions in the order in which they are entered, with the names that the recording's symbols have.
fn functions(traced: &Traced, entered: &[u32], layout: Option<&FileLayout>) -> Vec<EnteredFunction> {
    let symbols = layout.map_or(&[][..], |l| &l.symbols);
    let one = |n: &u32| {
        let function = traced.file.functions.get(*n as usize)?;
        let offset = traced.file.offset_of(function.address)?;
        let known = symbols.binary_search_by_key(&offset, |s| s.offset).ok().and_then(|at| symbols.get(at));
        let name = known.map(|s| s.name.clone()).or_else(|| function.name().map(str::to_owned));
        Some(EnteredFunction { name, offset, bytes: Bytes(function.bytes), stall: Nanos(0) })
    };
    entered.iter().filter_map(one).collect()
}

/// Charges each wait for a page to the function that was entered first of those that lie on it.
fn charge(cx: &Context<'_>, file: FileIdx, functions: &mut [EnteredFunction]) {
    let mut waited: HashMap<u64, Nanos> = HashMap::new();
    for w in cx.waits.iter().filter(|w| w.stall.file == Some(file)) {
        if let Some(page) = w.stall.page {
            *waited.entry(page).or_default() += w.length();
        }
    }
    for f in functions {
        let last = f.offset.saturating_add(f.bytes.0.max(1) - 1) / cx.page;
        // A damaged table has functions as large as the address space; no wait is charged twice.
        let pages: Vec<u64> = if last.saturating_sub(f.offset / cx.page) > waited.len() as u64 {
            waited.keys().copied().filter(|p| (f.offset / cx.page..=last).contains(p)).collect()
        } else {
            (f.offset / cx.page..=last).collect()
        };
        f.stall = pages.iter().filter_map(|page| waited.remove(page)).sum();
    }
}

#[cfg(test)]
mod tests;
