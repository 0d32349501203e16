//! Who names the functions of the program that is ordered: what has no name is in no order file.

use cold_layout::predict::{Kernel, predicted};
use cold_model::order::TracedFile;
use cold_model::{Shown as _, path_text};
use cold_symbols::{DebugSearch, Unfit};
use serde_json::json;

use crate::ui::Ui;

use super::choice::Chosen;

/// Where names come from, and what is left without one.
pub(super) struct Names<'a> {
    target: &'a TracedFile,
    named: usize,
    /// Functions that the scenarios of the order enter and nobody names.
    unnamed: usize,
    /// Pages of code that the order would save more of if they had names, in the scenario that gains most.
    pages: u64,
    /// `None`: the file is gone, or another build than the traced one.
    search: Option<DebugSearch>,
}

/// The search for the debug file of `target`; `None` where its file is gone, or another build than the traced one.
pub(super) fn search(target: &TracedFile) -> Option<DebugSearch> {
    let search = cold_symbols::debug_search(&target.path, &cold_symbols::Options::default()).ok()?;
    (search.build_id == target.build_id).then_some(search)
}

/// What to do where functions have no names, and why none were found.
pub(super) fn advice(target: &TracedFile, search: Option<&DebugSearch>) -> String {
    let path = target.path.shown();
    let unstripped = "--binary FILE, the program of this build before it was stripped";
    let Some(search) = search else {
        return format!("{unstripped}; {path} is gone, or another build now");
    };
    if let Some(found) = &search.found {
        let found = found.shown();
        let was_there = target.functions.iter().any(|f| f.sources.iter().any(|s| s == "debug_file"));
        return if was_there {
            format!("{unstripped}; its debug file {found} does not name them")
        } else {
            format!("--binary {path}: its debug file {found} is there now, and was not for the trace")
        };
    }
    if search.passed.is_empty() {
        return format!(
            "{unstripped}; no debug file can be found for it, as it has neither a build-id (-Wl,--build-id) nor the name \
             of one (.gnu_debuglink)"
        );
    }
    let build = match &search.build_id {
        Some(id) => format!("its debug file (build-id {id}; Debian has them in packages called NAME-dbgsym)"),
        None => "the debug file whose name and checksum it has".to_owned(),
    };
    let passed: Vec<String> =
        search.passed.iter().map(|(path, why)| format!("{}, which {}", path.shown(), words(why))).collect();
    format!("install {build}, or {unstripped}; looked for {}", passed.join("; "))
}

fn words(why: &Unfit) -> String {
    match why {
        Unfit::Absent => "is not there".to_owned(),
        Unfit::OtherBuild(Some(id)) => format!("is of another build ({id})"),
        Unfit::OtherBuild(None) => "has no build-id".to_owned(),
        Unfit::OtherContent => "has another checksum".to_owned(),
        Unfit::Unreadable(why) => format!("cannot be read ({why})"),
    }
}

impl<'a> Names<'a> {
    /// With what the names that are missing would save, by the model.
    pub(super) fn of(chosen: &'a Chosen, kernel: &Kernel) -> Self {
        let target = &chosen.target;
        let unnamed = chosen.unnamed();
        let saved = |entered: &[u32]| {
            let pages = |order| Some(predicted(target, order, entered, kernel)?.ordered.touched);
            Some(pages(&chosen.order)?.saturating_sub(pages(&chosen.entered)?))
        };
        let pages = match unnamed {
            0 => 0,
            _ => chosen.scenarios.iter().filter_map(|s| saved(&s.entered)).max().unwrap_or(0),
        };
        let named = target.functions.iter().filter(|f| f.name().is_some()).count();
        Self { target, named, unnamed, pages, search: search(target) }
    }

    /// Functions that a source names.
    fn by(&self, source: &str) -> usize {
        let by = |sources: &[String]| sources.iter().any(|s| s == source);
        self.target.functions.iter().filter(|f| f.name().is_some() && by(&f.sources)).count()
    }

    pub(super) fn show(&self, ui: &Ui) {
        let (all, own, debug) = (self.target.functions.len(), self.by("symtab"), self.by("debug_file"));
        let by = match self.search.as_ref().and_then(|s| s.found.as_ref()) {
            _ if own > 0 => "by its own symbols".to_owned(),
            Some(file) if debug > 0 => format!("by its debug file {}", file.shown()),
            None if debug > 0 => "by a debug file that is not there any more".to_owned(),
            _ => "by the symbols that it shows to others only (.dynsym)".to_owned(),
        };
        let id = self.target.build_id.as_ref().map_or("no build-id".into(), |id| format!("build-id {id}"));
        ui.line(String::new());
        ui.line(format!("names: {} of {all} functions, {by}; {id}", self.named));
        if self.unnamed > 0 {
            let saved = match self.pages {
                0 => "with names no page less".to_owned(),
                pages => format!("with names: up to {pages} pages less"),
            };
            ui.line(format!(
                "  {} that are entered have none and stay where they are; {saved}",
                self.unnamed
            ));
            ui.line(format!("  {}", advice(self.target, self.search.as_ref())));
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        let passed = |(path, why): &(std::path::PathBuf, Unfit)| json!({ "path": path_text::encode(path), "why": words(why) });
        json!({
            "named": self.named, "unnamed_entered": self.unnamed, "pages": self.pages,
            "symtab": self.by("symtab"), "debug_file": self.by("debug_file"), "dynsym": self.by("dynsym"),
            "build_id": self.target.build_id,
            "found": self.search.as_ref().and_then(|s| s.found.as_ref()).map(path_text::encode),
            "looked_for": self.search.as_ref().map(|s| s.passed.iter().map(passed).collect::<Vec<_>>()),
        })
    }
}
