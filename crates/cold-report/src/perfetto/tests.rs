use std::collections::{BTreeMap, BTreeSet};

use cold_model::recording::{FileKind, StallCause};
use cold_recording::sample;

use super::*;

/// A field of a decoded message.
#[derive(Debug, Clone, PartialEq)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Decodes one message, strictly: every byte must belong to a field.
fn decode(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field>> {
    let varint = |bytes: &mut &[u8]| cold_model::varint::take(bytes).expect("a number");
    let mut fields: BTreeMap<u64, Vec<Field>> = BTreeMap::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (part, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(part.to_vec())
            }
            wire => panic!("wire type {wire}"),
        };
        fields.entry(key >> 3).or_default().push(field);
    }
    fields
}

type Decoded = BTreeMap<u64, Vec<Field>>;

fn number(message: &Decoded, field: u64) -> Option<u64> {
    message.get(&field).map(|f| match f[0] {
        Field::Number(n) => n,
        Field::Bytes(_) => panic!("field {field} is no number"),
    })
}

fn numbers(message: &Decoded, field: u64) -> Vec<u64> {
    let each = |f: &Field| if let Field::Number(n) = f { *n } else { panic!("field {field}") };
    message.get(&field).into_iter().flatten().map(each).collect()
}

fn messages(message: &Decoded, field: u64) -> Vec<Decoded> {
    let each = |f: &Field| if let Field::Bytes(b) = f { decode(b) } else { panic!("field {field}") };
    message.get(&field).into_iter().flatten().map(each).collect()
}

fn text(message: &Decoded, field: u64) -> Option<String> {
    message.get(&field).map(|f| match &f[0] {
        Field::Bytes(b) => String::from_utf8(b.clone()).expect("UTF-8"),
        Field::Number(_) => panic!("field {field} is no text"),
    })
}

/// A slice as a viewer sees it.
#[derive(Debug, Clone, Default)]
struct Seen {
    name: String,
    began: u64,
    ended: u64,
    annotations: BTreeMap<String, String>,
    flows: Vec<u64>,
    flows_ending: Vec<u64>,
}

/// A trace as a viewer sees it; fails on whatever a viewer would drop.
#[derive(Default)]
struct Viewed {
    tracks: BTreeMap<u64, Decoded>,
    slices: BTreeMap<u64, Vec<Seen>>,
    instants: Vec<(String, u64)>,
    counters: BTreeMap<u64, Vec<(u64, i64)>>,
}

impl Viewed {
    fn of(recording: &Recording, layouts: &Layouts) -> Self {
        let analysis = cold_analyze::analyze(recording, layouts);
        let mut bytes = Vec::new();
        write(recording, &analysis, layouts, &mut bytes).expect("memory");
        let mut viewed = Self::default();
        let mut names: BTreeMap<(u64, u64), String> = BTreeMap::new();
        let mut open: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (n, packet) in messages(&decode(&bytes), 1).iter().enumerate() {
            assert_eq!(number(packet, 10), Some(1));
            assert_eq!(number(packet, 13), Some(if n == 0 { 3 } else { 2 }));
            for data in messages(packet, 12) {
                for kind in [2, 3, 29] {
                    for entry in messages(&data, kind) {
                        let name = text(&entry, 2).expect("a string");
                        let new = names.insert((kind, number(&entry, 1).expect("a number")), name);
                        assert_eq!(new, None, "interned twice");
                    }
                }
            }
            for track in messages(packet, 60) {
                let uuid = number(&track, 1).expect("a number");
                assert!(viewed.tracks.insert(uuid, track).is_none(), "described twice");
            }
            for event in messages(packet, 11) {
                viewed.event(&event, number(packet, 8).expect("a time"), &names, &mut open, &mut last);
            }
        }
        assert!(open.values().all(Vec::is_empty), "slices without end");
        for track in viewed.tracks.values() {
            let parent = number(track, 5);
            assert!(parent.is_none_or(|p| viewed.tracks.contains_key(&p)), "parent {parent:?}");
        }
        viewed
    }

