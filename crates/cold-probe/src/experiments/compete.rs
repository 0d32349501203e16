//! The fight for memory (figures 6.19 to 6.21): two processes with a file each inside one memory limit.

use std::sync::Arc;

use cold_model::Bytes;
use cold_stats::compare::{Comparison, paired};
use cold_stats::{Pcg, median};
use serde::Serialize;

use super::{Lab, Times};
use crate::group::Group;
use crate::spec::{Advice, Limit, Mapping, Mode, Work};
use crate::subject::{ProbeTarget, Subject};
use crate::variate::Seek;
use crate::{Error, Result};

/// Of so many records one is asked about: what asking costs would otherwise slow the faster process most.
const WATCH: u32 = 16;

/// Memory, spans, records and repetitions.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CompeteOptions {
    /// Memory of both together.
    pub limit: Bytes,
    /// Bytes of one unit; spans are 1 to `spans` units.
    pub unit: Bytes,
    /// Largest span, in units; each side's file has this size.
    pub spans: u64,
    /// Bytes of a record.
    pub record: u64,
    /// Seconds of a trial; the second half counts.
    pub seconds: f64,
    /// How often each is repeated.
    pub repeats: u64,
}

impl CompeteOptions {
    /// 8 MB for both, spans of 1 to 8 MB each.
    pub const PUBLISHED: Self = Self {
        limit: Bytes(8 << 20),
        unit: Bytes(1 << 20),
        spans: 8,
        record: 4096,
        seconds: 3.0,
        repeats: 3,
    };
    /// 128 MB for both, spans of 16 to 128 MB.
    pub const MODERN: Self =
        Self { limit: Bytes(128 << 20), unit: Bytes(16 << 20), seconds: 6.0, ..Self::PUBLISHED };

    /// Bouts in all.
    pub fn bouts(&self) -> u64 {
        Pair::ALL.len() as u64 * self.spans * self.repeats
    }

    /// The time that they take at least: making files cold comes on top.
    pub fn least(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.seconds * self.bouts() as f64)
    }
}

/// Two ways of reading that compete for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pair {
    /// A mapping against calls.
    Mapped,
    /// A mapping with `MADV_RANDOM` against calls.
    MappedRandom,
    /// Calls against calls: what chance does.
    Control,
}

impl Pair {
    /// All, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Mapped, Self::MappedRandom, Self::Control];

    fn modes(self) -> [Mode; 2] {
        let random = Mode::Mapped(Mapping { shared: true, advice: Advice::Random, ..Mapping::default() });
        match self {
            Self::Mapped => [Mode::MAPPED, Mode::BUFFERED],
            Self::MappedRandom => [random, Mode::BUFFERED],
            Self::Control => [Mode::BUFFERED, Mode::BUFFERED],
        }
    }

    /// Names of both sides.
    pub fn names(self) -> [&'static str; 2] {
        match self {
            Self::Mapped => ["mapped", "buffered"],
            Self::MappedRandom => ["mapped+random", "buffered"],
            Self::Control => ["buffered A", "buffered B"],
        }
    }
}

/// One trial of a pair at one span; figures of both sides come in the order of [`Pair::names`].
#[derive(Debug, Clone, Serialize)]
pub struct Bout {
    /// The two sides.
    pub pair: Pair,
    /// Span in units.
    pub span: u64,
    /// Number of the repetition, from 1.
    pub repeat: u64,
    /// Time per record of both sides.
    pub ms: [Times; 2],
    /// Share of asked records that were not cached, of both sides.
    pub missed: [Option<f64>; 2],
    /// Major faults of both sides.
    pub major_faults: [u64; 2],
    /// Bytes each had the device read.
    pub read_bytes: [u64; 2],
    /// Bytes of each side's file in the cache at the end.
    pub cached: [Option<u64>; 2],
    /// Most memory charged to both at any time; never above the limit.
    pub peak: Option<u64>,
    /// Pages of files that were evicted and wanted again.
    pub refaults: Option<u64>,
}

/// One pair over its repetitions at one span.
#[derive(Debug, Clone, Serialize)]
pub struct PairPoint {
    /// The two sides; their figures come in the order of [`Pair::names`].
    pub pair: Pair,
    /// Span in units.
    pub span: u64,
    /// Median over the repetitions of the mean time, milliseconds, of both sides.
    pub ms: [f64; 2],
    /// Median of each side's cached bytes; `None` where the kernel does not tell.
    pub cached: [Option<f64>; 2],
    /// Time of the first side as a ratio of the second's.
    pub ratio: Option<Comparison>,
}

/// What a pair comes to, over the spans at which both do not fit.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The two sides; first and second are those of [`Pair::names`].
    pub pair: Pair,
    /// Bouts that it rests on.
    pub bouts: usize,
    /// Time of the first side as a ratio of the second's.
    pub ratio: Option<Comparison>,
    /// The side that the kernel favours; `None` when the interval holds 1, or is of less than 95%.
    pub favoured: Option<&'static str>,
}

