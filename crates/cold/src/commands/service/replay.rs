//! `cold service replay`: rules of what is read before a start, compared on a log of starts.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use cold_model::figures::percent_of;
use cold_model::{Bytes, Nanos, Shown as _};
use cold_service::keep;
use cold_service::replay::made::Made;
use cold_service::replay::{Compared, Log, Played, compared, text};
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
struct ReplayDocument {
    schema: &'static str,
    room_bytes: u64,
    /// Starts of programs whose bytes nobody knows.
    left_out: u64,
    #[serde(flatten)]
    compared: Compared,
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
    let compared = compared(&logs, room);
    let document =
        ReplayDocument { schema: "coldstart.service-replay/1", room_bytes: room, left_out, compared };
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

fn print(ui: &Ui, ReplayDocument { room_bytes, left_out, compared, .. }: &ReplayDocument) {
    let length = Nanos((compared.seconds * 1e9) as u64);
    ui.line(format!(
        "{} of {}, {length} in all; the cache was emptied {}; {} may be held",
        plural(compared.logs as u64, "log"),
        plural(compared.programs as u64, "program"),
        plural(compared.emptied as u64, "time"),
        Bytes(*room_bytes),
    ));
    if *left_out > 0 {
        let starts = plural(*left_out, "start");
        ui.line(paint(FAINT, format!("{starts} left out: nothing was ever read for their programs")));
    }
    if let Some(row) = compared.policies.first() {
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
    compared.policies.iter().for_each(|row| table.row(cells(row), Vec::new()));
    table.lines(width()).iter().for_each(|line| ui.line(line));
}

fn cells(row: &Played) -> Vec<String> {
    let Played { policy, sum, against_service } = row;
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
