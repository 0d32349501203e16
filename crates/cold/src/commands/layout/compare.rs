//! `cold layout compare`: starts of a program as it was and as it is linked now, in turns.

mod show;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cold_bench::config::{CommandSpec, RunPolicy};
use cold_bench::gate::{self, Gate, GateResult, Outcome as GateOutcome};
use cold_bench::{export, session, summary};
use cold_layout::functions::Functions;
use cold_model::bench::{Report, State};
use cold_model::order::Text;
use cold_model::{FileId, Shown as _};
use serde_json::json;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::commands::bench;
use crate::commands::prefetch::plans::StorePlace;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::start::Start;
use crate::ui::Ui;

/// Names of the commands of a comparison in their order; what is relative refers to the first.
pub(super) const NAMES: [&str; 3] = ["old", "new", "again"];
/// Counted runs of each command in each state.
const RUNS: u32 = 10;
/// What `--steady` must not exceed. An order takes functions away from where a linker placed them by their calls.
const STEADY: &str = "new: warm.median > 1.01x";

/// Flags of `cold layout compare`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(mut_arg("evict", with_program))]
#[command(before_help = "Examples:
  cold layout compare rg.old target/release/rg -- foo t.txt
  cold layout compare rg.old rg --scenario 'search=foo t.txt' --scenario 'help=--help'
  cold layout compare rg.old rg --steady '{} -c e /usr/share/dict' -- foo t.txt
  cold layout compare rg.old rg --fail-if 'cold.code > 0.9x' -- foo t.txt          in CI
  cold layout compare rg.old rg --states cold,prefetched -- foo t.txt   by the plan of each, too
  cold layout compare rg.old rg --evict program -- foo t.txt            cold but for the libraries
")]
pub(crate) struct Args {
    /// The program as it was
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The program linked anew
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// A start to compare: a name and the program's arguments, split as a shell does. May be repeated; without it,
    /// the arguments after `--`
    #[arg(long, value_name = "NAME=ARGUMENTS", conflicts_with = "argv")]
    scenario: Vec<String>,

    /// Runs of each program in each state; disturbed ones do not count and are replaced
    #[arg(short, long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Long work that must not get slower: a command line with {} for the program. Fails if it takes more than 1%
    /// longer, warm
    #[arg(long, value_name = "COMMAND")]
    steady: Option<String>,

    /// Exit with 3 if this is true, as in `cold bench`; without a name it is about NEW, and `x` is relative to OLD:
    /// `cold.code > 0.9x`, `cold.major_faults > 20`, `warm.median > 1.02x`. Several: if any is true
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,

    /// Seed of the random order and of the statistics
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// States of the cache to compare: cold, warm, prefetched (cold, but each program started by its own plan, learnt
    /// before with `cold prefetch learn`)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "cold,warm",
        help_heading = "State"
    )]
    states: Vec<String>,

    #[command(flatten, next_help_heading = "State")]
    place: StorePlace,

    #[command(flatten)]
    start: Start,

    /// Print the reports as one JSON document
    #[arg(long)]
    json: bool,

    /// Arguments of the program
    #[arg(last = true, value_name = "ARGUMENT")]
    argv: Vec<OsString>,
}

/// `--evict` as elsewhere, and of a program alone: that is what an order changes.
fn with_program(evict: clap::Arg) -> clap::Arg {
    evict.value_parser(["auto", "all", "files", "program"]).help(
        "What to evict before a cold start: all (caches of the whole machine; root), files (only those that the \
         programs use), auto (all where that is allowed, else files), or program (OLD and NEW themselves: libraries stay \
         as they are, as where other programs use them)",
    )
}

/// A start that is compared.
struct Scenario {
    name: String,
    arguments: Vec<OsString>,
}

/// What was measured of one.
pub(super) struct Compared {
    /// Its name; `None`: the only one, without a name.
    pub(super) name: Option<String>,
    /// Runs of the three commands.
    pub(super) report: Report,
    /// What the gates say.
    pub(super) gates: Vec<GateResult>,
}

