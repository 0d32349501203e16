//! The law of [`Cooling`] from starts that were paused again and again.

use cold_model::Cooling;

/// Starts of one program, paused so long after each so much running.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paused {
    /// How long each pause was, nanoseconds.
    pub pause_ns: f64,
    /// Pauses of a start.
    pub pauses: f64,
    /// CPU time of a start, nanoseconds.
    pub cpu_ns: f64,
}

/// What paused starts say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fitted {
    /// The law.
    pub cooling: Cooling,
    /// What a pause costs besides, however short: that is stopping and going on, nanoseconds.
    pub each_ns: f64,
    /// Part of what paused starts computed more that the law tells beyond a cost of each pause alone, up to 1.
    pub explains: f64,
}

/// A law that explains less than that of what differs by length explains noise.
const LEAST_EXPLAINED: f64 = 0.5;
/// The law has three parameters, and a pause a cost.
const LEAST_ROWS: usize = 5;
/// Lengths that are tried are so many to a factor of ten.
const PER_DECADE: f64 = 12.0;
/// Lengths of sleep that are tried, and of work, nanoseconds.
const SLEEPS: (f64, f64) = (1e5, 1e8);
const WORKS: (f64, f64) = (3e4, 3e7);

/// The law that comes nearest to these starts. `cpu_ns`: CPU time of a start that nobody paused. `None` where too few
/// are given, or long pauses cost no more than short ones as far as can be told.
pub fn fit(cpu_ns: f64, starts: &[Paused]) -> Option<Fitted> {
    let rows: Vec<Row> = starts.iter().filter(|s| s.pauses >= 1.0).map(|s| Row::of(cpu_ns, s)).collect();
    if rows.len() < LEAST_ROWS {
        return None;
    }
    // Without a law each pause costs the same.
    let alone = Sums::of(&rows, |_| 0.0).left(least(&rows), 0.0);
    let mut best: Option<(f64, Fitted)> = None;
    for sleep_ns in steps(SLEEPS) {
        for work_ns in steps(WORKS) {
            let unit = Cooling { most_ns: 1_000_000_000, sleep_ns: sleep_ns as u64, work_ns: work_ns as u64 };
            let sums = Sums::of(&rows, |row| unit.each(row.pause, row.work) / 1e9);
            let (each_ns, most) = sums.solved();
            let left = sums.left(each_ns, most);
            if best.is_none_or(|(least, _)| left < least) {
                let cooling = Cooling { most_ns: most.round() as u64, ..unit };
                let explains = 1.0 - left / alone.max(f64::MIN_POSITIVE);
                best = Some((left, Fitted { cooling, each_ns, explains }));
            }
        }
    }
    best.map(|(_, fitted)| fitted).filter(|f| f.explains >= LEAST_EXPLAINED && f.cooling.most_ns > 0)
}

/// What a pause of starts costs, each its part of what is computed without pauses.
struct Row {
    pause: f64,
    work: f64,
    longer: f64,
    /// Starts weigh the same: a pause of many counts as one of them.
    weight: f64,
}

impl Row {
    fn of(cpu_ns: f64, s: &Paused) -> Self {
        Self {
            pause: s.pause_ns,
            work: cpu_ns / s.pauses,
            longer: (s.cpu_ns - cpu_ns) / s.pauses,
            weight: (s.pauses / s.cpu_ns.max(1.0)).powi(2),
        }
    }
}

/// The cost of each pause that comes nearest where no length counts.
fn least(rows: &[Row]) -> f64 {
    let weight: f64 = rows.iter().map(|r| r.weight).sum();
    (rows.iter().map(|r| r.weight * r.longer).sum::<f64>() / weight.max(f64::MIN_POSITIVE)).max(0.0)
}

