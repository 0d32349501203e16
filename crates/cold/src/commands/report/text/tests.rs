//! The whole text of a made-up analysis, against a file that people can read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cold_analyze::model::*;
use cold_model::recording::manifest::Tier;
use cold_model::recording::{FillCause, LookupKind, StallCause};
use cold_model::{Bytes, Known, Nanos};

use super::{MOST_COLUMNS, View, lines};

const MS: u64 = 1_000_000;
const KIB: u64 = 1024;

fn file(file: u32, path: &str, [stall, needed, read, unused]: [u64; 4], reached: Reached) -> FileUse {
    FileUse {
        direct: Bytes(0),
        file,
        path: path.into(),
        size: Some(Bytes(needed + unused + 4096)),
        needed: Bytes(needed),
        needed_upper: Bytes(if file == 0 { needed / 4 } else { 0 }),
        read: Bytes(read),
        unused: Bytes(unused),
        cached: Bytes(needed.saturating_sub(read)),
        read_by_others: Bytes(0),
        refilled: Bytes(0),
        hardly_needed: (file == 2).then(|| "6.0% of what was read was needed: 3 functions".into()),
        requests: read / (64 * KIB),
        stalls: stall / MS,
        stall: Nanos(stall),
        first_use: (stall > 0).then_some(Nanos(u64::from(file + 1) * 7 * MS)),
        reached,
        fragments: 12,
        causes: BTreeMap::from([(FillCause::ReadAround, Bytes(read))]),
    }
}

fn files() -> Vec<FileUse> {
    vec![
        file(0, "/usr/lib/firefox-esr/libxul.so", [900 * MS, 40 << 20, 90 << 20, 50 << 20], Reached::Mapped),
        file(1, "/usr/lib/firefox-esr/omni.ja", [120 * MS, 12 << 20, 12 << 20, 0], Reached::Read),
        file(
            2,
            "/usr/lib/x86_64-linux-gnu/libgtk-3.so.0.2404.26",
            [30 * MS, 128 * KIB, 2 << 20, 2 << 20],
            Reached::Mapped,
        ),
        file(3, "/etc/passwd", [0, 0, 0, 0], Reached::LookedUp),
    ]
}

fn headline() -> Headline {
    Headline {
        mapped: None,
        came_in: None,
        direct: Known::Value(Bytes(0)),
        written: Known::Value(Bytes(0)),
        subject: "firefox-esr --headless -screenshot /tmp/p.png file:///tmp/page.html".into(),
        tier: Tier::A,
        ready: Known::Value(Nanos(3210 * MS)),
        ended: Some(Nanos(4820 * MS)),
        first_ended: None,
        load: None,
        recorded: None,
        waited: Known::Value(Nanos(1890 * MS)),
        waited_sum: Known::Value(Nanos(2400 * MS)),
        waited_main: Known::Value(Nanos(1500 * MS)),
        needed: Known::Value(Bytes(53 << 20)),
        needed_upper: Known::Value(Bytes(10 << 20)),
        read: Known::Value(Bytes(104 << 20)),
        read_by_others: Known::Value(Bytes(3 << 20)),
        unused: Known::Value(Bytes(52 << 20)),
        cached: Known::Value(Bytes(1 << 20)),
        requests: Known::Value(1664),
        mean_request: Known::Value(Bytes(64 * KIB)),
        mean_service: Known::Value(Nanos(420_000)),
        mean_queueing: Known::Value(Nanos(90_000)),
        requests_by_others: Known::Value(41),
        metadata: Known::Value(Bytes(2 << 20)),
        refilled: Known::Value(Bytes(0)),
        unattributed: Known::Value(Nanos(20 * MS)),
        after_ready: Some(AfterReady { read: Bytes(5 << 20), requests: 70, waited_sum: Nanos(80 * MS) }),
        causes: BTreeMap::from([
            (FillCause::DemandFault, Bytes(20 << 20)),
            (FillCause::ReadAround, Bytes(70 << 20)),
            (FillCause::ReadAhead, Bytes(14 << 20)),
        ]),
        lookups: Known::Value(5120),
        misses: Known::Value(1377),
        files: Known::Value(396),
        files_needed: Known::Value(393),
        processes: Known::Value(9),
        lost: BTreeMap::from([("filemap".into(), 12)]),
        complete: true,
        notes: vec!["taint: caches were dropped during the start".into()],
    }
}

