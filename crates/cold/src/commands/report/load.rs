//! From a directory to a recording with its layouts and its analysis.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use cold_analyze::model::Analysis;
use cold_analyze::model::compare::Comparison;
use cold_model::Shown as _;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_model::recording::manifest::Tier;

use crate::exit::Failure;
use crate::progress::Line;
use crate::unwind::Tables;

/// A recording with all that is known about it.
pub(crate) struct Loaded {
    pub(super) name: String,
    pub(crate) recording: Recording,
    pub(super) layouts: Layouts,
    pub(crate) analysis: Analysis,
    /// What the reader has to know before any figure.
    pub(crate) warnings: Vec<String>,
}

/// The recording up to a marker, where one is named.
pub(super) fn until(raw: Raw, marker: Option<&str>) -> Result<Raw, Failure> {
    let Some(marker) = marker else { return Ok(raw) };
    let recording = cold_analyze::budget::until::until(&raw.recording, marker)
        .map_err(|e| Failure::usage(format!("--until: {}: {e}", raw.name)))?;
    Ok(Raw { recording, ..raw })
}

/// The recording between two markers, where a phase is named.
pub(super) fn phase(raw: Raw, phase: Option<&str>) -> Result<Raw, Failure> {
    let Some(phase) = phase else { return Ok(raw) };
    let (from, to) =
        phase.split_once("..").filter(|(from, to)| !from.is_empty() && !to.is_empty()).ok_or_else(|| {
            Failure::usage(format!("--phase: {phase:?} is no FROM..UNTIL, e.g. serving..ready"))
        })?;
    let recording = cold_analyze::budget::until::phase(&raw.recording, from, to)
        .map_err(|e| Failure::usage(format!("--phase: {}: {e}", raw.name)))?;
    Ok(Raw { recording, ..raw })
}

/// Reads the recorded files for symbols, and traces of first entries (those in `orders`, else those beside the recording
/// in `dir`), and analyses the recording.
///
/// # Errors
/// A named trace cannot be read.
pub(crate) fn analysed(
    raw: Raw,
    dir: &Path,
    symbols: bool,
    orders: &[PathBuf],
    line: &mut Line<'_>,
) -> Result<Loaded, Failure> {
    let Raw { name, recording, mut warnings } = raw;
    // Files of another system are not here, whatever may have their names.
    let symbols = symbols && recording.manifest.tier != Tier::Imported;
    let mut layouts = if symbols { layouts(&recording, line) } else { Layouts::default() };
    let builds: HashSet<&str> = recording.files.iter().filter_map(|f| f.build_id.as_deref()).collect();
    let traces = super::orders::of(dir, &builds, orders, &mut warnings, line)?;
    layouts.traced = cold_layout::traced::of_recording(&recording, &traces);
    if !orders.is_empty() && layouts.traced.is_empty() {
        warnings
            .push(format!("no trace of --order is of a build that {name} used: they have other build-ids"));
    }
    line.step(&format!("analysing {name}"));
    let analysis = cold_analyze::analyze(&recording, &layouts);
    Ok(Loaded { name, recording, layouts, analysis, warnings })
}

/// A recording as it was written, or recovered.
pub(crate) struct Raw {
    pub(crate) name: String,
    pub(crate) recording: Recording,
    /// What the reader has to know before any figure.
    pub(crate) warnings: Vec<String>,
}

/// Reads, or recovers, a recording.
pub(crate) fn raw(dir: &Path, line: &mut Line<'_>) -> Result<Raw, Failure> {
    let name = dir.file_name().map_or_else(|| dir.shown().to_string(), |n| n.to_string_lossy().into_owned());
    line.step(&format!("reading {name}"));
    let mut warnings = Vec::new();
    let recording = read(dir, &name, &mut warnings)?;
    Ok(Raw { name, recording, warnings })
}

fn read(dir: &Path, name: &str, warnings: &mut Vec<String>) -> Result<Recording, Failure> {
    use cold_recording::Error;
    match cold_recording::read(dir) {
        Ok(recording) => Ok(recording),
        Err(Error::Unfinished { .. })
            if cold_recording::manifest_of(dir).is_ok_and(|m| m.tier == Tier::Imported) =>
        {
            let what = format!("{name} was cut off while it was imported");
            Err(Failure::from(anyhow::anyhow!(what)).hint("import it again, with --overwrite"))
        }
        Err(Error::Unfinished { .. }) => {
            let text = "is incomplete: its recorder was killed, or still runs; recovered from its log";
            warnings.push(format!("{name} {text}"));
            Ok(cold_trace::recover(dir, &mut Tables::default())?)
        }
        Err(e @ (Error::NotARecording { .. } | Error::Io { .. })) => {
            Err(Failure::from(e).hint("name a directory that `cold trace` made"))
        }
        Err(e) => Err(e.into()),
    }
}

/// Sections and symbols of its files, as far as they are on this machine.
pub(crate) fn layouts(recording: &Recording, line: &mut Line<'_>) -> Layouts {
    cold_symbols::layouts(recording, &cold_symbols::Options::default(), |done, all| {
        line.step(&format!("reading symbols, file {} of {all}", done + 1));
    })
}

/// What differs between two.
pub(super) fn comparison(a: &Loaded, b: &Loaded) -> Comparison {
    cold_analyze::compare(&a.recording, &a.analysis, &b.recording, &b.analysis)
}
