//! `cold layout disk`: a plan's blocks one behind the other on the disk.

mod ground;
mod mover;
mod record;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use cold_journal::Journal;
use cold_layout::blocks::{self, Pays, Run};
use cold_model::{Bytes, Nanos, Shown as _, path_text};
use cold_plan::Plan;
use cold_plan::plan::Order;
use cold_plan::store::Listed;
use cold_sys::blocks::{Way, clone_range, exchange_is_mended, free, preallocate};
use cold_sys::caps;
use cold_sys::procfs::ProcFs;
use serde_json::json;

use self::ground::{BLOCK, Cost, Ground, cost, extents_of};
use self::mover::{Moved, Stayed, Towards};
use self::record::{Hidden, Named, Planned, Record, Records};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::commands::prefetch::{device, plans};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::table::{Table, width};
use crate::ui::Ui;
use crate::words::{count, plural};

type Result<T> = std::result::Result<T, Failure>;

/// Flags of `cold layout disk`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout disk --plan firefox-esr --dry-run   places and requests today and arranged
  cold layout disk --plan firefox-esr             does it (root)
  cold layout disk --plan firefox-esr --restore   back to the places of before
  cold layout disk --plan firefox-esr --keep      gives their room free: no way back
")]
pub(crate) struct Args {
    #[command(flatten)]
    place: plans::StorePlace,

    /// The plan: its name in `cold prefetch list`, the first letters of that, or the program's name. May be repeated:
    /// one plan's bytes come behind the other's
    #[arg(long, value_name = "PLAN", required = true)]
    plan: Vec<String>,

    /// Only say what it would come to
    #[arg(long, conflicts_with_all = ["restore", "keep"])]
    dry_run: bool,

    /// Put the blocks back to where they were
    #[arg(long, conflicts_with = "keep")]
    restore: bool,

    /// Free the places of before, which are kept for --restore
    #[arg(long)]
    keep: bool,

    /// Print the figures as JSON, one line for each plan
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if !args.dry_run && caps::effective_user() != 0 {
        let why = anyhow::anyhow!("moving blocks of a program's files needs root");
        return Err(Failure::from(why).hint("sudo; --dry-run needs none"));
    }
    let store = args.place.store()?;
    let listed: Vec<Listed> =
        args.plan.iter().map(|name| plans::named(&store, name)).collect::<Result<_>>()?;
    if args.dry_run {
        for listed in &listed {
            told(args, ui, &dry(plans::name(&listed.path), &listed.plan)?);
        }
        return Ok(Exit::Done);
    }
    let records = Records::open(&args.place.state()?)?;
    let interrupt = interrupt()?;
    let goes_on = || !interrupt.load(Ordering::Relaxed);
    for listed in &listed {
        let done = if args.restore {
            restore(listed, &records, ui, &goes_on)?
        } else if args.keep {
            keep(listed, &records, ui)?;
            continue;
        } else {
            arrange(listed, &records, ui, &goes_on)?
        };
        let interrupted = done.moved.as_ref().is_some_and(|m| m.interrupted);
        if !interrupted {
            renew(listed, &store, ui)?;
        }
        told(args, ui, &done);
        if interrupted {
            ui.note("stopped; run it again to go on, or with --restore to go back");
            return Ok(Exit::Interrupted);
        }
    }
    Ok(Exit::Done)
}

/// What was found and done for one plan.
struct Done {
    name: String,
    before: Cost,
    /// Planned, before anything is done; else as it is now.
    after: Cost,
    rotational: Option<bool>,
    left: Vec<(PathBuf, String)>,
    moved: Option<Moved>,
}

/// Steps sorted by place are sorted anew; the others are in the order of need already.
fn renew(listed: &Listed, store: &cold_plan::Store, ui: &Ui) -> Result<()> {
    let mut plan = listed.plan.clone();
    if plan.knobs.order != Order::Physical {
        return Ok(());
    }
    let (knobs, measured) = (plan.knobs, plan.device.clone());
    device::steps(&mut plan, &knobs, measured.as_ref());
    if plan != listed.plan && !store.replace(&listed.plan, &plan)? {
        ui.warn("the plan was learnt anew meanwhile; run this again to sort its reads by their new places");
    }
    Ok(())
}

