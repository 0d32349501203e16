//! `cold prefetch show`: one plan, for people and for programs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::{Bytes, Nanos};
use cold_plan::Plan;
use cold_plan::document::Document;
use cold_plan::plan::{Bound, FileKind, Gate, Order, Reads, Standing, Trial};
use cold_prefetch::waste::Amounts;
use cold_prefetch::{LeftOut, StartNeeds, Waste};
use serde::Serialize;

use super::device;
use super::plans::{self, StorePlace, Which};
use super::replay::{self, Kept};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
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

    /// Seconds that warm starts take, to tell the lower bound with: it is computed anew, and not kept
    #[arg(long, value_name = "SECONDS")]
    warm: Option<f64>,

    /// With --warm: a recorded start of the same command. For a program of several threads only this tells
    /// what still has to come behind each page
    #[arg(long, value_name = "NAME.cold", requires = "warm")]
    recording: Option<PathBuf>,

    /// With --recording of a cold start with exact needs: a recorded warm one. It computes nothing for pages
    /// that are missing, so more is known to come behind each page
    #[arg(long, value_name = "NAME.cold", requires = "recording")]
    warm_recording: Option<PathBuf>,
}

impl Args {
    /// The bound of the plan, with the warm starts and the recording that were named.
    fn bound(&self, plan: &Plan, ui: &Ui) -> Result<Option<Bound>, Failure> {
        let Some(seconds) = self.warm else { return Ok(plan.bound) };
        let warm = crate::values::seconds("--warm", seconds)?;
        let read = |dir: &Option<PathBuf>| dir.as_ref().map(|dir| cold_recording::read(dir)).transpose();
        let (recording, warm_start) = (read(&self.recording)?, read(&self.warm_recording)?);
        let latest =
            recording.as_ref().and_then(|start| cold_prefetch::Latest::of(start, warm_start.as_ref()));
        if recording.is_some() && latest.is_none() {
            ui.warn("the recording does not tell who waited for whom: it says nothing of the bound");
        } else if warm_start.is_some() && latest.as_ref().is_some_and(|latest| !latest.hears_warm()) {
            ui.warn(
                "the warm recording says nothing of the bound: it takes one of the same command that hardly waited for \
                 disks and tells who waited for whom, and a cold one with --exact-need",
            );
        }
        let cpu_ns = u64::try_from(warm.as_nanos()).ok();
        Ok(cold_prefetch::bound_of_warm(plan, cpu_ns, device::GROUND, latest.as_ref()))
    }
}

pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let mut listed = args.which.find(&store)?;
    listed.plan.bound = args.bound(&listed.plan, ui)?;
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
        let name = plans::name(&listed.path);
        ui.json(&Shown { plan: Document::of(plan, &name, &listed.path), replayed: replayed.as_ref() });
        return Ok(Exit::Done);
    }
    head(ui, plan, &listed.path);
    details(ui, plan);
    if let Some(kept) = &replayed {
        ui.line(paint(FAINT, format!("  {}", last_replay(kept))));
    }
    ui.line("");
    for line in files(plan, replayed.as_ref().map(|kept| &kept.waste), args.top).lines(width()) {
        ui.line(line);
    }
    Ok(Exit::Done)
}

/// The document of `--json`.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    plan: Document<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<&'a Kept>,
}

/// That of a lesson.
#[derive(Serialize)]
struct Taught<'a> {
    #[serde(flatten)]
    plan: Document<'a>,
    missing: &'a [String],
    last_start: Option<LastStart<'a>>,
}

#[derive(Serialize)]
struct LastStart<'a> {
    files_needed: u64,
    files_readable: u64,
    left_out: &'a BTreeMap<LeftOut, u64>,
}

impl<'a> LastStart<'a> {
    fn of(start: &'a StartNeeds) -> Self {
        Self { files_needed: start.needed(), files_readable: start.readable(), left_out: &start.left_out }
    }
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
    pub(super) last: Option<StartNeeds>,
}

/// Of how many files the last start needed pages, and how many of them can be read ahead.
fn last_start(start: &StartNeeds) -> String {
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
        let name = plans::name(path);
        ui.json(&Taught {
            plan: Document::of(plan, &name, path),
            missing: &told.missing,
            last_start: told.last.as_ref().map(LastStart::of),
        });
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
    let of = |kind| plan.count(kind) as u64;
    let names = of(FileKind::Directory) + of(FileKind::Name);
    let devices = match of(FileKind::BlockDevice) {
        0 => String::new(),
        n => format!(" and {}", plural(n, "device")),
    };
    format!("{}, {}{devices}", plural(of(FileKind::Regular), "file"), plural(names, "name"))
}

/// Sizes in one line.
pub(super) fn contents(plan: &Plan) -> String {
    format!(
        "reads {} of {} in {} ({} before the program begins), looks up {}",
        Bytes(plan.read_bytes()),
        plural(plan.count(FileKind::Regular) as u64, "file"),
        plural(plan.reads().count() as u64, "request"),
        Bytes(plan.critical_bytes()),
        plural(plan.names(), "name"),
    )
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
            d.mb_per_second(),
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

/// What became of the plan in its last recorded start.
fn last_replay(kept: &Kept) -> String {
    format!("recorded {}: {}", plans::ago(kept.at), replay::amounts(&kept.waste.total))
}

/// Per file: what is read of it, in how many requests, how often it was used, and, where a start was recorded,
/// what of it came for nothing or too late.
fn files(plan: &Plan, waste: Option<&Waste>, top: usize) -> Table {
    let mut rows: Vec<_> =
        plan.files.iter().zip(plan.reads_by_file()).filter(|(_, r)| r.requests > 0).collect();
    rows.sort_by_key(|(_, reads)| std::cmp::Reverse(reads.bytes));
    let of: HashMap<&Path, &Amounts> =
        waste.iter().flat_map(|w| &w.files).map(|f| (f.path.as_path(), &f.amounts)).collect();
    let mut heads = vec!["READ", "OF FILE", "REQUESTS", "FIRST NEED", "USES", "FILE"];
    if waste.is_some() {
        heads.splice(5..5, ["UNUSED", "LATE", "WAITED"]);
    }
    let mut table = Table::new(&heads);
    for (f, Reads { bytes, requests }) in rows.into_iter().take(top) {
        // Reads are of whole pages, the last of which the file need not fill.
        let within = bytes.min(f.identity.size);
        let share = if f.kind == FileKind::Regular { percent(within, f.identity.size) } else { "-".into() };
        let mut cells = vec![
            Bytes(bytes).to_string(),
            share,
            count(requests),
            Nanos(f.need_ns).to_string(),
            format!("{}/{}", f.uses.count_ones(), plan.learnt.starts.min(8)),
            f.path.shown().to_string(),
        ];
        if waste.is_some() {
            let a = of.get(&*f.path).copied().copied().unwrap_or_default();
            cells.splice(5..5, [a.unused.to_string(), a.late.to_string(), a.late_wait.to_string()]);
        }
        table.row(cells, Vec::new());
    }
    table
}
