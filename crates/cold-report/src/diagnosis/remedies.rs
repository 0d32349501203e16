//! What would help: from the advice of the recording, from the plan that was tried, from what the path waited for.

use cold_analyze::model::{Suggestion, SuggestionId};
use cold_analyze::reasons::{Group, Kind};
use cold_bench::metric::Metric;
use cold_bench::summary;
use cold_model::bench::{Report, State};
use cold_model::{Known, Nanos};
use serde::Serialize;

use super::{Diagnosis, Evidence, Factor, Outcome, PlanFacts, Predicted, Time, factor, time};

/// Waits for others.
const WAITS: &str = "waits_for_others";
/// Less than this nobody feels, and no benchmark of a minute proves.
const FELT: Nanos = Nanos(2_000_000);
/// Nor less than one in so many of the cold start.
const FELT_PART: u64 = 33;
/// Waits for others that take one in so many of the start are worth a word.
const WAITS_PART: u64 = 5;

/// What a remedy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// A file beside the program; the program stays as it is.
    Plan,
    /// A setting of the machine.
    Setting,
    /// Something of the machine that all its programs have: a service, a disk, where blocks lie.
    Machine,
    /// How the program is called or installed.
    Installation,
    /// Another build of the program.
    Build,
    /// A change of the program's code.
    Code,
}

impl Price {
    /// As reports say it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Plan => "a file beside the program, which stays as it is",
            Self::Setting => "a setting of the device, which every program has",
            Self::Machine => "a change of this machine, by root",
            Self::Installation => "how it is installed or called",
            Self::Build => "another build of the program",
            Self::Code => "a change of the program's code",
        }
    }

    /// Of a suggestion.
    const fn of(id: SuggestionId) -> Self {
        use SuggestionId as A;
        match id {
            A::PrefetchPlan => Self::Plan,
            A::SmallerReadAround | A::LargerReadAround | A::HugeReadAhead => Self::Setting,
            A::OrderCode | A::Relr | A::FewerLibraries => Self::Build,
            A::StartDirectly
            | A::TooManyLookups
            | A::LookupsByPattern
            | A::MetadataBound
            | A::PackSmallFiles => Self::Installation,
            A::AdviseRandom | A::AdviseWhole | A::ReadLess | A::LoadLater | A::AlreadyFine => Self::Code,
        }
    }
}

/// What trying a remedy gave.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// Time to ready with it against without it.
    pub factor: Factor,
    /// Difference of the medians, nanoseconds; negative: it takes longer.
    pub saves: i64,
}

/// One thing that would help.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remedy {
    /// Name by which scripts know the remedy; it does not change.
    pub id: String,
    /// What to do, in one sentence.
    pub what: String,
    /// Why, with the figures of the recorded start.
    pub why: String,
    /// What it asks for.
    pub price: Price,
    /// What the model says that it saves of a cold start.
    pub predicted: Known<Nanos>,
    /// What it saved when it was tried; unknown: it was not.
    pub measured: Known<Measured>,
}

impl Remedy {
    /// What it saves, measured where that was tried.
    pub fn saves(&self) -> Option<Nanos> {
        match self.measured.value() {
            Some(m) => Some(Nanos(m.saves.max(0).cast_unsigned())),
            None => self.predicted.value().copied(),
        }
    }

    /// It was tried, and it helps for certain.
    pub fn is_proved(&self) -> bool {
        self.measured.value().is_some_and(|m| m.factor.is_proved() && m.factor.ratio < 1.0)
    }
}

