//! The summary of a recording, within a second of its end.

use std::path::Path;

use cold_model::bench::Taint;
use cold_model::layout::Layouts;
use cold_model::recording::{Manifest, Recording};
use cold_model::{Bytes, Nanos};
use serde_json::json;

use crate::commands::report::{headline, text_view};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::{count, wrap};

/// Processes named as holders; all of them are in the JSON.
const NAMED: usize = 4;

/// Prints what was recorded where, how far it can be trusted, and what to do next.
pub(super) fn summary(ui: &Ui, recording: &Recording, directory: &Path, as_json: bool) {
    // Symbols take seconds; the headline needs none.
    let analysis = cold_analyze::analyze(recording, &Layouts::default());
    let m = &recording.manifest;
    if as_json {
        let counts: serde_json::Map<String, serde_json::Value> =
            recording.counts().into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect();
        let document = json!({
            "schema": "coldstart.trace/1",
            "recording": cold_model::path_text::encode(directory),
            "headline": analysis.headline,
            "state": m.state,
            "ending": m.ending,
            "tables": counts,
            "cost": m.cost,
            "taints": m.taints,
        });
        ui.json(&document);
        return;
    }
    for line in headline(&analysis.headline, text_view(ui)) {
        ui.line(line);
    }
    let columns = text_view(ui).columns;
    for (style, text) in state(m).into_iter().chain([cost(m)]) {
        for line in wrap(&text, columns.saturating_sub(2)) {
            ui.line(format!("  {}", paint(style, line)));
        }
    }
    let name = shown(directory);
    let rows: usize = recording.counts().iter().map(|(_, n)| n).sum();
    ui.line(format!("{} {name} ({} rows)", paint(STRONG, "recorded in"), count(rows as u64)));
    let page = directory.with_extension("html");
    ui.line(format!("{} cold report {name} --html {}", paint(STRONG, "next:"), shown(&page)));
}

/// A path as it can be pasted into a shell.
fn shown(path: &Path) -> String {
    cold_bench::command::line_of(&[path.as_os_str().to_owned()])
}

/// What is proved of the cache before the start; `None` where a taint among the notes above has said so.
fn state(m: &Manifest) -> Option<(anstyle::Style, String)> {
    let (wanted, cold) = (&m.state.wanted, m.state.is_cold());
    let Some(residual) = &m.state.residual else {
        return Some((FAINT, format!("state before: {wanted}")));
    };
    Some(match residual {
        cold_model::Known::Unknown { unknown } => (WARN, format!("{wanted}: not proved: {unknown}")),
        cold_model::Known::Value(r) if cold && r.bytes.0 == 0 && r.unknown_bytes.0 == 0 => {
            let text = format!(
                "cold, proved: all {} of its files were absent ({})",
                m.state.checked, m.state.method
            );
            (GOOD, text)
        }
        cold_model::Known::Value(r) if cold => {
            if m.disqualified_by.iter().any(|taint| matches!(taint, Taint::NotCold { .. })) {
                return None;
            }
            let by = cold_bench::diagnose::held_by(&r.held(), NAMED)
                .map_or_else(String::new, |by| format!(", {by}"));
            let unknown = match r.unknown_bytes {
                Bytes(0) => String::new(),
                n => format!("; the kernel does not tell what is cached of {n}"),
            };
            (BAD, format!("not fully cold: {} stayed cached{by}{unknown}", r.bytes))
        }
        cold_model::Known::Value(r) => {
            (FAINT, format!("{wanted}: {} of {} were cached before", r.bytes, m.state.checked))
        }
    })
}

/// What recording cost the start.
fn cost(m: &Manifest) -> (anstyle::Style, String) {
    let time = match m.cost.in_programs() {
        Nanos(0) => String::new(),
        programs => format!(", {programs} in BPF programs"),
    };
    let text = format!(
        "own cost: {} events ({}){time}, {} of the recorder",
        count(m.cost.events),
        m.cost.bytes,
        m.cost.recorder_cpu
    );
    (FAINT, text)
}