    fn event(
        &mut self,
        event: &Decoded,
        at: u64,
        names: &BTreeMap<(u64, u64), String>,
        open: &mut BTreeMap<u64, Vec<usize>>,
        last: &mut BTreeMap<u64, u64>,
    ) {
        let track = number(event, 11).expect("a track");
        assert!(self.tracks.contains_key(&track), "track {track:#x} comes later or never");
        let before = last.insert(track, at).unwrap_or_default();
        assert!(before <= at, "{track:#x} goes back from {before} to {at}");
        let name = || names[&(2, number(event, 10).expect("a name"))].clone();
        let slices = self.slices.entry(track).or_default();
        match number(event, 9) {
            Some(1) => {
                let mut seen = Seen { name: name(), began: at, ..Seen::default() };
                for a in messages(event, 4) {
                    let key = names[&(3, number(&a, 1).expect("a name"))].clone();
                    let value = match number(&a, 17) {
                        Some(text) => names[&(29, text)].clone(),
                        None => {
                            number(&a, 2).or(number(&a, 3)).or(number(&a, 4)).expect("a value").to_string()
                        }
                    };
                    assert!(seen.annotations.insert(key, value).is_none());
                }
                (seen.flows, seen.flows_ending) = (numbers(event, 47), numbers(event, 48));
                open.entry(track).or_default().push(slices.len());
                slices.push(seen);
            }
            Some(2) => {
                let begun = open.get_mut(&track).and_then(Vec::pop).expect("a begin");
                slices[begun].ended = at;
            }
            Some(3) => self.instants.push((name(), at)),
            Some(4) => {
                let value = number(event, 30).expect("a value").cast_signed();
                self.counters.entry(track).or_default().push((at, value));
            }
            other => panic!("event type {other:?}"),
        }
    }

    fn named(&self, name: &str) -> Vec<u64> {
        let named = |t: &&u64| text(&self.tracks[t], 2).as_deref() == Some(name);
        self.tracks.keys().filter(named).copied().collect()
    }
}

#[test]
fn every_wait_lookup_and_request_of_the_recording_is_in_the_trace() {
    let recording = sample::small();
    let viewed = Viewed::of(&recording, &Layouts::default());
    let (stalls, lookups, reads) = (
        recording.stalls.as_ref().unwrap(),
        recording.lookups.as_ref().unwrap(),
        recording.device_reads.as_ref().unwrap(),
    );
    assert!(stalls.len() > 10 && lookups.len() > 10 && reads.len() > 10);
    for s in stalls {
        let slices = &viewed.slices[&uuid(THREAD, u64::from(s.tid))];
        let ended = s.ended.or(s.woken).unwrap().0;
        let found: Vec<_> = slices.iter().filter(|v| v.began == s.began.0 && v.ended == ended).collect();
        let found = found.iter().find(|v| v.annotations.contains_key("cause")).expect("the stall");
        assert_eq!(found.annotations["cause"], s.cause.word());
        if let Some(page) = s.page {
            assert_eq!(found.annotations["offset"], (page * 4096).to_string());
        }
        if let Some(file) = s.file {
            assert_eq!(found.annotations["file"], wording::path(&recording, file));
        }
    }
    for l in lookups {
        let slices = &viewed.slices[&uuid(THREAD, u64::from(l.tid))];
        let is =
            |v: &&Seen| v.began == l.at.0 && v.ended == l.ended.0 && v.annotations.contains_key("result");
        let found = slices.iter().find(is).expect("the lookup");
        assert_eq!(found.annotations.get("path"), l.path.as_ref());
        assert_eq!(found.annotations["result"], l.result.cast_unsigned().to_string());
    }
    let lanes = viewed.named("requests");
    let requests: Vec<&Seen> = lanes.iter().flat_map(|l| &viewed.slices[l]).collect();
    assert_eq!(requests.len(), reads.len());
    for r in reads {
        let is = |v: &&&Seen| v.annotations["sector"] == r.sector.to_string() && v.began == r.queued.0;
        let found = requests.iter().find(is).expect("the request");
        assert_eq!(found.ended, r.completed.unwrap().0);
        assert_eq!(found.annotations["bytes"], r.bytes.to_string());
    }
    let ready = recording.manifest.ready.clone().unwrap();
    assert_eq!(viewed.instants, [("ready".to_owned(), ready.value().unwrap().0)]);
}

#[test]
fn each_flow_goes_once_from_the_earlier_to_the_later() {
    let recording = sample::small();
    let viewed = Viewed::of(&recording, &Layouts::default());
    let all: Vec<&Seen> = viewed.slices.values().flatten().collect();
    let starts: Vec<(u64, &Seen)> = all.iter().flat_map(|s| s.flows.iter().map(|f| (*f, *s))).collect();
    let joined = cold_analyze::stall_requests(&recording).iter().flatten().count();
    assert!(joined > 10);
    assert_eq!(starts.len(), joined);
    for (flow, from) in starts {
        let to: Vec<_> = all.iter().filter(|s| s.flows_ending.contains(&flow)).collect();
        assert_eq!(to.len(), 1, "flow {flow}");
        assert!(from.began <= to[0].began, "flow {flow}");
        let ends = [from.annotations.contains_key("sector"), to[0].annotations.contains_key("sector")];
        assert_ne!(ends[0], ends[1], "a request and a wait");
    }
}