/// How long the plan's disk reads what a start needs, from the places of today and from arranged ones; unknown where
/// nothing can be arranged, or the disk was not measured.
pub(crate) fn forecast(plan: &Plan) -> Result<Option<[Nanos; 2]>> {
    let done = dry(String::new(), plan)?;
    Ok(done.before.time.zip(done.after.time).map(|(before, after)| [before, after]))
}

fn dry(name: String, plan: &Plan) -> Result<Done> {
    let ground = Ground::of(plan, &[])?;
    let moves = blocks::packed(&ground.pieces, BLOCK.into());
    let end = moves.last().map_or(0, |m| m.donor.saturating_add(m.piece.bytes));
    let whole = [cold_model::Extent { logical: 0, physical: 0, bytes: end }];
    Ok(Done {
        name,
        before: cost(plan, &ground.today),
        after: cost(plan, &blocks::planned(&moves, &whole)),
        rotational: plan.device.as_ref().map(|d| d.rotational),
        left: ground.left,
        moved: None,
    })
}

fn arrange(listed: &Listed, records: &Records, ui: &Ui, goes_on: &dyn Fn() -> bool) -> Result<Done> {
    let (plan, name) = (&listed.plan, plans::name(&listed.path));
    let mut taken = Vec::new();
    for other in records.all()?.iter().filter(|r| r.plan != name) {
        for planned in &other.moves {
            let piece = planned.step().piece;
            let path = other.files.get(piece.file).map(Named::path);
            taken.extend(path.map(|path| (path, piece.offset, piece.bytes)));
        }
    }
    let mut line = Line::new(ui);
    line.step("looking where the plan's files lie");
    let mut ground = Ground::of(plan, &taken)?;
    if ground.way == Way::Exchange {
        safe_to_exchange()?;
    }
    let mut record = match records.find(&name)? {
        Some(record) if record.complete => {
            let why = format!("the plan {} is arranged already", name.shown());
            return Err(Failure::usage(why).hint("--restore first, where it was learnt anew"));
        }
        Some(record) => record,
        None => prepare(&name, &ground, records, &mut line)?,
    };
    let mut before: Vec<Run> = record.moves.iter().flat_map(Planned::before).collect();
    if plan.knobs.order == Order::Physical {
        // So the plan reads before its blocks move.
        before.sort_by_key(|run| run.physical);
    }
    let moved = mover::go(&record, Towards::Arranged, &mut line, goes_on)?;
    line.clear();
    ground.look()?;
    let pieces: Vec<_> = record.moves.iter().map(|m| m.step().piece).collect();
    let now = now(&record, &pieces)?;
    if !moved.interrupted && moved.left.is_empty() {
        record.complete = true;
        records.save(&record)?;
    }
    Ok(Done {
        name,
        before: cost(plan, &before),
        after: cost(plan, &now),
        rotational: plan.device.as_ref().map(|d| d.rotational),
        left: ground.left,
        moved: Some(moved),
    })
}

/// Where the record's pieces lie now.
fn now(record: &Record, pieces: &[blocks::Piece]) -> Result<Vec<Run>> {
    let of = |named: &Named| named.open().map_or(Ok(Vec::new()), |file| extents_of(&file));
    let extents = record.files.iter().map(of).collect::<Result<Vec<_>>>()?;
    Ok(blocks::runs(pieces, &extents))
}

fn safe_to_exchange() -> Result<()> {
    let proc = ProcFs::default();
    let release = proc.sysctl("kernel.osrelease").unwrap_or_default();
    if exchange_is_mended(&release, &proc.read("version").unwrap_or_default()) {
        return Ok(());
    }
    let why = anyhow::anyhow!(
        "Linux {} may free blocks twice when a move of ext4 blocks stops halfway (mended in 6.8, 6.6.18, 6.1.79, \
         5.15.149, 5.10.210, 5.4.269)",
        release.shown()
    );
    Err(Failure::from(why).hint("a newer kernel"))
}