/// All bouts and what they prove.
#[derive(Debug, Clone, Serialize)]
pub struct CompeteFindings {
    /// As they ran.
    pub bouts: Vec<Bout>,
    /// By pair and span.
    pub points: Vec<PairPoint>,
    /// One per pair, in the order of [`Pair::ALL`].
    pub verdicts: Vec<Verdict>,
    /// It was interrupted: these are the bouts that were over by then.
    pub interrupted: bool,
    /// The limit held in every bout; `None` where the kernel keeps no high-water mark.
    pub limit_held: Option<bool>,
}

/// Runs all bouts; each repetition in an order of its own. `begins` is told when nothing is in the way any more.
pub fn run(lab: &Lab<'_>, o: &CompeteOptions, begins: impl FnOnce()) -> Result<CompeteFindings> {
    if let ProbeTarget::Destroy(path) = &lab.place {
        let why = "each side needs a file of its own, which only --dir makes".to_owned();
        return Err(Error::Subject { path: path.clone(), why });
    }
    // Whoever may set no limit learns it before files are made.
    drop(Group::create(&lab.journal, o.limit)?);
    begins();
    let bytes = o.unit.0 * o.spans;
    let subjects = [lab.subject(bytes)?, lab.subject(bytes)?];
    lab.log.watch_files(&[("A", &subjects[0]), ("B", &subjects[1])]);
    let (bouts, interrupted) = all(o, lab.seed, |(pair, span, repeat), n| {
        let [a, b] = pair.names();
        lab.say(&format!("{a} against {b}, span {}, bout {n} of {}", Bytes(o.unit.0 * span), o.bouts()));
        bout(lab, o, &subjects, (pair, span, repeat))
    })?;
    Ok(CompeteFindings { interrupted, ..judge(o, bouts) })
}

/// Every bout, and whether an interrupt came before the last. One before the first leaves nothing to tell.
fn all(
    o: &CompeteOptions,
    seed: u64,
    mut bout: impl FnMut((Pair, u64, u64), u64) -> Result<Bout>,
) -> Result<(Vec<Bout>, bool)> {
    let mut rng = Pcg::new(seed, 77);
    let mut bouts = Vec::new();
    for repeat in 1..=o.repeats {
        let mut order: Vec<(Pair, u64)> =
            Pair::ALL.into_iter().flat_map(|p| (1..=o.spans).map(move |s| (p, s))).collect();
        rng.shuffle(&mut order);
        for (pair, span) in order {
            match bout((pair, span, repeat), bouts.len() as u64 + 1) {
                Ok(done) => bouts.push(done),
                Err(Error::Interrupted) if !bouts.is_empty() => return Ok((bouts, true)),
                Err(e) => return Err(e),
            }
        }
    }
    Ok((bouts, false))
}

fn bout(
    lab: &Lab<'_>,
    o: &CompeteOptions,
    subjects: &[Subject; 2],
    (pair, span, repeat): (Pair, u64, u64),
) -> Result<Bout> {
    subjects.iter().try_for_each(Subject::make_cold)?;
    // A group of its own for each: nothing that is charged to the last one is left.
    let group = Arc::new(Group::create(&lab.journal, o.limit)?);
    lab.log.watch_group(Some(&group));
    let limit = Limit::Time { ms: (o.seconds * 1e3) as u64, settle: 0.5 };
    let bytes = subjects[0].bytes();
    let seek = Seek::span(bytes / o.record, span * o.unit.0 / o.record);
    let names = pair.names();
    // Sides change files from one repetition to the next, and the order of starting from one bout to the
    // next, so that neither favours one.
    let sides = if repeat % 2 == 0 { [1, 0] } else { [0, 1] };
    let order = if (repeat / 2 + span) % 2 == 0 { [1, 0] } else { [0, 1] };
    let modes = pair.modes();
    let crews = order.map(|n| {
        let file = subjects[sides[n]].path().to_owned();
        let reads = Work::reads(file, bytes, o.record, modes[n], seek);
        let work = Work { variate: lab.variate, watch: WATCH, ..reads };
        lab.crew(names[n], vec![work], limit, repeat * 1000 + span * 10 + n as u64)
    });
    let trial = lab.runner.run(&crews, Some(&group), &lab.log);
    let memory = group.memory();
    lab.log.watch_group(None);
    let trial = trial?;
    // `order` is its own inverse.
    let threads =
        order.map(|n| trial.crews.get(n).and_then(|c| c.threads.first()).cloned().unwrap_or_default());
    let cached = [subjects[sides[0]].cached()?, subjects[sides[1]].cached()?];
    Ok(Bout {
        pair,
        span,
        repeat,
        ms: [Times::of(&threads[0].records), Times::of(&threads[1].records)],
        missed: [share(&threads[0]), share(&threads[1])],
        major_faults: [threads[0].used.major_faults, threads[1].used.major_faults],
        read_bytes: [threads[0].used.read_bytes, threads[1].used.read_bytes],
        cached: cached.map(|c| c.map(|b| b.0)),
        peak: memory.peak,
        refaults: memory.refaults,
    })
}

fn share(t: &crate::worker::ThreadReport) -> Option<f64> {
    let (asked, missed) = (t.asked?, t.missed?);
    (asked > 0).then(|| missed as f64 / asked as f64)
}

