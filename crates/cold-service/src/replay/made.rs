//! Made-up logs of starts, for comparisons and tests; the same seed gives the same log.
//!
//! What is published: how often each of a user's programs is started follows a Zipf-like law. Breslau et al., "Web
//! Caching and Zipf-like Distributions" (INFOCOM 1999), found the exponent to vary from trace to trace and a model of
//! independent requests to explain hit ratios; Hanson, "A Characterization of the Use of the UNIX C Shell" (Berkeley
//! UCB/CSD-86-274, 1986), few commands to be most of what a user starts. Real requests are correlated in the short term
//! (the same papers); here by the session's own programs. All other figures are choices of ours, in [`Made`], and are
//! varied in docs/benchmarks/service.md.

use cold_model::Nanos;
use cold_stats::Pcg;

use super::{Event, Log, Program, What};

const SECOND: f64 = 1e9;
const DAY: f64 = 86_400.0;

/// How a log is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Made {
    /// Programs that the user has.
    pub programs: u32,
    /// Exponent of popularity: the k-th program is started in proportion to 1/k^zipf.
    pub zipf: f64,
    /// Days that the log covers.
    pub days: u32,
    /// Sessions of a day, from 8 to 18 o'clock.
    pub sessions: u32,
    /// Mean number of starts in a session (geometric).
    pub starts: f64,
    /// Share of starts that take a program of this session again; the others follow popularity.
    pub repeats: f64,
    /// Share of programs that swap their places in the order of popularity at the end of each day: what one works on
    /// changes.
    pub drift: f64,
    /// Times of a day that something empties the cache, besides boot each morning.
    pub emptied: u32,
    /// Median of the bytes that a program needs, and the standard deviation of their logarithm.
    pub bytes: (f64, f64),
}

impl Default for Made {
    fn default() -> Self {
        Self {
            programs: 60,
            zipf: 0.8,
            days: 30,
            sessions: 10,
            starts: 8.0,
            repeats: 0.3,
            drift: 0.03,
            emptied: 3,
            // Plans of docs/benchmarks/prefetch.md: 1 MB (git) to 130 MB (LibreOffice), most about 10.
            bytes: (10e6, 1.2),
        }
    }
}

impl Made {
    /// The log of this seed.
    pub fn log(&self, seed: u64) -> Log {
        let mut rng = Pcg::new(seed, 0x006c_6f67);
        let programs: Vec<Program> = (0..self.programs)
            .map(|i| {
                let (median, deviation) = self.bytes;
                let bytes = median * (deviation * rng.normal()).exp();
                Program { name: format!("/usr/bin/program-{i}"), bytes: (bytes as u64).max(4096) }
            })
            .collect();
        let mut ranks: Vec<usize> = (0..programs.len()).collect();
        rng.shuffle(&mut ranks);
        let weights = cumulated(programs.len(), self.zipf);
        let mut events = Vec::new();
        for day in 0..self.days {
            self.day(f64::from(day) * DAY, &ranks, &weights, &mut rng, &mut events);
            self.drift(&mut ranks, &mut rng);
        }
        Log::new(programs, events).unwrap_or_default()
    }

    fn day(&self, begin: f64, ranks: &[usize], weights: &[f64], rng: &mut Pcg, events: &mut Vec<Event>) {
        let moment = |from: f64, hours: f64, rng: &mut Pcg| begin + (from + hours * rng.unit()) * 3600.0;
        let at = |seconds: f64| Nanos((seconds * SECOND) as u64);
        events.push(Event { at: at(begin + 7.9 * 3600.0), what: What::Emptied });
        for _ in 0..self.emptied {
            events.push(Event { at: at(moment(8.0, 10.0, rng)), what: What::Emptied });
        }
        for _ in 0..self.sessions {
            let mut now = moment(8.0, 10.0, rng);
            let mut own: Vec<usize> = Vec::new();
            loop {
                let again = own.get(rng.below(own.len() as u32) as usize).copied();
                let again = again.filter(|_| rng.unit() < self.repeats);
                let program = again.or_else(|| ranks.get(drawn(weights, rng.unit())).copied());
                let program = program.unwrap_or_default();
                own.push(program);
                events.push(Event { at: at(now), what: What::Starts { program, times: 1 } });
                // A minute from one to the next, exponential.
                now -= 60.0 * (1.0 - rng.unit()).ln();
                if rng.unit() < 1.0 / self.starts {
                    break;
                }
            }
        }
    }

    fn drift(&self, ranks: &mut [usize], rng: &mut Pcg) {
        let n = ranks.len() as u32;
        let swaps = (f64::from(n) * self.drift / 2.0).round() as u32;
        for _ in 0..swaps {
            ranks.swap(rng.below(n) as usize, rng.below(n) as usize);
        }
    }
}

/// Sums of 1/k^s, divided by the whole.
fn cumulated(n: usize, s: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=n)
        .map(|k| {
            sum += (k as f64).powf(-s);
            sum
        })
        .collect();
    sums.into_iter().map(|part| part / sum).collect()
}

fn drawn(cumulated: &[f64], unit: f64) -> usize {
    cumulated.partition_point(|sum| *sum <= unit).min(cumulated.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(log: &Log) -> Vec<u64> {
        let mut n = vec![0; log.programs.len()];
        for event in log.events() {
            if let What::Starts { program, .. } = event.what {
                n[program] += 1;
            }
        }
        n
    }

    #[test]
    fn a_seed_is_a_log() {
        let made = Made::default();
        assert_eq!(made.log(1), made.log(1));
        assert_ne!(made.log(1), made.log(2));
        let log = made.log(1);
        let emptied = log.events().iter().filter(|e| e.what == What::Emptied).count();
        assert_eq!(emptied, 30 * 4);
        let n: u64 = starts(&log).iter().sum();
        assert!((2000..2800).contains(&n), "300 sessions of 8 starts: {n}");
    }

    #[test]
    fn popularity_follows_the_law_that_was_asked_for() {
        for zipf in [0.6, 0.8, 1.2] {
            let made = Made { zipf, drift: 0.0, repeats: 0.0, days: 2000, ..Made::default() };
            let mut n = starts(&made.log(3));
            n.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
            // The slope between the 1st and the 30th of 60, both with more than a thousand starts.
            let slope = (n[0] as f64 / n[29] as f64).ln() / 30.0_f64.ln();
            assert!((slope - zipf).abs() < 0.03, "{zipf}: {slope}");
        }
    }

    #[test]
    fn repeats_bring_the_same_programs_closer_together() {
        let near = |repeats| {
            let log = Made { repeats, drift: 0.0, ..Made::default() }.log(5);
            let order: Vec<usize> = log
                .events()
                .iter()
                .filter_map(|e| match e.what {
                    What::Starts { program, .. } => Some(program),
                    What::Emptied => None,
                })
                .collect();
            order.windows(4).filter(|w| w[..3].contains(&w[3])).count() as f64 / order.len() as f64
        };
        assert!(near(0.5) > near(0.0) + 0.1, "{} {}", near(0.5), near(0.0));
    }
}
