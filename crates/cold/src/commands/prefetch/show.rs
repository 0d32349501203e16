//! `cold prefetch show`: one plan, for people and for programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::path_text;
use cold_model::{Bytes, Nanos};
use cold_plan::Plan;
use cold_plan::plan::{Bound, FileKind, Gate, Op, Order, Standing, Trial};
use cold_prefetch::ObservedStart;
use serde_json::{Value, json};

use super::plans::{self, Place, Which};
use super::replay;
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::results;
use crate::table::{Table, width};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::{count, percent, plural};

const EXAMPLES: &str = "Examples:
  cold prefetch show firefox-esr                      by name
  cold prefetch show -- python3 -c 'import json'      by command
  cold prefetch show firefox-esr --html plan.html     as a picture: what is read when
";

/// Flags of `cold prefetch show`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// How many files to list, the largest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,

    /// Write a page with the picture and every file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the picture alone: which file's pages are read when
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Shows it.
pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let listed = args.which.find(&store)?;
    let plan = &listed.plan;
    let replayed = replay::kept(&store, plan);
    for (path, text) in
        [(&args.html, cold_report::plan::html(plan)), (&args.svg, cold_report::plan::svg(plan))]
    {
        if let Some(path) = path {
            results::save(path, text)?;
            ui.note(format!("wrote {}", path.shown()));
        }
    }
    if args.json {
        let mut document = document(plan, &listed.path);
        if let (Some(map), Some((at, waste))) = (document.as_object_mut(), replayed) {
            map.insert("replayed".into(), json!({ "at": at, "waste": waste }));
        }
        ui.json(&document);
        return Ok(Exit::Done);
    }
    head(ui, plan, &listed.path);
    details(ui, plan);
    if let Some((at, waste)) = &replayed {
        ui.line(paint(FAINT, format!("  {}", last_replay(*at, waste))));
    }
    ui.line("");
    for line in files(plan, replayed.as_ref().map(|(_, waste)| waste), args.top).lines(width()) {
        ui.line(line);
    }
    Ok(Exit::Done)
}

/// Flags and command as other commands need them: to find the plan, and to make the same start.
pub(super) struct Next {
    pub(super) bench: String,
    pub(super) launch: String,
}

/// What the recordings of a lesson tell beside the plan.
pub(super) struct Beside {
    /// What none could show, and what went wrong.
    pub(super) missing: Vec<String>,
    /// The last start.
    pub(super) last: Option<ObservedStart>,
}

/// Of how many files the last start needed pages, and how many of them can be read ahead.
fn last_start(start: &ObservedStart) -> String {
    let needed = format!("the last start needed pages of {}", plural(start.needed(), "file"));
    if start.left_out.is_empty() {
        return format!("{needed}; all of them can be read ahead");
    }
    let why: Vec<String> =
        start.left_out.iter().map(|(why, n)| format!("{} {}", count(*n), why.words())).collect();
    format!(
        "{needed}; {} of them can be read ahead, the others not: {}",
        count(start.readable()),
        why.join(", ")
    )
}

/// The summary after learning.
pub(super) fn learnt(ui: &Ui, plan: &Plan, path: &Path, told: &Beside, next: &Next, as_json: bool) {
    if as_json {
        let mut document = document(plan, path);
        if let Some(map) = document.as_object_mut() {
            map.insert("missing".into(), json!(told.missing));
            let last = told.last.as_ref();
            let counts = |s: &ObservedStart| {
                let left_out: BTreeMap<_, _> = s.left_out.iter().map(|(why, n)| (why.name(), n)).collect();
                json!({ "files_needed": s.needed(), "files_readable": s.readable(), "left_out": left_out })
            };
            map.insert("last_start".into(), last.map_or(Value::Null, counts));
        }
        ui.json(&document);
        return;
    }
    head(ui, plan, path);
    details(ui, plan);
    let counts = told.last.as_ref().map(last_start);
    for what in counts.iter().chain(&told.missing) {
        ui.line(paint(FAINT, format!("  {what}")));
    }
    let Next { bench, launch } = next;
    ui.line(format!("{} cold bench --states cold,prefetched,warm {bench}", paint(STRONG, "next:")));
    ui.line(format!("{} cold launch {launch}", paint(STRONG, "then:")));
}

