//! `cold spawn --watch`: the processes of one run of a command, from a recording of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cold_bench::command::from_argv;
use cold_bench::config::{CommandSpec, Config, Eviction, RunPolicy, Stream};
use cold_bench::ready::Ready;
use cold_bench::session::single;
use cold_journal::Journal;
use cold_model::bench::Ending;
use cold_model::recording::Manifest;
use cold_model::recording::manifest::{FORMAT, StackMethod, VERSION};
use cold_report::axis::time;
use cold_spawn::report;
use cold_spawn::session::{self, Baseline};
use cold_spawn::tree::{self, Tree};
use cold_sys::page::page_size;
use cold_sys::spawn::Method;
use cold_trace::record::RecordOptions;
use serde::Serialize;

use super::Args;
use super::build::Scratch;
use super::observer::refused;
use crate::commands::bench::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::recorder::{Directory, Watch};
use crate::table::{Table, width};
use crate::ui::{FAINT, STRONG, Ui, WARN, paint};
use crate::unwind::Tables;
use crate::words::{count, percent, plural};

/// Programs that are printed; all are in the JSON.
const PROGRAMS: usize = 20;
/// A build may take long.
const TIMEOUT: Duration = Duration::from_hours(24);

/// The document of `--watch --json`.
#[derive(Debug, Serialize)]
struct Watched {
    schema: &'static str,
    version: &'static str,
    command: Vec<String>,
    /// Wall time from the start to the end of the tree.
    wall_ns: u64,
    /// CPU time of the tree.
    cpu_ns: u64,
    /// Median cost of creating, executing and waiting for an empty program here, measured afterwards.
    empty_static_ns: Option<f64>,
    empty_dynamic_ns: Option<f64>,
    /// Processes times the cost of an empty program with the C library.
    creation_estimate_ns: Option<f64>,
    exit_code: Option<i32>,
    tree: Tree,
}

/// Runs the command once.
pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    if let Some(why) = refused() {
        return Err(Failure::from(anyhow::anyhow!("cannot watch a tree: {why}")).hint("run it as root"));
    }
    let config = config(args)?;
    let journal = Journal::open()?;
    let place = Scratch::new(args, &journal)?;
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    let manifest = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        page_bytes: u32::try_from(page_size()).unwrap_or(4096),
        ..Manifest::default()
    };
    let options = RecordOptions { stacks: Some(StackMethod::None), ..RecordOptions::default() };
    let mut watch = Watch::new(Directory::make(place.recording().to_owned())?, options, manifest);
    let single = single::run(&config, false, &mut watch, &mut line, &interrupt).map_err(failure)?;
    line.step("reading the recording");
    let recording = cold_trace::assemble_dir(place.recording(), &mut Tables::default())?;
    let empty = empty(args, &place, &interrupt)?;
    line.clear();
    let tree = tree::of(&recording);
    let watched = Watched {
        schema: "coldstart.spawn-tree/1",
        version: env!("CARGO_PKG_VERSION"),
        command: args.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        wall_ns: single.run.ready.0,
        cpu_ns: (single.run.user + single.run.system).0,
        empty_static_ns: empty.0,
        empty_dynamic_ns: empty.1,
        creation_estimate_ns: empty.1.or(empty.0).map(|ns| ns * tree.processes as f64),
        exit_code: match single.run.ending {
            Ending::Code(c) => Some(c),
            _ => None,
        },
        tree,
    };
    if args.json {
        ui.json_line(&watched);
    } else {
        show(ui, &watched, &recording.manifest);
    }
    if interrupt.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    if watched.exit_code != Some(0) {
        ui.warn(format!("the command failed ({:?})", single.run.ending));
        return Ok(Exit::Failed);
    }
    Ok(Exit::Done)
}