fn judge(o: &CompeteOptions, bouts: Vec<Bout>) -> CompeteFindings {
    let (mut points, mut verdicts) = (Vec::new(), Vec::new());
    let ratio = |of: &[&Bout]| paired(&of.iter().map(|b| (b.ms[0].mean, b.ms[1].mean)).collect::<Vec<_>>());
    let middle = |of: &[&Bout], f: &dyn Fn(&Bout) -> Option<f64>| {
        median(&of.iter().filter_map(|b| f(b)).collect::<Vec<_>>())
    };
    for pair in Pair::ALL {
        for span in 1..=o.spans {
            let of: Vec<&Bout> = bouts.iter().filter(|b| b.pair == pair && b.span == span).collect();
            if of.is_empty() {
                continue; // interrupted before its first
            }
            points.push(PairPoint {
                pair,
                span,
                ms: [0, 1].map(|n| middle(&of, &|b| Some(b.ms[n].mean)).unwrap_or(0.0)),
                cached: [0, 1].map(|n| middle(&of, &|b| b.cached[n].map(|c| c as f64))),
                ratio: ratio(&of),
            });
        }
        // Where both spans together are larger than the limit, one can only win what the other loses.
        let of: Vec<&Bout> =
            bouts.iter().filter(|b| b.pair == pair && 2 * b.span * o.unit.0 > o.limit.0).collect();
        let found = ratio(&of);
        let [a, b] = pair.names();
        let favoured = found.as_ref().filter(|c| c.interval.is_full()).and_then(|c| match c.interval {
            i if i.high < 1.0 => Some(a),
            i if i.low > 1.0 => Some(b),
            _ => None,
        });
        verdicts.push(Verdict { pair, bouts: of.len(), ratio: found, favoured });
    }
    let peaks: Option<Vec<u64>> = bouts.iter().map(|b| b.peak).collect();
    let limit_held = peaks.map(|p| p.iter().all(|p| *p <= o.limit.0));
    CompeteFindings { bouts, points, verdicts, interrupted: false, limit_held }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bout(pair: Pair, span: u64, repeat: u64, a: f64, b: f64) -> Bout {
        let ms = |mean| Times { count: 100, mean, ..Times::default() };
        Bout {
            pair,
            span,
            repeat,
            ms: [ms(a), ms(b)],
            missed: [None; 2],
            major_faults: [0; 2],
            read_bytes: [0; 2],
            cached: [Some(0); 2],
            peak: Some(8 << 20),
            refaults: None,
        }
    }

    #[test]
    fn an_interrupt_leaves_the_bouts_that_are_over() {
        let o = CompeteOptions { spans: 2, repeats: 2, ..CompeteOptions::PUBLISHED };
        assert_eq!((o.bouts(), o.least().as_secs_f64()), (12, 12.0 * o.seconds));
        let until = |last: u64| {
            all(&o, 1, |(pair, span, repeat), n| {
                if n > last { Err(Error::Interrupted) } else { Ok(bout(pair, span, repeat, 1.0, 2.0)) }
            })
        };
        let (bouts, interrupted) = until(3).expect("three bouts");
        assert_eq!((bouts.len(), interrupted), (3, true));
        let found = judge(&o, bouts);
        assert!(found.points.len() <= 3 && found.points.iter().all(|p| p.ms[0] > 0.0), "none of no bout");
        assert!(found.verdicts.iter().all(|v| v.favoured.is_none()), "{:?}", found.verdicts);
        assert!(matches!(until(0), Err(Error::Interrupted)));
        let (bouts, interrupted) = until(100).expect("all");
        assert_eq!((bouts.len(), interrupted), (12, false));
    }

    #[test]
    fn the_favoured_side_is_the_faster_one_where_memory_is_short() {
        let mut bouts = Vec::new();
        for span in 1..=8 {
            for repeat in 1..=3 {
                let wobble = 1.0 + 0.1 * ((span * 3 + repeat) % 5) as f64;
                // Where both fit, the other one is faster: it must not count.
                bouts.push(bout(
                    Pair::Mapped,
                    span,
                    repeat,
                    if span > 4 { 0.01 * wobble } else { 9.0 },
                    0.05,
                ));
                bouts.push(bout(Pair::MappedRandom, span, repeat, 0.2 * wobble, 0.05));
                bouts.push(bout(
                    Pair::Control,
                    span,
                    repeat,
                    0.05 * if (span + repeat) % 2 == 0 { 1.1 } else { 0.9 },
                    0.05,
                ));
            }
        }
        let mut found = judge(&CompeteOptions::PUBLISHED, bouts.clone());
        assert_eq!(
            found.verdicts.iter().map(|v| v.favoured).collect::<Vec<_>>(),
            [Some("mapped"), Some("buffered"), None]
        );
        assert_eq!((found.verdicts[0].bouts, found.points.len(), found.limit_held), (12, 24, Some(true)));
        bouts[5].peak = Some((8 << 20) + 4096);
        found = judge(&CompeteOptions::PUBLISHED, bouts);
        assert_eq!(found.limit_held, Some(false));
    }
}
