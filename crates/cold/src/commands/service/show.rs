//! `cold service status`: asks the running service, or reads the history.

use cold_model::{Bytes, Known, Nanos};
use cold_plan::plan::Standing;
use cold_service::{Saved, Total};

use super::history::{History, Name};
use super::keep::Kept;
use super::learn::Learning;
use super::place::Place;
use super::socket::{Question, ask};
use super::status::{Charging, Off, ProgramStatus, Running, Status};
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::table::{Table, width};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::{count, plural};

const EXAMPLES: &str = "Examples:
  cold service status
  cold service status --json | jq .saved
";

const AFTER: &str = "\
Time saved is estimated from control starts: cold starts that went without their plans. Its 95%
interval is unknown until a program has enough of them. Without a running service the history tells.

Exit codes: 0 done; 1 failed; 2 wrong usage.";

/// Flags of `cold service status`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    let status = match ask(&place.socket(), &Question::Status)? {
        Some(said) => serde_json::from_value(said).map_err(|e| {
            Failure::from(anyhow::anyhow!("the service answers in another version's words: {e}"))
        })?,
        None => stored(place)?,
    };
    if args.json {
        ui.json(&status);
    } else {
        print(ui, &status);
    }
    Ok(Exit::Done)
}

/// What is known without a service.
fn stored(place: &Place) -> Result<Status, Failure> {
    let rows = match History::read(&place.history()) {
        Ok(Some(history)) => history.rows().map_err(|e| e.to_string()),
        Ok(None) => Ok(Vec::new()),
        Err(problem) => Err(problem.to_string()),
    };
    let off =
        place.plans.store()?.list()?.plans.into_iter().filter_map(|listed| match listed.plan.standing {
            Standing::Off(why) => Some(Off { name: Name::of(&listed.plan.key), why }),
            _ => None,
        });
    Ok(Status::new(None, cold_model::path_text::encode(&place.history()), rows, off.collect()))
}

fn print(ui: &Ui, status: &Status) {
    match &status.service {
        Some(service) => running(ui, service),
        None => ui.line(paint(WARN, "no service runs")),
    }
    if let Some(problem) = &status.history.problem {
        ui.line(paint(BAD, format!("no history: {problem}")));
    }
    total(ui, status.saved.as_ref());
    in_vain(ui, status);
    if !status.programs.is_empty() {
        let mut table =
            Table::new(&["COLD", "WARM", "FOLLOWED", "CONTROLS", "ASKED FOR", "SAVED", "PROGRAM"]);
        for program in &status.programs {
            table.row(cells(program), Vec::new());
        }
        table.lines(width()).iter().for_each(|line| ui.line(line));
    }
    for off in &status.off {
        let Off { name, why } = off;
        ui.line(format!("{} {} ({}): {why}", paint(BAD, "switched off:"), name.program(), name.scenario));
    }
}

/// What was read before a start, and given back.
fn kept(ui: &Ui, kept: &Kept) {
    if kept.all_bytes > 0 {
        ui.line(format!(
            "  read before a start {}, the last time {} of {}; {} in all, {} given back",
            plural(kept.times, "time"),
            Bytes(kept.bytes),
            plural(kept.plans, "plan"),
            Bytes(kept.all_bytes),
            Bytes(kept.given_back),
        ));
    }
    if kept.too_fast > 0 {
        let plans = plural(kept.too_fast, "plan");
        ui.line(format!(
            "  {plans} not read before a start: a warm one would save less than 5%, so fast are the disks"
        ));
    }
}

fn running(ui: &Ui, service: &Running) {
    let state = match (&service.harm, service.paused) {
        (Some(_), _) => paint(BAD, "following no plan"),
        (None, true) => paint(WARN, "paused"),
        (None, false) => paint(GOOD, "running"),
    };
    let since = Nanos(service.seconds.saturating_mul(1_000_000_000));
    let mounts = service.watched.iter().filter(|w| w.problem.is_none()).count() as u64;
    ui.line(format!(
        "{state} for {since} (pid {}), {} on {}",
        service.pid,
        plural(service.plans as u64, "plan"),
        plural(mounts, "file system"),
    ));
    if let Some(why) = &service.harm {
        ui.line(paint(
            BAD,
            format!("  {why}; `cold service forget` and a new start of the service begin anew"),
        ));
    }
    let figure = |known: &Known<u64>, words: &dyn Fn(u64) -> String| match known {
        Known::Value(n) => words(*n),
        Known::Unknown { .. } => "unknown".to_owned(),
    };
    let share = service.own.cpu_share.value().map_or("unknown".to_owned(), |s| format!("{:.3}%", s * 100.0));
    ui.line(format!(
        "  own cost: {} of CPU time ({share} of one CPU), {} of memory, {} of plans; {} read from disks",
        figure(&service.own.cpu_ns, &|ns| Nanos(ns).to_string()),
        figure(&service.own.memory_bytes, &|n| Bytes(n).to_string()),
        Bytes(service.plan_bytes as u64),
        figure(&service.own.read_bytes, &|n| Bytes(n).to_string()),
    ));
    ui.line(format!(
        "  {} heard, {} of programs with plans: {} followed, {} controls, {} by what all scenarios share",
        plural(service.tally.heard, "execution"),
        count(service.tally.planned),
        count(service.tally.followed),
        count(service.tally.controls),
        count(service.tally.common),
    ));
    if let Some(begins) = &service.begins {
        let ms = |ns: f64| Nanos(ns as u64);
        ui.line(format!(
            "  reading began {} after a start was heard of (median; 95%: {}, most: {})",
            ms(begins.median_ns),
            ms(begins.p95_ns),
            Nanos(begins.max_ns),
        ));
    }
    charged(ui, &service.tally.charged);
    kept(ui, &service.tally.kept);
    if let Some(learning) = &service.learning {
        self::learning(ui, learning);
    }
    for (why, n) in &service.tally.skipped {
        ui.line(paint(FAINT, format!("  {} not followed: {why}", plural(*n, "start"))));
    }
    if service.tally.overflows > 0 {
        let times = plural(service.tally.overflows, "time");
        ui.line(paint(WARN, format!("  the kernel's queue was full {times}: some starts were not heard of")));
    }
    for watched in &service.watched {
        if let Some(problem) = &watched.problem {
            ui.line(paint(WARN, format!("  not watched: {problem}")));
        }
    }
    for refused in &service.refused {
        ui.line(paint(WARN, format!("  not followed: {refused}")));
    }
}

