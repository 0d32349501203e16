//! Any plan that keeps the rules.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;

fn paths() -> impl Strategy<Value = PathBuf> {
    let byte = any::<u8>().prop_filter("no separator, no end", |b| !matches!(b, 0 | b'/'));
    let name = prop::collection::vec(byte, 1..20).prop_filter("no way up", |n| n != b"..");
    prop::collection::vec(name, 0..5).prop_map(|names| {
        let mut path = vec![b'/'];
        path.extend(names.join(&b'/'));
        PathBuf::from(OsString::from_vec(path))
    })
}

fn identities() -> impl Strategy<Value = Identity> {
    let dev = (any::<u32>(), any::<u32>()).prop_map(|(major, minor)| Dev { major, minor });
    (dev, any::<u64>(), any::<u64>(), any::<i64>(), any::<[u8; 20]>())
        .prop_map(|(dev, inode, size, mtime_ns, build_id)| Identity { dev, inode, size, mtime_ns, build_id })
}

fn files() -> impl Strategy<Value = Vec<PlanFile>> {
    let kind = prop::sample::select(FileKind::ALL);
    let file = (paths(), kind, identities(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
        |(path, kind, identity, need_ns, uses, exact)| PlanFile {
            path,
            kind,
            identity,
            need_ns,
            uses,
            exact,
        },
    );
    prop::collection::vec(file, 0..12)
}

fn positive() -> impl Strategy<Value = f64> {
    0.0..1e12
}

fn keys() -> impl Strategy<Value = Key> {
    (paths(), identities(), prop::option::of(paths()), "[A-Za-z0-9._+=~-]{1,64}")
        .prop_map(|(executable, identity, script, scenario)| Key { executable, identity, script, scenario })
}

fn devices() -> impl Strategy<Value = DeviceModel> {
    let depth = (any::<u32>(), positive()).prop_map(|(depth, iops)| AtDepth { depth, iops });
    let depths = prop::collection::vec(depth, 0..5);
    (any::<(u32, u32, bool, u64, u64)>(), "[a-zé]{0,9}", positive(), positive(), depths).prop_map(
        |((major, minor, rotational, readahead_cap, measured_at), name, latency_ns, ns_per_byte, depths)| {
            let dev = Dev { major, minor };
            let ns_per_byte_alone = None;
            DeviceModel {
                dev,
                name,
                rotational,
                latency_ns,
                ns_per_byte,
                ns_per_byte_alone,
                depths,
                readahead_cap,
                measured_at,
            }
        },
    )
}

fn knobs() -> impl Strategy<Value = Knobs> {
    let gate = prop::sample::select(Gate::ALL);
    let order = prop::sample::select(Order::ALL);
    (0..=8_u8, any::<(u32, u32, u8, u32, u32, bool)>(), 4096..=1_u32 << 24, gate, order).prop_map(
        |(
            min_uses,
            (gap_bytes, in_flight_bytes, threads, window_us, critical_us, metadata),
            chunk_bytes,
            gate,
            order,
        )| Knobs {
            min_uses,
            gap_bytes,
            chunk_bytes,
            in_flight_bytes,
            threads,
            order,
            window_us,
            gate,
            critical_us,
            metadata,
        },
    )
}

/// Steps for these files; fewer where a file's kind does not suit.
fn steps(files: &[PlanFile], chunk: u32, raw: &[(u32, u64, u32, u64)], critical: usize) -> Vec<Step> {
    let made = raw.iter().filter(|_| !files.is_empty()).map(|(file, offset, bytes, need_ns)| {
        let file = file % files.len() as u32;
        let pages = 1 + bytes % (chunk / 4096);
        let (op, offset, bytes) = match files[file as usize].kind {
            FileKind::Regular if bytes % 3 == 0 => (Op::Open, 0, 0),
            FileKind::Regular | FileKind::BlockDevice => (Op::Read, offset % (1 << 40) * 4096, pages * 4096),
            FileKind::Directory => (Op::List, 0, 0),
            FileKind::Name => (Op::Stat, 0, 0),
        };
        Step { op, critical: false, file, offset, bytes, need_ns: *need_ns }
    });
    let mut steps: Vec<Step> = made.collect();
    steps.iter_mut().take(critical).for_each(|s| s.critical = true);
    steps
}

fn ranges(files: &[PlanFile], raw: &[(u32, u64, u32, u64, u8, bool)]) -> Vec<Range> {
    let paged = |f: &PlanFile| matches!(f.kind, FileKind::Regular | FileKind::BlockDevice);
    let paged: Vec<u32> = (0..files.len() as u32).filter(|i| paged(&files[*i as usize])).collect();
    let made =
        raw.iter().filter(|_| !paged.is_empty()).map(|(file, first, pages, need_ns, uses, around)| Range {
            file: paged[*file as usize % paged.len()],
            first_page: first % (1 << 50),
            pages: (*pages).max(1),
            need_ns: *need_ns,
            uses: *uses,
            around: *around,
        });
    let mut ranges: Vec<Range> = made.collect();
    ranges.sort_by_key(|r| r.need_ns);
    ranges
}

type Raw = (Vec<(u32, u64, u32, u64)>, usize, Vec<(u32, u64, u32, u64, u8, bool)>);

fn raw() -> impl Strategy<Value = Raw> {
    (
        prop::collection::vec(any::<(u32, u64, u32, u64)>(), 0..20),
        0..20_usize,
        prop::collection::vec(any::<(u32, u64, u32, u64, u8, bool)>(), 0..20),
    )
}

fn learnt() -> impl Strategy<Value = Learnt> {
    let tier = prop::sample::select(vec!['A', 'B', 'C', 'D', '\0']);
    (any::<(u32, u32, [bool; 3], u64, u64, u64, u64, u64)>(), tier).prop_map(
        |(
            (
                starts,
                cold_starts,
                [exact, one_thread, goes_on],
                first,
                last,
                cpu_ns,
                cold_ready_ns,
                own_cpu_ns,
            ),
            tier,
        )| Learnt {
            starts,
            cold_starts,
            tier,
            exact,
            one_thread,
            goes_on,
            first,
            last,
            cpu_ns,
            cold_ready_ns,
            own_cpu_ns,
        },
    )
}

/// A measured time is not 0.
fn known(ns: u64) -> Option<u64> {
    Some(ns).filter(|ns| *ns > 0)
}

fn bounds() -> impl Strategy<Value = Bound> {
    any::<(u64, u64, u64, u64, u32)>().prop_map(|(cpu_ns, overlapped_ns, serial_ns, bytes, requests)| Bound {
        cpu_ns: known(cpu_ns),
        overlapped_ns,
        serial_ns,
        bytes,
        requests,
    })
}

fn trials() -> impl Strategy<Value = Trial> {
    (any::<(u64, u32, u64, u64, u64)>(), positive(), positive(), positive()).prop_map(
        |((at, pairs, plain_ns, prefetched_ns, warm_ns), ratio, low, high)| Trial {
            at,
            pairs,
            plain_ns,
            prefetched_ns,
            warm_ns: known(warm_ns),
            ratio,
            low,
            high,
        },
    )
}

pub(super) fn plans() -> impl Strategy<Value = Plan> {
    let standing =
        prop_oneof![Just(Standing::Untried), Just(Standing::Proven), "[ -~é]{0,80}".prop_map(Standing::Off),];
    let optional = (prop::option::of(devices()), prop::option::of(bounds()), prop::option::of(trials()));
    (keys(), learnt(), files(), knobs(), optional, standing, raw()).prop_map(
        |(key, learnt, files, knobs, (device, bound, trial), standing, (steps_raw, critical, ranges_raw))| {
            Plan {
                steps: steps(&files, knobs.chunk_bytes, &steps_raw, critical),
                ranges: ranges(&files, &ranges_raw),
                key,
                learnt,
                files,
                knobs,
                device,
                bound,
                standing,
                trial,
            }
        },
    )
}
