//! docs/formats/plan.md is in step with the bytes: a reader that knows only its tables reads a plan.

use std::collections::BTreeMap;
use std::path::Path;

use crate::format::{encode, layout};
use crate::history::{LaunchKind, Mark, Record};
use crate::plan::Identity;
use crate::sample::sample;

/// Name, offset, size of the fields of a record; fields without a name are called `@offset`.
type Fields = BTreeMap<String, (usize, usize)>;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/plan.md");
    std::fs::read_to_string(path).unwrap()
}

/// The table below a heading, checked to be without holes.
fn table(heading: &str) -> (Fields, usize) {
    let text = document();
    let section = text.split(&format!("### {heading}\n")).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let rows =
        section.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    let (mut fields, mut end) = (Fields::new(), 0);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (offset, size): (usize, usize) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        assert_eq!(offset, end, "{heading}: a hole or an overlap at {row}");
        end = offset + size;
        let name = if cells[2].is_empty() { format!("@{offset}") } else { cells[2].to_owned() };
        assert!(fields.insert(name, (offset, size)).is_none(), "{heading}: twice {row}");
    }
    (fields, end)
}

/// A record read by a table of the documentation. Every field must be asked for.
struct Read<'a> {
    fields: Fields,
    record: &'a [u8],
    what: &'static str,
}

impl<'a> Read<'a> {
    fn new(what: &'static str, bytes: &'a [u8], at: usize) -> Self {
        let (fields, size) = table(what);
        Self { fields, record: &bytes[at..at + size], what }
    }
    fn bytes(&mut self, name: &str) -> &'a [u8] {
        let (at, size) = self.fields.remove(name).unwrap_or_else(|| panic!("{}: no {name}", self.what));
        &self.record[at..at + size]
    }
    fn number(&mut self, name: &str) -> u64 {
        let bytes = self.bytes(name);
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    }
    fn double(&mut self, name: &str) -> f64 {
        f64::from_bits(self.number(name))
    }
    fn text(&mut self, name: &str, texts: &'a [u8]) -> &'a str {
        let place = self.number(name);
        let (at, length) = ((place & 0xffff_ffff) as usize, (place >> 32) as usize);
        assert!(length == 0 || texts[at + length] == 0, "{name} does not end with a zero byte");
        std::str::from_utf8(&texts[at..at + length]).unwrap()
    }
    fn identity(&mut self, expected: &Identity) {
        let bytes = self.bytes("identity");
        let mut read = Read::new("Identity", bytes, 0);
        assert_eq!(read.record.len(), bytes.len());
        assert_eq!(read.number("major"), u64::from(expected.dev.major));
        assert_eq!(read.number("minor"), u64::from(expected.dev.minor));
        assert_eq!(read.number("inode"), expected.inode);
        assert_eq!(read.number("size"), expected.size);
        assert_eq!(read.number("mtime_ns").cast_signed(), expected.mtime_ns);
        assert_eq!(read.bytes("build_id"), expected.build_id);
        read.end();
    }
    /// What is left has no name and is zero.
    fn end(self) {
        for (name, (at, size)) in &self.fields {
            assert!(name.starts_with('@'), "{}: the code has no {name}", self.what);
            assert!(self.record[*at..at + size].iter().all(|b| *b == 0), "{}: {name}", self.what);
        }
    }
}

