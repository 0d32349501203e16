use super::*;

/// A record: kind, misc, body; the trailer names thread 7 of process 6 at time 99.
fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend(((8 + body.len() + TRAILER) as u16).to_le_bytes());
    bytes.extend(body);
    bytes.extend([6_u32, 7].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend([99_u64, 0, 1].iter().flat_map(|n| n.to_le_bytes()));
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) | u64::from(b) << 32
}

fn sample(body: &[u64], tail: &[u8]) -> Vec<u8> {
    let mut bytes = pair(SAMPLE, ((8 + body.len() * 8 + tail.len()) as u32) << 16).to_le_bytes().to_vec();
    bytes.extend(words(body));
    bytes.extend(tail);
    bytes
}

fn events(sample_type: u64) -> Events {
    let mut events = Events::default();
    events.extend(&[PerfEvent { id: 5, class: PerfClass::Major, sample_type }]);
    events
}

#[test]
fn mappings_names_forks_exits_and_losses() {
    let none = Events::default();
    let mut body = words(&[pair(10, 11), 0x7000, 0x2000, 0x1000, pair(8, 3), 42, 9, pair(5, 2)]);
    body.extend(b"/lib/x.so\0\0\0\0\0\0\0");
    let bytes = record(MMAP2, 0, &body);
    let one = decode(&bytes, &none).expect("a mapping");
    assert_eq!((one.at, one.pid, one.tid), (99, 6, 7));
    let What::Map(m) = one.what else { panic!("{one:?}") };
    assert_eq!((m.pid, m.address, m.bytes, m.offset), (10, 0x7000, 0x2000, 0x1000));
    assert_eq!((m.dev, m.inode, m.generation, m.prot, m.path), (Dev::new(8, 3), 42, 9, 5, &b"/lib/x.so"[..]));
    let by_build_id = record(MMAP2, MISC_BUILD_ID, &body);
    assert_eq!(decode(&by_build_id, &none), None, "has no inode where one is expected");

    let mut body = words(&[pair(10, 11)]);
    body.extend(b"python3\0");
    let bytes = record(COMM, MISC_EXEC, &body);
    let What::Comm { pid: 10, tid: 11, exec: true, name } = decode(&bytes, &none).expect("a name").what
    else {
        panic!("not a name")
    };
    assert_eq!((name, exec_of(&bytes)), (&b"python3"[..], Some(10)));
    assert_eq!(exec_of(&record(COMM, 0, &body)), None);

    let body = words(&[pair(20, 10), pair(21, 11), 98]);
    let said = |kind| decode(&record(kind, 0, &body), &none).map(|r| format!("{:?}", r.what));
    assert_eq!(said(FORK).as_deref(), Some("Fork { pid: 20, tid: 21, parent: 10 }"));
    assert_eq!(said(EXIT).as_deref(), Some("Exit { pid: 20, tid: 21 }"));
    let lost = record(LOST, 0, &words(&[5, 1234]));
    assert_eq!(decode(&lost, &none).map(|r| r.what), Some(What::Lost { id: 5, count: 1234 }));
}

#[test]
fn faults_with_call_chains_and_with_copied_stacks() {
    let head = [5, 0x40_1000, pair(6, 7), 99, 0x7123, 0];
    let plain = sample(&head, &[]);
    let one = decode(&plain, &events(sample::ALWAYS)).expect("a fault");
    let What::Fault(f) = one.what else { panic!("{one:?}") };
    assert_eq!((one.at, one.pid, one.tid, f.major, f.address, f.ip), (99, 6, 7, true, 0x7123, 0x40_1000));
    assert_eq!(decode(&plain, &Events::default()), None, "of an event that nobody described");

    let user_marker = u64::MAX - 511;
    let chain = sample(&head, &words(&[3, user_marker, 0x40_1000, 0x40_2000]));
    let of_chain = events(sample::ALWAYS | sample::CALLCHAIN);
    let What::Fault(f) = decode(&chain, &of_chain).expect("a fault").what else { panic!("no fault") };
    assert_eq!(f.frames().collect::<Vec<_>>(), [0x40_1000, 0x40_2000]);
    // A count beyond the record's end is refused, however large.
    for lie in [4, 1 << 20, u64::MAX] {
        let lying = sample(&head, &words(&[lie, user_marker, 1, 2]));
        assert_eq!(decode(&lying, &of_chain), None, "{lie}");
    }

    let registers = cold_sys::perf_event::UNWIND_REGISTERS.count_ones() as usize;
    let mut tail = words(&[2]);
    tail.extend(words(&vec![0x11; registers]));
    tail.extend(words(&[16, 0xaa, 0xbb, 8])); // room for 16 bytes, of which 8 could be read
    let copy = sample(&head, &tail);
    let of_copy = events(sample::ALWAYS | sample::REGS_USER | sample::STACK_USER);
    let What::Fault(f) = decode(&copy, &of_copy).expect("a fault").what else { panic!("no fault") };
    assert_eq!((f.registers.len(), f.stack), (registers * 8, &words(&[0xaa])[..]));
    // A kernel thread has neither registers nor stack.
    let bare = sample(&head, &words(&[0, 0]));
    let What::Fault(f) = decode(&bare, &of_copy).expect("a fault").what else { panic!("no fault") };
    assert!(f.registers.is_empty() && f.stack.is_empty());
}

#[test]
fn what_is_cut_off_is_no_record() {
    let whole = record(LOST, 0, &words(&[5, 1]));
    let two = [whole.clone(), whole.clone()].concat();
    assert_eq!(split(&two).count(), 2);
    for cut in 0..two.len() {
        assert_eq!(split(&two[..cut]).count(), cut / whole.len(), "at {cut}");
        for part in split(&two[..cut]) {
            assert!(decode(part, &Events::default()).is_some());
        }
    }
    let mut short = whole;
    short[6] = 7; // less than a header
    assert_eq!(split(&short).count(), 0);
}
