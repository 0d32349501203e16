//! One small plan with everything in it, for tests, the fuzzer's seed and the documentation's check.

use cold_model::Dev;
use cold_model::DeviceModel;
use cold_model::io_model::AtDepth;
use cold_stats::Pcg;

use crate::Plan;
use crate::plan::{
    Bound, FileKind, Gate, Identity, Key, Knobs, Learnt, Op, Order, PlanFile, Range, Standing, Step, Trial,
};

/// The plan of a script's start, two of whose files are read.
pub fn sample() -> Plan {
    let id = |inode, size| Identity {
        dev: Dev::new(254, 1),
        inode,
        size,
        mtime_ns: 1_700_000_000_123_456_789,
        build_id: [inode as u8; 20],
    };
    let file = |path: &str, kind, identity, need_ns| PlanFile {
        path: path.into(),
        kind,
        identity,
        need_ns,
        uses: 0b1011,
        exact: kind == FileKind::Regular,
    };
    Plan {
        key: Key {
            executable: "/usr/bin/python3.11".into(),
            identity: id(11, 6_831_704),
            script: Some("/home/u/serve.py".into()),
            scenario: "run+--port".into(),
        },
        learnt: Learnt {
            starts: 4,
            cold_starts: 3,
            tier: 'A',
            exact: true,
            one_thread: true,
            goes_on: true,
            first: 1_763_000_000,
            last: 1_763_700_000,
            cpu_ns: 310_000_000,
            cold_ready_ns: 2_400_000_000,
            own_cpu_ns: 290_000_000,
        },
        files: vec![
            file("/home/u", FileKind::Directory, Identity::default(), 500_000),
            file("/usr/lib/libm.so.6", FileKind::Regular, id(12, 911_880), 900_000),
            file("/etc/localtime", FileKind::Name, Identity::default(), 1_000_000),
            file("/dev/vda1", FileKind::BlockDevice, Identity::default(), 400_000),
        ],
        ranges: ranges(),
        knobs: knobs(),
        device: Some(device()),
        bound: Some(Bound {
            cpu_ns: Some(310_000_000),
            overlapped_ns: 420_000_000,
            serial_ns: 610_000_000,
            bytes: 139_264,
            requests: 3,
        }),
        steps: steps(),
        standing: Standing::Off("it did not win: 1.02 of the time without it".into()),
        trial: Some(Trial {
            at: 1_763_650_000,
            pairs: 12,
            plain_ns: 2_400_000_000,
            prefetched_ns: 2_448_000_000,
            warm_ns: Some(330_000_000),
            ratio: 1.02,
            low: 0.99,
            high: 1.05,
        }),
    }
}

fn knobs() -> Knobs {
    Knobs {
        min_uses: 2,
        gap_bytes: 65_536,
        chunk_bytes: 131_072,
        in_flight_bytes: 8 << 20,
        threads: 2,
        order: Order::Physical,
        window_us: 50_000,
        gate: Gate::Issued,
        critical_us: 20_000,
        metadata: true,
    }
}

fn device() -> DeviceModel {
    DeviceModel {
        dev: Dev::new(254, 0),
        name: "vda".into(),
        rotational: false,
        latency_ns: 240_000.5,
        ns_per_byte: 1.25,
        ns_per_byte_alone: None,
        depths: vec![AtDepth { depth: 1, iops: 4000.0 }, AtDepth { depth: 16, iops: 30_000.0 }],
        readahead_cap: 4 << 20,
        measured_at: 1_763_600_000,
    }
}

fn ranges() -> Vec<Range> {
    let range = |file, first_page, pages, need_ns, around| Range {
        file,
        first_page,
        pages,
        need_ns,
        uses: 0b0111,
        around,
    };
    vec![
        range(3, 9_000, 2, 400_000, false),
        range(1, 0, 1, 900_000, false),
        range(1, 16, 32, 1_200_000, true),
    ]
}

fn steps() -> Vec<Step> {
    let step =
        |op, critical, file, offset, bytes, need_ns| Step { op, critical, file, offset, bytes, need_ns };
    vec![
        step(Op::List, true, 0, 0, 0, 500_000),
        step(Op::Open, true, 1, 0, 0, 900_000),
        step(Op::Stat, true, 2, 0, 0, 1_000_000),
        step(Op::Read, true, 1, 0, 4096, 900_000),
        step(Op::Read, false, 3, 9_000 * 4096, 8192, 400_000),
        step(Op::Read, false, 1, 65_536, 131_072, 1_200_000),
    ]
}

/// Times of starts: log-normal, now and then one that was held up.
#[derive(Debug)]
pub struct Noise(Pcg);

impl Noise {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg::new(seed, 1))
    }
    /// A whole number from 0 to below `n`, each equally likely.
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }
    /// A time about 1.
    pub fn time(&mut self, spread: f64) -> f64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        let held_up = if self.unit() < 0.05 { 1.0 + self.unit() } else { 1.0 };
        (normal * spread).exp() * held_up
    }
}