/// Gets the places, and writes down what will be moved. Until that is done, killing `cold` leaves nothing; from then on
/// the record knows everything.
fn prepare(name: &str, ground: &Ground, records: &Records, line: &mut Line<'_>) -> Result<Record> {
    let moves = blocks::packed(&ground.pieces, BLOCK.into());
    let bytes = moves.last().map_or(0, |m| m.donor + m.piece.bytes.next_multiple_of(BLOCK.into()));
    let before = blocks::runs(&ground.pieces, &ground.extents);
    if bytes == 0 {
        return Err(anyhow::anyhow!("nothing of the plan's files can be placed elsewhere").into());
    }
    line.step("looking for free space that is contiguous");
    let journal = Journal::open()?;
    let (path, donor, guard) = journal.create_file(&ground.place, ".coldstart-blocks")?;
    let room = free(&donor)?;
    if !blocks::has_room(room, bytes) {
        let why = anyhow::anyhow!(
            "{} are free on {}, and {} are needed",
            Bytes(room),
            ground.place.shown(),
            Bytes(bytes)
        );
        return Err(why.into());
    }
    preallocate(&donor, bytes)?;
    let files: Vec<&File> = ground.subjects.iter().map(|s| &s.file).collect();
    let spare = match ground.way {
        Way::Exchange => {
            donor.sync_all()?;
            None
        }
        Way::Share => {
            refuse_scattered(&blocks::planned(&moves, &extents_of(&donor)?), &before)?;
            mover::fill(&donor, &files, &moves, line)?;
            let (path, old, guard) = journal.create_file(&ground.place, ".coldstart-places")?;
            for m in &moves {
                let Some(file) = files.get(m.piece.file) else { continue };
                let bytes = m.piece.bytes;
                clone_range(file, m.piece.offset, bytes, &old, m.donor).map_err(|e| {
                    Failure::from(e)
                        .hint("XFS shares blocks only where it was made with reflink=1 (xfs_info)")
                })?;
            }
            old.sync_all()?;
            Some((Hidden::of(&path, &old)?, guard))
        }
    };
    let donor_extents = extents_of(&donor)?;
    refuse_scattered(&blocks::planned(&moves, &donor_extents), &before)?;
    let (old, old_guard) = spare.unzip();
    let mut record = Record::new(name, ground.way, Hidden::of(&path, &donor)?, old);
    record.files = ground.subjects.iter().map(|s| Named::of(&s.path, s.inode)).collect();
    let planned = moves.iter().map(|m| {
        let before = ground.extents.get(m.piece.file).map_or(Vec::new(), |e| blocks::runs_of(&m.piece, e));
        Planned::of(m, &before, &blocks::planned(&[*m], &donor_extents))
    });
    record.moves = planned.collect();
    records.save(&record)?;
    guard.release()?;
    old_guard.map_or(Ok(()), cold_journal::Guard::release)?;
    Ok(record)
}

fn refuse_scattered(planned: &[Run], before: &[Run]) -> Result<()> {
    let (after, before) = (blocks::spread(planned), blocks::spread(before));
    if blocks::is_worth_moving(&before, &after) {
        return Ok(());
    }
    let why = if before.places == 1 {
        "the bytes lie one behind the other already".to_owned()
    } else {
        format!(
            "free space is not contiguous enough: {} instead of {} would not be worth the move",
            plural(after.places, "place"),
            count(before.places)
        )
    };
    Err(Failure::from(anyhow::anyhow!("nothing is moved: {why}")))
}

fn restore(listed: &Listed, records: &Records, ui: &Ui, goes_on: &dyn Fn() -> bool) -> Result<Done> {
    let (name, plan) = (plans::name(&listed.path), &listed.plan);
    let record = found(&name, records)?;
    let pieces: Vec<_> = record.moves.iter().map(|m| m.step().piece).collect();
    let before = now(&record, &pieces)?;
    let mut line = Line::new(ui);
    let moved = mover::go(&record, Towards::Before, &mut line, goes_on)?;
    line.clear();
    let after = now(&record, &pieces)?;
    // What is gone, or was written since, has no place to go back to.
    let is_over = !moved.left.values().any(Stayed::for_now);
    if !moved.interrupted && is_over {
        records.remove(&record)?;
    }
    Ok(Done {
        name,
        before: cost(plan, &before),
        after: cost(plan, &after),
        rotational: plan.device.as_ref().map(|d| d.rotational),
        left: Vec::new(),
        moved: Some(moved),
    })
}

