//! `cold probe`: experiments on ways of access, memory and devices.

mod args;
mod grid;
mod lab;
mod pictures;
mod show;

use cold_probe::experiments::{
    compete, device, exec, large_pages, pauses, prefetch, pressure, records, table, timeline,
};
use cold_probe::{Error, script};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure, Outcome};
use crate::ui::Ui;
use args::Experiment;
use lab::Bench;

pub(crate) use args::Args;

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let common = args.experiment.common().clone();
    let mut bench = Bench::new(&common, needs_log(&args.experiment), limits_memory(&args.experiment), ui)?;
    let done = experiment(&args.experiment, &mut bench, ui);
    bench.clear();
    match done {
        Ok(()) => Ok(Exit::Done),
        Err(Error::Interrupted) => {
            Err(Failure { exit: Exit::Interrupted, error: anyhow::anyhow!("interrupted"), hint: None })
        }
        Err(e) => Err(explain(e)),
    }
}

/// Adds the next step where there is one.
fn explain(e: Error) -> Failure {
    match e {
        Error::NoLimit { .. } => {
            Failure::from(e).hint("sudo cold probe …; the other experiments need no root")
        }
        Error::NotCold { .. } | Error::NotWarm { .. } => {
            let failure = Failure::from(e).hint("once more; something else uses or reclaims these pages");
            Failure { exit: Exit::StateNotReached, ..failure }
        }
        Error::Script(_) => Failure { exit: Exit::Usage, ..Failure::from(e) },
        Error::Subject { .. } => Failure::from(e).hint("another directory with --dir, or less with --bytes"),
        e => Failure::from(e),
    }
}

/// Experiments that are about time keep counters in any case.
fn needs_log(experiment: &Experiment) -> bool {
    matches!(experiment, Experiment::Ramp(_) | Experiment::Small(_))
}

fn limits_memory(experiment: &Experiment) -> bool {
    matches!(experiment, Experiment::Compete(_) | Experiment::Pressure(_))
}

fn experiment(experiment: &Experiment, bench: &mut Bench<'_>, ui: &Ui) -> Result<(), Error> {
    match experiment {
        Experiment::Table(a) => {
            let o = a.options();
            let found = table::run(bench.lab(), &o)?;
            let panels = pictures::table(&found.rows);
            let document = json!({
                "options": o,
                "rows": found.rows,
                "published": table::PUBLISHED,
                "answers": found.answers,
                "rounds": found.rounds,
                "shown": found.shown,
                "interrupted": found.interrupted,
            });
            bench.finish("table", &document, panels, ui, |ui| show::table(ui, &o, &found))?;
            if found.interrupted { Err(Error::Interrupted) } else { Ok(()) }
        }
        Experiment::Ramp(a) => over_time("ramp", a, &a.options(timeline::TimelineOptions::ramp()), bench, ui),
        Experiment::Small(a) => {
            over_time("small", a, &a.options(timeline::TimelineOptions::small()), bench, ui)
        }
        Experiment::Records(a) => {
            let o = a.options();
            let rows = records::run(bench.lab(), &o)?;
            let fit = records::fit(&rows, "direct", "uniform");
            let panels = pictures::records(&rows);
            let document = json!({ "options": o, "rows": rows, "fit": fit });
            bench.finish("records", &document, panels, ui, |ui| show::records(ui, &rows, fit))
        }
        Experiment::Compete(a) => competing(a, bench, ui),
        Experiment::Exec(a) => {
            let found = exec::run(bench.lab(), a.bytes.unwrap_or(16 << 20))?;
            let document = json!({ "found": found });
            let panels = pictures::exec(&found);
            bench.finish("exec", &document, panels, ui, |ui| show::exec(ui, &found))
        }
        Experiment::LargePages(a) => {
            let o = a.options();
            let found = large_pages::run(bench.lab(), &o)?;
            let panels = pictures::large_pages(&found);
            let document = json!({ "options": o, "margin": large_pages::MARGIN, "found": found });
            bench.finish("large-pages", &document, panels, ui, |ui| show::large_pages(ui, &o, &found))?;
            if found.interrupted { Err(Error::Interrupted) } else { Ok(()) }
        }
        Experiment::Prefetch(a) => {
            let found = prefetch::run(bench.lab(), a.most())?;
            let panels = pictures::prefetch(&found);
            let document = json!({ "found": found });
            bench.finish("prefetch", &document, panels, ui, |ui| show::prefetch(ui, &found))
        }
        Experiment::Device(a) => {
            let found = device::run(bench.lab(), a.bytes.unwrap_or(64 << 20))?;
            let panels = pictures::device(&found);
            let document = json!({ "found": found });
            bench.finish("device", &document, panels, ui, |ui| show::device(ui, &found))
        }
        Experiment::Pauses(a) => {
            let o = a.options();
            let found = pauses::run(bench.lab(), &o)?;
            let panels = pictures::pauses(&found);
            let document = json!({ "command": o.words(), "options": o, "found": found });
            bench.finish("pauses", &document, panels, ui, |ui| show::pauses(ui, &o, &found))
        }
        Experiment::Pressure(a) => {
            let o = a.options();
            let rows = pressure::run(bench.lab(), &o)?;
            let document = json!({ "options": o, "rows": rows });
            let panels = pictures::pressure(&rows);
            bench.finish("pressure", &document, panels, ui, |ui| show::pressure(ui, &o, &rows))
        }
        Experiment::Script(a) => scripted(a, bench, ui),
    }
}

