//! `cold simulate --verify`: which policy this kernel follows.

use cold_journal::Journal;
use cold_model::Shown as _;
use cold_model::figures::{count, plural};
use cold_probe::subject::ProbeTarget;
use cold_probe::verify::{Followed, Ground, Parts, Verified, VerifyEffort, Watch, verify};
use cold_sim::Policy;
use cold_sim::verify::{Difference, What};
use cold_sys::procfs::ProcFs;
use serde_json::{Value, json};

use super::args::{Args, Named};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::table::{Table, width};
use crate::ui::Ui;

/// Sizes of the files, bytes: one that ends within a page, small ones, one of whole pages.
const BYTES: [u64; 5] = [(4 << 20) + 100, 700 << 10, (40 << 10) + 1, 4096, 16 << 20];
/// Operations of a series: long enough that read-ahead grows and is lost again.
const OPERATIONS: u64 = 200;

pub(super) fn run(args: &Args, ui: &Ui) -> Outcome {
    let policies = policies(args)?;
    let journal = Journal::open()?;
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    let what = format!("{} on files in {}", plural(args.operations, "operation"), args.dir.shown());
    line.step(&what);
    let target = ProbeTarget::Directory(args.dir.clone());
    let operations = OPERATIONS.min(args.operations);
    let cases = args.operations.div_ceil(operations);
    let effort = VerifyEffort { cases, operations, seed: args.seed, parts: Parts::ByTurns };
    let mut begins = |case| line.step(&format!("{what}: series {} of {}", count(case + 1), count(cases)));
    let watch = Watch { interrupt: &interrupt, begins: &mut begins };
    let verified =
        Ground::new(&target, &BYTES, &journal).and_then(|ground| verify(&ground, &policies, effort, watch));
    line.clear();
    let verified = verified.map_err(|e| {
        Failure::from(e)
            .hint("name a directory on a local disk with --dir; nothing else may set its read-ahead")
    })?;
    let kernel = ProcFs::default().kernel_release();
    if args.json {
        ui.json(&document(&verified, &kernel));
    } else {
        show(ui, &verified, &kernel);
    }
    Ok(exit(&verified))
}

fn policies(args: &Args) -> Result<Vec<Policy>, Failure> {
    let policy = |named: &Named| match named {
        Named::Policy(policy) => Ok(*policy),
        Named::Exact => {
            Err(Failure::usage("no kernel knows what will be needed: exact is no policy to verify"))
        }
    };
    if args.policy.is_empty() { Ok(Policy::ALL.to_vec()) } else { args.policy.iter().map(policy).collect() }
}

fn exit(v: &Verified) -> Exit {
    if v.interrupted {
        Exit::Interrupted
    } else if v.compared() == 0 {
        Exit::Inconclusive
    } else if v.follows().is_empty() {
        Exit::GateFailed
    } else {
        Exit::Done
    }
}

fn show(ui: &Ui, v: &Verified, kernel: &str) {
    let mut table = Table::new(&["OPERATIONS", "SERIES THAT DIFFER", "BY TIMING", "POLICY"]);
    let rows = v.nearest_first();
    for f in &rows {
        let series = count(f.differences.len() as u64);
        table.row(vec![count(f.operations), series, count(f.timing), f.policy.to_string()], Vec::new());
    }
    table.lines(width()).into_iter().for_each(|line| ui.line(line));
    ui.line("");
    let names = |policies: &[Policy]| policies.iter().map(Policy::to_string).collect::<Vec<_>>().join(", ");
    match v.follows().as_slice() {
        _ if v.compared() == 0 && v.interrupted => ui.line("Nothing was compared."),
        _ if v.compared() == 0 => {
            ui.line("Nothing was compared: others dropped pages during every try. Once more, on a quieter machine.");
        }
        [] => {
            ui.line(format!(
                "{kernel} follows none of these policies. The least different one first differs so:"
            ));
            if let Some(first) = rows.first().and_then(|f| f.differences.first()) {
                ui.line(difference(first));
            }
        }
        [one] => ui.line(format!("{kernel} follows {one}: no page differed.")),
        several => ui.line(format!(
            "{kernel} follows {}: what they differ in did not come up in these operations.",
            names(several)
        )),
    }
    if v.interrupted {
        ui.warn("interrupted: this is what was compared by then");
    }
    if v.void > 0 {
        ui.warn(format!("{} of the series given up: others dropped pages meanwhile", count(v.void)));
    }
}

fn difference(d: &Difference) -> String {
    let of = match d.what {
        What::Cached(file) => format!("cached pages of file {}", file.0),
        What::Mapped(map) => format!("mapped pages of mapping {}", map.0),
    };
    format!(
        "series {}, operation {} ({:?}): {of}: only the kernel {:?}, only the policy {:?}",
        d.case,
        d.at,
        d.op,
        d.only_kernel.runs(),
        d.only_policy.runs()
    )
}

fn document(v: &Verified, kernel: &str) -> Value {
    let row = |f: &Followed| {
        json!({
            "policy": f.policy.to_string(),
            "operations": f.operations,
            "series_that_differ": f.differences.len(),
            "by_timing": f.timing,
            "first_difference": f.differences.first().map(difference),
        })
    };
    json!({
        "format": "coldstart-verification",
        "version": 1,
        "kernel": kernel,
        "policies": v.followed.iter().map(row).collect::<Vec<_>>(),
        "follows": v.follows().iter().map(Policy::to_string).collect::<Vec<_>>(),
        "void_series": v.void,
        "interrupted": v.interrupted,
    })
}
