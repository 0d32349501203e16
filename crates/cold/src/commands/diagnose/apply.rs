//! Installing what was proved.

use std::io::{BufRead, IsTerminal};

use cold_bench::command::line_of;
use cold_model::Shown as _;
use cold_report::diagnosis::Price;

use super::{Args, Diagnosed};
use crate::commands::bench::show;
use crate::commands::prefetch::plans::{self, StorePlace};
use crate::exit::Failure;
use crate::ui::Ui;

/// Saves the plan among the user's own, if it was proved and the user agrees.
pub(super) fn apply(args: &Args, diagnosed: &Diagnosed, ui: &Ui) -> Result<(), Failure> {
    let proved = diagnosed.diagnosis.remedies.iter().any(|r| r.price == Price::Plan && r.is_proved());
    let Some(plan) = diagnosed.plan.as_ref().filter(|_| proved) else {
        ui.note("nothing was proved that could be installed");
        return Ok(());
    };
    let store = StorePlace::default().store()?;
    store.recognise()?;
    let path = store.path_of(&plan.key);
    if !args.yes && !agreed(ui, &path.shown().to_string())? {
        ui.note("nothing was installed");
        return Ok(());
    }
    store.lock()?.save(plan)?;
    ui.note(format!("installed the plan {}", path.shown()));
    ui.note(format!("to undo that: cold prefetch remove {}", plans::name(&path)));
    // A wrapper goes before the program in PATH, so only one that is found there gets one.
    if let Some(name) = args.argv.first().and_then(|w| w.to_str()).filter(|name| !name.contains('/')) {
        let wrapper = format!("~/bin/{name}").shown().to_string();
        ui.note(format!("to start it so by its name alone: cold prefetch install --wrapper {wrapper}"));
    }
    if !args.json {
        let words = [vec!["cold".into(), "launch".into(), "--".into()], args.argv.clone()].concat();
        show::next(ui, &line_of(&words));
    }
    Ok(())
}

/// Asks; without a terminal nobody can answer.
fn agreed(ui: &Ui, path: &str) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(
            Failure::usage("--apply asks, and there is no terminal").hint("--yes installs without asking")
        );
    }
    ui.warn(format!("install the plan as {path}? [y/N]"));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