/// The sections of an encoded plan, by the tables alone.
fn sections(bytes: &[u8]) -> Vec<&[u8]> {
    let mut header = Read::new("Header", bytes, 0);
    assert_eq!(header.bytes("magic"), b"COLDPLAN");
    assert_eq!((header.number("version"), header.number("length")), (2, bytes.len() as u64));
    let (start, count) = (header.record.len(), header.number("sections"));
    let entry_size = table("Section table").1;
    let end = start + count as usize * entry_size;
    let crc = header.fields["crc"].0;
    let covered = [&bytes[..crc], &[0; 4], &bytes[crc + 4..end]].concat();
    assert_eq!(header.number("crc"), u64::from(crc32fast::hash(&covered)));
    header.end();
    let records = document();
    let sizes = records.lines().find(|l| l.contains("bytes per record:")).unwrap();
    let sizes: Vec<u64> = sizes
        .split("record: ")
        .nth(1)
        .unwrap()
        .split(',')
        .map(|n| n.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap())
        .collect();
    (0..count)
        .map(|i| {
            let mut entry = Read::new("Section table", bytes, start + i as usize * entry_size);
            assert_eq!((entry.number("id"), entry.number("record")), (i + 1, sizes[i as usize]));
            let at = entry.number("offset") as usize;
            let section = &bytes[at..at + (entry.number("count") * sizes[i as usize]) as usize];
            assert_eq!(entry.number("crc"), u64::from(crc32fast::hash(section)));
            entry.end();
            section
        })
        .collect()
}

#[test]
fn the_facts_lie_where_the_document_says() {
    let plan = sample();
    let bytes = encode(&plan).unwrap();
    let sections = sections(&bytes);
    let (mut facts, texts) = (Read::new("Facts", sections[0], 0), sections[4]);
    assert_eq!(facts.record.len(), layout::META);
    assert_eq!(facts.text("executable", texts), "/usr/bin/python3.11");
    assert_eq!(facts.text("script", texts), "/home/u/serve.py");
    assert_eq!(facts.text("scenario", texts), "run+--port");
    assert_eq!(facts.text("reason", texts), "it did not win: 1.02 of the time without it");
    facts.identity(&plan.key.identity);
    let (l, k) = (plan.learnt, plan.knobs);
    let (bound, trial, device) = (plan.bound.unwrap(), plan.trial.unwrap(), plan.device.unwrap());
    for (name, expected) in [
        ("starts", l.starts.into()),
        ("cold_starts", l.cold_starts.into()),
        ("first", l.first),
        ("last", l.last),
        ("cpu_ns", l.cpu_ns),
        ("cold_ready_ns", l.cold_ready_ns),
        ("own_cpu_ns", l.own_cpu_ns),
        ("tier", b'A'.into()),
        ("exact", 1),
        ("standing", 2),
        ("present", 7),
        ("min_uses", k.min_uses.into()),
        ("threads", k.threads.into()),
        ("order", 1),
        ("gate", 1),
        ("metadata", 1),
        ("one_thread", 1),
        ("goes_on", 1),
        ("gap_bytes", k.gap_bytes.into()),
        ("chunk_bytes", k.chunk_bytes.into()),
        ("in_flight_bytes", k.in_flight_bytes.into()),
        ("window_us", k.window_us.into()),
        ("critical_us", k.critical_us.into()),
        ("bound_cpu_ns", bound.cpu_ns.unwrap()),
        ("bound_overlapped_ns", bound.overlapped_ns),
        ("bound_serial_ns", bound.serial_ns),
        ("bound_bytes", bound.bytes),
        ("bound_requests", bound.requests.into()),
        ("trial_at", trial.at),
        ("trial_plain_ns", trial.plain_ns),
        ("trial_prefetched_ns", trial.prefetched_ns),
        ("trial_warm_ns", trial.warm_ns.unwrap()),
        ("trial_ratio", trial.ratio.to_bits()),
        ("trial_low", trial.low.to_bits()),
        ("trial_high", trial.high.to_bits()),
        ("trial_pairs", trial.pairs.into()),
        ("device_major", device.dev.major.into()),
        ("device_minor", device.dev.minor.into()),
        ("device_latency_ns", device.latency_ns.to_bits()),
        ("device_ns_per_byte", device.ns_per_byte.to_bits()),
        ("device_readahead_cap", device.readahead_cap),
        ("device_measured_at", device.measured_at),
        ("device_rotational", 0),
    ] {
        assert_eq!(facts.number(name), expected, "{name}");
    }
    assert_eq!(facts.text("device_name", texts), "vda");
    facts.end();
    for (i, expected) in device.depths.iter().enumerate() {
        let mut depth = Read::new("Depths", sections[3], i * layout::DEPTH);
        assert_eq!((depth.number("depth"), depth.double("iops")), (expected.depth.into(), expected.iops));
        depth.end();
    }
}

