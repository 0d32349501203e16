//! The tables of marks, requests and stalls as columns.

use std::borrow::Cow;
use std::collections::HashMap;

use cold_model::Dev;
use cold_model::recording::{DeviceRead, Recording, StackIdx, Stall};
use serde_json::{Value, json};

use super::super::columns::{Coding, Writer};
use super::super::marks::Marks;
use super::super::names;
use super::{MOST_ROWS, Numbers, short};

/// Looked-up paths in a page.
const MOST_PATHS: usize = 5_000;

/// Describes all tables of a recording and writes their columns, of requests and stalls at most
/// `intervals`; also what was left out, in words.
pub(super) fn tables(
    numbers: &Numbers<'_>,
    marks: &Marks,
    intervals: usize,
    writer: &mut Writer,
) -> (Value, Vec<String>) {
    let mut notes = Vec::new();
    let recording = numbers.view.recording;
    let reads = longest(
        recording.device_reads.as_deref(),
        intervals,
        "requests; request sizes and queue depth below are",
        &mut notes,
        |r: &DeviceRead| r.completed.map_or(u64::MAX, |c| c.saturating_sub(r.queued).0),
    );
    let stalls = longest(
        recording.stalls.as_deref(),
        intervals,
        "stalls; the waits per thread below are",
        &mut notes,
        |s: &Stall| s.woken.or(s.ended).map_or(u64::MAX, |e| e.saturating_sub(s.began).0),
    );
    let tables = json!({
        "fills": fills(numbers, marks, writer),
        "touches": touches(numbers, marks, writer),
        "reads": device_reads(numbers, &reads, writer),
        "stalls": stall_table(numbers, &stalls, writer),
    });
    (tables, notes)
}

/// Only the longest of too many rows, in their order.
fn longest<'a, T>(
    rows: Option<&'a [T]>,
    most: usize,
    what: &str,
    notes: &mut Vec<String>,
    length: impl Fn(&T) -> u64,
) -> Vec<&'a T> {
    let rows = rows.unwrap_or_default();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if rows.len() > most {
        notes.push(format!("Drawn are the {most} longest of {} {what} of these alone.", rows.len()));
        order.sort_by_key(|&i| std::cmp::Reverse(length(&rows[i])));
        order.truncate(most);
        order.sort_unstable();
    }
    order.into_iter().map(|i| &rows[i]).collect()
}

/// Page numbers as differences to the end of the same file's row before.
fn pages(rows: impl Iterator<Item = (i64, u64, u64)>) -> Vec<i64> {
    let mut ends: HashMap<i64, i64> = HashMap::new();
    rows.map(|(file, first, pages)| {
        let end = ends.entry(file).or_default();
        let step = first.cast_signed().wrapping_sub(*end);
        *end = first.saturating_add(pages).cast_signed();
        step
    })
    .collect()
}

fn fills(n: &Numbers<'_>, marks: &Marks, w: &mut Writer) -> Value {
    let rows: Vec<_> = marks.fills.iter().filter_map(|m| Some((n.file(m.file)?, m))).collect();
    let first = pages(rows.iter().map(|(f, m)| (*f, m.first, m.pages)));
    json!({ "rows": rows.len(), "columns": [
        w.column("at", Coding::Delta, rows.iter().map(|(_, m)| n.time(m.at))),
        w.column("file", Coding::Delta, rows.iter().map(|(f, _)| *f)),
        w.column("pages", Coding::Plain, rows.iter().map(|(_, m)| m.pages.cast_signed())),
        w.column("first", Coding::Page, first),
        // 4 bits cause, then used, then in the tree.
        w.column("kind", Coding::Plain, rows.iter().map(|(_, m)| {
            i64::from(names::fill(m.cause)) | i64::from(m.used) << 4 | i64::from(m.in_tree) << 5
        })),
        w.column("thread", Coding::Delta, rows.iter().map(|(_, m)| n.thread(m.pid, m.tid))),
    ] })
}

fn touches(n: &Numbers<'_>, marks: &Marks, w: &mut Writer) -> Value {
    let rows: Vec<_> = marks.touches.iter().filter_map(|m| Some((n.file(m.file)?, m))).collect();
    let first = pages(rows.iter().map(|(f, m)| (*f, m.first, m.pages)));
    json!({ "rows": rows.len(), "columns": [
        w.column("at", Coding::Delta, rows.iter().map(|(_, m)| n.time(m.at))),
        w.column("file", Coding::Delta, rows.iter().map(|(f, _)| *f)),
        w.column("pages", Coding::Plain, rows.iter().map(|(_, m)| m.pages.cast_signed())),
        w.column("first", Coding::Page, first),
        w.column("kind", Coding::Plain, rows.iter().map(|(_, m)| i64::from(names::touch(m.kind)))),
        w.column("thread", Coding::Delta, rows.iter().map(|(_, m)| n.thread(m.pid, m.tid))),
    ] })
}

