//! The corpus, and mutations of it from a fixed seed, through every reader of untrusted bytes.

#![allow(clippy::unwrap_used, clippy::panic)] // the lints know only functions marked as tests

use std::path::{Path, PathBuf};

use cold_fuzz::{TARGETS, Target};

/// Mutated inputs per target. The readers are fast; the files of `proc` are written anew for each.
const MUTATIONS: u64 = 3000;

/// xorshift64*: the same inputs on every machine, so a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// Below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// What readers trip over: ends of ranges, signs, separators.
const WORDS: [&[u8]; 12] = [
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\x80",
    b"18446744073709551616",
    b"-1",
    b"1e308",
    b" ",
    b"\n",
    b":",
    b"/",
    b"\"",
    b"\xc3",
];

/// One to eight changes: bytes flipped, replaced, removed, repeated, words put in, another seed's tail.
fn mutated(seeds: &[Vec<u8>], r: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[r.below(seeds.len())].clone();
    for _ in 0..=r.below(8) {
        let at = r.below(bytes.len() + 1);
        let end = (at + r.below(16)).min(bytes.len());
        match r.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << r.below(8),
            1 if at < bytes.len() => bytes[at] = r.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            4 => {
                bytes.splice(at..end, WORDS[r.below(WORDS.len())].iter().copied());
            }
            _ => {
                let other = &seeds[r.below(seeds.len())];
                let from = r.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files.iter().map(|f| std::fs::read(f).unwrap()).collect()
}

fn replay(name: &str, target: Target) {
    let seeds = corpus(name);
    let run = |what: &str, bytes: &[u8]| {
        let ends = std::panic::catch_unwind(|| target(bytes)).is_ok();
        assert!(ends, "{name}: {what} panics on {:?}", String::from_utf8_lossy(bytes));
    };
    for (i, seed) in seeds.iter().enumerate() {
        run(&format!("seed {i}"), seed);
        // Cut off anywhere.
        for n in 0..seed.len().min(512) {
            run(&format!("seed {i} cut to {n} bytes"), &seed[..n]);
        }
    }
    let mut random = Random(0x5eed_0000_0000_0001);
    for n in 0..MUTATIONS {
        run(&format!("mutation {n}"), &mutated(&seeds, &mut random));
    }
}

#[test]
fn no_reader_of_untrusted_bytes_panics() {
    std::thread::scope(|s| {
        let running: Vec<_> =
            TARGETS.iter().map(|(name, target)| s.spawn(move || replay(name, *target))).collect();
        for thread in running {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Windows' files as the library's own writers make them: target, name, bytes.
fn of_windows() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    use cold_windows::pf::Version;
    use cold_windows::pf::sample::{packed, small, write};
    use cold_windows::{etl, text};
    let trace = etl::sample::small(8, true);
    let evidence = etl::gather(etl::Trace::open(trace.as_slice()).unwrap()).unwrap().evidence;
    let rows = text::sample::dumper(&evidence, true);
    let table = "Process;Size (B);Thread ID;Path Name;Byte Offset;Complete Time (ms);IO Time (ms)\r\n\
                 app.exe (77);24.576;78;C:\\a;1.024;1.000,2;0,1\r\n";
    vec![
        ("etl", "plain32", etl::sample::small(4, false)),
        ("etl", "compressed64", trace),
        ("pf", "v17", write(&small(Version::V17))),
        ("pf", "v23", write(&small(Version::V23))),
        ("pf", "v26", write(&small(Version::V26))),
        ("pf", "v30first", packed(&small(Version::V30First), true)),
        // As it is expanded: of a compressed one most changes end in the decompressor.
        ("pf", "v30", write(&small(Version::V30))),
        ("pf", "v31", packed(&small(Version::V31), false)),
        ("windows_text", "dumper", rows.clone().into_bytes()),
        ("windows_text", "dumper16", text::sample::utf16(&rows)),
        ("windows_text", "table", table.as_bytes().to_vec()),
        ("windows_text", "layout", b"[OptimalLayoutFile]\r\nVersion=1\r\nC:\\A\r\n".to_vec()),
        (
            "xpress",
            "mixed",
            cold_windows::xpress::sample::compress(&b"abcabcabc0123456789".repeat(20)[..300]),
        ),
    ]
}

/// A corpus that the readers refuse at its first byte would prove nothing.
#[test]
fn the_seeds_are_read_to_their_end() {
    let seed = |name: &str| corpus(name).swap_remove(0);
    let text = |name: &str| String::from_utf8(seed(name)).unwrap();
    assert!(cold_bench::baseline::parse(&text("baseline")).is_ok());
    assert!(cold_bench::gate::Gate::parse(text("gate").trim()).is_ok());
    assert!(cold_bench::ready::Ready::parse(text("ready").trim()).is_ok());
    assert!(cold_cache::snapshot::Snapshot::decode(&seed("snapshot")).is_ok());
    for (target, name, whole) in of_windows() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target).join(name);
        if std::env::var_os("COLD_WRITE_CORPUS").is_some() {
            std::fs::write(&path, &whole).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), whole, "run this test once with COLD_WRITE_CORPUS=1");
    }
    assert_eq!(cold_windows::lz77::expand(&seed("lz77"), 300), Ok(b"abc".repeat(100)));
    let plan = cold_plan::sample::sample();
    if std::env::var_os("COLD_WRITE_CORPUS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/plan/whole");
        std::fs::write(path, cold_plan::format::encode(&plan).unwrap()).unwrap();
    }
    let found = cold_plan::format::decode(&seed("plan"));
    assert_eq!(found, Ok(plan), "run this test once with COLD_WRITE_CORPUS=1");
    assert_eq!(cold_plan::history::parse(&seed("plan_history")).len(), 3);
    assert!(
        cold_plan::portable::import(
            &text("plan_json"),
            &|_| None,
            &|_| cold_plan::portable::Parts::default(),
            cold_plan::portable::Others::Carry
        )
        .is_ok()
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(cold_recording::log::NAME), seed("recording_log")).unwrap();
    let mut log = cold_recording::log::Reader::open(dir.path()).unwrap();
    assert!(log.by_ref().count() == 4 && log.end().finished);
    std::fs::write(dir.path().join(cold_recording::manifest::NAME), seed("recording_manifest")).unwrap();
    assert!(cold_recording::manifest_of(dir.path()).is_ok());
    let order = tempfile::tempdir().unwrap();
    std::fs::write(order.path().join("order.json"), seed("order")).unwrap();
    for table in ["functions", "entries"] {
        let seed =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/recording_table").join(table);
        std::fs::copy(seed, order.path().join(format!("{table}.parquet"))).unwrap();
    }
    assert_eq!(cold_recording::order::read(order.path()).unwrap().repeats[0].entries.len(), 3);
    for table in corpus("recording_table") {
        std::fs::write(dir.path().join("table"), table).unwrap();
        assert!(cold_recording::fuzzing::table(&std::fs::File::open(dir.path().join("table")).unwrap()) >= 3);
    }
    assert!(cold_sys::procfs::parse_maps(text("proc")).len() == 2);
}

#[test]
fn every_target_has_its_fuzzer_and_every_fuzzer_its_target() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut files: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, names);
}