/// Least squares of `longer = each + most · x` in sums.
#[derive(Default)]
struct Sums {
    w: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Sums {
    fn of(rows: &[Row], x: impl Fn(&Row) -> f64) -> Self {
        rows.iter().fold(Self::default(), |s, row| {
            let (w, x, y) = (row.weight, x(row), row.longer);
            Self {
                w: s.w + w,
                x: s.x + w * x,
                y: s.y + w * y,
                xx: s.xx + w * x * x,
                xy: s.xy + w * x * y,
                yy: s.yy + w * y * y,
            }
        })
    }

    /// Cost of each, and the most; neither below nothing.
    fn solved(&self) -> (f64, f64) {
        let spread = self.w * self.xx - self.x * self.x;
        let most = (self.w * self.xy - self.x * self.y) / spread;
        let each = (self.y - most * self.x) / self.w;
        match () {
            () if most.is_finite() && most >= 0.0 && each >= 0.0 => (each, most),
            () if self.xx > 0.0 && self.xy > 0.0 => (0.0, self.xy / self.xx),
            () => ((self.y / self.w).max(0.0), 0.0),
        }
    }

    /// What is left of the squares.
    fn left(&self, each: f64, most: f64) -> f64 {
        let left = self.yy - 2.0 * each * self.y - 2.0 * most * self.xy
            + each * each * self.w
            + 2.0 * each * most * self.x
            + most * most * self.xx;
        left.max(0.0)
    }
}

fn steps((from, to): (f64, f64)) -> impl Iterator<Item = f64> + Clone {
    let n = ((to / from).log10() * PER_DECADE).round() as u32;
    (0..=n).map(move |i| from * 10_f64.powf(f64::from(i) / PER_DECADE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: f64 = 1e6;
    const CPU: f64 = 150.0 * MS;

    /// Starts by this law, each off by so many parts of itself, by turns above and below.
    fn starts(law: Cooling, each: f64, off: f64) -> Vec<Paused> {
        let mut all = Vec::new();
        for pause in [0.1, 1.0, 3.0, 10.0] {
            for pauses in [50.0, 150.0, 450.0] {
                let longer = each + law.each(pause * MS, CPU / pauses);
                let sign = if all.len() % 2 == 0 { 1.0 } else { -1.0 };
                let cpu_ns = (CPU + pauses * longer) * (1.0 + sign * off);
                all.push(Paused { pause_ns: pause * MS, pauses, cpu_ns });
            }
        }
        all
    }

    #[test]
    fn the_law_that_made_the_starts_is_found_again() {
        let law = Cooling { most_ns: 600_000, sleep_ns: 3_000_000, work_ns: 900_000 };
        let fitted = fit(CPU, &starts(law, 60_000.0, 0.0)).unwrap();
        assert!(fitted.explains > 0.999, "{fitted:?}");
        assert!((fitted.each_ns - 60_000.0).abs() < 5_000.0, "{fitted:?}");
        // What it says of waits is what counts; its numbers lie on a grid.
        for (sleep, work) in [(0.5, 0.2), (8.0, 0.2), (8.0, 0.7), (16.0, 2.0), (4.0, 1.0)] {
            let (is, told) = (law.each(sleep * MS, work * MS), fitted.cooling.each(sleep * MS, work * MS));
            assert!((told / is - 1.0).abs() < 0.1, "{sleep} {work}: {is} {told}");
        }
        let noisy = fit(CPU, &starts(law, 60_000.0, 0.03)).unwrap();
        let (is, told) = (law.each(8.0 * MS, 0.7 * MS), noisy.cooling.each(8.0 * MS, 0.7 * MS));
        assert!((told / is - 1.0).abs() < 0.25, "{noisy:?}: {is} {told}");
    }

    #[test]
    fn where_long_pauses_cost_no_more_than_short_ones_nothing_is_told() {
        assert_eq!(fit(CPU, &starts(Cooling::NONE, 60_000.0, 0.02)), None);
        assert_eq!(fit(CPU, &starts(Cooling::NONE, 60_000.0, 0.0)), None);
        let law = Cooling { most_ns: 600_000, sleep_ns: 3_000_000, work_ns: 900_000 };
        assert_eq!(fit(CPU, &starts(law, 0.0, 0.0)[..4]), None, "too few");
        assert_eq!(fit(CPU, &[]), None);
    }
}