/// Devices that were read, in the order of their first request.
pub(super) fn devices(recording: &Recording) -> Vec<Dev> {
    let mut out: Vec<Dev> = Vec::new();
    for read in recording.device_reads.iter().flatten() {
        if !out.contains(&read.dev) {
            out.push(read.dev);
        }
    }
    out
}

fn device_reads(n: &Numbers<'_>, rows: &[&DeviceRead], w: &mut Writer) -> Value {
    let devices = devices(n.view.recording);
    let device = |dev: Dev| (0..).zip(&devices).find(|(_, d)| **d == dev).map_or(0, |(i, _)| i);
    json!({ "rows": rows.len(), "columns": [
        w.column("at", Coding::Delta, rows.iter().map(|r| n.time(r.queued))),
        w.column("wait", Coding::Plain, rows.iter().map(|r| n.length(r.queued, r.issued))),
        w.column("service", Coding::Plain, rows.iter().map(|r| {
            n.length(r.issued.unwrap_or(r.queued), r.completed)
        })),
        w.column("device", Coding::Delta, rows.iter().map(|r| device(r.dev))),
        w.column("sector", Coding::Delta, rows.iter().map(|r| r.sector.cast_signed())),
        w.column("bytes", Coding::Plain, rows.iter().map(|r| i64::from(r.bytes))),
        // In the tree, metadata, read-ahead.
        w.column("kind", Coding::Plain, rows.iter().map(|r| {
            i64::from(r.in_tree) | i64::from(r.metadata) << 1 | i64::from(r.readahead) << 2
        })),
        w.column("thread", Coding::Delta, rows.iter().map(|r| n.thread(r.pid, r.tid))),
    ] })
}

fn stall_table(n: &Numbers<'_>, rows: &[&Stall], w: &mut Writer) -> Value {
    let stacks: HashMap<StackIdx, i64> = (1..)
        .zip(n.view.analysis.stacks.iter().take(MOST_ROWS))
        .filter_map(|(i, s)| Some((s.stack?, i)))
        .collect();
    let lookups = n.view.recording.lookups.as_deref().unwrap_or_default();
    let mut paths: Vec<String> = Vec::new();
    let mut known: HashMap<Cow<'_, str>, i64> = HashMap::new();
    let mut last = 0;
    let path: Vec<i64> = rows
        .iter()
        .map(|s| {
            let Some(text) = s.lookup.and_then(|l| lookups.get(l as usize)?.shown_place()) else {
                return 0;
            };
            if let Some(i) = known.get(&text) {
                return *i;
            }
            if paths.len() >= MOST_PATHS {
                return 0;
            }
            paths.push(short(&text));
            last += 1;
            known.insert(text, last);
            last
        })
        .collect();
    // A stall whose waking was not seen ends where the task ran again.
    let woken = |s: &Stall| s.woken.or(s.ended);
    json!({ "rows": rows.len(), "paths": paths, "columns": [
        w.column("at", Coding::Delta, rows.iter().map(|s| n.time(s.began))),
        w.column("wait", Coding::Plain, rows.iter().map(|s| n.length(s.began, woken(s)))),
        w.column("run", Coding::Plain, rows.iter().map(|s| woken(s).map_or(0, |w| n.length(w, s.ended)))),
        w.column("file", Coding::Delta, rows.iter().map(|s| s.file.and_then(|f| n.file(f)).map_or(0, |f| f + 1))),
        w.column("page", Coding::Delta, rows.iter().map(|s| s.page.map_or(0, |p| p.cast_signed() + 1))),
        w.column("cause", Coding::Plain, rows.iter().map(|s| i64::from(names::stall(s.cause)))),
        w.column("thread", Coding::Delta, rows.iter().map(|s| n.thread(s.pid, s.tid))),
        w.column("stack", Coding::Delta, rows.iter().map(|s| {
            s.stack.and_then(|i| stacks.get(&i).copied()).unwrap_or(0)
        })),
        w.column("path", Coding::Delta, path),
    ] })
}
