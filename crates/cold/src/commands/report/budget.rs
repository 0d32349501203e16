//! Budgets of a start: `--fail-if`, `--allow`, `--write-allow`.

use std::path::Path;

use cold_analyze::budget::allow::{self, AllowList};
use cold_analyze::budget::{Budget, BudgetedStart, judge};
use cold_gate::{GateResult, Outcome as GateOutcome, overall};
use cold_model::Shown as _;

use super::Args;
use super::load::Loaded;
use crate::commands::bench::show;
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::ui::Ui;

/// A longer list was written by nobody.
const LONGEST_LIST: u64 = 64 << 20;

/// What a start is judged by.
pub(super) struct Budgets {
    conditions: Vec<Budget>,
    list: Option<(String, AllowList)>,
}

/// All budgets' answers about one recording, ready to be shown.
pub(super) struct Answers {
    /// What was judged.
    pub(super) title: String,
    pub(super) results: Vec<GateResult>,
    /// Lines of the list that no file matched.
    unused: Vec<String>,
}

impl Budgets {
    /// Reads conditions and list, before any recording is read.
    pub(super) fn check(args: &Args) -> Result<Self, Failure> {
        let mut conditions = Vec::new();
        for text in &args.fail_if {
            let budget = Budget::parse(text).map_err(|e| Failure::usage(e.to_string()))?;
            if budget.is_relative() && args.recordings.len() < 2 {
                let what = "a limit in x or with + needs two recordings: the old one, then the new one";
                return Err(Failure::usage(format!("'{text}': {what}")));
            }
            conditions.push(budget);
        }
        let list = args.allow.as_deref().map(read_list).transpose()?;
        let judges = list.is_some() || !conditions.is_empty();
        if !judges && (args.junit.is_some() || args.markdown.is_some()) {
            let what =
                "--junit and --markdown write the answers of budgets: name one with --fail-if or --allow";
            return Err(Failure::usage(what));
        }
        Ok(Self { conditions, list })
    }

    /// Judges the only recording, or the second against the first.
    pub(super) fn answers(&self, loaded: &[Loaded]) -> Answers {
        let (own, reference) = match loaded {
            [one] => (Some(one), None),
            [old, new, ..] => (Some(new), Some(old)),
            [] => (None, None),
        };
        let mut answers = Answers { title: String::new(), results: Vec::new(), unused: Vec::new() };
        if let Some(own) = own {
            let start = own.start();
            answers.title = format!("cold report {}", own.name);
            answers.results = judge(&self.conditions, start, reference.map(Loaded::start));
            if let Some((name, list)) = &self.list {
                let verdict = list.judge(name, start);
                answers.results.extend(verdict.results);
                answers.unused = verdict.unused;
            }
        }
        answers
    }
}

fn read_list(path: &Path) -> Result<(String, AllowList), Failure> {
    let cannot = |why: String| Failure::usage(format!("cannot read the list {}: {why}", path.shown()));
    let text = cold_sys::open::text(path, LONGEST_LIST).map_err(|e| cannot(e.to_string()))?;
    let list = AllowList::parse(&text).map_err(|e| cannot(e.to_string()))?;
    Ok((path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(), list))
}

impl Loaded {
    /// As budgets and histories take it.
    pub(super) fn start(&self) -> BudgetedStart<'_> {
        BudgetedStart {
            name: &self.name,
            recording: &self.recording,
            layouts: &self.layouts,
            analysis: &self.analysis,
        }
    }
}

impl Answers {
    /// Shows each answer, and the lines of the list that could go.
    pub(super) fn show(&self, ui: &Ui) {
        for r in &self.results {
            show::gate(ui, r);
        }
        if !self.unused.is_empty() {
            ui.line("No file of this start matched these lines of the list:".to_owned());
            for line in &self.unused {
                ui.line(format!("  {}", line.shown()));
            }
        }
    }

    /// The answers as fields of the document of a report.
    pub(super) fn add_to(&self, document: &mut serde_json::Value) -> Result<(), Failure> {
        if let Some(object) = document.as_object_mut().filter(|_| !self.results.is_empty()) {
            object.insert("gates".to_owned(), serde_json::to_value(&self.results)?);
            object.insert("unused_lines".to_owned(), serde_json::to_value(&self.unused)?);
        }
        Ok(())
    }

    /// How the command ends.
    pub(super) fn exit(&self) -> Exit {
        match overall(&self.results) {
            GateOutcome::Fail => Exit::GateFailed,
            GateOutcome::Inconclusive { .. } => Exit::Inconclusive,
            GateOutcome::Pass => Exit::Done,
        }
    }
}

/// Writes the list that allows what these starts used.
pub(super) fn write_list(path: &Path, loaded: &[Loaded], ui: &Ui) -> Outcome {
    for l in loaded {
        if let Some(why) = l.analysis.headline.files.reason().or(l.analysis.headline.needed.reason()) {
            let failed = anyhow::anyhow!("no list of the files of {} can be made: {why}", l.name);
            return Err(Failure::from(failed).hint("record the start as root, or with BPF allowed"));
        }
    }
    let starts: Vec<BudgetedStart<'_>> = loaded.iter().map(Loaded::start).collect();
    let (list, left_out) = allow::write(&starts);
    if left_out > 0 {
        ui.warn(format!("{left_out} files have names that cannot stand in a list; add patterns for them"));
    }
    results::save(path, &list)?;
    let files = list.lines().filter(|l| !l.starts_with('#')).count() as u64;
    ui.line(format!("{}: {}", path.shown(), crate::words::plural(files, "file")));
    Ok(Exit::Done)
}
