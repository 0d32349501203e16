//! What killed runs of `cold` left changed on this machine: found in the journal, and undone.

use std::time::Duration;

use cold_journal::{Undone, default_directory, recover};

use crate::ui::Ui;

/// Undoes leftovers at the start of a command, and says so.
pub(crate) fn repair(ui: &Ui) {
    match default_directory().and_then(|dir| recover(&dir)) {
        Ok(undone) => undone.iter().for_each(|u| print(ui, u)),
        Err(e) => ui.warn(format!("cannot undo what an earlier run left: {e} (see `cold doctor`)")),
    }
}

fn print(ui: &Ui, undone: &Undone) {
    match &undone.outcome {
        Ok(_) => ui.note(format!("left by an earlier run: {undone}")),
        Err(_) => ui.warn(format!("left by an earlier run: {undone}")),
    }
}

/// As [`repair`], where nobody is there to be told; what fails stays in the journal.
pub(crate) fn repair_silently() {
    let _ = default_directory().and_then(|dir| recover(&dir));
}

/// What is left, for `cold doctor`: each change with its age.
pub(crate) fn list() -> Result<Vec<cold_doctor::Leftover>, cold_journal::Error> {
    let mut found = Vec::new();
    for left in cold_journal::leftovers(&default_directory()?)? {
        let modified = left.path().metadata().and_then(|m| m.modified()).ok();
        let age = modified.and_then(|t| t.elapsed().ok()).unwrap_or(Duration::ZERO);
        found.extend(left.changes().map(|c| cold_doctor::Leftover { description: c.to_string(), age }));
    }
    Ok(found)
}