fn keep(listed: &Listed, records: &Records, ui: &Ui) -> Result<()> {
    let name = plans::name(&listed.path);
    let record = found(&name, records)?;
    records.remove(&record)?;
    ui.note(format!("{}: the places of before are free", name.shown()));
    Ok(())
}

fn found(name: &str, records: &Records) -> Result<Record> {
    let record = records.find(name)?;
    record.ok_or_else(|| Failure::usage(format!("the plan {} is not arranged", name.shown())))
}

fn told(args: &Args, ui: &Ui, done: &Done) {
    if args.json {
        ui.json_line(&document(done));
        return;
    }
    let mut table = Table::new(&["", "BYTES", "PLACES", "REQUESTS", "SPAN", "READING"]);
    let heads = if done.moved.is_some() { ["before", "now"] } else { ["today", "arranged"] };
    for (head, Cost { spread, time }) in heads.into_iter().zip([done.before, done.after]) {
        table.row(
            vec![
                head.to_owned(),
                Bytes(spread.bytes).to_string(),
                count(spread.places),
                count(spread.requests),
                Bytes(spread.span).to_string(),
                time.map_or_else(|| "unknown".to_owned(), |t| t.to_string()),
            ],
            Vec::new(),
        );
    }
    ui.line(done.name.shown());
    for line in table.lines(width()) {
        ui.line(line);
    }
    ui.line(verdict(done));
    if let Some(moved) = &done.moved {
        ui.line(format!(
            "{} moved, each byte read from the disk before and after and found the same; {} waited for a step",
            Bytes(moved.bytes),
            plural(moved.waited as u64, "start")
        ));
        for (file, why) in &moved.left {
            ui.warn(format!("{file} stayed in part: {why}"));
        }
    }
    let mut reasons: BTreeMap<&str, Vec<&PathBuf>> = BTreeMap::new();
    for (path, why) in &done.left {
        reasons.entry(why).or_default().push(path);
    }
    for (why, paths) in reasons {
        let first = paths.first().map(|p| p.shown().to_string()).unwrap_or_default();
        ui.note(match paths.len() {
            1 => format!("{first} is left where it is: {why}"),
            n => format!("{} are left where they are ({first} …): {why}", plural(n as u64, "file")),
        });
    }
}

/// Whether it pays, in words.
fn verdict(done: &Done) -> String {
    let (before, after) = (done.before, done.after);
    match blocks::pays(done.rotational, before.time.zip(after.time)) {
        Pays::Heads => "READING is by the plan's disk, whose heads move for each place".to_owned(),
        Pays::Nothing => format!(
            "This disk has no heads to move, and {} instead of {} gain less than a twentieth: it does not pay here",
            plural(after.spread.requests, "request"),
            count(before.spread.requests)
        ),
        Pays::Requests => {
            "This disk has no heads to move; what READING gains comes from fewer requests".to_owned()
        }
        Pays::Unknown => {
            "The plan's disk was not measured: what that gains is unknown (`cold prefetch learn` measures it)"
                .to_owned()
        }
    }
}

fn document(done: &Done) -> serde_json::Value {
    let cost = |c: &Cost| {
        let time =
            c.time.map_or_else(|| json!({"unknown": "the plan's disk was not measured"}), |t| json!(t.0));
        json!({
            "bytes": c.spread.bytes, "places": c.spread.places, "requests": c.spread.requests, "span": c.spread.span,
            "reading_ns": time,
        })
    };
    let left: Vec<_> =
        done.left.iter().map(|(path, why)| json!({"path": path_text::encode(path), "why": why})).collect();
    json!({
        "schema": "coldstart.layout-disk/1",
        "plan": done.name,
        "before": cost(&done.before),
        "after": cost(&done.after),
        "left": left,
        "moved": done.moved.as_ref().map(|m| json!({
            "bytes": m.bytes, "waited": m.waited, "interrupted": m.interrupted, "stayed": m.left.iter().map(|(file, why)| (file, why.to_string())).collect::<BTreeMap<_, _>>(),
        })),
    })
}