/// Everything that may help, the most first.
pub(super) fn of(e: &Evidence<'_>, d: &Diagnosis) -> Vec<Remedy> {
    let advice: &[Suggestion] = e.cold.map_or(&[], |(_, a)| a.suggestions.as_slice());
    let is_plan = |s: &&Suggestion| s.id == SuggestionId::PrefetchPlan;
    // The plan is told here in another way, and that there is nothing to do as well.
    let told = advice.iter().filter(|s| !is_plan(s) && s.id != SuggestionId::AlreadyFine);
    let mut out: Vec<Remedy> = told.map(|s| tried(e, d, s)).collect();
    if let Some(facts) = &e.plan {
        out.push(plan(e, d, facts, advice.iter().find(is_plan)));
    } else {
        out.extend(advice.iter().filter(is_plan).map(of_suggestion));
    }
    let plan = out.iter().find(|r| r.price == Price::Plan).cloned();
    let offered = e.offers.iter().filter_map(|offer| offer.remedy(d, plan.as_ref()));
    // Who would have to change the machine for it is told only what would be felt.
    let felt = felt(d);
    out.extend(offered.filter(|r| r.saves() >= felt));
    out.extend(waits(d));
    out.sort_by_key(|r| (std::cmp::Reverse(r.saves()), r.id.clone()));
    out
}

fn of_suggestion(s: &Suggestion) -> Remedy {
    Remedy {
        id: s.id.name().to_owned(),
        what: s.what.clone(),
        why: s.why.clone(),
        price: Price::of(s.id),
        predicted: s
            .saves_time
            .map_or_else(|| Known::unknown("nothing tells what time it saves"), Known::Value),
        measured: Known::unknown("it changes the program or the machine for good, so it was not tried"),
    }
}

/// A suggestion, with what it brought where its setting was tried.
fn tried(e: &Evidence<'_>, d: &Diagnosis, s: &Suggestion) -> Remedy {
    let remedy = of_suggestion(s);
    if let Some(bench) = e.whole.filter(|_| s.id == SuggestionId::AdviseWhole) {
        return Remedy { measured: read_whole(bench), ..remedy };
    }
    let Some(window) = s.read_ahead else { return remedy };
    let state = State::ReadAhead(window);
    let measured = against_cold(e, d, &state, &time(e, &state, Metric::Ready));
    Remedy { measured, ..remedy }
}

/// What it brought to ask for whole files before the program begins, against the cold starts in turn with these.
fn read_whole(bench: (&Report, &summary::Analysis)) -> Known<Measured> {
    let e = Evidence { bench: Some(bench), ..Evidence::default() };
    let time = |state| time(&e, &state, Metric::Ready);
    against(&e, &time(State::Cold), &State::Prefetched, &time(State::Prefetched))
}

/// What starts from this state took against cold ones.
fn against_cold(e: &Evidence<'_>, d: &Diagnosis, state: &State, took: &Known<Time>) -> Known<Measured> {
    against(e, &d.cold, state, took)
}

fn against(e: &Evidence<'_>, cold: &Known<Time>, state: &State, took: &Known<Time>) -> Known<Measured> {
    if !e.tried(state) {
        return Known::unknown("it was not tried");
    }
    match (factor(e, state, &State::Cold, Metric::Ready), cold, took) {
        (Some(factor), Known::Value(cold), Known::Value(with)) => Known::Value(Measured {
            factor,
            saves: cold.median.0.cast_signed() - with.median.0.cast_signed(),
        }),
        // It was tried, and there is nothing to set it against.
        (_, _, Known::Unknown { unknown }) | (_, Known::Unknown { unknown }, _) => {
            Known::unknown(unknown.clone())
        }
        (None, ..) => Known::unknown("too few rounds have a start of both kinds that counts"),
    }
}

fn plan(e: &Evidence<'_>, d: &Diagnosis, facts: &PlanFacts, advice: Option<&Suggestion>) -> Remedy {
    let predicted = match &facts.predicted {
        Known::Value(by_model) => Known::Value(plan_saves(d, by_model)),
        Known::Unknown { unknown } => Known::unknown(unknown.clone()),
    };
    let measured = against_cold(e, d, &State::Prefetched, &d.prefetched);
    let why = advice.map_or_else(String::new, |s| format!("{} ", s.why));
    Remedy {
        id: SuggestionId::PrefetchPlan.name().to_owned(),
        what: "Read what the start needs ahead of it, by a plan (cold launch).".to_owned(),
        why: format!("{why}The plan reads {} of {} files.", facts.bytes, facts.files),
        price: Price::Plan,
        predicted,
        measured,
    }
}

