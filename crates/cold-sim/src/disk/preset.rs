//! Disks with typical figures, each with its source.

use super::{Bounds, Heads, Limit, Model, Unit};

/// A disk by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// The testbed's 7200 rpm disk.
    Hdd,
    /// The testbed's SATA SSD.
    SataSsd,
    /// The testbed's cloud volume.
    Cloud,
    /// A disk that answers without delay.
    Fast,
    /// A fast SSD with flash (`NVMe`).
    Nvme,
    /// An SSD with Optane memory.
    Optane,
    /// eMMC 5.1.
    Emmc,
    /// UFS 3.1.
    Ufs,
    /// An EBS gp2 volume of 100 GiB.
    Gp2,
    /// HP 97560 of 1992.
    Hp97560,
    /// The disk of a laptop of 1993.
    Laptop1993,
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Hdd,
        Self::SataSsd,
        Self::Cloud,
        Self::Fast,
        Self::Nvme,
        Self::Optane,
        Self::Emmc,
        Self::Ufs,
        Self::Gp2,
        Self::Hp97560,
        Self::Laptop1993,
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// As it is written on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::SataSsd => "sata-ssd",
            Self::Cloud => "cloud",
            Self::Fast => "fast",
            Self::Nvme => "nvme",
            Self::Optane => "optane",
            Self::Emmc => "emmc",
            Self::Ufs => "ufs",
            Self::Gp2 => "gp2",
            Self::Hp97560 => "hp97560",
            Self::Laptop1993 => "laptop-1993",
        }
    }

    /// Where its figures come from.
    pub fn source(self) -> &'static str {
        match self {
            Self::Hdd | Self::SataSsd | Self::Cloud | Self::Fast => {
                "the test disk of this name (docs/testbed.md), without the way through loop and FUSE"
            }
            Self::Nvme => {
                "treeru's fio table of 20 devices, 60 to 100 µs at depth 1 and 3.4 to 6.2 GB/s: the middle"
            }
            Self::Optane => "treeru's fio table of 20 devices: 11 µs at depth 1",
            Self::Emmc => "vendors' data sheets of eMMC 5.1: 280 MB/s, 4 K requests/s (weak)",
            Self::Ufs => {
                "Samsung, 512 GB eUFS 3.1 (2020): 2100 MB/s, 100,000 requests/s of 4 KiB; the first byte follows from 8 dies"
            }
            Self::Gp2 => "AWS: 3 requests/s per GiB, bursts of 3000/s from 5.4 million credits; 250 MiB/s",
            Self::Hp97560 => "Ruemmler and Wilkes, An introduction to disk drive modeling (1994)",
            Self::Laptop1993 => {
                "Blake, Optimizing Windows NT (1993), tables 6.1 and 6.2: 20.45 ms random, 6.58 ms in sequence, 4 KiB"
            }
        }
    }

    /// Its latency, bandwidth and limits.
    pub fn model(self) -> Model {
        match self {
            Self::Hdd | Self::SataSsd | Self::Cloud | Self::Fast => self.of_testbed(),
            Self::Nvme => Model {
                latency_ns: 75_000,
                channel_bandwidth: Some(1_500_000_000),
                bandwidth: Some(5_000_000_000),
                channels: 64,
                queue: 1023,
                ..Model::default()
            },
            Self::Optane => Model {
                latency_ns: 9_500,
                bandwidth: Some(2_500_000_000),
                channels: 16,
                queue: 1023,
                ..Model::default()
            },
            // 4 KiB at a time in 260 µs, of which 15 are its bytes; one command at a time reaches the flash.
            Self::Emmc => {
                Model { latency_ns: 245_000, bandwidth: Some(280_000_000), channels: 1, ..Model::default() }
            }
            // Eight dies at a time make 100,000 requests of 4 KiB per second: 80 µs each, of which 2 are its bytes. A
            // device has 32 commands.
            Self::Ufs => Model {
                latency_ns: 78_000,
                bandwidth: Some(2_100_000_000),
                channels: 8,
                queue: 32,
                ..Model::default()
            },
            Self::Gp2 => Model {
                latency_ns: 700_000,
                channels: 64,
                limits: vec![
                    requests(256 << 10, 300, 5_400_000),
                    requests(256 << 10, 3000, 30),
                    Limit { unit: Unit::Bytes, per_second: 250 << 20, burst: 1 << 20 },
                ],
                ..Model::default()
            },
            Self::Hp97560 => hp97560(),
            Self::Laptop1993 => laptop_1993(),
        }
    }

    /// The same figures as `cold-testbed/src/disk/model.rs` has; a test compares them.
    fn of_testbed(self) -> Model {
        // One request of its block layer is one of FUSE; a loop device takes 128.
        let request = Bounds { bytes: 512 << 10, ..Bounds::default() };
        let plain = Model { request, queue: 128, ..Model::default() };
        match self {
            Self::Hdd => Model {
                latency_ns: 50_000,
                bandwidth: Some(100_000_000),
                channels: 1,
                heads: Some(Heads {
                    cylinders: 1.0,
                    within: 0.0,
                    split: 1.0,
                    short: (1_000_000.0, 5_600_000.0),
                    long: (6_600_000.0, 0.0),
                    rotation_ns: 4_170_000,
                    passes: false,
                }),
                ..plain
            },
            Self::SataSsd => {
                Model { latency_ns: 100_000, bandwidth: Some(500_000_000), channels: 32, ..plain }
            }
            Self::Cloud => Model {
                latency_ns: 700_000,
                channels: 64,
                limits: vec![
                    requests(256 << 10, 3000, 30),
                    Limit { unit: Unit::Bytes, per_second: 125 << 20, burst: 1 << 20 },
                ],
                ..plain
            },
            _ => plain,
        }
    }
}

fn requests(of: u64, per_second: u64, burst: u64) -> Limit {
    Limit { unit: Unit::Requests { of }, per_second, burst }
}

/// 1962 cylinders, 4002 turns per minute, 72 sectors of 512 bytes per track. Its controller's time is left out.
fn hp97560() -> Model {
    Model {
        // One track per turn of 14.99 ms.
        bandwidth: Some(2_459_000),
        channels: 1,
        heads: Some(Heads {
            cylinders: 1962.0,
            within: 1.0,
            split: 383.0,
            short: (3_240_000.0, 400_000.0),
            long: (8_000_000.0, 8_000.0),
            rotation_ns: 7_495_000,
            passes: true,
        }),
        queue: 1,
        request: Bounds { bytes: 64 << 10, ..Bounds::default() },
        ..Model::default()
    }
}

/// 4 KiB in sequence take 6.58 ms, at random 20.45 ms; 48 KiB at a time reach 1.4 MB/s (its figure 4.14). So 2.6 ms
/// of 4 KiB in sequence are its bytes', and the rest the request's.
fn laptop_1993() -> Model {
    Model {
        latency_ns: 3_900_000,
        bandwidth: Some(1_550_000),
        channels: 1,
        heads: Some(Heads::constant(13_870_000)),
        queue: 1,
        request: Bounds { bytes: 64 << 10, ..Bounds::default() },
        ..Model::default()
    }
}
