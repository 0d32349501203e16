//! The flags of `cold probe`.

use std::ffi::OsString;
use std::path::PathBuf;

use cold_model::{Bytes, Nanos};
use cold_probe::experiments::{State, compete, large_pages, pauses, pressure, records, table, timeline};
use cold_probe::script;
use cold_probe::spec::{Act, Mode, actions};
use cold_probe::variate::Variate;

use crate::cli::{EXIT_CODES, TEMPLATE};

/// Flags of `cold probe`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold probe table                        map it, read it, or go past the cache? cold and warm
  sudo cold probe compete --svg fight.svg who wins when memory is short
  cold probe large-pages                  do large pages help the cold start of a mapped file?
  cold probe prefetch --dir /home         what readahead and its like really deliver on that disk
  cold probe ramp --log ramp.parquet      the cache grows, hits become frequent, counters kept
  cold probe script MAIL.SCR --seconds 60 a script of the Response Probe of 1993
")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) experiment: Experiment,
}

/// What `cold probe` measures.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Experiment {
    /// Time per record: orders × actions × direct, buffered, mapped; cold, warm
    #[command(before_help = "Examples:
  cold probe table                             as published: 1 MiB, records of 4 KiB
  cold probe table --modern --dir /home        64 MiB on the disk of /home
  cold probe table --order normal --action read --state cold --json
  cold probe table --repeat 1                  one round: figures without an answer
")]
    Table(TableArgs),
    /// Random reads of a cold file over time: hit rate against the growing cache
    #[command(before_help = "Examples:
  cold probe ramp                              10 MiB, records of 8 KiB, the middle 4 MiB
  cold probe ramp --action RW --record 4Ki --span 3Mi --html ramp.html
  cold probe ramp --mode mapped --log ramp.parquet
")]
    Ramp(TimelineArgs),
    /// Small records read and rewritten in order, over time
    #[command(before_help = "Examples:
  cold probe small                             records of 512 bytes, read and rewritten
  cold probe small --seconds 60 --svg small.svg
")]
    Small(TimelineArgs),
    /// Time against record size, with the line t = a + b·size
    #[command(before_help = "Examples:
  cold probe records                           4 KiB to 64 KiB
  cold probe records --modern --svg sizes.svg  up to 2 MiB
")]
    Records(RecordsArgs),
    /// A mapping process against a reading one inside one memory limit (root)
    #[command(before_help = "Examples:
  sudo cold probe compete                      8 MiB for both, spans of 1 to 8 MiB
  sudo cold probe compete --repeat 5 --svg fight.svg --log fight.parquet
  sudo cold probe compete --modern             128 MiB for both
")]
    Compete(CompeteArgs),
    /// What the kernel reads around a fault in code and in data
    #[command(before_help = "Examples:
  cold probe exec                              the window of one fault, by kind of mapping
")]
    Exec(SizeArgs),
    /// Large pages for mapped files: folios, faults and time by way
    #[command(before_help = "Examples:
  cold probe large-pages                       code and data of a file of 16 MiB
  cold probe large-pages --dir /home --bytes 64Mi --json
  cold probe large-pages --repeat 20           narrower intervals
")]
    LargePages(LargePagesArgs),
    /// What each prefetch call really delivers, and its cap
    #[command(before_help = "Examples:
  cold probe prefetch                          up to 16 MiB asked at once
  cold probe prefetch --modern --dir /home     up to 64 MiB, on the disk of /home
")]
    Prefetch(SizeArgs),
    /// Latency, bandwidth, queue depth, stride and direction of the disk
    #[command(before_help = "Examples:
  cold probe device --dir /home                the disk of /home
")]
    Device(SizeArgs),
    /// What a wait costs a program's computing afterwards, by the wait's length
    #[command(before_help = "Examples:
  cold probe pauses -- python3 -c 'import ssl'     warm starts, stopped again and again
  cold probe pauses --json -- node app.js > node.json
  cold simulate node.cold --warm warm.cold --pauses node.json --disk hdd
")]
    Pauses(PausesArgs),
    /// A file larger than the memory limit, by ever more threads (root)
    #[command(before_help = "Examples:
  sudo cold probe pressure                     40 MiB with 32 MiB of memory
  sudo cold probe pressure --modern --threads 16
