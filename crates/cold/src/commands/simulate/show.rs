//! The table, what follows from it, and the document.

use std::fmt::Write as _;

use cold_analyze::simulate::sweep::{Row, kind_name};
use cold_model::figures::{count, percent, plural};
use cold_model::{Bytes, Shown as _};
use cold_sim::engine::Kind;
use serde_json::{Value, json};

use super::{OnDisk, Simulation};
use crate::table::{Table, width};
use crate::ui::{STRONG, Ui, paint};
use crate::words::wrap;

/// Version of the document.
const VERSION: u32 = 1;

pub(super) fn text(ui: &Ui, s: &Simulation) {
    ui.line(paint(STRONG, s.name.shown()));
    ui.line(observed(s));
    for on in &s.disks {
        ui.line("");
        ui.line(format!("{} ({})", paint(STRONG, &on.disk.name), on.disk.source.shown()));
        let mut table = Table::new(&["REQUESTS", "READ", "UNUSED", "STALL", "TIME", "RATIO", "SETTING"]);
        for (n, row) in on.rows.iter().enumerate() {
            table.row(cells(s, row, n == 0), Vec::new());
        }
        table.lines(width()).into_iter().for_each(|line| ui.line(line));
    }
    ui.line("");
    for finding in findings(s) {
        let mut lines = wrap(&finding, ui.width().saturating_sub(2)).into_iter();
        lines.next().into_iter().for_each(|first| ui.line(format!("• {first}")));
        lines.for_each(|more| ui.line(format!("  {more}")));
    }
}

fn cells(s: &Simulation, row: &Row, today: bool) -> Vec<String> {
    let setting = match (today, s.start.window_of(&row.choice)) {
        (true, Some(window)) => format!("{}, read-ahead {window}: today", row.choice),
        (true, None) => format!("{}: today", row.choice),
        (false, _) => row.choice.to_string(),
    };
    let shown = row.shown();
    vec![
        count(shown.requests),
        shown.read.to_string(),
        shown.unused.to_string(),
        shown.waited.to_string(),
        row.time.to_string(),
        format!("{:.2}", row.ratio),
        setting,
    ]
}

/// What was recorded.
fn observed(s: &Simulation) -> String {
    format!(
        "recorded: {}; {} needed, {}",
        s.observed,
        Bytes(s.start.needed_pages().saturating_mul(s.start.page_bytes)),
        plural(s.start.tasks.len() as u64, "thread"),
    )
}

/// What follows, and what to know of the figures.
pub(super) fn findings(s: &Simulation) -> Vec<String> {
    let advice = s.disks.iter().filter_map(|on| advised(s, on));
    let mut all: Vec<String> = advice.collect();
    all.extend(s.disks.iter().filter_map(|on| held(s, on)));
    all.extend(reread(s));
    all.extend(s.notes.iter().cloned());
    all
}

/// Pages that today's setting reads more than once. `None` where there are none, and nobody asked for too little room.
fn reread(s: &Simulation) -> Option<String> {
    let again = s.disks.first()?.rows.first()?.again;
    let room = s.start.memory.map(|memory| format!(" with room for {memory}")).unwrap_or_default();
    (again.pages > 0 || s.start.memory.is_some()).then(|| {
        format!(
            "today's setting{room} reads {} more than once: {} again",
            plural(again.pages, "page"),
            again.bytes
        )
    })
}

/// The smallest change that gives most. `None` where no windows were tried.
fn advised(s: &Simulation, on: &OnDisk) -> Option<String> {
    s.start.tries_windows(&on.rows).then(|| match &on.advice {
        Some(a) => format!(
            "{}: read_ahead_kb {} instead of {} would save {} ({}); nearer to today's than any other that gives as much",
            on.disk.name,
            a.window.0 >> 10,
            a.instead_of.0 >> 10,
            a.saves,
            percent(a.part * 100.0)
        ),
        None if s.start.window().is_none() => format!(
            "{}: the start's files have different read-ahead windows today: the rows tell what one window for all would take",
            on.disk.name
        ),
        None => format!("{}: no read-ahead window that was tried saves 3 % or more", on.disk.name),
    })
}

/// How the model of what was recorded differs from it.
fn held(s: &Simulation, on: &OnDisk) -> Option<String> {
    let today = &on.as_recorded;
    let apart = s.observed.apart(today)?;
    let mut text = format!(
        "{}: as recorded, the model makes {:+.1} % requests and {:+.1} % bytes",
        on.disk.name, apart.requests, apart.read
    );
    if let Some(time) = apart.time.filter(|_| on.disk.is_recorded) {
        let _ = write!(text, ", and takes {time:+.1} % time");
    }
    Some(text)
}

pub(super) fn json(s: &Simulation) -> Value {
    let row = |r: &Row| {
        let path: serde_json::Map<String, Value> = Kind::ALL
            .into_iter()
            .filter(|kind| r.path.of(*kind) > 0)
            .map(|kind| (kind_name(kind).to_owned(), json!(r.path.of(kind))))
            .collect();
        json!({
            "policy": r.choice.policy.to_string(),
            "read_ahead_bytes": s.start.window_of(&r.choice),
            "reader": r.choice.reader,
            "requests": r.requests,
            "read_bytes": r.read,
            "unused_bytes": r.unused,
            "reread_pages": r.again.pages,
            "reread_bytes": r.again.bytes,
            "stall_ns": r.stall,
            "time_ns": r.time,
            "ratio": r.ratio,
            "path_ns": path,
            "files": r.part,
        })
    };
    let disks: Vec<Value> = s
        .disks
        .iter()
        .map(|on| {
            json!({
                "disk": on.disk.name,
                "source": on.disk.source,
                "rows": on.rows.iter().map(row).collect::<Vec<_>>(),
                "advice": on.advice,
            })
        })
        .collect();
    json!({
        "format": "coldstart-simulation",
        "version": VERSION,
        "recording": s.name,
        "recorded": s.observed,
        "exact_need": s.recording.manifest.exact_need,
        "memory_bytes": s.start.memory,
        "cooling": s.start.cooling(),
        "needed_bytes": s.start.needed_pages().saturating_mul(s.start.page_bytes),
        "disks": disks,
        "notes": s.notes,
    })
}
