//! From a recording: nothing is tried.

use std::path::Path;

use cold_report::diagnosis::{self, Evidence, Step};

use super::Diagnosed;
use crate::commands::report::load;
use crate::exit::Failure;
use crate::progress::Line;
use crate::ui::Ui;

/// Diagnoses a recording.
pub(super) fn diagnose(dir: &Path, ui: &Ui) -> Result<Diagnosed, Failure> {
    let mut line = Line::new(ui);
    let loaded = load::raw(dir, &mut line).and_then(|raw| load::analysed(raw, dir, true, &[], &mut line));
    line.clear();
    let loaded = loaded?;
    for warning in &loaded.warnings {
        ui.warn(warning);
    }
    let why = "a recording tells of the past: diagnose the command itself to try what would help";
    let diagnosis = diagnosis::diagnose(&Evidence {
        command: loaded.analysis.headline.subject.clone(),
        cold: Some((&loaded.recording, &loaded.analysis)),
        steps: vec![Step { what: "measuring starts and trying remedies", skipped: Some(why.to_owned()) }],
        call_name: Some(cold_trace::syscalls::name),
        ..Evidence::default()
    });
    Ok(Diagnosed { diagnosis, plan: None, interrupted: false })
}