")]
    Pressure(PressureArgs),
    /// Run a script of the NT Response Probe (.SCR) and print its columns
    #[command(before_help = "Examples:
  cold probe script MAIL.SCR --seconds 60
  cold probe script MAIL.SCR --out MAIL.OUT --destroy ACCESS.DAT
")]
    Script(ScriptArgs),
}

impl Experiment {
    pub(super) fn common(&self) -> &Common {
        match self {
            Self::Table(a) => &a.common,
            Self::Ramp(a) | Self::Small(a) => &a.common,
            Self::Records(a) => &a.common,
            Self::Compete(a) => &a.common,
            Self::Exec(a) | Self::Prefetch(a) | Self::Device(a) => &a.common,
            Self::LargePages(a) => &a.common,
            Self::Pauses(a) => &a.common,
            Self::Pressure(a) => &a.common,
            Self::Script(a) => &a.common,
        }
    }
}

/// Flags of every experiment.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Common {
    /// Directory on the disk to measure; files made there are removed, also after kill -9
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub(super) dir: PathBuf,
    /// Use this existing file instead; ITS CONTENT IS LOST
    #[arg(long, value_name = "FILE")]
    pub(super) destroy: Option<PathBuf>,
    /// Sizes that fit today's machines instead of those published in 1993
    #[arg(long)]
    pub(super) modern: bool,
    /// Start of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1993)]
    pub(super) seed: u64,
    /// Draw normal numbers as the Response Probe did (sum of 14; deviation 1.080 times the stated one)
    #[arg(long)]
    pub(super) nt: bool,
    /// Keep counters (memory, cache, faults, I/O, pressure, working sets): .csv or .parquet
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Time between two looks at the counters, milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(super) interval: u64,
    /// Draw the results and counters as SVG
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Draw them as a page
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

impl Common {
    pub(super) fn variate(&self) -> Variate {
        if self.nt { Variate::Nt } else { Variate::True }
    }
}

fn size(text: &str) -> Result<u64, String> {
    match crate::values::count(text) {
        Some(n) if (4096..=1 << 40).contains(&n) => Ok(n),
        _ => Err("not a size from 4Ki to 1024Gi (like 64Mi)".to_owned()),
    }
}

fn record(text: &str) -> Result<u64, String> {
    match crate::values::count(text) {
        Some(n) if (1..=16 << 20).contains(&n) => Ok(n),
        _ => Err("not a record size from 1 to 16Mi".to_owned()),
    }
}

fn length(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if (0.01..=86_400.0).contains(&s) => Ok(s),
        _ => Err("not a time from 0.01 to 86400 seconds".to_owned()),
    }
}

/// The constant that is the value of a flag.
fn word(words: &[&'static str], value: Option<&str>) -> Option<&'static str> {
    words.iter().find(|w| Some(**w) == value).copied()
}

/// `table`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct TableArgs {
    /// Bytes of the file [default: 1Mi; 64Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Bytes of a record
    #[arg(long, value_name = "SIZE", default_value = "4Ki", value_parser = record)]
    record: u64,
    /// Records per line [default: as many as the file has; 2048 with --modern]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Only this order
    #[arg(long, value_name = "ORDER", value_parser = table::WORDS.0)]
    order: Option<String>,
    /// Only this action
    #[arg(long, value_name = "ACTION", value_parser = table::WORDS.1)]
    action: Option<String>,
    /// Only with this cache
    #[arg(long, value_name = "CACHE", value_parser = ["cold", "warm"])]
    state: Option<String>,
    /// Rounds, each of which measures every line once; the answer needs 6 at least
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    #[command(flatten)]
    pub(super) common: Common,
}

impl TableArgs {
    pub(super) fn options(&self) -> table::TableOptions {
        let o = if self.common.modern { table::TableOptions::MODERN } else { table::TableOptions::PUBLISHED };
        table::TableOptions {
            bytes: self.bytes.unwrap_or(o.bytes),
            record: self.record,
            count: self.count.or(o.count),
            order: word(&table::WORDS.0, self.order.as_deref()),
            action: word(&table::WORDS.1, self.action.as_deref()),
            state: self.state.as_deref().map(|s| if s == "cold" { State::Cold } else { State::Warm }),
            repeats: self.repeat,
        }
    }
}

/// `ramp`, `small`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct TimelineArgs {
    /// Bytes of the file [default: 10Mi; 1Gi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Bytes of a record [default: ramp 8Ki, small 512]
    #[arg(long, value_name = "SIZE", value_parser = record)]
    record: Option<u64>,
    /// Bytes in the middle of the file that are used at random [default: ramp 4Mi; 400Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    span: Option<u64>,
    /// Reads and writes, like RRWRR [default: ramp R, small RW]
    #[arg(long, value_name = "LETTERS", value_parser = letters)]
    action: Option<Letters>,
    /// How the file is reached
    #[arg(long, value_name = "MODE", default_value = "buffered", value_parser = ["direct", "buffered", "mapped"])]
    mode: String,
    /// Length
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = length)]
    seconds: f64,
    #[command(flatten)]
    pub(super) common: Common,
}

