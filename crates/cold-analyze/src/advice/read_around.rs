//! A smaller or larger read-around window: the start simulated with the present window and with others
//! ([`crate::simulate`]), on a disk fitted to its own requests ([`crate::cost`]).
//!
//! Pages that were mapped around a fault count as touched then, which makes small windows look worse than they are. No
//! promise lies within the model's own error: what it says of the recorded windows against what was recorded.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use cold_model::figures::plural;
use cold_model::{Bytes, Dev, Nanos};
use cold_sim::disk::Model;

use super::{Facts, few, for_cached_data, worth};
use crate::cost::DeviceCost;
use crate::model::{Suggestion, SuggestionId};
use crate::simulate::{Helper, Observed, Recorded, Setting, WaitsKnown, Windows};
use crate::waits::sum;

/// Windows that are tried besides the present one: Linux' default, a quarter and four times of it. Between them times
/// differ by a few hundredths; above, more is read for none. Each takes nearly as long as all other analysis.
const WINDOWS: [Bytes; 3] = [Bytes(32 << 10), Bytes(128 << 10), Bytes(512 << 10)];
/// Largest difference between the model of the recorded start and what was recorded, as a part of the bytes.
const TRUSTED: f64 = 0.25;
/// Part of the bytes from which on fewer are worth a word where time stays the same.
const FEWER: f64 = 0.75;
/// Fewer bytes saved are not.
const LEAST: Bytes = Bytes(1 << 20);
/// From here on a window is not a choice but an accident.
const HUGE: Bytes = Bytes(1 << 20);

/// What a start came to, recorded or simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    requests: u64,
    bytes: Bytes,
    /// Waiting for storage, of all threads added up.
    waits: Nanos,
    /// From the start to ready.
    time: Nanos,
}

impl Figures {
    /// The other one is slower by less than anybody should care for: two hundredths of what is waited.
    fn is_as_fast(&self, other: &Self) -> bool {
        other.time.0 <= self.time.0.saturating_add(self.waits.0 / 50)
    }
}

/// The start with one window.
#[derive(Debug, Clone, Copy)]
struct Tried {
    window: Bytes,
    figures: Figures,
}

struct Sweep {
    recorded: Figures,
    /// The model's answer to that.
    as_recorded: Figures,
    /// With the window that there is when nobody records.
    present: Tried,
    others: Vec<Tried>,
    waits_known: WaitsKnown,
}

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let waited = f.waited(|w| for_cached_data(f.cx, w));
    let unused: Bytes = f.files.iter().map(|x| x.unused).sum();
    if worth(f, waited).is_none() && unused < LEAST {
        return None;
    }
    let sweep = Sweep::of(f)?;
    let (recorded, told, now) = (sweep.recorded, sweep.as_recorded, sweep.present.figures);
    if told.bytes.0.abs_diff(recorded.bytes.0) as f64 > TRUSTED * recorded.bytes.0.max(1) as f64 {
        return None;
    }
    let best = sweep.fastest()?;
    // It may promise no more than the same part of what was really waited, and nothing that is less than its own
    // error.
    let part = (recorded.waits.0 as f64 / told.waits.0.max(1) as f64).min(1.0);
    let saved = Nanos((now.time.saturating_sub(best.figures.time).0 as f64 * part) as u64);
    let fewer_waits = now.waits.saturating_sub(best.figures.waits);
    let sure = saved.0 > told.time.0.abs_diff(recorded.time.0)
        && fewer_waits.0 > told.waits.0.abs_diff(recorded.waits.0);
    if let Some(saved) = worth(f, saved).filter(|_| sure) {
        return Some(sweep.suggestion(f, best, Some(saved)));
    }
    let as_fast = |s: &&Tried| now.is_as_fast(&s.figures);
    let thrifty = |s: &&Tried| s.figures.bytes.0 as f64 <= FEWER * now.bytes.0 as f64;
    let fewest = sweep.others.iter().filter(as_fast).filter(thrifty).min_by_key(|s| s.figures.bytes)?;
    sweep.saved_bytes(fewest).filter(|saved| *saved >= LEAST)?;
    Some(sweep.suggestion(f, fewest, None))
}

impl Sweep {
    /// `None` where no window is known, nothing tells what requests of other sizes take, or the start cannot be
    /// simulated.
    fn of(f: &Facts<'_, '_>) -> Option<Self> {
        let recording = f.cx.recording;
        let cost = f.cost.filter(DeviceCost::knows_sizes)?;
        let in_force = window_in_force(f)?;
        let mut start = Recorded::at_most(recording, &f.cx.usage).ok()?;
        // Of a start on two disks each stays what it is.
        start.keep_disks_but(recording, None);
        let disk = cost.disk(crate::cost::bounds(recording));
        // For exact needs the recorder turned reading ahead off.
        let usual = start.window().filter(|w| *w != in_force);
        let present = usual.unwrap_or(in_force);
        let windows: Vec<Bytes> =
            usual.into_iter().chain(WINDOWS.into_iter().filter(|w| *w != present)).collect();
        let mut figures = simulated(&start, &disk, &windows).into_iter();
        let as_recorded = figures.next()??;
        let tried = windows.iter().zip(figures);
        let mut others: Vec<Tried> =
            tried.filter_map(|(w, figures)| Some(Tried { window: *w, figures: figures? })).collect();
        let present = match usual {
            None => Tried { window: present, figures: as_recorded },
            Some(_) => others.iter().position(|t| t.window == present).map(|at| others.remove(at))?,
        };
        Some(Self { recorded: recorded(f)?, as_recorded, present, others, waits_known: start.waits_known })
    }