fn miss() -> MissGroup {
    MissGroup {
        directory: "/usr/lib/firefox-esr".into(),
        search: Some("RPATH of /usr/lib/firefox-esr/libxul.so".into()),
        family: None,
        misses: 1300,
        time: Nanos(12 * MS),
        stall: Nanos(0),
        kinds: BTreeMap::from([(LookupKind::Open, 1200), (LookupKind::Stat, 97), (LookupKind::Change, 3)]),
        examples: vec!["libgtk-3.so.0".into(), "libX11.so.6".into()],
    }
}

fn package(name: Option<&str>, ms: u64) -> PackageUse {
    PackageUse {
        language: Language::Python,
        name: name.map(str::to_owned),
        files: ms / 10,
        read: Bytes(ms * KIB),
        waited: Nanos(ms * MS / 4),
        misses: 3,
        elapsed: Nanos(ms * MS),
    }
}

fn stack() -> StackWait {
    StackWait {
        stack: Some(0),
        frames: (0..12).map(|i| format!("libxul.so`outer_{i}")).collect(),
        stalls: 310,
        stall: Nanos(420 * MS),
        causes: BTreeMap::from([(StallCause::Fault, Nanos(400 * MS)), (StallCause::Read, Nanos(20 * MS))]),
    }
}

fn suggestion() -> Suggestion {
    Suggestion {
        read_ahead: None,
        id: SuggestionId::PrefetchPlan,
        what: "Read the needed pages in order before they are asked for".into(),
        why: "1,664 requests of 64 KiB took 0.42 ms each, one after another".into(),
        saves_bytes: Some(Bytes(52 << 20)),
        saves_requests: Some(1100),
        saves_time: Some(Nanos(1400 * MS)),
        estimate: "the device's best rate in this recording, applied to the needed bytes".into(),
        files: vec![0, 1, 2, 3],
    }
}

fn checks() -> Vec<Check> {
    let check = |id: &str, holds, what: &str| Check { id: id.into(), holds, what: what.into() };
    vec![
        check("needed_within_read_or_cached", Some(true), "every needed page was read or had been cached"),
        check("device_reads_agree", Some(false), "recorded device reads are 3.2% below /proc/diskstats"),
        check("stalls_attributed", None, "no stalls were recorded"),
    ]
}

fn entries() -> FirstEntries {
    let read = |pages, requests, mib: u64| OrderRead { pages, requests, read: Bytes(mib << 20) };
    let function = |name: Option<&str>, offset, stall| EnteredFunction {
        name: name.map(str::to_owned),
        offset,
        bytes: Bytes(600),
        stall: Nanos(stall * MS),
    };
    FirstEntries {
        file: 0,
        scenarios: vec!["start".into(), "help".into()],
        scenario: "start".into(),
        same_command: true,
        is_program: false,
        entered: 2,
        named: 1,
        stall: Nanos(200 * MS),
        predicted: Some(OrderGain { today: read(900, 60, 70), ordered: read(300, 20, 25) }),
        functions: vec![function(Some("main"), 0x1040, 150), function(None, 0x2000, 50)],
        from: vec!["start.order".into(), "help.order".into()],
    }
}

/// An analysis with everything in it.
pub(in crate::commands::report) fn analysis() -> Analysis {
    Analysis {
        headline: headline(),
        files: files(),
        hardly_needed: vec![2],
        sections: vec![SectionUse {
            file: 0,
            segment: "r-x".into(),
            section: ".text".into(),
            size: Bytes(80 << 20),
            needed: Bytes(30 << 20),
            read: Bytes(70 << 20),
            stall: Nanos(700 * MS),
        }],
        symbols: vec![SymbolUse {
            file: 0,
            symbol: "js::RunScript(JSContext*, js::RunState&)".into(),
            touches: 3,
            stall: Nanos(14 * MS),
            first_use: Nanos(240 * MS),
            evidence: SymbolEvidence::Instruction,
        }],
        first_entries: vec![entries()],
        data: vec![DataUse {
            file: 0,
            section: ".data.rel.ro".into(),
            size: Bytes(2 << 20),
            pages: 512,
            touched: 500,
            perhaps: 4,
            written: Some(498),
            symbols: vec![DataSymbol {
                name: "vtable for nsDocument".into(),
                offset: 0x10_0000,
                bytes: Bytes(9000),
                pages: 3,
                alone: 1,
                written: Some(3),
            }],
        }],
        misses: vec![miss()],
        in_front: Some(InFront {
            other_root: false,
            program: "/usr/lib/firefox-esr/firefox-esr".into(),
            programs: vec!["shims/firefox".into()],
            processes: 41,
            time: Nanos(147 * MS),
            waited: Nanos(12 * MS),
        }),
        whole_reads: vec![WholeRead {
            file: 1,
            bytes: Bytes(12 << 20),
            size: Bytes(12 << 20),
            elapsed: Nanos(220 * MS),
            waited: Nanos(120 * MS),
        }],
        packages: vec![package(Some("lxml"), 410), package(None, 90)],
        stacks: vec![stack()],
        suggestions: vec![suggestion()],
        checks: checks(),
        usage: Vec::new(),
    }
}

