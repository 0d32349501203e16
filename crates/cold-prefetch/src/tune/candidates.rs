//! Rival knobs, one coordinate at a time.

use std::cmp::Reverse;

use cold_model::{DeviceModel, Nanos};
use cold_plan::plan::{Gate, Knobs, Order};

use super::forecast::Forecast;
use crate::knobs::gaps;

/// One thing to vary, in the order of what usually matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coordinate {
    Gate,
    Critical,
    Gap,
    Order,
    Metadata,
    InFlight,
    Threads,
    MinUses,
    Chunk,
}

const ALL: [Coordinate; 9] = [
    Coordinate::Gate,
    Coordinate::Critical,
    Coordinate::Gap,
    Coordinate::Order,
    Coordinate::Metadata,
    Coordinate::InFlight,
    Coordinate::Threads,
    Coordinate::MinUses,
    Coordinate::Chunk,
];

/// What can be varied for a plan on a device; gives candidates until nothing is left.
#[derive(Debug, Clone)]
pub struct Space {
    gaps: [u32; 4],
    cap: u64,
    starts: u32,
    coordinates: Vec<Coordinate>,
    at: usize,
    /// Values of the present coordinate not tried yet, next one last.
    left: Vec<Knobs>,
    /// Some candidate of this round took over: another round may find more.
    gained: bool,
    rounds: u32,
}

impl Space {
    /// All coordinates, for a plan learnt from so many starts.
    pub fn new(device: Option<&DeviceModel>, starts: u32) -> Self {
        let cap = device.map_or(128 << 10, |d| d.readahead_cap.max(4096));
        let (coordinates, rounds) = (ALL.to_vec(), 2);
        Self { gaps: gaps(device), cap, starts, coordinates, at: 0, left: Vec::new(), gained: false, rounds }
    }

    /// Nothing to vary.
    pub fn none() -> Self {
        Self { coordinates: Vec::new(), rounds: 0, ..Self::new(None, 1) }
    }

    /// The next candidate, different from the best. Of the values of one coordinate the fastest by the model first.
    pub(super) fn next(&mut self, best: &Knobs, forecast: Option<&mut Forecast<'_>>) -> Option<Knobs> {
        let mut forecast = forecast;
        loop {
            if let Some(k) = self.left.pop() {
                // The best may have changed since the list was made.
                let coordinate = self.coordinates.get(self.at.checked_sub(1)?)?;
                let k = apply(*coordinate, best, &k);
                if k != *best {
                    return Some(k);
                }
                continue;
            }
            if self.at >= self.coordinates.len() {
                self.rounds = self.rounds.saturating_sub(1);
                if self.rounds == 0 || !self.gained {
                    return None;
                }
                (self.at, self.gained) = (0, false);
            }
            self.left = self.values(self.coordinates[self.at], best);
            self.left.reverse();
            if let Some(forecast) = forecast.as_deref_mut() {
                self.left.sort_by_key(|knobs| Reverse(forecast.time(knobs).unwrap_or(Nanos(u64::MAX))));
            }
            self.at += 1;
        }
    }

    /// Whether the last candidate took over.
    pub(super) fn answered(&mut self, better: bool) {
        self.gained |= better;
    }

    fn values(&self, coordinate: Coordinate, best: &Knobs) -> Vec<Knobs> {
        let mut out: Vec<Knobs> = match coordinate {
            Coordinate::Gate => {
                [Gate::None, Gate::Issued, Gate::Arrived].map(|gate| Knobs { gate, ..*best }).into()
            }
            Coordinate::Critical => {
                let us = match best.critical_us {
                    u32::MAX => [2_000, 50_000, 500_000],
                    now => [now / 4, now.saturating_mul(4), u32::MAX],
                };
                us.map(|critical_us| Knobs { critical_us, ..*best }).into()
            }
            Coordinate::Gap => self.gaps.map(|gap_bytes| Knobs { gap_bytes, ..*best }).into(),
            Coordinate::Order => [Order::Need, Order::Physical].map(|order| Knobs { order, ..*best }).into(),
            Coordinate::Metadata => [false, true].map(|metadata| Knobs { metadata, ..*best }).into(),
            Coordinate::InFlight => {
                let now = best.in_flight_bytes;
                [now / 4, now.saturating_mul(4), 0]
                    .map(|n| Knobs { in_flight_bytes: n & !4095, ..*best })
                    .into()
            }
            Coordinate::Threads => [1, 2, 4, 8].map(|threads| Knobs { threads, ..*best }).into(),
            Coordinate::MinUses => {
                (1..=self.starts.min(8) as u8).map(|min_uses| Knobs { min_uses, ..*best }).collect()
            }
            Coordinate::Chunk => [128 << 10, 512 << 10, 1 << 20, self.cap.min(16 << 20)]
                .into_iter()
                .filter(|n| *n <= self.cap)
                .map(|n| Knobs { chunk_bytes: n as u32 & !4095, ..*best })
                .collect(),
        };
        let mut seen = Vec::new();
        out.retain(|k| {
            let new = *k != *best && !seen.contains(k);
            seen.push(*k);
            new
        });
        out
    }
}

/// The best with one coordinate of another.
fn apply(coordinate: Coordinate, best: &Knobs, other: &Knobs) -> Knobs {
    let mut k = *best;
    match coordinate {
        Coordinate::Gate => k.gate = other.gate,
        Coordinate::Critical => k.critical_us = other.critical_us,
        Coordinate::Gap => k.gap_bytes = other.gap_bytes,
        Coordinate::Order => k.order = other.order,
        Coordinate::Metadata => k.metadata = other.metadata,
        Coordinate::InFlight => k.in_flight_bytes = other.in_flight_bytes,
        Coordinate::Threads => k.threads = other.threads,
        Coordinate::MinUses => k.min_uses = other.min_uses,
        Coordinate::Chunk => k.chunk_bytes = other.chunk_bytes,
    }
    k
}

/// What `other` does differently, in words.
pub(super) fn difference(best: &Knobs, other: &Knobs) -> String {
    let mut out = Vec::new();
    let mut note = |differs: bool, text: String| {
        if differs {
            out.push(text);
        }
    };
    let size = |n: u32| if n == 0 { "no bound".to_owned() } else { cold_model::Bytes(n.into()).to_string() };
    note(best.gate != other.gate, format!("gate {}", format!("{:?}", other.gate).to_lowercase()));
    note(
        best.critical_us != other.critical_us,
        match other.critical_us {
            u32::MAX => "everything critical".to_owned(),
            us => format!("critical until {:.1} ms", f64::from(us) / 1000.0),
        },
    );
    note(best.gap_bytes != other.gap_bytes, format!("gap {}", cold_model::Bytes(other.gap_bytes.into())));
    note(
        best.order != other.order,
        match other.order {
            Order::Need => "order of need".to_owned(),
            Order::Physical => "order of place".to_owned(),
        },
    );
    let metadata = if other.metadata { "with metadata" } else { "without metadata" };
    note(best.metadata != other.metadata, metadata.to_owned());
    note(best.in_flight_bytes != other.in_flight_bytes, format!("in flight {}", size(other.in_flight_bytes)));
    note(best.threads != other.threads, format!("{} threads", other.threads));
    note(best.min_uses != other.min_uses, format!("needed in {} starts", other.min_uses));
    note(best.chunk_bytes != other.chunk_bytes, format!("chunk {}", size(other.chunk_bytes)));
    out.join(", ")
}