/// What the plan is for, what it holds, whether it helps.
fn head(ui: &Ui, plan: &Plan, path: &Path) {
    ui.line(format!("{}  {}", paint(STRONG, plans::name(path)), plans::what(&plan.key)));
    ui.line(format!("  {}", contents(plan)));
    let (style, text) = standing(plan);
    ui.line(format!("  {}", paint(style, text)));
}

/// How much the plan names, each kind by itself.
pub(super) fn named(plan: &Plan) -> String {
    let of = |kind| plan.files.iter().filter(|f| f.kind == kind).count() as u64;
    let names = of(FileKind::Directory) + of(FileKind::Name);
    let devices = match of(FileKind::BlockDevice) {
        0 => String::new(),
        n => format!(" and {}", plural(n, "device")),
    };
    format!("{}, {}{devices}", plural(of(FileKind::Regular), "file"), plural(names, "name"))
}

/// Sizes in one line.
pub(super) fn contents(plan: &Plan) -> String {
    let of = |op: Op| plan.steps.iter().filter(move |s| s.op == op);
    let files = plan.files.iter().filter(|f| f.kind == FileKind::Regular).count() as u64;
    let critical: u64 = of(Op::Read).filter(|s| s.critical).map(|s| u64::from(s.bytes)).sum();
    format!(
        "reads {} of {} in {} ({} before the program begins), looks up {}",
        Bytes(read_bytes(plan)),
        plural(files, "file"),
        plural(of(Op::Read).count() as u64, "request"),
        Bytes(critical),
        plural((of(Op::List).count() + of(Op::Stat).count()) as u64, "name"),
    )
}

/// Bytes that its steps read.
pub(super) fn read_bytes(plan: &Plan) -> u64 {
    plan.steps.iter().filter(|s| s.op == Op::Read).map(|s| u64::from(s.bytes)).sum()
}

/// Whether it is used and why, with the last trial.
pub(super) fn standing(plan: &Plan) -> (anstyle::Style, String) {
    let figures = plan.trial.as_ref().map(trial).unwrap_or_default();
    match &plan.standing {
        Standing::Off(why) => (BAD, format!("switched off: {why}")),
        Standing::Proven => (GOOD, format!("proven: {figures}")),
        Standing::Untried if figures.is_empty() => (WARN, "not compared with starts without it yet".into()),
        Standing::Untried => (WARN, format!("not proven: {figures}")),
    }
}

/// A trial in words.
pub(super) fn trial(t: &Trial) -> String {
    let warm = t.warm_ns.map_or(String::new(), |ns| format!(", warm {}", Nanos(ns)));
    format!(
        "{} with the plan, {} without{warm}: {:.2} times [{:.2} … {:.2}], {}, {}",
        Nanos(t.prefetched_ns),
        Nanos(t.plain_ns),
        t.ratio,
        t.low,
        t.high,
        plural(u64::from(t.pairs), "pair"),
        plans::ago(t.at),
    )
}

