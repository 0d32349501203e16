//! Files to write: checked before anything is read, written before the text.

use std::io::Write as _;
use std::path::Path;

use cold_gate::{junit, markdown};
use cold_model::Shown as _;
use cold_report::recording::{View, html, svg};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Args;
use super::budget::Answers;
use super::load::{self, Loaded};
use crate::exit::Failure;
use crate::results;
use crate::ui::Ui;

/// Fails when a result has no place to go.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let files = [
        &args.html,
        &args.svg,
        &args.perfetto,
        &args.firefox_profile,
        &args.write_allow,
        &args.junit,
        &args.markdown,
    ];
    for path in files.into_iter().flatten() {
        results::check(path)?;
    }
    for dir in [&args.csv, &args.parquet].into_iter().flatten() {
        let above = dir.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !above.is_dir() {
            let (dir, above) = (dir.shown(), above.shown());
            return Err(Failure::usage(format!("cannot write {dir}: there is no directory {above}")));
        }
        let empty = std::fs::read_dir(dir).is_ok_and(|mut d| d.next().is_none());
        if dir.symlink_metadata().is_ok() && !empty {
            return Err(Failure::usage(format!("{} exists: name a new directory", dir.shown())));
        }
    }
    let one = [
        ("--csv", &args.csv),
        ("--parquet", &args.parquet),
        ("--perfetto", &args.perfetto),
        ("--firefox-profile", &args.firefox_profile),
    ];
    if args.recordings.len() > 2 && args.write_allow.is_none() {
        let n = args.recordings.len();
        return Err(Failure::usage(format!("two recordings can be compared, not {n}")));
    }
    if args.recordings.len() > 1
        && let Some((flag, _)) = one.iter().find(|(_, p)| p.is_some())
    {
        return Err(Failure::usage(format!("{flag} takes one recording, not two")));
    }
    Ok(())
}

/// Writes everything that was asked for.
pub(super) fn write(args: &Args, loaded: &[Loaded], answers: &Answers, ui: &Ui) -> Result<(), Failure> {
    let [first, ..] = loaded else { return Ok(()) };
    if let Some(path) = &args.junit {
        results::save(path, junit::xml(&answers.title, &answers.results))?;
    }
    if let Some(path) = &args.markdown {
        results::save(path, markdown::summary(&answers.title, &answers.results))?;
    }
    if let Some(path) = &args.html {
        let page = match loaded {
            [a, b] => html::page_of_two(a.view(), b.view(), &load::comparison(a, b)),
            _ => html::page(&first.recording, &first.layouts, &first.analysis),
        };
        results::save(path, page)?;
    }
    if let Some(path) = &args.svg {
        let picture = match loaded {
            [a, b] => svg::picture_of_two(a.view(), b.view()),
            _ => svg::picture(first.view()),
        };
        results::save(path, picture)?;
    }
    if let Some(dir) = &args.csv {
        cold_recording::export::csv::write(dir, &first.recording)?;
    }
    if let Some(dir) = &args.parquet {
        cold_recording::write(dir, &first.recording)?;
    }
    if let Some(path) = &args.perfetto {
        let mut out = Vec::new();
        cold_report::perfetto::write(&first.recording, &first.analysis, &first.layouts, &mut out)?;
        results::save(path, &out)?;
    }
    if let Some(path) = &args.firefox_profile {
        let mut out = Vec::new();
        cold_report::firefox::write(&first.recording, &first.analysis, &first.layouts, &mut out)?;
        if path.extension().is_some_and(|e| e == "gz") {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(&out)?;
            out = packed.finish()?;
        }
        results::save(path, &out)?;
    }
    if args.json {
        let mut document = if let [a, b] = loaded {
            serde_json::json!({
                "schema": "coldstart.comparison/1",
                "a": a.name,
                "b": b.name,
                "comparison": load::comparison(a, b),
            })
        } else {
            let mut document = serde_json::to_value(&first.analysis)?;
            if let Some(object) = document.as_object_mut() {
                object.shift_insert(0, "schema".to_owned(), "coldstart.report/1".into());
            }
            document
        };
        answers.add_to(&mut document)?;
        ui.json(&document);
    }
    Ok(())
}

impl Loaded {
    fn view(&self) -> View<'_> {
        View {
            name: &self.name,
            recording: &self.recording,
            layouts: &self.layouts,
            analysis: &self.analysis,
        }
    }
}
