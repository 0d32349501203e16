//! `cold service replay`: rules of what is read before a start, compared on a log of starts.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use cold_model::figures::percent_of;
use cold_model::{Bytes, Nanos, Shown as _};
use cold_service::keep;
use cold_service::replay::made::Made;
use cold_service::replay::{Log, Outcome, Policy, play, text};
use cold_stats::compare::{Comparison, paired};
use cold_sys::procfs::ProcFs;
use serde::Serialize;

use super::history::History;
use super::place::Place;
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome as Done};
use crate::table::{Table, width};
use crate::ui::{FAINT, Ui, paint};
use crate::words::{count, plural};

const EXAMPLES: &str = "Examples:
  cold service replay                            the service's own history of this machine
  cold service replay log.csv --room 256Mi       seconds,event,times,bytes,program
  cold service replay --made 20 --zipf 1.2       20 made-up logs of 30 days each
  cold service replay --write-log log.csv        the history as such a log
";

const AFTER: &str = "\
After something has emptied the cache, a rule says which programs are read again before they are
started. A program's first start after that is a hit where it was held; further ones are warm
anyway. service: often and lately started (a start counts half after 3 days), by the time that
this saves for each byte; gain:Nh: the same, half after N hours; likely: the likeliest first;
byte: likelihood for each byte; recency: last started; lru: what a cache of this room would hold;
frequency: most often; all: every program ever started, whatever the room; foreseen: the most hits
that anybody who knew what comes could have. SAVED: the share of what first starts lose to the
disk, where each loses as much as reading its plans and 10 MiB takes. More:
docs/benchmarks/service.md.

Exit codes: 0 done; 1 failed; 2 wrong usage.";

/// Bytes of a log that are read.
const MOST: u64 = 256 << 20;

/// Flags of `cold service replay`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// A log of starts, CSV or a history [default: the history of the service]
    #[arg(value_name = "LOG", conflicts_with = "made")]
    log: Option<PathBuf>,

    /// Bytes that may be held [default: an eighth of this machine's memory, as the service has it]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    room: Option<u64>,

    /// Make N logs of 30 days instead (at most 1000), of 60 programs whose popularity follows Zipf's law
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    made: Option<u16>,

    /// The first made-up log; another seed gives others
    #[arg(long, value_name = "SEED", default_value_t = 1, requires = "made")]
    seed: u64,

    /// Exponent of the popularity of programs in made-up logs
    #[arg(long, value_name = "S", default_value_t = Made::default().zipf, requires = "made")]
    zipf: f64,

    /// Share of programs whose popularity changes at the end of each day in made-up logs
    #[arg(long, value_name = "SHARE", default_value_t = Made::default().drift, requires = "made")]
    drift: f64,

    /// Times of a day, besides boot, that something empties the cache in made-up logs
    #[arg(long, value_name = "N", default_value_t = Made::default().emptied, requires = "made",
        value_parser = clap::value_parser!(u32).range(0..=1000))]
    emptied: u32,

    /// Write the log as CSV, of several made-up ones the first
    #[arg(long, value_name = "FILE")]
    write_log: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

fn size(text: &str) -> Result<u64, String> {
    crate::values::count(text).ok_or_else(|| "not a size (like 256Mi)".to_owned())
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    /// Logs, programs and events of all of them.
    logs: usize,
    programs: usize,
    seconds: f64,
    emptied: usize,
    room_bytes: u64,
    /// Starts of programs whose bytes nobody knows.
    left_out: u64,
    policies: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    policy: String,
    /// Summed over all logs; bytes held are averaged.
    #[serde(flatten)]
    sum: Outcome,
    /// What it saves divided by what the service's rule saves, by pairs of logs; null without at least two of them.
    against_service: Option<Comparison>,
}

pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Done {
    if !(0.0..=5.0).contains(&args.zipf) || !(0.0..=1.0).contains(&args.drift) {
        return Err(Failure::usage("--zipf is a number from 0 to 5, --drift a share from 0 to 1"));
    }
    let (logs, left_out) = logs(args, place)?;
    if let (Some(path), Some(log)) = (&args.write_log, logs.first()) {
        crate::results::save(path, text::write(log))?;
    }
    let room = args.room.map_or_else(usual_room, Ok)?;
    let document = document(&logs, room, left_out);
    if args.json {
        ui.json(&document);
    } else {
        print(ui, &document);
    }
    Ok(Exit::Done)
}

fn usual_room() -> Result<u64, Failure> {
    let memory = ProcFs::default()
        .meminfo()
        .map_err(|e| Failure::from(anyhow::Error::from(e)).hint("say how much may be held: --room 256Mi"))?;
    let total = memory.get("MemTotal").copied().unwrap_or_default();
    Ok(keep::room(total, total))
}

/// The logs, and how many starts could not be taken.
fn logs(args: &Args, place: &Place) -> Result<(Vec<Log>, u64), Failure> {
    if let Some(n) = args.made {
        let made = Made { zipf: args.zipf, drift: args.drift, emptied: args.emptied, ..Made::default() };
        return Ok(((0..u64::from(n)).map(|i| made.log(args.seed.wrapping_add(i))).collect(), 0));
    }
    let path = args.log.clone().unwrap_or_else(|| place.history());
    let (log, left_out) = if is_database(&path)? { history(&path)? } else { (csv(&path)?, 0) };
    if log.events().is_empty() {
        let why = format!("{} tells of no start", path.shown());
        return Err(Failure::from(anyhow::Error::msg(why)).hint("made-up logs: --made 20"));
    }
    Ok((vec![log], left_out))
}