fn details(ui: &Ui, plan: &Plan) {
    let l = &plan.learnt;
    let exact = if l.exact { ", exact pages" } else { "" };
    let tier = format!("tier {}{exact}", l.tier);
    let starts = format!("{} ({} proved cold)", plural(u64::from(l.starts), "start"), l.cold_starts);
    let mut lines = vec![format!("learnt from {starts}, {tier}, {}", plans::ago(l.last))];
    if let Some(b) = &plan.bound {
        lines.push(bound(b));
    }
    match &plan.device {
        Some(d) => lines.push(format!(
            "for {}: {:.0} µs per scattered read, {:.0} MB/s, {} per readahead call",
            d.name,
            d.latency_ns / 1e3,
            1e3 / d.ns_per_byte.max(1e-9),
            Bytes(d.readahead_cap)
        )),
        None => lines.push("its disk was not measured: careful settings".to_owned()),
    }
    let k = &plan.knobs;
    let order = if k.order == Order::Physical { "by place on the disk" } else { "by need" };
    let gate = match k.gate {
        Gate::None => "begins at once",
        Gate::Issued => "waits until the first part is asked for",
        Gate::Arrived => "waits until the first part is there",
    };
    lines.push(format!(
        "keeps what {} of the last 8 starts needed, reads gaps up to {} along, {} per call, {} in flight, {}, {order}; \
         the program {gate}",
        k.min_uses,
        Bytes(k.gap_bytes.into()),
        Bytes(k.chunk_bytes.into()),
        if k.in_flight_bytes == 0 { "no limit".to_owned() } else { Bytes(k.in_flight_bytes.into()).to_string() },
        plural(u64::from(k.threads), "thread"),
    ));
    for line in lines {
        ui.line(paint(FAINT, format!("  {line}")));
    }
}

/// The least time in words.
fn bound(b: &Bound) -> String {
    let (least, all) = (Nanos(b.overlapped_ns), Bytes(b.bytes));
    match b.cpu_ns {
        None => format!(
            "lower bound {least}: reading the {all} that every start needs takes that long; the program's computing time \
             is not known before `cold prefetch tune` has measured warm starts"
        ),
        Some(cpu) => format!(
            "lower bound {least}: {} of computing, while the {all} that every start needs are read (one after the \
             other {})",
            Nanos(cpu),
            Nanos(b.serial_ns)
        ),
    }
}

/// A number of a recorded start's document.
fn amount(amounts: &Value, name: &str) -> u64 {
    amounts[name].as_u64().unwrap_or(0)
}

/// What became of the plan in its last recorded start.
fn last_replay(at: u64, waste: &Value) -> String {
    let t = |name| amount(&waste["total"], name);
    format!(
        "recorded {}: {} unused ({} of what came by the plan), {} late (waited {}), {} not planned (waited {})",
        plans::ago(at),
        Bytes(t("unused")),
        percent(t("unused"), t("prefetched")),
        Bytes(t("late")),
        Nanos(t("late_wait_ns")),
        Bytes(t("missing")),
        Nanos(t("missing_wait_ns")),
    )
}

/// Per file: what is read of it, in how many requests, how often it was used, and, where a start was recorded,
/// what of it came for nothing or too late.
fn files(plan: &Plan, waste: Option<&Value>, top: usize) -> Table {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for step in plan.steps.iter().filter(|s| s.op == Op::Read) {
        let sum = sums.entry(step.file).or_default();
        *sum = (sum.0 + u64::from(step.bytes), sum.1 + 1);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(file, (bytes, _))| (std::cmp::Reverse(*bytes), *file));
    let of: BTreeMap<&str, &Value> = waste
        .and_then(|w| w["files"].as_array())
        .into_iter()
        .flatten()
        .filter_map(|f| Some((f["path"].as_str()?, &f["amounts"])))
        .collect();
    let mut heads = vec!["READ", "OF FILE", "REQUESTS", "FIRST NEED", "USES", "FILE"];
    if waste.is_some() {
        heads.splice(5..5, ["UNUSED", "LATE", "WAITED"]);
    }
    let mut table = Table::new(&heads);
    for (index, (bytes, requests)) in rows.iter().take(top) {
        let Some(f) = plan.files.get(*index as usize) else { continue };
        // Reads are of whole pages, the last of which the file need not fill.
        let within = (*bytes).min(f.identity.size);
        let share = if f.kind == FileKind::Regular { percent(within, f.identity.size) } else { "-".into() };
        let mut cells = vec![
            Bytes(*bytes).to_string(),
            share,
            count(*requests),
            Nanos(f.need_ns).to_string(),
            format!("{}/{}", f.uses.count_ones(), plan.learnt.starts.min(8)),
            f.path.shown().to_string(),
        ];
        if waste.is_some() {
            let a = of.get(&*path_text::encode(&f.path)).copied().unwrap_or(&Value::Null);
            let bytes = |name| Bytes(amount(a, name)).to_string();
            let waited = Nanos(amount(a, "late_wait_ns")).to_string();
            cells.splice(5..5, [bytes("unused"), bytes("late"), waited]);
        }
        table.row(cells, Vec::new());
    }
    table
}

