//! `cold prefetch status`: what daily use says of the plans, and what follows from it.

use std::collections::BTreeMap;

use cold_model::Nanos;
use cold_plan::history::{self, LaunchKind, Record};
use cold_plan::judge::{Daily, Timed};
use cold_plan::plan::Standing;
use cold_plan::store::Listed;
use cold_plan::{Judgement, Plan, Store};
use serde::Serialize;

use super::plans::{self, StorePlace};
use super::show;
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::plural;

const EXAMPLES: &str = "Examples:
  cold prefetch status
  cold prefetch status firefox-esr
  cold prefetch status --apply      write the verdicts into the plans
";

const AFTER: &str = "\
Starts by a plan are compared with control starts, which go without it (--control-every). The
launcher itself switches a plan off that makes starts slower. --apply does the same, and also writes
proven gains. Of the system's plans, those that this user has started are shown; root decides on
them.

A start is timed to its mark: when the program has used as much CPU time as a start takes until it
is ready. If it needs less: when it comes to rest (learnt with --ready), or ends (learnt without).

Exit codes: 0 done; 1 failed; 2 wrong usage.";

/// Flags of `cold prefetch status`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// Only plans whose name begins with this, or plans of this program
    #[arg(value_name = "PLAN")]
    name: Option<String>,

    /// Write the verdicts into the plans: proven, or switched off
    #[arg(long)]
    apply: bool,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Shows, and with --apply decides.
pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let mut documents = Vec::new();
    for mut used in used(&store, place.system().as_ref())? {
        if args.name.as_deref().is_some_and(|n| !plans::is_called(&used.listed, n)) {
            continue;
        }
        let plan = &mut used.listed.plan;
        let judgement = cold_plan::judge(&plan.standing, &plan.learnt, plan.trial.as_ref(), &used.records);
        let decided = judgement.standing(&plan.standing).filter(|_| args.apply && !used.system);
        let mut changed = false;
        if let Some(standing) = decided {
            let decided = Plan { standing, ..plan.clone() };
            changed = store.replace(plan, &decided)?;
            if changed {
                *plan = decided;
            } else {
                ui.warn(format!(
                    "{} was changed meanwhile: it stays as it is",
                    plans::name(&used.listed.path)
                ));
            }
        }
        if args.json {
            documents.push(PlanStatus::of(&used, &judgement, changed));
        } else {
            print(ui, &used, &judgement, changed);
        }
    }
    if args.json {
        ui.json(&StatusDocument { schema: "coldstart.plan-status/1", plans: documents });
    }
    Ok(Exit::Done)
}

/// A plan, and what its starts entered in this user's store.
struct Used {
    listed: Listed,
    records: Vec<Record>,
    /// It is the system's, and this user's only to follow.
    system: bool,
}

/// The plans of the own store; of the system's those that this user has started.
fn used(own: &Store, system: Option<&Store>) -> Result<Vec<Used>, Failure> {
    let mut out = Vec::new();
    for listed in own.list()?.plans {
        let records = history::read(&own.history_of(&listed.plan.key))?;
        out.push(Used { listed, records, system: false });
    }
    let of_system = match system {
        Some(system) => system.list()?.plans,
        None => Vec::new(),
    };
    for listed in of_system {
        let key = &listed.plan.key;
        // An own plan of the same key goes before, and the history is its.
        if own.path_of(key).symlink_metadata().is_ok() {
            continue;
        }
        let records = history::read(&own.history_of(key))?;
        if !records.is_empty() {
            out.push(Used { listed, records, system: true });
        }
    }
    Ok(out)
}

/// Its daily use, as far as the verdict goes by it.
fn daily(Used { listed, records, .. }: &Used) -> Daily {
    Daily::of(&listed.plan.learnt, listed.plan.trial.as_ref(), records)
}

/// ` (median 310 ms to the mark)`; nothing where there was no start.
fn time_words(timed: &Timed) -> String {
    match timed.median_ns.map(Nanos) {
        Some(t) if timed.marked == timed.starts => format!(" (median {t} to the mark)"),
        Some(t) => format!(" (median {t} to the mark, {} came to it)", timed.marked),
        None if timed.starts > 0 => " (none came to the mark)".to_owned(),
        None => String::new(),
    }
}