/// What a plan saves of a cold start by the model.
///
/// In the time of measured warm starts, what is simulated with the plan is set against the measured cold start, of which no
/// model is needed. Of seven programs the measured saving was so met within 11 % in four (node, npm, gcc, javac), where
/// the ratio of the two simulated starts told 41 to 82 % of it. Else the model's start is as long as the recorded one,
/// which the measured ones are not, and its ratio is told.
fn plan_saves(d: &Diagnosis, by_model: &Predicted) -> Nanos {
    let Predicted { without, with, in_measured_time } = *by_model;
    let measured = d.cold.value().map(|t| t.median);
    let base = measured.or(d.recorded_cold.value().copied()).unwrap_or(without);
    let part = match measured {
        Some(cold) if in_measured_time => 1.0 - with.0 as f64 / cold.0.max(1) as f64,
        _ => 1.0 - with.0 as f64 / without.0.max(1) as f64,
    };
    Nanos((base.0 as f64 * part.min(reading_may_save(d)).max(0.0)) as u64)
}

/// The part of the recorded start that reading ahead may save at most: no plan shortens the program's own work, the
/// loader's, or waits for others. Waits for a lock may be for whoever waits for the disk. All, where the reasons are not
/// known.
fn reading_may_save(d: &Diagnosis) -> f64 {
    let Some(rows) = d.reasons.value() else { return 1.0 };
    let all: Nanos = rows.iter().map(|r| r.cold).sum();
    let may = rows
        .iter()
        .filter(|r| matches!(r.kind.group(), Group::Disk | Group::Unknown) || r.kind == Kind::Lock);
    may.map(|r| r.cold).sum::<Nanos>().0 as f64 / all.0.max(1) as f64
}

/// What no reading ahead shortens: the path waited for somebody else.
fn waits(d: &Diagnosis) -> Option<Remedy> {
    let rows = d.reasons.value()?;
    let waiting = || rows.iter().filter(|r| r.kind.group() == Group::Waiting);
    let time: Nanos = waiting().map(|r| r.cold).sum();
    let all = d.recorded_cold.value()?;
    if time < FELT || time.0 * WAITS_PART < all.0 {
        return None;
    }
    let parts: Vec<String> = waiting()
        .map(|r| {
            let calls: Vec<String> = r.calls.iter().map(|(name, time)| format!("{name} {time}")).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" ({})", calls.join(", ")) };
            format!("{} {}{calls}", r.cold, r.kind.words())
        })
        .collect();
    Some(Remedy {
        id: WAITS.to_owned(),
        what: "Find out whom the start waits for: no disk and no plan shortens this.".to_owned(),
        why: format!("{}.", parts.join("; ")),
        price: Price::Code,
        predicted: Known::Value(time),
        measured: Known::unknown("nobody but its author can change what a program waits for"),
    })
}

/// The least saving of this start that is worth a word; `None`: how long it takes is not known.
fn felt(d: &Diagnosis) -> Option<Nanos> {
    let start = d.cold.value().map(|t| t.median).or(d.recorded_cold.value().copied())?;
    Some(FELT.max(Nanos(start.0 / FELT_PART)))
}

/// What all of it comes to.
pub(super) fn outcome(d: &Diagnosis) -> Outcome {
    let Some(felt) = felt(d) else { return Outcome::Unknown };
    let worth = |r: &&Remedy| r.saves().is_some_and(|t| t >= felt);
    if d.remedies.iter().filter(worth).any(Remedy::is_proved) {
        Outcome::Proved
    } else if d.remedies.iter().any(|r| worth(&r) && !r.is_refuted()) {
        Outcome::Worthwhile
    } else {
        Outcome::NothingWorthDoing
    }
}

impl Remedy {
    /// It was tried often enough, and it does not help.
    fn is_refuted(&self) -> bool {
        self.measured.value().is_some_and(|m| m.factor.is_proved() && m.factor.ratio >= 1.0)
    }
}
