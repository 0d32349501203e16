use super::*;

fn own_tid() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

/// One event of this thread on every CPU, with its buffer.
fn rings(kind: EventKind) -> Option<Vec<Ring>> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let spec = PerfSpec {
        kind,
        whom: Whom::Thread(own_tid()),
        user_only: true,
        stack: UserStacks::None,
        wake_at: 1,
    };
    let open = |cpu| Ring::map(OpenPerfEvent::open(&spec, cpu)?, 64 << 10);
    match (0..cpus).map(open).collect::<io::Result<Vec<Ring>>>() {
        Ok(rings) => Some(rings),
        Err(e) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "perf events are refused: {e}");
            eprintln!("SKIPPED (needs perf events): {e}");
            None
        }
    }
}

/// Type and size of every record, after checking that they fill the bytes exactly.
fn records(bytes: &[u8]) -> Vec<(u32, usize)> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let kind = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let size = usize::from(u16::from_le_bytes(bytes[at + 6..at + 8].try_into().expect("two")));
        assert!(size >= 8 && at + size <= bytes.len(), "a record of {size} bytes at {at} of {}", bytes.len());
        out.push((kind, size));
        at += size;
    }
    out
}

#[test]
fn every_new_page_is_one_sample_and_the_buffer_wraps_on_whole_records() {
    let Some(mut rings) = rings(EventKind::MinorFaults) else { return };
    let page = crate::page::page_size() as usize;
    let len = 500 * page;
    let (mut samples, mut bytes) = (0, 0);
    // 64 KiB hold about 1200 samples of 56 bytes: ten rounds of 500 pages go round several times.
    for _ in 0..10 {
        // SAFETY: a new private mapping, written within its bounds, unmapped once, no reference left.
        unsafe {
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let memory = libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, len, libc::MADV_NOHUGEPAGE);
            for at in (0..len).step_by(page) {
                memory.cast::<u8>().add(at).write_volatile(1);
            }
            libc::munmap(memory, len);
        }
        for ring in &mut rings {
            bytes += ring.drain(|b| {
                let all = records(b);
                assert!(all.iter().all(|(kind, _)| *kind == 9), "only samples: {all:?}");
                samples += all.len();
            });
        }
    }
    assert!(bytes > 64 << 10, "the buffer did not wrap: {bytes} bytes");
    assert!(samples >= 10 * 500, "{samples} samples");
    let again: usize = rings.iter_mut().map(|r| r.drain(|_| {})).sum();
    assert!(again < 4096, "drained twice: {again}");
}

#[test]
fn events_of_one_cpu_share_a_buffer_and_are_told_apart() {
    let Some(rings) = rings(EventKind::SideBand) else { return };
    let spec = PerfSpec {
        kind: EventKind::MajorFaults,
        whom: Whom::Thread(own_tid()),
        user_only: true,
        stack: UserStacks::Copy(8192),
        wake_at: 4096,
    };
    let ring = &rings[0];
    let event = OpenPerfEvent::open(&spec, ring.event().cpu()).expect("opens as the first did");
    event.write_into(ring).expect("same CPU");
    assert_ne!(event.id(), ring.event().id());
    wait([ring], Duration::from_millis(1));
}
