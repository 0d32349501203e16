//! Files to write: checked before the benchmark, written after it.

use std::path::{Path, PathBuf};

use cold_bench::export;
use cold_bench::gate::GateResult;
use cold_bench::summary::Analysis;
use cold_gate::{junit, markdown};
use cold_model::Shown as _;
use cold_model::bench::Report;
use cold_report::{html, svg};

use super::Args;
use crate::exit::Failure;
use crate::results;
use crate::ui::Ui;

/// What to write where.
pub(super) struct Exports {
    wanted: Vec<(ExportFormat, PathBuf)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Native,
    HyperfineV1,
    HyperfineV2,
    Csv,
    Markdown,
    Svg,
    Html,
    AnswersJunit,
    AnswersMarkdown,
}

/// What the answers of gates are about, in their documents.
const SUITE: &str = "cold bench";

impl Exports {
    /// Collects the wishes; fails when a directory does not exist or two want standard output.
    pub(super) fn check(args: &Args) -> Result<Self, Failure> {
        let mut wanted = Vec::new();
        if args.json {
            wanted.push((ExportFormat::Native, PathBuf::from("-")));
        }
        for text in &args.export_json {
            let (kind, path) = match text.strip_prefix("v2:") {
                Some(path) => (ExportFormat::HyperfineV2, path),
                None => (ExportFormat::HyperfineV1, text.strip_prefix("v1:").unwrap_or(text)),
            };
            wanted.push((kind, path.into()));
        }
        wanted.extend(args.export_csv.iter().map(|p| (ExportFormat::Csv, p.clone())));
        wanted.extend(args.export_markdown.iter().map(|p| (ExportFormat::Markdown, p.clone())));
        wanted.extend(args.junit.iter().map(|p| (ExportFormat::AnswersJunit, p.clone())));
        wanted.extend(args.markdown.iter().map(|p| (ExportFormat::AnswersMarkdown, p.clone())));
        for p in &args.plot {
            let kind = match p.extension().and_then(|e| e.to_str()) {
                Some("svg") => ExportFormat::Svg,
                Some("html" | "htm") => ExportFormat::Html,
                _ => {
                    return Err(Failure::usage(format!(
                        "--plot {}: the name must end in .svg or .html",
                        p.shown()
                    )));
                }
            };
            wanted.push((kind, p.clone()));
        }
        if wanted.iter().filter(|(_, p)| is_stdout(p)).count() > 1 {
            return Err(Failure::usage("only one result can go to standard output"));
        }
        for (_, path) in wanted.iter().filter(|(_, path)| !is_stdout(path)) {
            results::check(path)?;
        }
        Ok(Self { wanted })
    }

    /// Whether standard output belongs to a document, so that no text may go there.
    pub(super) fn take_stdout(&self) -> bool {
        self.wanted.iter().any(|(_, p)| is_stdout(p))
    }

    /// Writes each document that was asked for, to its file or to standard output.
    pub(super) fn write(
        &self,
        report: &Report,
        analysis: &Analysis,
        gates: &[GateResult],
        ui: &Ui,
    ) -> Result<(), Failure> {
        for (kind, path) in &self.wanted {
            let mut bytes = Vec::new();
            match kind {
                ExportFormat::Native => export::json(report, analysis, gates, &mut bytes)?,
                ExportFormat::HyperfineV1 => export::json_v1(report, &mut bytes)?,
                ExportFormat::HyperfineV2 => export::json_v2(report, &mut bytes)?,
                ExportFormat::Csv => export::csv(report, &mut bytes)?,
                ExportFormat::Markdown => export::markdown(report, &mut bytes)?,
                ExportFormat::Svg => bytes.extend(svg::svg(report, analysis).into_bytes()),
                ExportFormat::AnswersJunit => bytes.extend(junit::xml(SUITE, gates).into_bytes()),
                ExportFormat::AnswersMarkdown => bytes.extend(markdown::summary(SUITE, gates).into_bytes()),
                ExportFormat::Html => bytes.extend(html::html(report, analysis, gates).into_bytes()),
            }
            if is_stdout(path) {
                ui.bytes(&bytes);
            } else {
                results::save(path, &bytes)?;
            }
        }
        Ok(())
    }
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
