//! The flags of `cold simulate`.

use std::path::PathBuf;

use cold_model::Bytes;
use cold_sim::disk::Preset;
use cold_sim::{LinuxVersion, Policy};

use crate::cli::TEMPLATE;
use crate::commands::prefetch::plans::StorePlace;

const AFTER: &str = "\
Policies:   linux-5.10, 6.1, 6.12, 6.16, 6.17, 6.18 (each with linux-), linux-7, windows, freebsd,
            aligned:PAGES, centred:PAGES, whole, nothing, and exact: a helper that reads exactly
            what is needed, in its order.
Disks:      recorded (fitted to the recording's own requests), measured (this machine's, as
            cold probe device finds it), hdd, sata-ssd, cloud, fast, nvme, optane, emmc, ufs,
            gp2, hp97560, laptop-1993; and NAME+MS or NAME+MS+MS: behind a way of so many ms
            for each request, and for each MiB of it (cloud+0.2, cloud+0.2+0.4).
Exit codes: 0 shown and written; 1 failed; 2 wrong usage; 3 --verify: this kernel follows none
            of the policies; 4 --verify: others disturbed every try; 130 interrupted.";

/// Windows of `read_ahead_kb`: more than 1 GiB is no window.
const MOST_KIB: u64 = 1 << 20;
/// Milliseconds that a way to a disk takes at most: a minute.
const MOST_WAY_MS: f64 = 60_000.0;

/// Flags of `cold simulate`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = AFTER)]
#[command(before_help = "Examples:
  cold simulate firefox-esr.cold                          other windows, systems, the best of all
  cold simulate firefox-esr.cold --read-ahead-kb 4..8192  every doubling of the read-ahead window
  cold simulate firefox-esr.cold --disk hdd,cloud,nvme    the same start on other disks
  cold simulate firefox-esr.cold --plan firefox-esr       what the learnt plan is worth
  cold simulate firefox-esr.cold --policy windows,linux-6.1 --html firefox.html
  cold simulate --verify                                  which policy does this kernel follow?
")]
pub(crate) struct Args {
    /// The recording, best made with `cold trace --exact-need`
    #[arg(value_name = "NAME.cold", required_unless_present = "verify")]
    pub(crate) recording: Option<PathBuf>,

    /// What the page cache reads, several with commas [default: the recorded kernel's, windows, freebsd, nothing,
    /// whole, exact]
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = policy, help_heading = "Settings")]
    pub(crate) policy: Vec<Named>,

    /// Disks to put the start on, several with commas [default: measured on the machine that
    /// was recorded, elsewhere recorded]
    #[arg(long, value_name = "DISK", value_delimiter = ',', value_parser = disk, help_heading = "Settings")]
    pub(crate) disk: Vec<Behind>,

    /// Read-ahead windows of Linux: KiB with commas, or FROM..TO for every doubling [default: 16..2048]
    #[arg(long, value_name = "KIB", value_parser = windows, help_heading = "Settings")]
    pub(crate) read_ahead_kb: Option<Windows>,

    /// A warm recording of the same command: what the program computes is taken from it, and
    /// what it computed more in NAME.cold is what waiting costs the CPU
    #[arg(long, value_name = "NAME.cold", conflicts_with = "verify", help_heading = "Settings")]
    pub(crate) warm: Option<PathBuf>,

    /// What `cold probe pauses --json` wrote of the same command: what a wait costs the CPU then
    /// grows with its length. Without it each wait costs the same
    #[arg(long, value_name = "FILE", conflicts_with = "verify", help_heading = "Settings")]
    pub(crate) pauses: Option<PathBuf>,

    /// Also with a helper that reads by this plan: its name in `cold prefetch list`, or the program's name
    #[arg(long, value_name = "PLAN", conflicts_with = "verify", help_heading = "Settings")]
    pub(crate) plan: Option<String>,

    /// Room for cached pages of files, where there is not enough for all: 64Mi
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "verify", help_heading = "Settings")]
    pub(crate) memory: Option<Bytes>,

    #[command(flatten)]
    pub(crate) store: StorePlace,

    /// Figures of the files with this text in their path, instead of all: requests, bytes, waits of all threads
    #[arg(long, value_name = "TEXT", conflicts_with = "verify", help_heading = "Results")]
    pub(crate) file: Option<String>,

    /// Table and advice as one JSON document on stdout instead of text
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,

    /// Write one self-contained page: curves, table, pictures
    #[arg(long, value_name = "FILE", conflicts_with = "verify", help_heading = "Results")]
    pub(crate) html: Option<PathBuf>,

    /// Write file-offset pictures of up to four settings below each other
    #[arg(long, value_name = "FILE", conflicts_with = "verify", help_heading = "Results")]
    pub(crate) svg: Option<PathBuf>,

    /// Do random reads and touches on files of its own, and name the policy that this kernel follows page by page
    #[arg(long, conflicts_with_all = ["recording", "disk", "read_ahead_kb"], help_heading = "This kernel")]
    pub(crate) verify: bool,

    /// Directory for the files of --verify, on the disk and file system that is asked about
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        requires = "verify",
        help_heading = "This kernel"
    )]
    pub(crate) dir: PathBuf,

    /// Operations of --verify
    #[arg(long, value_name = "N", default_value_t = 5000, requires = "verify", value_parser = clap::value_parser!(u64).range(1..), help_heading = "This kernel")]
    pub(crate) operations: u64,

    /// Chooses the operations of --verify
    #[arg(long, value_name = "N", default_value_t = 1, requires = "verify", help_heading = "This kernel")]
    pub(crate) seed: u64,
}

