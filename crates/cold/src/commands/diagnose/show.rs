//! The diagnosis in the terminal: the story, the reasons, the remedies, what to do now.

use cold_analyze::short_name;
use cold_bench::command::line_of;
use cold_model::{Known, Nanos};
use cold_report::diagnosis::{self, Diagnosis, Outcome, Price};

use super::Args;
use crate::table::{Table, width};
use crate::ui::{FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::wrap;

/// Remedies that the terminal shows; the page has all.
const REMEDIES: usize = 5;

pub(super) fn text(ui: &Ui, d: &Diagnosis) {
    ui.line(paint(STRONG, &d.command));
    for sentence in diagnosis::story(d) {
        paragraph(ui, "  ", &sentence);
    }
    for what in &d.disturbing {
        paragraph(ui, "  ", &format!("Disturbs: {what}"));
    }
    reasons(ui, d);
    remedies(ui, d);
    for step in &d.steps {
        if let Some(why) = &step.skipped {
            ui.line("");
            ui.line(paint(WARN, format!("not done: {}", step.what)));
            paragraph(ui, "  ", why);
        }
    }
}

fn paragraph(ui: &Ui, indent: &str, text: &str) {
    for line in wrap(text, ui.width().saturating_sub(indent.len())) {
        ui.line(format!("{indent}{line}"));
    }
}

fn reasons(ui: &Ui, d: &Diagnosis) {
    ui.line("");
    let each = if d.recorded_warm.value().is_some() { ", one recorded start each" } else { "" };
    ui.line(paint(STRONG, format!("Where the time goes{each}")));
    let rows = match &d.reasons {
        Known::Value(rows) => rows,
        Known::Unknown { unknown } => {
            paragraph(ui, "  ", &format!("unknown: {unknown}"));
            return;
        }
    };
    // Where something was asked, how much of each reason passed while it was answered.
    let asked = rows.iter().any(|row| row.answering.is_some());
    let compared = d.recorded_warm.value().is_some();
    let mut head = vec!["COLD"];
    head.extend(asked.then_some("ANSWERING"));
    head.extend(compared.then_some(["WARM", "MORE"]).into_iter().flatten());
    head.push("WHY");
    let mut table = Table::new(&head);
    let known = |time: &Known<Nanos>| time.value().map_or("unknown".to_owned(), Nanos::to_string);
    for row in rows {
        let named: Vec<String> =
            row.files.iter().chain(&row.calls).map(|(name, t)| format!("{} {t}", short_name(name))).collect();
        let more = row.more().map_or("unknown".to_owned(), diagnosis::signed);
        let answering = asked.then(|| row.answering.unwrap_or_default().to_string());
        let mut cells = vec![row.cold.to_string()];
        cells.extend(answering);
        cells.extend(compared.then(|| [known(&row.warm), more]).into_iter().flatten());
        cells.push(row.kind.words().to_owned());
        table.row(cells, if named.is_empty() { Vec::new() } else { vec![named.join(", ")] });
    }
    let mut sums = vec![known(&d.recorded_cold)];
    sums.extend(asked.then(|| rows.iter().filter_map(|row| row.answering).sum::<Nanos>().to_string()));
    let until = if asked { "start to first answer" } else { "start to ready" };
    sums.extend(compared.then(|| [known(&d.recorded_warm), String::new()]).into_iter().flatten());
    sums.push(until.into());
    table.row(sums, Vec::new());
    for line in table.lines(width()) {
        ui.line(line);
    }
}

fn remedies(ui: &Ui, d: &Diagnosis) {
    if d.remedies.is_empty() {
        return;
    }
    ui.line("");
    ui.line(paint(STRONG, "What would help"));
    for (i, remedy) in d.remedies.iter().take(REMEDIES).enumerate() {
        for (n, line) in wrap(&remedy.what, ui.width().saturating_sub(4)).into_iter().enumerate() {
            let number = if n == 0 { format!("{}.", i + 1) } else { String::new() };
            ui.line(format!("{number:<4}{line}"));
        }
        let saving = diagnosis::saving(remedy);
        for line in wrap(&saving, ui.width().saturating_sub(4)) {
            ui.line(format!("    {}", paint(if remedy.is_proved() { GOOD } else { STRONG }, line)));
        }
        for text in [remedy.why.clone(), format!("Price: {}.", remedy.price.words())] {
            for line in wrap(&text, ui.width().saturating_sub(4)) {
                ui.line(format!("    {}", paint(FAINT, line)));
            }
        }
    }
    let more = d.remedies.len().saturating_sub(REMEDIES);
    if more > 0 {
        ui.line(format!("    and {more} more (--json, --html)"));
    }
}

/// What to do now.
pub(super) fn next(ui: &Ui, args: &Args, d: &Diagnosis) {
    let plan = d.remedies.iter().any(|r| r.price == Price::Plan && r.is_proved());
    let mut words = args.start.words();
    words.push("--".into());
    words.extend(args.argv.iter().cloned());
    let line = match (&args.recording, d.outcome) {
        (Some(_), _) | (None, Outcome::NothingWorthDoing) => return,
        (None, _) if plan => format!("cold diagnose --apply {}", line_of(&words)),
        (None, _) => format!("cold trace {}", line_of(&words)),
    };
    ui.line("");
    crate::commands::bench::show::next(ui, &line);
}
