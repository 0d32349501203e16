//! Made-up traces of both pointer sizes, whole and damaged.

use super::sample::small;
use super::*;
use crate::Error;

fn records(bytes: &[u8]) -> (LogHeader, Vec<(i64, Record)>, Losses) {
    let trace = Trace::open(bytes).unwrap();
    let header = trace.header().clone();
    let mut records = Vec::new();
    let losses = trace
        .events(|time, e| records.extend(record(e, header.pointer).unwrap().map(|r| (time, r))))
        .unwrap();
    (header, records, losses)
}

#[test]
fn both_pointer_sizes_plain_and_compressed_say_the_same_by_time() {
    for (pointer, compress) in [(4, false), (4, true), (8, false), (8, true)] {
        let (header, records, losses) = records(&small(pointer, compress));
        assert_eq!(losses, Losses::default());
        assert_eq!((header.pointer, header.events_lost, header.buffers_lost), (pointer, 5, 7));
        assert_eq!(
            (header.bias_minutes, header.clock, header.logger.as_str()),
            (-60, Clock::Counter, "Sample")
        );
        assert_eq!(header.nanos(10), 1000);
        let times: Vec<_> = records.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [1500, 1600, 1700, 3000, 3010, 3020, 9000]);
        let name = "\\Device\\HarddiskVolume1\\app.exe";
        let disk = Disk {
            kind: DiskKind::Read,
            disk: 0,
            flags: 0x60043,
            bytes: 16384,
            offset: 5_000_192,
            file: 0x8000_1230,
            irp: 0x8000_4560,
            response: 900,
            tid: Some(78),
        };
        assert_eq!(disk.priority(), 3);
        let fault = HardFault {
            began: 2000,
            offset: 0x1400,
            address: 0x40_1234,
            file: 0x8000_1230,
            tid: 78,
            bytes: 16384,
        };
        let wanted = [
            Record::Process(ProcessPayload {
                phase: Phase::Start,
                pid: 77,
                parent: 4,
                session: 1,
                status: 259,
                image: "app.exe".to_owned(),
                command: "app.exe --größe".to_owned(),
            }),
            Record::Thread(ThreadPayload { phase: Phase::Start, pid: 77, tid: 78 }),
            Record::Image(ImagePayload {
                phase: Phase::Start,
                pid: 77,
                base: 0x40_0000,
                size: 0x9000,
                name: name.to_owned(),
            }),
            Record::Disk(disk),
            Record::HardFault(fault),
            Record::Stack(Stack { of: 3010, pid: 77, tid: 78, frames: vec![0x40_1234, 0x40_0000] }),
            Record::FileName(FileName { object: 0x8000_1230, name: name.to_owned() }),
        ];
        let found: Vec<_> = records.into_iter().map(|(_, r)| r).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn a_trace_cut_off_anywhere_is_refused_or_says_where_it_was_cut() {
    let whole = small(8, true);
    let first = u32::from_le_bytes([whole[0], whole[1], whole[2], whole[3]]) as usize;
    for cut in 0..whole.len() {
        match Trace::open(&whole[..cut]) {
            Err(_) => assert!(cut < first, "cut at {cut}"),
            Ok(trace) => {
                let losses = trace.events(|_, _| {}).unwrap();
                assert!(
                    losses.cut_at.is_some_and(|at| at <= cut as u64) || losses.damaged == 0,
                    "cut at {cut}"
                );
            }
        }
    }
}

#[test]
fn a_damaged_buffer_is_counted_and_the_others_are_read() {
    let mut bytes = small(8, false);
    let first = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    // The kind of header of the second buffer's first event.
    bytes[first + 72 + 2] = 0x7f;
    let (_, records, losses) = records(&bytes);
    assert_eq!(records.len(), 4);
    assert_eq!(losses.damaged, 1);
    assert!(matches!(losses.first, Some(Error::Damaged { .. })));
}

#[test]
fn a_source_that_fails_ends_it_with_the_reason() {
    struct Failing(Vec<u8>, u64);
    impl Source for Failing {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }
        fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), String> {
            self.1 += 1;
            if self.1 > 4 { Err("no such luck".to_owned()) } else { self.0.as_slice().read(at, into) }
        }
    }
    let failed = Trace::open(Failing(small(8, true), 0)).and_then(|t| t.events(|_, _| {}));
    assert!(matches!(failed, Err(Error::Source { .. })), "{failed:?}");
}

proptest::proptest! {
    #[test]
    fn flipped_bits_never_panic(flips in proptest::collection::vec((0_usize..1200, 0_u8..8), 1..20), four: bool) {
        let mut bytes = small(if four { 4 } else { 8 }, !four);
        for (at, bit) in flips {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        if let Ok(trace) = Trace::open(bytes.as_slice()) {
            let pointer = trace.header().pointer;
            trace.events(|_, e| drop(record(e, pointer))).unwrap();
        }
    }
}
