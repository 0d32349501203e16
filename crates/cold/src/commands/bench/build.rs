//! From flags to a [`Config`]: everything that can be wrong with the command line is found here,
//! before anything is done.

use std::time::Duration;

use cold_bench::command::{Shell, from_argv, from_line, line_of};
use cold_bench::config::{CommandSpec, Config, RunPolicy};
use cold_bench::params::{Expanded, Parameters, Scan, substitute};
use cold_model::bench::State;
use cold_plan::plan::Standing;

use super::Args;
use crate::commands::prefetch::plans::{self, StorePlace};
use crate::commands::prefetch::trial::Trial;
use crate::exit::{Exit, Failure};
use crate::start::Start;
use crate::ui::Ui;
use crate::values::{percent, seconds};

/// Counted runs without any wish.
const RUNS: u32 = 10;
/// Most counted runs with --precision.
const MOST_RUNS: u32 = 200;

type Result<T> = std::result::Result<T, Failure>;

/// The whole configuration.
pub(super) fn config(args: &Args) -> Result<Config> {
    Ok(Config {
        warmup: args.warmup,
        seed: args.seed.unwrap_or_else(crate::values::clock_seed),
        idle_gap: Duration::from_millis(args.idle_gap),
        disk_limit: args.disk_limit.as_deref().map(crate::values::disk_limit).transpose()?,
        ..args.start.config(commands(args)?, states(&args.states)?, runs(args)?)?
    })
}

/// Tells each command's prefetched starts which plan to follow. The plans are copies, so that the history of
/// daily use does not hear of it; they go with the returned values.
pub(super) fn launchers(args: &Args, config: &mut Config, ui: &Ui) -> Result<Vec<Trial>> {
    followed(&args.place, args.scenario.as_deref(), &args.start, config, ui)
}

/// The same for commands of another command's flags.
pub(in crate::commands) fn followed(
    place: &StorePlace,
    scenario: Option<&str>,
    start: &Start,
    config: &mut Config,
    ui: &Ui,
) -> Result<Vec<Trial>> {
    if !config.states.contains(&State::Prefetched) {
        return Ok(Vec::new());
    }
    let store = place.store()?;
    let flags = [place.words()?, start.words()].concat();
    let mut trials = Vec::new();
    for command in &mut config.commands {
        let found = plans::of_command(&store, &command.argv, scenario, &flags);
        let plan = found.map_err(|f| Failure { exit: Exit::StateNotReached, ..f })?.plan;
        if let Standing::Off(why) = &plan.standing {
            let name = plans::name(&store.path_of(&plan.key));
            ui.warn(format!(
                "the plan {name} is switched off ({why}); measured starts follow it all the same"
            ));
        }
        let trial = Trial::of(&store, &command.argv)?;
        trial.put(&plan)?;
        command.launcher = Some(trial.launcher(&plan, scenario)?);
        trials.push(trial);
    }
    Ok(trials)
}

fn commands(args: &Args) -> Result<Vec<CommandSpec>> {
    let shell = match args.shell.as_str() {
        _ if args.no_shell => Shell::None,
        "none" => Shell::None,
        "default" => Shell::Program("/bin/sh".into()),
        other => Shell::Program(other.into()),
    };
    let lines = if args.argv.is_empty() { args.lines.clone() } else { vec![line_of(&args.argv)] };
    if lines.is_empty() {
        return Err(Failure::usage("no command is given").hint("cold bench -- firefox-esr --headless …"));
    }
    let expanded =
        parameters(args)?.expand(&lines, &args.command_name).map_err(|e| Failure::usage(e.to_string()))?;
    let hook = |given: &[String], name: &str, e: &Expanded| -> Result<Option<String>> {
        let line = match given.len() {
            0 | 1 => given.first(),
            n if n == lines.len() => given.get(e.source),
            n => {
                return Err(Failure::usage(format!(
                    "--{name} is given {n} times for {} commands: give it once, or once per command",
                    lines.len()
                )));
            }
        };
        Ok(line.map(|l| substitute(l, &e.parameters)))
    };
    expanded
        .iter()
        .map(|e| {
            // Arguments after `--` are used as they are, unless parameters change them.
            let (program, argv) = if args.argv.is_empty() || !e.parameters.is_empty() {
                from_line(&e.line, &shell)
            } else if shell == Shell::None {
                from_argv(args.argv.clone())
            } else {
                from_line(&e.line, &shell)
            }
            .map_err(|error| Failure::usage(error.to_string()))?;
            let once = |line: &Option<String>| line.as_ref().map(|l| substitute(l, &e.parameters));
            Ok(CommandSpec {
                name: e.name.clone(),
                line: e.line.clone(),
                program,
                argv,
                parameters: e.parameters.clone(),
                prepare: hook(&args.prepare, "prepare", e)?,
                conclude: hook(&args.conclude, "conclude", e)?,
                setup: once(&args.setup),
                cleanup: once(&args.cleanup),
                code: Vec::new(),
                launcher: None,
            })
        })
        .collect()
}

fn parameters(args: &Args) -> Result<Parameters> {
    let lists: Vec<(String, String)> =
        args.parameter_list.chunks_exact(2).map(|p| (p[0].clone(), p[1].clone())).collect();
    let scan = match args.parameter_scan.as_slice() {
        [] => None,
        [name, min, max] => Some(Scan { name, min, max }),
        _ => return Err(Failure::usage("--parameter-scan can be given once only")),
    };
    Parameters::new(&lists, scan, args.parameter_step_size.as_deref())
        .map_err(|e| Failure::usage(e.to_string()))
}

/// The states that `--states` names.
pub(in crate::commands) fn states(texts: &[String]) -> Result<Vec<State>> {
    let mut states = Vec::new();
    for text in texts {
        let state = match text.as_str() {
            "cold" => State::Cold,
            "prefetched" => State::Prefetched,
            "light" => State::Light,
            "warm" => State::Warm,
            other => match other.strip_prefix("snapshot=") {
                Some(file) if !file.is_empty() => State::Snapshot(file.into()),
                _ => {
                    return Err(Failure::usage(format!(
                        "unknown state {other:?} in --states: use cold, prefetched, light, warm, snapshot=FILE"
                    )));
                }
            },
        };
        if states.contains(&state) {
            return Err(Failure::usage(format!("the state {state} is given twice in --states")));
        }
        states.push(state);
    }
    Ok(states)
}

fn runs(args: &Args) -> Result<RunPolicy> {
    let precision = args.precision.as_deref().map(|p| percent("--precision", p)).transpose()?;
    if precision == Some(0.0) {
        return Err(Failure::usage("--precision must be above 0%"));
    }
    let min_runs = args.runs.or(args.min_runs).unwrap_or(RUNS);
    let default_max = if precision.is_some() { MOST_RUNS.max(min_runs) } else { min_runs };
    let max_runs = args.runs.or(args.max_runs).unwrap_or(default_max);
    if min_runs == 0 || max_runs < min_runs {
        return Err(Failure::usage(format!(
            "between {min_runs} and {max_runs} runs is impossible: at least 1, and --max-runs not below --min-runs"
        )));
    }
    let max_time = args.max_time.map(|s| seconds("--max-time", s)).transpose()?;
    Ok(RunPolicy { min_runs, max_runs, max_time, precision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_states() {
        assert!((percent("--margin", "2.5%").expect("parses") - 0.025).abs() < 1e-12);
        assert!(percent("--margin", "-1%").is_err());
        assert!(states(&["cold".into(), "cold".into()]).is_err());
        assert!(states(&["snapshot=".into()]).is_err());
    }
}
