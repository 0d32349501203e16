//! Installing what was proved: the plan, and a launcher that follows it.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};

use cold_bench::command::line_of;
use cold_model::Shown as _;
use cold_report::diagnosis::Price;

use super::{Args, Diagnosed};
use crate::commands::bench::show;
use crate::commands::prefetch::install::{ByName, by_name};
use crate::commands::prefetch::plans::{self, StorePlace};
use crate::exit::Failure;
use crate::ui::{Ui, one_line};

/// Refuses what would have to be asked where nobody can answer, before anything is measured.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    if args.apply && !args.yes && !std::io::stdin().is_terminal() {
        return Err(
            Failure::usage("--apply asks, and there is no terminal").hint("--yes installs without asking")
        );
    }
    Ok(())
}

/// Saves the plan among the user's own, and writes a launcher, if the plan was proved and the user agrees to each.
pub(super) fn apply(args: &Args, diagnosed: &Diagnosed, ui: &Ui) -> Result<(), Failure> {
    let proved = diagnosed.diagnosis.remedies.iter().any(|r| r.price == Price::Plan && r.is_proved());
    let Some(plan) = diagnosed.plan.as_ref().filter(|_| proved) else {
        ui.note("nothing was proved that could be installed");
        return Ok(());
    };
    let place = StorePlace::default();
    let store = place.store()?;
    store.recognise()?;
    let path = store.path_of(&plan.key);
    if !agreed(args, ui, &format!("install the plan as {}?", path.shown()))? {
        ui.note("nothing was installed");
        return Ok(());
    }
    let locked = store.lock()?;
    locked.save(plan)?;
    plans::call(&locked, &plan.key, &args.argv);
    drop(locked);
    ui.note(format!("installed the plan {}", path.shown()));
    ui.note(format!("to undo that: cold prefetch remove {}", plans::name(&path)));
    let by_its_name = launcher(args, &place, ui)?;
    if !args.json {
        let through: &[OsString] =
            if by_its_name { &[] } else { &["cold".into(), "launch".into(), "--".into()] };
        show::next(ui, &line_of(&[through, &args.argv].concat()));
    }
    Ok(())
}

/// Writes the launcher; whether the program's name alone starts it through one now.
fn launcher(args: &Args, place: &StorePlace, ui: &Ui) -> Result<bool, Failure> {
    let Some(name) = args.argv.first() else { return Ok(false) };
    let (path, ready) = match by_name(name, place) {
        Ok(ByName::New(path, ready)) => (path, ready),
        Ok(ByName::Already(path)) => {
            ui.note(format!("{} is a launcher already: {}", name.shown(), path.shown()));
            ui.note(format!("to undo that: {}", ByName::undo(&path)));
            return Ok(true);
        }
        Err(why) => {
            ui.note(format!("no launcher can be installed: {}", one_line(&why.error)));
            if let Some(hint) = why.hint {
                ui.note(format!("  try: {hint}"));
            }
            return Ok(false);
        }
    };
    let asked = format!("install a launcher as {}, so that {} alone follows it?", path.shown(), name.shown());
    if !agreed(args, ui, &asked)? {
        ui.note("no launcher was installed");
        return Ok(false);
    }
    ready.write(|path| {
        ui.note(format!("installed the launcher {}", path.shown()));
        ui.note(format!("to undo that: {}", ByName::undo(path)));
    })?;
    Ok(true)
}

/// Asks, unless the answer was given.
fn agreed(args: &Args, ui: &Ui, question: &str) -> Result<bool, Failure> {
    if args.yes {
        return Ok(true);
    }
    ui.ask(format!("{question} [y/N]"));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
