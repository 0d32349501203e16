//! Plans and recordings for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cold_model::Dev;
use cold_model::io_model::{AtDepth, DeviceModel};
use cold_plan::plan::{FileKind, Gate, Identity, Key, Knobs, Order, PlanFile, Range};

use crate::learn::{Sees, StartNeeds};

pub(crate) fn key() -> Key {
    Key {
        executable: "/usr/bin/prog".into(),
        identity: identity(1 << 20),
        script: None,
        scenario: "default".into(),
    }
}

pub(crate) fn identity(size: u64) -> Identity {
    Identity { inode: 7, size, mtime_ns: 1, ..Identity::default() }
}

/// A start that needed these ranges (file number, first page, pages, need in ms) of files of 1 GiB.
pub(crate) fn start(files: u32, ranges: &[(u32, u64, u32, u64)]) -> StartNeeds {
    let ranges: Vec<Range> = ranges
        .iter()
        .map(|&(file, first_page, pages, ms)| Range {
            file,
            first_page,
            pages,
            need_ns: ms * 1_000_000,
            uses: 1,
            around: false,
        })
        .collect();
    StartNeeds {
        files: (0..files)
            .map(|n| PlanFile {
                path: PathBuf::from(format!("/usr/lib/f{n}")),
                kind: FileKind::Regular,
                identity: identity(1 << 30),
                need_ns: ranges.iter().filter(|r| r.file == n).map(|r| r.need_ns).min().unwrap_or(0),
                uses: 1,
                exact: false,
            })
            .collect(),
        left_out: BTreeMap::new(),
        ranges,
        proved_cold: false,
        warm: true,
        tier: 'A',
        exact: true,
        one_thread: true,
        goes_on: false,
        ready_ns: 100_000_000,
        computing_ns: 100_000_000,
        own_cpu_ns: 0,
        sees: Sees { pages: true, lookups: true, metadata: false },
        missing: Vec::new(),
        faults: Vec::new(),
    }
}

pub(crate) fn flash() -> DeviceModel {
    let at = |depth, iops| AtDepth { depth, iops };
    DeviceModel {
        dev: Dev::new(8, 0),
        name: "sda".into(),
        rotational: false,
        latency_ns: 100_000.0,
        ns_per_byte: 2.0,
        ns_per_byte_alone: None,
        depths: vec![at(1, 9_000.0), at(8, 60_000.0), at(32, 90_000.0)],
        readahead_cap: 1280 << 10,
        measured_at: 1,
    }
}

pub(crate) fn rotating() -> DeviceModel {
    DeviceModel {
        rotational: true,
        latency_ns: 8_000_000.0,
        ns_per_byte: 10.0,
        ns_per_byte_alone: None,
        depths: vec![AtDepth { depth: 1, iops: 124.0 }],
        ..flash()
    }
}

/// Everything is kept, and read as it is.
pub(crate) const KNOBS: Knobs = Knobs {
    min_uses: 1,
    gap_bytes: 0,
    chunk_bytes: 1 << 20,
    in_flight_bytes: 0,
    threads: 1,
    order: Order::Need,
    window_us: 5000,
    gate: Gate::None,
    critical_us: 0,
    metadata: false,
};