    /// Of those that are as fast as the fastest the one that reads least.
    fn fastest(&self) -> Option<&Tried> {
        let fastest = self.others.iter().min_by_key(|s| s.figures.time)?.figures;
        let as_fast = self.others.iter().filter(|s| fastest.is_as_fast(&s.figures));
        as_fast.min_by_key(|s| (s.figures.bytes, s.figures.time))
    }

    /// Bytes that it saves, beyond the model's error.
    fn saved_bytes(&self, with: &Tried) -> Option<Bytes> {
        let saved = self.present.figures.bytes.saturating_sub(with.figures.bytes);
        let off = self.as_recorded.bytes.0.abs_diff(self.recorded.bytes.0);
        (saved.0 > off).then_some(saved)
    }

    fn saved_requests(&self, with: &Tried) -> Option<u64> {
        let saved = self.present.figures.requests.saturating_sub(with.figures.requests);
        let off = self.as_recorded.requests.abs_diff(self.recorded.requests);
        (saved > off).then_some(saved)
    }

    fn suggestion(&self, f: &Facts<'_, '_>, best: &Tried, saved: Option<Nanos>) -> Suggestion {
        let (old, new) = (self.present.window, best.window);
        let id = match () {
            () if old >= HUGE && new < old => SuggestionId::HugeReadAhead,
            () if new < old => SuggestionId::SmallerReadAround,
            () => SuggestionId::LargerReadAround,
        };
        let read = |x: &Figures| format!("{} in {}", x.bytes, plural(x.requests, "request"));
        let now = self.present.figures;
        Suggestion {
            read_ahead: Some(new),
            id,
            what: format!("Set read_ahead_kb of the device to {} instead of {}.", new.0 >> 10, old.0 >> 10),
            why: format!(
                "Simulated, it reads {} with the present window, and {} with {new}.",
                read(&now),
                read(&best.figures),
            ),
            saves_bytes: self.saved_bytes(best),
            saves_requests: self.saved_requests(best),
            saves_time: saved,
            estimate: self.estimate(saved.is_some(), &read),
            files: few(f.files.iter().filter(|x| x.unused.0 > 0).map(|x| x.file)),
        }
    }

    fn estimate(&self, promises: bool, read: &dyn Fn(&Figures) -> String) -> String {
        let (told, recorded) = (self.as_recorded, self.recorded);
        let table: Vec<String> = self
            .others
            .iter()
            .map(|s| format!("{}: {}, {}", s.window, read(&s.figures), s.figures.time))
            .collect();
        let bound = if self.waits_known == WaitsKnown::All {
            ""
        } else {
            "; waits for other threads are taken as they were recorded"
        };
        let time = if promises { "" } else { "; no time is promised: a change within the model's error" };
        format!(
            "this start simulated with each window, on a disk fitted to its requests; as it was recorded it \
             reads {} where {} were recorded, its threads wait {} for storage where they waited {}, and it is ready \
             after {} where it was after {}; pages mapped around a fault count as needed{bound}{time}; other programs \
             feel the setting too and are not modelled. Windows of {}",
            read(&told),
            read(&recorded),
            told.waits,
            recorded.waits,
            told.time,
            recorded.time,
            table.join("; ")
        )
    }
}

/// The start with the windows in force when it was recorded, and with each of others; `None` where the recording
/// contradicts itself.
fn simulated(start: &Recorded, disk: &Model, others: &[Bytes]) -> Vec<Option<Figures>> {
    let one = |windows: Windows| {
        let setting = Setting {
            policy: start.policy,
            windows,
            disk,
            seed: 0,
            helper: Helper::None,
            machine: start.machine(),
            memory: None,
        };
        let out = start.simulate(&setting).ok()?;
        let waits = out.outcome.tasks.iter().fold(0_u64, |sum, t| sum.saturating_add(t.times.storage()));
        Some(Figures { requests: out.requests, bytes: out.bytes, waits: Nanos(waits), time: out.time })
    };
    let windows = std::iter::once(Windows::Recorded).chain(others.iter().copied().map(Windows::Of));
    std::thread::scope(|scope| {
        // Each in a thread of its own, or, where there are no more, in this one.
        let started: Vec<_> = windows
            .map(|window| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, move || one(window));
                thread.map_err(|_| window)
            })
            .collect();
        let ended = started.into_iter().map(|thread| match thread {
            Ok(thread) => thread.join().ok().flatten(),
            Err(window) => one(window),
        });
        ended.collect()
    })
}

/// The window in force for the files that the start read most of, the larger of two; files in memory have none.
fn window_in_force(f: &Facts<'_, '_>) -> Option<Bytes> {
    let recording = f.cx.recording;
    let window = |dev: Dev| {
        recording.manifest.file_systems.iter().find(|fs| fs.dev == dev)?.read_ahead.value().copied()
    };
    let mut read: BTreeMap<Bytes, u64> = BTreeMap::new();
    for (file, usage) in recording.files.iter().zip(&f.cx.usage) {
        if let Some(window) = window(file.dev).filter(|_| !usage.read.is_empty()) {
            *read.entry(window).or_default() += usage.read.pages();
        }
    }
    read.into_iter().max_by_key(|(window, pages)| (*pages, *window)).map(|(window, _)| window)
}

/// What was recorded. `None` where no requests are seen, or no time is told.
fn recorded(f: &Facts<'_, '_>) -> Option<Figures> {
    let seen = Observed::of(f.cx.recording, &f.cx.usage);
    Some(Figures {
        requests: seen.requests?,
        bytes: seen.read?,
        waits: sum(f.cx.waits.iter()),
        time: seen.time?,
    })
}
