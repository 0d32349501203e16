//! Which data of the program a recorded start used: pages touched and written, and the symbols on them.

use std::path::{Path, PathBuf};

use cold_analyze::model::DataUse;
use cold_model::Shown as _;
use cold_model::order::TracedFile;
use cold_model::recording::FileIdx;

use crate::commands::report::{self, load};
use crate::exit::Failure;
use crate::progress::Line;
use crate::ui::Ui;

/// The data of one file, as a recording tells.
pub(super) struct Data {
    loaded: load::Loaded,
    file: FileIdx,
}

/// What the recording in `dir` tells of the data of `target`, with what `traces` saw written.
pub(super) fn of(dir: &Path, traces: &[PathBuf], target: &TracedFile, ui: &Ui) -> Result<Data, Failure> {
    let mut line = Line::new(ui);
    let loaded = load::raw(dir, &mut line).and_then(|raw| load::analysed(raw, dir, true, traces, &mut line));
    line.clear();
    let loaded = loaded?;
    loaded.warnings.iter().for_each(|w| ui.warn(w));
    let build = target.build_id.as_ref();
    let row = loaded.recording.files.iter().position(|f| build.is_some() && f.build_id.as_ref() == build);
    let row = row.and_then(|row| FileIdx::try_from(row).ok());
    let file = row.ok_or_else(|| {
        let (dir, path) = (dir.shown(), target.path.shown());
        Failure::usage(format!("{dir} used no file of the build of {path} (by build-id)"))
    })?;
    Ok(Data { loaded, file })
}

impl Data {
    /// What was used of each section.
    pub(super) fn sections(&self) -> Vec<&DataUse> {
        self.loaded.analysis.data.iter().filter(|d| d.file == self.file).collect()
    }

    pub(super) fn show(&self, ui: &Ui) {
        ui.line(String::new());
        let lines = report::data(&self.loaded.analysis, self.file, report::text_view(ui));
        if lines.is_empty() {
            ui.line("data: the recorded start touched no page of it".to_owned());
            return;
        }
        ui.line("data, by the recorded start; written to, by the traced ones:".to_owned());
        for line in lines {
            ui.line(line);
        }
    }
}