#[test]
fn counters_end_at_what_the_tables_say() {
    let recording = sample::small();
    let viewed = Viewed::of(&recording, &Layouts::default());
    let depth = &viewed.counters[&viewed.named("requests in flight")[0]];
    assert_eq!(depth.last().unwrap().1, 0);
    let reads = recording.device_reads.as_ref().unwrap();
    let in_flight =
        |at| reads.iter().filter(|r| r.queued <= at && r.completed.is_none_or(|c| at < c)).count();
    let most = reads.iter().map(|r| in_flight(r.queued)).max().unwrap();
    assert_eq!(depth.iter().map(|d| d.1).max(), i64::try_from(most).ok());
    let parent = uuid(FILES, 0);
    let files: Vec<u64> =
        viewed.tracks.iter().filter(|t| number(t.1, 5) == Some(parent)).map(|t| *t.0).collect();
    assert!(files.len() > 3);
    for track in files {
        let file = (track & 0xffff_ffff) as u32;
        let mut pages = BTreeSet::new();
        for f in recording.fills.iter().flatten().filter(|f| f.file == file) {
            pages.extend(f.first_page..f.first_page + u64::from(f.pages));
        }
        for e in recording.evictions.iter().flatten().filter(|e| e.file == file) {
            let left = e.first_page..e.first_page + u64::from(e.pages);
            pages.retain(|p| !left.contains(p));
        }
        let last = viewed.counters[&track].last().unwrap().1;
        assert_eq!(last.cast_unsigned(), pages.len() as u64 * 4096, "{}", wording::path(&recording, file));
    }
}

#[test]
fn offsets_of_a_recording_without_a_page_size_are_in_pages_of_4096_bytes() {
    let mut recording = sample::small();
    assert_eq!(recording.page_bytes(), 4096);
    let whole = Viewed::of(&recording, &Layouts::default());
    for damaged in [0, 3, 4095] {
        recording.manifest.page_bytes = damaged;
        assert_eq!(recording.page_bytes(), 4096, "{damaged}");
        assert!(Viewed::of(&recording, &Layouts::default()).counters == whole.counters, "{damaged}");
    }
    recording.manifest.page_bytes = 64 << 10;
    assert_eq!(recording.page_bytes(), 64 << 10);
}

/// A recording made by hand of what no machine would say: times that go backwards, numbers out of range,
/// names of every kind.
#[test]
fn nonsense_is_written_without_harm() {
    let mut recording = sample::small();
    recording.manifest.start = cold_model::Nanos(u64::MAX);
    recording.manifest.end = cold_model::Nanos(0);
    for f in &mut recording.files {
        f.path = Some("\u{0}\u{202e}\"</script>\n".to_owned());
        f.kind = FileKind::Other;
    }
    for (n, s) in recording.stalls.iter_mut().flatten().enumerate() {
        s.file = Some(u32::MAX - n as u32);
        s.page = Some(u64::MAX);
        s.woken = None;
        s.ended = (n % 2 == 0).then_some(cold_model::Nanos(3));
        s.stack = Some(u32::MAX);
        s.cause = StallCause::OtherStorage;
        (s.pid, s.tid) = (u32::MAX, n as u32 % 3);
    }
    for r in recording.device_reads.iter_mut().flatten() {
        r.completed = None;
        r.bytes = u32::MAX;
    }
    for t in recording.transfers.iter_mut().flatten() {
        (t.file, t.request) = (Some(u32::MAX), u32::MAX);
    }
    for f in recording.fills.iter_mut().flatten() {
        (f.first_page, f.pages) = (u64::MAX, u32::MAX);
    }
    // `cold_analyze` is given the sound recording: what it makes of nonsense is its own affair.
    let layouts = Layouts::default();
    let analysis = cold_analyze::analyze(&sample::small(), &layouts);
    let mut bytes = Vec::new();
    write(&recording, &analysis, &layouts, &mut bytes).unwrap();
    assert!(messages(&decode(&bytes), 1).len() > 100);
}

#[test]
fn a_recording_without_tables_gives_its_start() {
    let recording = Recording { manifest: sample::small().manifest, ..Recording::default() };
    let viewed = Viewed::of(&recording, &Layouts::default());
    assert_eq!(viewed.slices.values().flatten().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["recording"]);
}