fn config(args: &Args) -> Result<Config, Failure> {
    let (program, argv) = from_argv(args.argv.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    Ok(Config {
        commands: vec![CommandSpec::new(program, argv)],
        states: Vec::new(),
        runs: RunPolicy { min_runs: 1, max_runs: 1, max_time: None, precision: None },
        warmup: 0,
        ready: Ready::parse("exit").map_err(|e| Failure::usage(e.to_string()))?,
        first_request: None,
        eviction: Eviction::Auto,
        require_cold: false,
        seed: 0,
        timeout: TIMEOUT,
        grace: Duration::from_secs(5),
        idle_gap: Duration::ZERO,
        disk_limit: None,
        ignore_failure: true,
        input: Stream::Null,
        output: Stream::Null,
    })
}

/// Medians of the empty programs, static and with the C library.
fn empty(
    args: &Args,
    place: &Scratch,
    interrupt: &std::sync::atomic::AtomicBool,
) -> Result<(Option<f64>, Option<f64>), Failure> {
    let scratch = place.directory("empty")?;
    let config = session::Config { scratch, ..super::build::plain(args, Method::PosixSpawn) };
    let measured = session::baselines(&config, interrupt).map_err(super::failure)?;
    let all = report::baselines(&measured);
    let of = |kind: Baseline| all.iter().find(|b| b.baseline == kind).map(|b| b.times.p50);
    Ok((of(Baseline::EmptyStatic), of(Baseline::EmptyDynamic)))
}

fn show(ui: &Ui, w: &Watched, m: &Manifest) {
    let t = &w.tree;
    ui.line(paint(STRONG, w.command.join(" ")));
    ui.line(format!(
        "  {} processes, {} executed, {} never executed anything; {} of wall time, {} of CPU time",
        count(t.processes),
        plural(t.execs, "program"),
        count(t.without_exec),
        time(w.wall_ns as f64),
        time(w.cpu_ns as f64)
    ));
    ui.line(format!(
        "  measured: {} from fork to exec together, {} of the wall time",
        time(t.fork_to_exec_ns as f64),
        percent(t.fork_to_exec_ns, w.wall_ns)
    ));
    if let (Some(total), Some(each)) = (w.creation_estimate_ns, w.empty_dynamic_ns.or(w.empty_static_ns)) {
        let of = |whole: u64| percent(total as u64, whole);
        ui.line(format!(
            "  estimated: creating, loading and ending them takes {} (each as long as an empty program here, {}): {} of the wall time, {} of the CPU time",
            time(total),
            time(each),
            of(w.wall_ns),
            of(w.cpu_ns)
        ));
    }
    ui.line("");
    let mut table = Table::new(&["COUNT", "TOTAL", "MEAN", "PROGRAM"]);
    for p in t.programs.iter().take(PROGRAMS) {
        table.row(
            vec![count(p.count), time(p.total_ns as f64), time(p.mean_ns()), p.name.clone()],
            Vec::new(),
        );
    }
    table.lines(width()).into_iter().for_each(|l| ui.line(l));
    if t.programs.len() > PROGRAMS {
        ui.line(paint(FAINT, format!("and {} more (--json)", t.programs.len() - PROGRAMS)));
    }
    ui.line("");
    ui.line(format!("deepest chain: {}", t.deepest.join(" → ")));
    let rate = t.most_per_second();
    ui.line(format!("processes over time: {} (at most {rate:.0}/s)", sparkline(&t.per_bucket, ui.unicode())));
    let lost = m.lost_events();
    if lost > 0 {
        ui.line(format!(
            "{} {} were lost: counts are too low",
            paint(WARN, "warning:"),
            plural(lost, "event")
        ));
    }
}

fn sparkline(values: &[u64], unicode: bool) -> String {
    let glyphs: &[char] = if unicode {
        &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &[' ', '.', ':', '+', '#']
    };
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let last = glyphs.len() as u64 - 1;
    let glyph = |v: &u64| glyphs.get((v * last).div_ceil(most) as usize).copied().unwrap_or(' ');
    values.iter().map(glyph).collect()
}
