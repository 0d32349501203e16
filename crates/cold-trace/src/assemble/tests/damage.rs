//! Logs that are out of order, cut off, or nonsense.

use proptest::prelude::*;

use super::*;

/// Something of everything.
fn everything() -> Vec<Vec<u8>> {
    let (f, g) = (id(5), id(6));
    let fault = fault_context(20, f, 3);
    let read = call_context(40, libc::SYS_read, g, 0);
    vec![
        named(f, 10, "lib"),
        named(g, 10, "data"),
        task(2, 10, SUPERVISOR, PID, PID, "x"),
        pages(7, 21, fault, f, 3, 3),
        add(22, fault, f, 0, 2),
        stack(23, 20, &[1, 2, 3]),
        request(24, 1, 22, 8, &[(f, 0, 16384)]),
        stall(30, fault, 25, 29, 3),
        done(29, 1, 0),
        pages(8, 31, fault, f, 0, 9),
        add(41, read, g, 0, 0),
        pages(9, 42, read, g, 0, 0),
        Call { path: Some("/x"), ..Call::new(libc::SYS_openat, 50, 51) }.record(),
        Call { file: g, args: [3, 0, 0, 3, 0, 0], ..Call::new(libc::SYS_fadvise64, 52, 53) }.record(),
        delete(60, f, 0, 2),
        Body::new().u32(0).u32(1).by(4, 70, PID, PID, 1),
    ]
}

#[test]
fn blocks_out_of_order_give_the_same_recording() {
    let in_order = run(&everything());
    assert_eq!(in_order.touches.as_ref().map(Vec::len), Some(4));
    let mut events = everything();
    events.reverse();
    let reversed = run(&events);
    // Files are numbered as they are first seen.
    let names = |r: &Recording| touches(r);
    assert_eq!(names(&reversed), names(&in_order));
    assert_eq!(reversed.counts(), in_order.counts());
    assert_eq!(reversed.processes, in_order.processes);
}

#[test]
fn one_block_cut_anywhere_gives_what_is_whole() {
    let stream = everything().concat();
    let whole = run(std::slice::from_ref(&stream));
    assert!(whole.manifest.notes.is_empty(), "{:?}", whole.manifest.notes);
    let mut most = 0;
    for cut in 0..stream.len() {
        let r = run(&[stream[..cut].to_vec()]);
        let rows: usize = r.counts().iter().map(|(_, n)| n).sum();
        assert!(rows >= most, "at {cut}");
        most = rows;
    }
    assert!(most <= whole.counts().iter().map(|(_, n)| n).sum());
}

#[test]
fn a_log_without_facts_says_so() {
    let r = assemble(log(&[], &everything()), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    assert!(r.manifest.notes.iter().any(|n| n.contains("no manifest")));
    assert_eq!(r.manifest.page_bytes, 4096);
}

/// Indices that a reader would follow.
fn is_sound(r: &Recording) {
    let files = r.files.len() as u32;
    assert!(r.touches.iter().flatten().all(|t| t.file < files && t.pages > 0));
    assert!(r.fills.iter().flatten().all(|f| f.file < files));
    assert!(
        r.transfers
            .iter()
            .flatten()
            .all(|t| (t.request as usize) < r.device_reads.as_ref().map_or(0, Vec::len))
    );
    let lookups = r.lookups.as_ref().map_or(0, Vec::len) as u32;
    assert!(r.stalls.iter().flatten().all(|s| s.lookup.is_none_or(|l| l < lookups)));
    let stacks = r.stacks.as_ref().map_or(0, Vec::len) as u32;
    assert!(r.touches.iter().flatten().all(|t| t.stack.is_none_or(|s| s < stacks)));
    assert!(r.lookups.iter().flatten().all(|l| l.stack.is_none_or(|s| s < stacks)));
    assert!(r.touches.iter().flatten().is_sorted_by_key(|t| t.at));
    assert!(r.stalls.iter().flatten().is_sorted_by_key(|s| s.began));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(blocks in prop::collection::vec((0_u16..5, prop::collection::vec(any::<u8>(), 0..400)), 0..8)) {
        is_sound(&assemble(blocks, &mut InnermostOnly, &mut Cached(Vec::new(), None)));
    }

    #[test]
    fn damaged_records_never_panic(
        at in prop::collection::vec((0_usize..10_000, any::<u8>()), 1..40),
        order in any::<u64>(),
    ) {
        let mut events = everything();
        let n = events.len();
        events.swap((order as usize) % n, (order >> 32) as usize % n);
        let mut stream = events.concat();
        for (at, byte) in at {
            let len = stream.len();
            stream[at % len] = byte;
        }
        // Headers are put right again, so that what follows is looked at too.
        let mut at = 0;
        for event in &events {
            stream[at + 16..at + 20].copy_from_slice(&event[16..20]);
            at += event.len();
        }
        is_sound(&run(&[stream]));
    }
}

/// The fuzzers' seed is made of the same events, so that it follows their layout. Its system calls have the
/// numbers of x86-64.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_corpus_is_up_to_date() {
    let mut seed = Vec::new();
    for (kind, bytes) in log(&facts(), &everything()) {
        seed.push(kind as u8);
        seed.extend((bytes.len() as u16).to_le_bytes());
        seed.extend(bytes);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/raw_log/everything");
    if std::env::var_os("COLD_WRITE_CORPUS").is_some() {
        std::fs::write(path, &seed).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == seed, "run this test once with COLD_WRITE_CORPUS=1");
}
