//! Whether large pages help a cold start, and whether a plan should leave such a mapping to the kernel: decided by
//! intervals alone, against a stated margin.

use cold_stats::compare::{Comparison, Undecided, Verdict, paired};
use serde::Serialize;

use super::super::State;
use super::{Kind, Row, Touches};
use crate::toucher::Way;

/// A difference of less than this share is none.
pub const MARGIN: f64 = 0.05;

/// One way beside plain faults.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayAnswer {
    /// What was mapped.
    pub kind: Kind,
    /// What was touched.
    pub touches: Touches,
    /// The cache before.
    pub state: State,
    /// The way that is compared with plain faults.
    pub way: Way,
    /// Its time as a ratio of that of plain faults, within rounds; none with fewer than two rounds.
    pub comparison: Option<Comparison>,
    /// `faster`, `slower`, `same`, or `inconclusive`.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What two ways come to, over starts that touch everything and starts that touch little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gain {
    /// Faster in one kind of start at least, and not slower in the other: proved.
    Gains,
    /// Faster where all is touched; for few touches nothing is proved.
    GainsWithAll,
    /// Faster where little is touched; for all nothing is proved.
    GainsWithFew,
    /// Faster where all is touched, slower where little is: proved.
    OnlyWithAll,
    /// Faster where little is touched, slower where all is: proved.
    OnlyWithFew,
    /// Within the margin in both: proved.
    NoDifference,
    /// Slower in one, and nowhere proved faster.
    Loses,
    /// Neither this nor that.
    NothingProved,
    /// One of both ways was refused.
    Refused,
    /// The control differs from its equal: nothing that was measured beside it counts.
    Unsteady,
}

/// What the ways of one kind of mapping come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// Code or data.
    pub kind: Kind,
    /// Cold: `MADV_HUGEPAGE` at a fitting address beside plain faults.
    pub huge: Gain,
    /// Cold: `MADV_HUGEPAGE` at an address beside a fitting one, beside plain faults.
    pub huge_unaligned: Gain,
    /// Cold: `MADV_HUGEPAGE` left to the kernel, beside the same with the pages asked for ahead, as a plan does.
    /// [`Gain::Gains`]: a plan should leave such mappings alone.
    pub left_to_kernel: Gain,
    /// Asking ahead left fewer bytes mapped by huge entries, where all was touched; `null` where that is not known.
    pub ahead_prevents: Option<bool>,
}

fn verdict(comparison: Option<&Comparison>) -> Verdict {
    let none = Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: None };
    comparison.map_or(none, |c| c.verdict(MARGIN))
}

fn compared(row: &Row, with: &Row, state: State) -> Option<Comparison> {
    let rounds = row.ms(state).iter().copied().zip(with.ms(state).iter().copied());
    paired(&rounds.collect::<Vec<_>>())
}

fn row(rows: &[Row], kind: Kind, touches: Touches, way: Way) -> Option<&Row> {
    rows.iter().find(|r| (r.kind, r.touches, r.way) == (kind, touches, way))
}

/// Every way that was not refused beside plain faults, cold and warm.
pub fn answers(rows: &[Row]) -> Vec<WayAnswer> {
    let mut found = Vec::new();
    for r in rows.iter().filter(|r| r.way != Way::Faults && r.refused.is_none()) {
        let Some(plain) = row(rows, r.kind, r.touches, Way::Faults) else { continue };
        for state in [State::Cold, State::Warm] {
            let comparison = compared(r, plain, state);
            let verdict = verdict(comparison.as_ref());
            found.push(WayAnswer {
                kind: r.kind,
                touches: r.touches,
                state,
                way: r.way,
                comparison,
                verdict,
            });
        }
    }
    found
}

/// What the ways of one kind come to.
pub fn judge(rows: &[Row], kind: Kind) -> Judgement {
    let of = |way, with| gain(rows, kind, way, with);
    let huge_bytes = |way| row(rows, kind, Touches::All, way).and_then(Row::huge_bytes);
    Judgement {
        kind,
        huge: of(Way::Huge, Way::Faults),
        huge_unaligned: of(Way::HugeUnaligned, Way::Faults),
        left_to_kernel: of(Way::Huge, Way::AheadHuge),
        ahead_prevents: huge_bytes(Way::AheadHuge)
            .zip(huge_bytes(Way::Huge))
            .map(|(ahead, left)| ahead < left),
    }
}

/// One way beside another, cold.
fn gain(rows: &[Row], kind: Kind, way: Way, with: Way) -> Gain {
    let verdict_of = |touches, way, with| {
        let (way, with) = (row(rows, kind, touches, way)?, row(rows, kind, touches, with)?);
        let measured = way.refused.is_none() && with.refused.is_none();
        measured.then(|| verdict(compared(way, with, State::Cold).as_ref()))
    };
    let unsteady = Touches::ALL.into_iter().any(|touches| {
        let control = verdict_of(touches, Way::FaultsAgain, Way::Faults);
        matches!(control, Some(Verdict::Faster | Verdict::Slower))
    });
    let both = verdict_of(Touches::All, way, with).zip(verdict_of(Touches::Few, way, with));
    match both {
        None => Gain::Refused,
        Some(_) if unsteady => Gain::Unsteady,
        Some((all, few)) => Gain::of(all, few),
    }
}

impl Gain {
    fn of(all: Verdict, few: Verdict) -> Self {
        use Verdict::{Faster, Inconclusive, Same, Slower};
        match (all, few) {
            (Faster, Faster | Same) | (Same, Faster) => Self::Gains,
            (Faster, Slower) => Self::OnlyWithAll,
            (Slower, Faster) => Self::OnlyWithFew,
            (Faster, Inconclusive { .. }) => Self::GainsWithAll,
            (Inconclusive { .. }, Faster) => Self::GainsWithFew,
            (Same, Same) => Self::NoDifference,
            (Slower, _) | (_, Slower) => Self::Loses,
            (Inconclusive { .. }, Same | Inconclusive { .. }) | (Same, Inconclusive { .. }) => {
                Self::NothingProved
            }
        }
    }
}