/// A program of the comparison.
struct Program {
    path: PathBuf,
    code: Vec<Text>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let [old, new] = programs(args, ui)?;
    let scenarios = scenarios(args)?;
    let states = states(&args.states)?;
    let gates = gates(&args.fail_if, &states)?;
    let steady = args.steady.as_deref().map(steady).transpose()?;
    let interrupt = interrupt()?;
    let mut all = Vec::new();
    for scenario in &scenarios {
        let argv = |program: &Program| {
            let mut argv = vec![program.path.clone().into_os_string()];
            argv.extend(scenario.arguments.iter().cloned());
            argv
        };
        let commands = [&old, &new, &old].map(|program| (program, argv(program)));
        let name = (!args.scenario.is_empty()).then(|| scenario.name.clone());
        all.push(measured(args, ui, name, commands, states.clone(), &gates, &interrupt)?);
    }
    if let Some(words) = steady {
        let argv = |program: &Program| replaced(&words, &program.path);
        let commands = [&old, &new, &old].map(|program| (program, argv(program)));
        let gates = self::gates(&[STEADY.to_owned()], &[State::Warm])?;
        let name = Some("steady".to_owned());
        all.push(measured(args, ui, name, commands, vec![State::Warm], &gates, &interrupt)?);
    }
    if args.json {
        ui.json(&document(&all)?);
    } else {
        for compared in &all {
            show::compared(ui, compared);
        }
    }
    Ok(exit(&all, interrupt.load(Ordering::Relaxed)))
}

fn exit(all: &[Compared], interrupted: bool) -> Exit {
    let results: Vec<GateResult> = all.iter().flat_map(|c| c.gates.clone()).collect();
    match gate::overall(&results) {
        _ if interrupted => Exit::Interrupted,
        GateOutcome::Fail => Exit::GateFailed,
        GateOutcome::Inconclusive { .. } => Exit::Inconclusive,
        GateOutcome::Pass if all.iter().any(|c| c.report.stopped.is_some()) => Exit::Inconclusive,
        GateOutcome::Pass => Exit::Done,
    }
}

fn measured(
    args: &Args,
    ui: &Ui,
    name: Option<String>,
    commands: [(&Program, Vec<OsString>); 3],
    states: Vec<State>,
    gates: &[Gate],
    interrupt: &AtomicBool,
) -> Result<Compared, Failure> {
    let spec = |(name, (program, argv)): (&str, (&Program, Vec<OsString>))| {
        let (file, argv) = cold_bench::command::from_argv(argv).map_err(|e| Failure::usage(e.to_string()))?;
        let code = if file == program.path { program.code.clone() } else { Vec::new() };
        Ok(CommandSpec { name: name.to_owned(), code, ..CommandSpec::new(file, argv) })
    };
    let specs = NAMES.into_iter().zip(commands).map(spec).collect::<Result<Vec<_>, Failure>>()?;
    let runs = RunPolicy { min_runs: args.runs, max_runs: args.runs, max_time: None, precision: None };
    let mut config = args.start.config(specs, states, runs)?;
    config.seed = args.seed;
    let _trials = bench::build::followed(&args.place, None, &args.start, &mut config, ui)?; // until the end
    let mut progress = bench::progress::Shown::new(ui, &config);
    let report = session::run(&config, &mut progress, interrupt).map_err(bench::failure)?;
    progress.clear();
    let gates = gates.iter().flat_map(|g| g.evaluate(&report, None)).collect();
    Ok(Compared { name, report, gates })
}

fn programs(args: &Args, ui: &Ui) -> Result<[Program; 2], Failure> {
    let read = |path: &Path| {
        let (file, meta) = cold_sys::open::regular(path, true)?;
        let id = FileId::of(&meta);
        let absolute = std::path::absolute(path)?;
        let read = cold_symbols::functions(file, meta, path, &cold_symbols::Options::default())?;
        Ok::<_, Failure>((Program { path: absolute, code: code(&read) }, id))
    };
    let ((old, old_id), (new, new_id)) = (read(&args.old)?, read(&args.new)?);
    if old_id == new_id {
        return Err(Failure::usage(format!("{} and {} are one file", args.old.shown(), args.new.shown()))
            .hint("keep the program as it was: cold layout link --keep-old FILE"));
    }
    if old_id.dev != new_id.dev {
        ui.warn("OLD and NEW lie on different file systems: their disks may differ, too");
    }
    Ok([old, new])
}

/// Where its sections of code lie in the file. Not its executable segments: of those some linkers make one with
/// everything that is only read.
fn code(read: &Functions) -> Vec<Text> {
    let in_file = |range: &Range<u64>| {
        let end = |t: &Text| t.address.saturating_add(t.bytes);
        let text = read.texts.iter().find(|t| t.address <= range.start && range.end <= end(t))?;
        let offset = text.offset.saturating_add(range.start.saturating_sub(text.address));
        Some(Text { offset, bytes: range.end.saturating_sub(range.start), address: range.start })
    };
    read.code.iter().filter_map(in_file).collect()
}