/// As an ordinary user sees it: most is unknown.
fn poor() -> Analysis {
    let mut a = analysis();
    let why = || "tier D sees no page cache and no device".to_owned();
    let h = &mut a.headline;
    h.tier = Tier::D;
    h.lost.clear();
    h.notes.clear();
    h.complete = false;
    h.causes.clear();
    h.after_ready = None;
    (h.metadata, h.read_by_others) = (Known::unknown(why()), Known::unknown(why()));
    h.unattributed = Known::unknown("no stalls");
    (h.read, h.unused, h.cached) = (Known::unknown(why()), Known::unknown(why()), Known::unknown(why()));
    (h.requests, h.mean_request) = (Known::unknown(why()), Known::unknown(why()));
    (h.waited, h.waited_sum, h.waited_main) =
        (Known::unknown("no stalls"), Known::unknown("no stalls"), Known::unknown("no stalls"));
    h.ready = Known::unknown("it was interrupted");
    h.ended = None;
    a.hardly_needed.clear();
    (a.sections, a.symbols, a.misses, a.stacks, a.suggestions, a.checks) = Default::default();
    a.first_entries.clear();
    a.data.clear();
    a
}

fn plain(a: &Analysis, view: View) -> Vec<String> {
    lines(a, view).iter().map(|l| anstream::adapter::strip_str(l).to_string().trim_end().to_owned()).collect()
}

#[track_caller]
pub(in crate::commands::report) fn golden(name: &str, lines: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = lines.join("\n") + "\n";
    if std::env::var_os("COLD_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("has one")).expect("created");
        std::fs::write(&path, &text).expect("written");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == text, "tests/golden/{name} differs (COLD_BLESS=1 writes it):\n{text}");
}

/// Room for so many columns and rows.
fn view(columns: usize, table: Option<usize>, limit: usize) -> View {
    View { columns, table, limit, few: limit, details: false }
}

#[test]
fn the_report_reads_as_it_should() {
    golden("report-100.txt", &plain(&analysis(), view(100, Some(100), 10)));
    let all = View { details: true, ..view(100, Some(100), 10) };
    golden("report-details.txt", &plain(&analysis(), all));
    golden("report-pipe.txt", &plain(&analysis(), view(MOST_COLUMNS, None, 2)));
    golden("report-unknown.txt", &plain(&poor(), view(80, Some(80), 10)));
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for width in [60, 80, 120] {
        for line in plain(&analysis(), view(width, Some(width), 10)) {
            // Only tables of a terminal too narrow for their figures may stick out.
            assert!(line.chars().count() <= width.max(80), "{width}: {line}");
        }
    }
}

/// As many rows of everything as a large program's start has.
#[test]
fn a_long_report_fits_two_screens() {
    let mut a = analysis();
    a.files = (0..500)
        .map(|i| file(i, &format!("/usr/lib/x/lib{i}.so"), [9 * MS, MS, MS, MS], Reached::Mapped))
        .collect();
    a.hardly_needed = (0..40).collect();
    a.misses = (0..60).map(|i| MissGroup { search: Some(format!("RPATH of lib{i}.so")), ..miss() }).collect();
    a.suggestions = vec![suggestion(); 14];
    a.stacks = vec![stack(); 300];
    a.packages = (0..80).map(|i| package(Some(&format!("p{i}")), 900 - i)).collect();
    let usual = View {
        limit: crate::commands::report::ROWS,
        few: crate::commands::report::FEW,
        ..view(100, Some(100), 0)
    };
    let lines = plain(&a, usual);
    // Two screens of 45 lines.
    assert!(lines.len() <= 90, "{} lines:\n{}", lines.len(), lines.join("\n"));
    assert!(plain(&a, View { details: true, ..usual }).len() > lines.len());
}

#[test]
fn losses_come_before_every_figure() {
    let text = plain(&analysis(), view(100, None, 10));
    assert!(text[1].contains("12 filemap") && text[1].contains("lost"), "{}", text[1]);
}