fn competing(a: &args::CompeteArgs, bench: &mut Bench<'_>, ui: &Ui) -> Result<(), Error> {
    let o = a.options();
    let minutes = o.least().as_secs_f64() / 60.0;
    let begins = || {
        ui.note(format!(
            "{} of {} s each take {minutes:.1} minutes and a little more; Ctrl-C ends them and shows what there is",
            crate::words::plural(o.bouts(), "bout"),
            o.seconds
        ));
    };
    let found = compete::run(bench.lab(), &o, begins)?;
    let panels = pictures::compete(&o, &found);
    let document = json!({ "options": o, "found": found });
    bench.finish("compete", &document, panels, ui, |ui| show::compete(ui, &o, &found))?;
    if found.interrupted { Err(Error::Interrupted) } else { Ok(()) }
}

fn scripted(a: &args::ScriptArgs, bench: &mut Bench<'_>, ui: &Ui) -> Result<(), Error> {
    let loaded = script::load(&a.file)?;
    let o = a.options();
    let lab = bench.lab();
    let (runner, journal, log) = (&lab.runner, &lab.journal, &lab.log);
    let (ran, seconds, repeats) = if a.until_it_repeats {
        let (ran, seconds, repeats) = script::run_until_it_repeats(&loaded, &o, 0.05, runner, journal, log)?;
        (ran, seconds, Some(repeats))
    } else {
        (script::run(&loaded, &o, runner, journal, log)?, o.seconds, None)
    };
    let rows = script::table(&ran);
    let reports: Vec<Value> = ran
        .iter()
        .map(|r| json!({ "process": r.place.0, "thread": r.place.1, "nice": r.nice, "report": r.report }))
        .collect();
    let document = json!({ "seconds": seconds, "repeats": repeats, "threads": reports });
    if let Some(out) = &a.out {
        let text: String = rows.iter().map(|r| r.join("\t") + "\n").collect();
        lab::new_file(out, text.as_bytes())?;
    }
    bench.finish("script", &document, Vec::new(), ui, |ui| show::script(ui, &ran, &rows, (seconds, repeats)))
}

fn over_time(
    name: &'static str,
    a: &args::TimelineArgs,
    o: &timeline::TimelineOptions,
    bench: &mut Bench<'_>,
    ui: &Ui,
) -> Result<(), Error> {
    let all = timeline::run(bench.lab(), name, o)?;
    let interval = bench.lab().log.interval_ms() as f64;
    let points = timeline::points(bench.rows(), name, interval, o.seconds);
    let panels = pictures::timeline(&points);
    let found = timeline::TimelineFindings { all, points };
    let document = json!({ "options": o, "found": found });
    bench.finish(name, &document, panels, ui, |ui| show::timeline(ui, a.common.modern, o, &found))
}