/// Those of `cold bench` that a layout has to do with.
fn states(texts: &[String]) -> Result<Vec<State>, Failure> {
    let states = bench::build::states(texts)?;
    let other = states.iter().find(|s| !show::STATES.iter().any(|(state, _)| state == *s));
    match other {
        Some(other) => Err(Failure::usage(format!("--states {other}: use cold, prefetched, warm"))),
        None => Ok(states),
    }
}

fn scenarios(args: &Args) -> Result<Vec<Scenario>, Failure> {
    if args.scenario.is_empty() {
        return Ok(vec![Scenario { name: "start".to_owned(), arguments: args.argv.clone() }]);
    }
    let one = |text: &String| {
        let (name, line) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::usage(format!("--scenario {}: expected NAME=ARGUMENTS", text.shown())))?;
        Ok(Scenario { name: name.to_owned(), arguments: words("--scenario", line)? })
    };
    args.scenario.iter().map(one).collect()
}

fn words(flag: &str, line: &str) -> Result<Vec<OsString>, Failure> {
    let words = shlex::split(line)
        .ok_or_else(|| Failure::usage(format!("{flag} {}: a quote is not closed", line.shown())))?;
    Ok(words.into_iter().map(Into::into).collect())
}

/// The words of `--steady`, which must have a place for the program.
fn steady(line: &str) -> Result<Vec<String>, Failure> {
    let words = words("--steady", line)?.into_iter().filter_map(|w| w.into_string().ok()).collect::<Vec<_>>();
    if words.iter().any(|w| w.contains("{}")) {
        return Ok(words);
    }
    Err(Failure::usage("--steady: the command needs {} in place of the program"))
}

fn replaced(words: &[String], program: &Path) -> Vec<OsString> {
    let one = |word: &String| {
        let mut parts = word.split("{}");
        let mut out = OsString::from(parts.next().unwrap_or_default());
        for part in parts {
            out.push(program);
            out.push(part);
        }
        out
    };
    words.iter().map(one).collect()
}

fn gates(texts: &[String], states: &[State]) -> Result<Vec<Gate>, Failure> {
    let names = NAMES.map(str::to_owned);
    let one = |text: &String| {
        let gate = Gate::parse(text).map_err(|e| Failure::usage(e.to_string()))?.about("new");
        gate.check(&names, states, false).map_err(|e| Failure::usage(e.to_string()))?;
        Ok(gate)
    };
    texts.iter().map(one).collect()
}

fn document(all: &[Compared]) -> Result<serde_json::Value, Failure> {
    let one = |c: &Compared| {
        let mut out = Vec::new();
        export::json(&c.report, &summary::analyze(&c.report, 0.0), &c.gates, &mut out)?;
        let report: serde_json::Value = serde_json::from_slice(&out)?;
        Ok(json!({ "scenario": c.name, "report": report }))
    };
    let scenarios = all.iter().map(one).collect::<Result<Vec<_>, Failure>>()?;
    Ok(json!({ "schema": "coldstart.layout-compare/1", "scenarios": scenarios }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stands_where_its_place_is() {
        let words = steady("sh -c '{} -c x; {} -v' {}").expect("has places");
        assert_eq!(
            replaced(&words, Path::new("/a b")),
            ["sh", "-c", "/a b -c x; /a b -v", "/a b"].map(OsString::from)
        );
        assert!(steady("rg x").is_err() && steady("'{}").is_err());
    }

    #[test]
    fn gates_are_about_the_new_program_and_must_have_an_answer() {
        let states = [State::Cold, State::Warm];
        assert!(gates(&["cold.code > 0.9x".into(), "again: warm.median > 1.1x".into()], &states).is_ok());
        assert!(gates(&["old: cold.median > 1.1x".into()], &states).is_err());
        assert!(gates(&["light.median > 1.1x".into()], &states).is_err());
        assert!(gates(&[STEADY.into()], &[State::Warm]).is_ok());
        assert!(super::states(&["prefetched".into(), "cold".into()]).is_ok());
        assert!(
            super::states(&["light".into()]).is_err()
                && super::states(&["cold".into(), "cold".into()]).is_err()
        );
    }
}