#[test]
fn the_records_lie_where_the_document_says() {
    let plan = sample();
    let bytes = encode(&plan).unwrap();
    let sections = sections(&bytes);
    for (i, expected) in plan.files.iter().enumerate() {
        let mut file = Read::new("Files", sections[1], i * layout::FILE);
        assert_eq!(Path::new(file.text("path", sections[4])), expected.path);
        file.identity(&expected.identity);
        assert_eq!(
            (file.number("need_ns"), file.number("kind")),
            (expected.need_ns, expected.kind.byte().into())
        );
        assert_eq!(file.number("uses"), u64::from(expected.uses));
        assert_eq!(file.number("exact"), u64::from(expected.exact));
        file.end();
    }
    for (i, expected) in plan.steps.iter().enumerate() {
        let mut step = Read::new("Steps", sections[2], i * layout::STEP);
        assert_eq!(
            (step.number("file"), step.number("bytes")),
            (expected.file.into(), expected.bytes.into())
        );
        assert_eq!((step.number("offset"), step.number("need_ns")), (expected.offset, expected.need_ns));
        assert_eq!(
            (step.number("op"), step.number("critical")),
            (expected.op.byte().into(), expected.critical.into())
        );
        step.end();
    }
    for (i, expected) in plan.ranges.iter().enumerate() {
        let mut range = Read::new("Ranges", sections[5], i * layout::RANGE);
        assert_eq!(
            (range.number("file"), range.number("pages")),
            (expected.file.into(), expected.pages.into())
        );
        assert_eq!(
            (range.number("first_page"), range.number("need_ns")),
            (expected.first_page, expected.need_ns)
        );
        assert_eq!(
            (range.number("uses"), range.number("around")),
            (expected.uses.into(), expected.around.into())
        );
        range.end();
    }
}

#[test]
fn the_history_lies_where_the_document_says() {
    let mark = Mark { wall_ns: 400_000_000, cpu_ns: 290_000_000, exited: true, rested: false };
    let record = Record {
        when_ns: 1_763_000_000_000_000_001,
        plan: 0x1234_5678_0000_0abc,
        kind: LaunchKind::Control,
        mark: Some(mark),
        bytes: 20 << 20,
        requests: 180,
        late: true,
    };
    let bytes = record.encode();
    let mut read = Read::new("Record", &bytes, 0);
    assert_eq!((read.record.len(), read.bytes("magic")), (64, &b"CLH1"[..]));
    assert_eq!((read.number("kind"), read.number("skip"), read.number("flags")), (2, 0, 7));
    assert_eq!((read.number("when_ns"), read.number("plan")), (record.when_ns, record.plan));
    assert_eq!((read.number("wall_ns"), read.number("cpu_ns")), (mark.wall_ns, mark.cpu_ns));
    assert_eq!((read.number("bytes"), read.number("requests")), (record.bytes, 180));
    assert_eq!(read.number("crc"), u64::from(crc32fast::hash(&bytes[..60])));
    read.end();
}

#[cfg(feature = "portable")]
#[test]
fn the_portable_form_is_the_documents_example() {
    let text = document();
    let (before, rest) = text.split_once("```json\n").unwrap();
    let (example, after) = rest.split_once("\n```").unwrap();
    let exported = crate::portable::export(&sample(), &|_| crate::portable::Parts::default()).unwrap();
    if std::env::var_os("COLD_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/plan.md");
        std::fs::write(path, format!("{before}```json\n{exported}\n```{after}")).unwrap();
        return;
    }
    assert_eq!(example, exported, "COLD_BLESS=1 cargo test -p cold-plan --features portable writes it");
}