fn charged(ui: &Ui, charging: &Charging) {
    if charging.own_starts > 0 {
        ui.line(format!(
            "  {} of {} charged to the programs' own control groups",
            Bytes(charging.own_bytes),
            plural(charging.own_starts, "start"),
        ));
    }
    for (why, n) in &charging.service {
        ui.line(paint(FAINT, format!("  {} charged to the service: {why}", plural(*n, "start"))));
    }
}

/// Programs that wait to be learnt; more are in the JSON.
const WAITING: usize = 5;

fn learning(ui: &Ui, learning: &Learning) {
    if let Some(problem) = &learning.problem {
        ui.line(paint(WARN, format!("  learns nothing by itself: {problem}")));
        return;
    }
    ui.line(format!(
        "  learnt by itself: {}; {} of CPU time for it in the last hour",
        plural(learning.learnt, "plan"),
        Nanos(learning.cpu_ns),
    ));
    for waiting in learning.waiting.iter().take(WAITING) {
        ui.line(paint(FAINT, format!("  to be learnt: {}", waiting.words())));
    }
    if let Some(more) = learning.waiting.len().checked_sub(WAITING).filter(|n| *n > 0) {
        ui.line(paint(FAINT, format!("  and {}", plural(more as u64, "other program"))));
    }
}

fn in_vain(ui: &Ui, status: &Status) {
    let Known::Value(bytes) = status.bytes_in_vain else { return };
    let checked = status.programs.iter().filter(|p| p.check.is_some()).count() as u64;
    ui.line(format!(
        "read in vain: about {} or more of {} that {} asked for, by one recorded start of each",
        Bytes(bytes),
        Bytes(status.bytes_checked),
        plural(checked, "checked plan"),
    ));
}

fn total(ui: &Ui, saved: Option<&Total>) {
    let Some(total) = saved else {
        ui.line("saved: unknown, no program has control starts yet");
        return;
    };
    let (what, style) = match (total.low_ns, total.high_ns) {
        (Some(low), _) if low > 0.0 => ("saved", GOOD),
        (_, Some(high)) if high < 0.0 => ("lost", BAD),
        _ => ("saved", STRONG),
    };
    let ends = match (total.low_ns, total.high_ns) {
        (Some(low), Some(high)) => {
            let programs = plural(total.programs as u64, "program");
            format!("95% interval {} to {}, {programs}", seconds(low), seconds(high))
        }
        _ => "interval unknown: too few control starts".to_owned(),
    };
    let undecided = match total.undecided {
        n if n > 0 && total.programs > 0 => {
            format!("; {} with too few controls left out", plural(n as u64, "program"))
        }
        _ => String::new(),
    };
    ui.line(format!("{} {} ({ends}{undecided})", paint(style, what), paint(STRONG, seconds(total.ns))));
}

/// Nanoseconds, perhaps below 0, in words.
fn seconds(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", Nanos(ns.abs() as u64))
}

fn cells(program: &ProgramStatus) -> Vec<String> {
    let name = program.name.program();
    let saved = match program.saved {
        Some(Saved { ns, low_ns: Some(low), high_ns: Some(high), .. }) => {
            format!("{} ({} to {})", seconds(ns), seconds(low), seconds(high))
        }
        Some(Saved { ns, .. }) => format!("{} (?)", seconds(ns)),
        None => "unknown".to_owned(),
    };
    let scenario = match program.name.scenario.as_str() {
        "~common" => "other arguments".to_owned(),
        "~any" => "any arguments".to_owned(),
        scenario => scenario.to_owned(),
    };
    vec![
        count(program.cold()),
        count(program.sums.warm),
        count(program.sums.followed),
        count(program.sums.controls),
        Bytes(program.sums.bytes).to_string(),
        saved,
        format!("{name} ({scenario})"),
    ]
}