fn print(ui: &Ui, used: &Used, judgement: &Judgement, changed: bool) {
    let Used { listed, records, system } = used;
    ui.line(format!("{}  {}", paint(STRONG, plans::name(&listed.path)), plans::what(&listed.plan.key)));
    let (style, text) = show::standing(&listed.plan);
    let whose = if *system { ", a plan of the system" } else { "" };
    ui.line(format!("  {}{whose}", paint(style, text)));
    if records.is_empty() {
        ui.line(paint(FAINT, "  no start through the launcher yet"));
        return;
    }
    let Daily { prefetched, controls, skipped, earlier } = daily(used);
    ui.line(format!(
        "  {} with the plan{}, {} without{}",
        plural(prefetched.starts as u64, "start"),
        time_words(&prefetched),
        plural(controls.starts as u64, "control"),
        time_words(&controls),
    ));
    for (why, n) in skipped {
        let why = why.words();
        ui.line(paint(FAINT, format!("  {} without it: {why}", plural(n as u64, "start"))));
    }
    if earlier > 0 {
        let earlier = plural(earlier as u64, "start");
        ui.line(paint(FAINT, format!("  {earlier} before it was last learnt or tuned say nothing about it")));
    }
    let (what, why) = judgement.words();
    let style = match judgement {
        Judgement::Keep { proven: true, .. } => GOOD,
        Judgement::Keep { .. } => FAINT,
        Judgement::Refresh { .. } => WARN,
        Judgement::Disable { .. } => BAD,
    };
    let done = if changed { " (written into the plan)" } else { "" };
    ui.line(format!("  {}{done}", paint(style, format!("{what}: {why}"))));
}

/// All plans as `--json` prints them.
#[derive(Serialize)]
struct StatusDocument {
    schema: &'static str,
    plans: Vec<PlanStatus>,
}

#[derive(Serialize)]
struct PlanStatus {
    name: String,
    system: bool,
    standing: Standing,
    prefetched: usize,
    prefetched_median_ns: Option<u64>,
    controls: usize,
    control_median_ns: Option<u64>,
    skipped: BTreeMap<&'static str, usize>,
    earlier: usize,
    /// Newest first.
    last: Vec<LastStart>,
    verdict: &'static str,
    why: String,
    applied: bool,
}

#[derive(Serialize)]
struct LastStart {
    when_ns: u64,
    what: &'static str,
    ready_ns: Option<u64>,
    bytes: u64,
    requests: u32,
    late: bool,
}

impl LastStart {
    fn of(record: &Record) -> Self {
        Self {
            when_ns: record.when_ns,
            what: match record.kind {
                LaunchKind::Prefetched => "prefetched",
                LaunchKind::Control => "control",
                LaunchKind::Skipped(why) => why.words(),
            },
            ready_ns: record.mark.map(|m| m.wall_ns),
            bytes: record.bytes,
            requests: record.requests,
            late: record.late,
        }
    }
}

impl PlanStatus {
    fn of(used: &Used, judgement: &Judgement, applied: bool) -> Self {
        let Used { listed, records, system } = used;
        let Daily { prefetched, controls, skipped, earlier } = daily(used);
        let (verdict, why) = judgement.words();
        Self {
            name: plans::name(&listed.path),
            system: *system,
            standing: listed.plan.standing.clone(),
            prefetched: prefetched.starts,
            prefetched_median_ns: prefetched.median_ns,
            controls: controls.starts,
            control_median_ns: controls.median_ns,
            skipped: skipped.into_iter().map(|(why, n)| (why.words(), n)).collect(),
            earlier,
            last: records.iter().rev().take(8).map(LastStart::of).collect(),
            verdict,
            why: why.to_owned(),
            applied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_systems_plans_those_are_shown_that_this_user_started() {
        let dir = tempfile::tempdir().expect("a directory");
        let (own, system) = (Store::at(dir.path().join("own")), Store::at(dir.path().join("system")));
        let named = |scenario: &str| {
            let mut plan = cold_plan::sample::sample();
            scenario.clone_into(&mut plan.key.scenario);
            plan
        };
        for (store, scenario) in
            [(&own, "mine"), (&own, "both"), (&system, "both"), (&system, "used"), (&system, "not")]
        {
            store.save(&named(scenario)).expect("saved");
        }
        for scenario in ["both", "used"] {
            let skipped = LaunchKind::Skipped(history::Skip::Warm);
            let record =
                Record { when_ns: 1, plan: 1, kind: skipped, mark: None, bytes: 0, requests: 0, late: false };
            history::append(&own.history_of(&named(scenario).key), &record).expect("appended");
        }
        let shown = |system| {
            let all = used(&own, system).expect("lists");
            let mut all: Vec<_> =
                all.iter().map(|u| (u.listed.plan.key.scenario.clone(), u.records.len(), u.system)).collect();
            all.sort();
            all
        };
        let mine = [("both".to_owned(), 1, false), ("mine".to_owned(), 0, false)];
        assert_eq!(shown(None), mine);
        let used = ("used".to_owned(), 1, true);
        assert_eq!(shown(Some(&system)), [&mine[..], &[used]].concat());
    }
}
