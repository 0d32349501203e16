//! A report of an earlier `cold bench --json`, to compare with.

use cold_model::bench::{Report, SCHEMA, State};
use serde_json::Value;

/// Why a document cannot be a baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The text is no JSON; where it stops being some.
    #[error("is not JSON ({0}); a baseline is the file that `cold bench --json` wrote")]
    NotJson(serde_json::Error),
    /// hyperfine's export, told by its `results`; of which version, in words.
    #[error(
        "is {0}, which holds no cache states and no taints; a baseline is the file that `cold bench --json` wrote"
    )]
    Hyperfine(&'static str),
    /// A document with another `schema`.
    #[error("has the schema {found:?}; this version reads {SCHEMA:?}")]
    OtherSchema {
        /// What the document says.
        found: String,
    },
    /// JSON without `schema`.
    #[error("has no \"schema\" field; a baseline is the file that `cold bench --json` wrote")]
    NoSchema,
    /// Says it is ours, but is not well formed.
    #[error("says it is {SCHEMA:?} but is damaged: {0}")]
    Damaged(String),
}

/// Reads the text of a report. Errors continue a sentence that begins with the file's name.
pub fn parse(text: &str) -> Result<Report, BaselineError> {
    let document: Value = serde_json::from_str(text).map_err(BaselineError::NotJson)?;
    match document.get("schema") {
        Some(Value::String(s)) if s == SCHEMA => {}
        Some(other) => {
            let found = other.as_str().map_or_else(|| other.to_string(), str::to_owned);
            return Err(BaselineError::OtherSchema { found });
        }
        None if document.get("results").is_some_and(Value::is_array) => {
            let v2 = document.get("schema_version").is_some();
            return Err(BaselineError::Hyperfine(if v2 {
                "an export of hyperfine 2 (schema_version 2)"
            } else {
                "an export of hyperfine 1"
            }));
        }
        None => return Err(BaselineError::NoSchema),
    }
    let report: Report =
        serde_json::from_value(document).map_err(|e| BaselineError::Damaged(e.to_string()))?;
    if let Some(i) = report.series.iter().position(|s| s.command >= report.commands.len()) {
        return Err(BaselineError::Damaged(format!("series {i} names a command that is not there")));
    }
    if let Some(i) = report.runs.iter().position(|r| r.series >= report.series.len()) {
        return Err(BaselineError::Damaged(format!("run {i} names a series that is not there")));
    }
    Ok(report)
}

/// The series of the baseline that belongs to a command's name and state: the same name and state, or
/// the same state when both reports are about one command (it may have been moved or renamed).
pub fn series_of(baseline: &Report, report: &Report, command: usize, state: &State) -> Option<usize> {
    let command = command_of(baseline, report, command)?;
    baseline.series.iter().position(|s| s.command == command && s.state == *state)
}

/// The command of the baseline that belongs to a command of the report, as in [`series_of`].
pub fn command_of(baseline: &Report, report: &Report, command: usize) -> Option<usize> {
    let name = &report.commands.get(command)?.name;
    let same_name = baseline.commands.iter().position(|c| c.name == *name);
    same_name.or((baseline.commands.len() == 1 && report.commands.len() == 1).then_some(0))
}