/// Whether it is used, for programs.
pub(super) fn standing_document(standing: &Standing) -> Value {
    match standing {
        Standing::Untried => json!("untried"),
        Standing::Proven => json!("proven"),
        Standing::Off(why) => json!({ "off": why }),
    }
}

/// The document of `--json`, docs/formats/plan-json.md.
pub(super) fn document(plan: &Plan, path: &Path) -> Value {
    let (k, l) = (&plan.knobs, &plan.learnt);
    let text = |p: &Path| path_text::encode(p);
    let mut ranges: Vec<Vec<Value>> = vec![Vec::new(); plan.files.len()];
    for r in &plan.ranges {
        if let Some(list) = ranges.get_mut(r.file as usize) {
            list.push(json!({
                "first_page": r.first_page, "pages": r.pages, "need_ns": r.need_ns,
                "uses": r.uses, "around": r.around,
            }));
        }
    }
    let mut reads_of: Vec<Vec<Value>> = vec![Vec::new(); plan.files.len()];
    for s in plan.steps.iter().filter(|s| s.op == Op::Read) {
        if let Some(list) = reads_of.get_mut(s.file as usize) {
            list.push(
                json!({ "offset": s.offset, "bytes": s.bytes, "need_ns": s.need_ns, "critical": s.critical }),
            );
        }
    }
    let files: Vec<Value> = plan
        .files
        .iter()
        .zip(ranges.into_iter().zip(reads_of))
        .map(|(f, (ranges, reads))| {
            json!({
                "path": text(&f.path),
                "kind": match f.kind {
                    FileKind::Regular => "regular",
                    FileKind::Directory => "directory",
                    FileKind::Name => "name",
                    FileKind::BlockDevice => "block_device",
                },
                "size": f.identity.size, "need_ns": f.need_ns, "uses": f.uses, "ranges": ranges, "reads": reads,
            })
        })
        .collect();
    let reads = plan.steps.iter().filter(|s| s.op == Op::Read);
    json!({
        "schema": "coldstart.plan/1",
        "name": plans::name(path),
        "file": text(path),
        "executable": text(&plan.key.executable),
        "script": plan.key.script.as_deref().map(text),
        "scenario": plan.key.scenario,
        "standing": standing_document(&plan.standing),
        "trial": plan.trial.map(|t| json!({
            "at": t.at, "pairs": t.pairs, "plain_ns": t.plain_ns, "prefetched_ns": t.prefetched_ns,
            "warm_ns": t.warm_ns, "ratio": t.ratio, "low": t.low, "high": t.high,
        })),
        "learnt": {
            "starts": l.starts, "cold_starts": l.cold_starts, "tier": l.tier.to_string(), "exact": l.exact,
            "first": l.first, "last": l.last, "computing_ns": l.cpu_ns, "cold_ready_ns": l.cold_ready_ns,
        },
        "knobs": {
            "min_uses": k.min_uses, "gap_bytes": k.gap_bytes, "chunk_bytes": k.chunk_bytes,
            "in_flight_bytes": k.in_flight_bytes, "threads": k.threads,
            "order": if k.order == Order::Physical { "physical" } else { "need" },
            "window_us": k.window_us,
            "gate": match k.gate { Gate::None => "none", Gate::Issued => "issued", Gate::Arrived => "arrived" },
            "critical_us": k.critical_us, "metadata": k.metadata,
        },
        "device": plan.device,
        "bound": plan.bound.map(|b| json!({
            "computing_ns": b.cpu_ns, "overlapped_ns": b.overlapped_ns, "serial_ns": b.serial_ns,
            "bytes": b.bytes, "requests": b.requests,
        })),
        "bytes": read_bytes(plan),
        "requests": reads.count(),
        "steps": plan.steps.len(),
        "files": files,
    })
}