/// An action string.
#[derive(Debug, Clone)]
struct Letters(Vec<Act>);

fn letters(text: &str) -> Result<Letters, String> {
    actions(text).map(Letters)
}

impl TimelineArgs {
    pub(super) fn options(&self, published: timeline::TimelineOptions) -> timeline::TimelineOptions {
        let o = if self.common.modern { published.modern() } else { published };
        timeline::TimelineOptions {
            bytes: self.bytes.unwrap_or(o.bytes),
            record: self.record.unwrap_or(o.record),
            span: self.span.or(o.span),
            action: self.action.as_ref().map_or(o.action, |l| l.0.clone()),
            mode: match self.mode.as_str() {
                "direct" => Mode::Direct,
                "mapped" => Mode::MAPPED,
                _ => Mode::BUFFERED,
            },
            seconds: self.seconds,
        }
    }
}

/// `records`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct RecordsArgs {
    /// Bytes of the file [default: 16Mi; 256Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Smallest record
    #[arg(long, value_name = "SIZE", default_value = "4Ki", value_parser = record)]
    from: u64,
    /// Largest record [default: 64Ki; 2Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = record)]
    to: Option<u64>,
    /// Time of each direct line
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = length)]
    seconds: f64,
    #[command(flatten)]
    pub(super) common: Common,
}

impl RecordsArgs {
    pub(super) fn options(&self) -> records::RecordsOptions {
        let o = if self.common.modern {
            records::RecordsOptions::MODERN
        } else {
            records::RecordsOptions::PUBLISHED
        };
        records::RecordsOptions {
            bytes: self.bytes.unwrap_or(o.bytes),
            from: self.from,
            to: self.to.unwrap_or(o.to),
            seconds: self.seconds,
        }
    }
}

/// `compete`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct CompeteArgs {
    /// Memory of both processes together [default: 8Mi; 128Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit: Option<u64>,
    /// Spans are 1 to so many eighths of the limit
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=64))]
    spans: u64,
    /// Length of a trial, of which the second half counts [default: 3; 6 with --modern]
    #[arg(long, value_name = "SECONDS", value_parser = length)]
    seconds: Option<f64>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    #[command(flatten)]
    pub(super) common: Common,
}

impl CompeteArgs {
    pub(super) fn options(&self) -> compete::CompeteOptions {
        let o = if self.common.modern {
            compete::CompeteOptions::MODERN
        } else {
            compete::CompeteOptions::PUBLISHED
        };
        let limit = self.limit.map_or(o.limit, Bytes);
        compete::CompeteOptions {
            limit,
            unit: Bytes((limit.0 / 8).next_multiple_of(4096)),
            spans: self.spans,
            seconds: self.seconds.unwrap_or(o.seconds),
            repeats: self.repeat,
            ..o
        }
    }
}

/// `exec`, `prefetch`, `device`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct SizeArgs {
    /// Bytes of the file [default: exec 16Mi; prefetch 16Mi, 64Mi with --modern; device 64Mi; exec, device
    /// at least 8Mi, prefetch 128Ki]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) bytes: Option<u64>,
    #[command(flatten)]
    pub(super) common: Common,
}