fn is_database(path: &Path) -> Result<bool, Failure> {
    let hint = "name a log, or make some: --made 20";
    let (mut file, _) =
        cold_sys::open::regular(path, true).map_err(|e| Failure::from(anyhow::Error::from(e)).hint(hint))?;
    let mut head = [0; 16];
    match file.read_exact(&mut head) {
        Ok(()) => Ok(&head == b"SQLite format 3\0"),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(anyhow::anyhow!("cannot read {}: {e}", path.shown()).into()),
    }
}

fn history(path: &Path) -> Result<(Log, u64), Failure> {
    let told = History::read(path)?.map(|history| history.log()).transpose()?;
    Ok(told.map_or_else(Default::default, |told| (told.log, told.left_out)))
}

fn csv(path: &Path) -> Result<Log, Failure> {
    let content = cold_sys::open::text(path, MOST).map_err(anyhow::Error::from)?;
    text::read(&content).map_err(|why| anyhow::anyhow!("cannot read {}: {why}", path.shown()).into())
}

fn document(logs: &[Log], room: u64, left_out: u64) -> Document {
    let emptied =
        |log: &Log| log.events().iter().filter(|e| e.what == cold_service::replay::What::Emptied).count();
    let own: Vec<Outcome> = logs.iter().map(|log| play(log, Policy::OWN, room)).collect();
    let policies = Policy::compared().into_iter().map(|policy| row(logs, policy, room, &own));
    Document {
        schema: "coldstart.service-replay/1",
        logs: logs.len(),
        programs: logs.iter().map(|log| log.programs.len()).sum(),
        seconds: logs.iter().map(|log| log.length().0 as f64 / 1e9).sum(),
        emptied: logs.iter().map(emptied).sum(),
        room_bytes: room,
        left_out,
        policies: policies.collect(),
    }
}

fn row(logs: &[Log], policy: Policy, room: u64, own: &[Outcome]) -> Row {
    let each: Vec<Outcome> = logs.iter().map(|log| play(log, policy, room)).collect();
    let pairs: Vec<(f64, f64)> =
        each.iter().zip(own).map(|(one, own)| (one.saved_bytes as f64, own.saved_bytes as f64)).collect();
    let sum = |of: &dyn Fn(&Outcome) -> u64| each.iter().map(of).sum();
    let sum = Outcome {
        starts: sum(&|o| o.starts),
        first: sum(&|o| o.first),
        hits: sum(&|o| o.hits),
        lost_bytes: sum(&|o| o.lost_bytes),
        saved_bytes: sum(&|o| o.saved_bytes),
        read_bytes: sum(&|o| o.read_bytes),
        used_bytes: sum(&|o| o.used_bytes),
        held_bytes: each.iter().map(|o| o.held_bytes).sum::<f64>() / each.len().max(1) as f64,
        most_held_bytes: each.iter().map(|o| o.most_held_bytes).max().unwrap_or_default(),
    };
    Row { policy: policy.name(), sum, against_service: paired(&pairs).filter(|_| policy != Policy::OWN) }
}

fn print(ui: &Ui, document: &Document) {
    let length = Nanos((document.seconds * 1e9) as u64);
    ui.line(format!(
        "{} of {}, {length} in all; the cache was emptied {}; {} may be held",
        plural(document.logs as u64, "log"),
        plural(document.programs as u64, "program"),
        plural(document.emptied as u64, "time"),
        Bytes(document.room_bytes),
    ));
    if document.left_out > 0 {
        let starts = plural(document.left_out, "start");
        ui.line(paint(FAINT, format!("{starts} left out: nothing was ever read for their programs")));
    }
    if let Some(row) = document.policies.first() {
        let (starts, first) = (plural(row.sum.starts, "start"), count(row.sum.first));
        ui.line(format!("{starts}, {first} of them the first since then; the others are warm anyway"));
    }
    let mut table = Table::new(&[
        "HITS",
        "OF FIRST",
        "SAVED",
        "READ",
        "IN VAIN",
        "HELD",
        "MOST",
        "SAVED / SERVICE",
        "RULE",
    ]);
    document.policies.iter().for_each(|row| table.row(cells(row), Vec::new()));
    table.lines(width()).iter().for_each(|line| ui.line(line));
}

fn cells(row: &Row) -> Vec<String> {
    let Row { policy, sum, against_service } = row;
    let against = against_service.as_ref().map_or_else(String::new, |c| match &c.interval {
        i if i.is_full() => format!("{:.3} [{:.3} … {:.3}]", c.ratio, i.low, i.high),
        _ => format!("{:.3}", c.ratio),
    });
    vec![
        count(sum.hits),
        percent_of(sum.hits, sum.first),
        percent_of(sum.saved_bytes, sum.lost_bytes),
        Bytes(sum.read_bytes).to_string(),
        percent_of(sum.vain_bytes(), sum.read_bytes),
        Bytes(sum.held_bytes as u64).to_string(),
        Bytes(sum.most_held_bytes).to_string(),
        against,
        policy.clone(),
    ]
}