/// A policy, or the helper that knows what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Policy(Policy),
    Exact,
}

/// A disk, and what the way to it adds to each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behind {
    pub(crate) place: Place,
    /// There and back, nanoseconds.
    pub(crate) way_ns: u64,
    /// And for each MiB of it, nanoseconds.
    pub(crate) way_ns_per_mib: u64,
}

/// A disk by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Recorded,
    Measured,
    Preset(Preset),
}

/// Windows in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Windows(pub(crate) Vec<Bytes>);

fn memory(text: &str) -> Result<Bytes, String> {
    match crate::values::count(text) {
        Some(n) if (1 << 20..=1 << 40).contains(&n) => Ok(Bytes(n)),
        _ => Err("not a size from 1Mi to 1024Gi (like 64Mi)".to_owned()),
    }
}

fn policy(text: &str) -> Result<Named, String> {
    if text == "exact" {
        return Ok(Named::Exact);
    }
    if let Some(Policy::Fixed { pages, .. }) = Policy::of_name(text)
        && pages > MOST_KIB / 4
    {
        return Err(format!("a window has at most {} pages", MOST_KIB / 4));
    }
    Policy::of_name(text).map(Named::Policy).ok_or_else(|| {
        let versions: Vec<&str> = LinuxVersion::ALL.iter().map(|v| v.name()).collect();
        format!(
            "no policy has this name: {}, windows, freebsd, aligned:PAGES, centred:PAGES, whole, nothing, exact",
            versions.join(", ")
        )
    })
}

fn disk(text: &str) -> Result<Behind, String> {
    let ns = |given: &str| {
        let ms = given.parse::<f64>().ok().filter(|ms| (0.0..=MOST_WAY_MS).contains(ms));
        ms.map(|ms| (ms * 1e6) as u64).ok_or_else(|| {
            format!("{given:?} is no way to a disk: milliseconds from 0 to {MOST_WAY_MS}, behind + for each request and, \
                     behind another +, for each MiB of it")
        })
    };
    let mut parts = text.splitn(3, '+');
    let place = place(parts.next().unwrap_or_default());
    let mut way = || parts.next().map_or(Ok(0), ns);
    Ok(Behind { way_ns: way()?, way_ns_per_mib: way()?, place: place? })
}

fn place(text: &str) -> Result<Place, String> {
    match text {
        "recorded" => Ok(Place::Recorded),
        "measured" => Ok(Place::Measured),
        _ => Preset::named(text).map(Place::Preset).ok_or_else(|| {
            let names: Vec<&str> = Preset::ALL.iter().map(|p| p.name()).collect();
            format!("no disk has this name: recorded, measured, {}", names.join(", "))
        }),
    }
}

fn windows(text: &str) -> Result<Windows, String> {
    let one = |text: &str| {
        let kib = text.trim().parse::<u64>().ok().filter(|kib| *kib <= MOST_KIB);
        kib.ok_or_else(|| format!("{text:?} is no window: KiB from 0 to {MOST_KIB}"))
    };
    let kib: Vec<u64> = match text.split_once("..") {
        Some((from, to)) => {
            let (from, to) = (one(from)?, one(to)?);
            if from == 0 || from > to {
                return Err(format!("{text:?} is no range: FROM is at least 1 and not above TO"));
            }
            std::iter::successors(Some(from), |kib| kib.checked_mul(2)).take_while(|kib| *kib <= to).collect()
        }
        None => text.split(',').map(one).collect::<Result<_, _>>()?,
    };
    Ok(Windows(kib.into_iter().map(|kib| Bytes(kib << 10)).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_a_list_or_doublings() {
        let kib = |text| windows(text).map(|w| w.0.iter().map(|b| b.0 >> 10).collect::<Vec<_>>());
        assert_eq!(kib("4..32"), Ok(vec![4, 8, 16, 32]));
        assert_eq!(kib("100..500"), Ok(vec![100, 200, 400]));
        assert_eq!(kib("128,0,4"), Ok(vec![128, 0, 4]));
        for wrong in ["", "0..4", "8..4", "-1", "4..", "2097152", "128k"] {
            assert!(kib(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_found_and_others_are_told_what_there_is() {
        assert_eq!(policy("exact"), Ok(Named::Exact));
        assert_eq!(policy("windows"), Ok(Named::Policy(Policy::Windows)));
        assert!(policy("solaris").unwrap_err().contains("linux-6.18"));
        assert!(
            policy("aligned:262144").is_ok()
                && policy("aligned:262145").unwrap_err().contains("at most 262144")
        );
        let cloud = Place::Preset(Preset::Cloud);
        let behind = |way_ns, way_ns_per_mib| Ok(Behind { place: cloud, way_ns, way_ns_per_mib });
        assert_eq!(disk("cloud"), behind(0, 0));
        assert_eq!(disk("cloud+0.25"), behind(250_000, 0));
        assert_eq!(disk("cloud+0.25+0.4"), behind(250_000, 400_000));
        for wrong in ["cloud+", "cloud+-1", "cloud+x", "cloud+1e9", "cloud+nan", "cloud+1+", "cloud+1+2+3"] {
            assert!(disk(wrong).unwrap_err().contains("milliseconds"), "{wrong}");
        }
        assert!(disk("floppy").unwrap_err().contains("gp2"));
    }
}