impl SizeArgs {
    pub(super) fn most(&self) -> u64 {
        self.bytes.unwrap_or(if self.common.modern { 64 << 20 } else { 16 << 20 })
    }
}

/// `large-pages`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct LargePagesArgs {
    /// Bytes of the file, 4Mi at least [default: 16Mi; 64Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Rounds, each of which measures every way once; the verdict needs 6 at least
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    #[command(flatten)]
    pub(super) common: Common,
}

impl LargePagesArgs {
    pub(super) fn options(&self) -> large_pages::LargePagesOptions {
        let o = if self.common.modern {
            large_pages::LargePagesOptions::MODERN
        } else {
            large_pages::LargePagesOptions::USUAL
        };
        large_pages::LargePagesOptions { bytes: self.bytes.unwrap_or(o.bytes), repeats: self.repeat }
    }
}

/// `pauses`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct PausesArgs {
    /// The command with its arguments, exactly as they are; it is started again and again
    #[arg(last = true, value_name = "CMD ARG", required = true)]
    command: Vec<OsString>,
    /// Lengths of the pauses, milliseconds; what the shortest costs is stopping itself
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "0.1,1,3,10", value_parser = milliseconds)]
    pause: Vec<Nanos>,
    /// After how much running they come, milliseconds
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "0.5,2", value_parser = milliseconds)]
    every: Vec<Nanos>,
    /// Rounds, each with one start of every kind and one without pauses
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    repeat: u64,
    #[command(flatten)]
    pub(super) common: Common,
}

impl PausesArgs {
    pub(super) fn options(&self) -> pauses::PausesOptions {
        pauses::PausesOptions {
            command: self.command.clone(),
            pauses: self.pause.clone(),
            every: self.every.clone(),
            repeats: self.repeat,
        }
    }
}

fn milliseconds(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.01..=10_000.0).contains(&ms) => Ok(Nanos((ms * 1e6) as u64)),
        _ => Err("not milliseconds from 0.01 to 10000".to_owned()),
    }
}

/// `pressure`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct PressureArgs {
    /// Memory of the process [default: 32Mi; 256Mi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit: Option<u64>,
    /// Bytes of the file [default: 40Mi; 1Gi with --modern]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    bytes: Option<u64>,
    /// Most threads [default: 2; 8 with --modern]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: Option<u64>,
    /// Length of each line [default: 3; 6 with --modern]
    #[arg(long, value_name = "SECONDS", value_parser = length)]
    seconds: Option<f64>,
    #[command(flatten)]
    pub(super) common: Common,
}

impl PressureArgs {
    pub(super) fn options(&self) -> pressure::PressureOptions {
        let o = if self.common.modern {
            pressure::PressureOptions::MODERN
        } else {
            pressure::PressureOptions::PUBLISHED
        };
        pressure::PressureOptions {
            limit: self.limit.map_or(o.limit, Bytes),
            bytes: self.bytes.unwrap_or(o.bytes),
            threads: self.threads.unwrap_or(o.threads),
            seconds: self.seconds.unwrap_or(o.seconds),
        }
    }
}

/// `script`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(super) struct ScriptArgs {
    /// The .SCR; the .SCP and .SCT files that it names lie beside it
    pub(super) file: PathBuf,
    /// Length of the trial, of which the second half counts
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = length)]
    seconds: f64,
    /// Double the trial until each thread's mean response is within 5% of the trial before (64 times at most)
    #[arg(long)]
    pub(super) until_it_repeats: bool,
    /// Size of files that the script names and that do not exist; they are made in --dir
    #[arg(long, value_name = "SIZE", default_value = "1Mi", value_parser = size)]
    bytes: u64,
    /// Write the columns also to this new file, separated by tabs
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Draw true normal numbers instead of the Response Probe's
    #[arg(long, conflicts_with = "nt")]
    true_normal: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

impl ScriptArgs {
    pub(super) fn options(&self) -> script::ScriptOptions {
        script::ScriptOptions {
            seconds: self.seconds,
            place: self.common.dir.clone(),
            file_bytes: self.bytes,
            destroy: self.common.destroy.iter().cloned().collect(),
            seed: self.common.seed,
            variate: if self.true_normal { Variate::True } else { Variate::Nt },
        }
    }
}
