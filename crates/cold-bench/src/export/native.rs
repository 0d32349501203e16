//! The document of `cold bench --json`: the report with everything computed from it.

use std::io;

use cold_model::bench::Report;
use serde::Serialize;

use super::ExportError;
use crate::gate::GateResult;
use crate::summary::Analysis;

#[derive(Serialize)]
struct NativeDocument<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    analysis: &'a Analysis,
    gates: &'a [GateResult],
}

/// Writes the document, indented, with a newline at its end. [`crate::baseline::parse`] reads it back.
pub fn json(
    report: &Report,
    analysis: &Analysis,
    gates: &[GateResult],
    mut out: impl io::Write,
) -> Result<(), ExportError> {
    serde_json::to_writer_pretty(&mut out, &NativeDocument { report, analysis, gates })?;
    out.write_all(b"\n")?;
    Ok(())
}
