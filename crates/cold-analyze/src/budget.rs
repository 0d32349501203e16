//! Budgets of a start: conditions on the counts of a recording, and a list of the files it may use.
//!
//! Counts, because they hardly vary where times do: which files a program opens, which directories it searches, how
//! many processes it starts is the same on every machine with the same files. What was *read* and in how many
//! requests depends on the disk and its read-ahead. What was *needed* is exact with `--exact-need` only; else it lies
//! between two bounds, and a budget between them is undecided rather than true in one start of four. A time of one
//! recording has no interval, so none is a quantity here: `cold bench` judges times.
//!
//! Start reading at [`Budget`]; [`allow`] has the list of files, [`until`] the moment up to which is counted.

pub mod allow;
mod asked;
mod quantity;
mod rows;
pub mod until;

use cold_gate::scan::Kind;
use cold_gate::{Against, Condition, Figure, GateResult, Observed, Outcome, Point, Scanner, SyntaxError};
use cold_model::figures::cpus;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;

use crate::context::Context;
use crate::model::Analysis;
pub use quantity::Quantity;

/// A recording with its analysis, under the name that answers give it.
#[derive(Debug, Clone, Copy)]
pub struct BudgetedStart<'a> {
    /// As answers call it: the recording's directory, without what lies above it.
    pub name: &'a str,
    /// What was recorded.
    pub recording: &'a Recording,
    /// Sections and symbols, for the words of stacks.
    pub layouts: &'a Layouts,
    /// What follows from it.
    pub analysis: &'a Analysis,
}

/// A condition on a quantity of a recording, of the grammar of [`cold_gate`].
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    text: String,
    quantity: Quantity,
    condition: Condition,
}

impl Budget {
    /// Parses a budget, e.g. `files > 120` or `needed > +1MiB`.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut scanner = Scanner::new(text, 0);
        scanner.space();
        let quantity = scanner.word(Quantity::named, || format!("a quantity ({})", Quantity::names()))?;
        let condition = scanner.condition(Kind::Of(quantity.unit()))?;
        Ok(Self { text: text.to_owned(), quantity, condition })
    }

    /// Its limit is about growth, so it needs a second recording.
    pub fn is_relative(&self) -> bool {
        self.condition.is_relative()
    }

    /// What it is about.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }
}

/// The answers of all budgets about `own`. A relative one compares with `reference`; names of a failed one are what
/// `own` has more than `reference`, where there is one, else what the figure consists of.
pub fn judge(
    budgets: &[Budget],
    own: BudgetedStart<'_>,
    reference: Option<BudgetedStart<'_>>,
) -> Vec<GateResult> {
    if budgets.is_empty() {
        // The context replays the whole page cache of the start.
        return Vec::new();
    }
    let cx = Context::new(own.recording, own.layouts);
    let before = reference.map(|r| (r, Context::new(r.recording, r.layouts)));
    let before = before.as_ref().map(|(r, cx)| (r.analysis, cx));
    budgets.iter().map(|b| b.answer(own, &cx, before)).collect()
}

/// The counts of a start as histories keep them.
pub fn point(start: BudgetedStart<'_>) -> Point {
    let m = &start.recording.manifest.machine;
    let figure = |(quantity, value): (Quantity, f64)| Figure {
        name: quantity.name().to_owned(),
        unit: quantity.unit(),
        value,
        interval: None,
    };
    Point {
        machine: format!("{}, {}", cpus(m.cpus as usize, &m.cpu), m.memory),
        kernel: m.kernel.clone(),
        command: start.analysis.headline.subject.clone(),
        figures: known(start).into_iter().map(figure).collect(),
    }
}

/// Every quantity that is known of a start, an upper bound where only bounds are known.
fn known(start: BudgetedStart<'_>) -> Vec<(Quantity, f64)> {
    let cx = Context::new(start.recording, start.layouts);
    let all = Quantity::ALL.iter();
    all.filter_map(|(_, q)| Some((*q, q.of(start.analysis, &cx).ok()?))).collect()
}

impl Budget {
    fn answer(
        &self,
        own: BudgetedStart<'_>,
        cx: &Context<'_>,
        before: Option<(&Analysis, &Context<'_>)>,
    ) -> GateResult {
        let observed = self.observe(own.analysis, cx, before);
        let mut result = GateResult::of(&self.text, own.name, &self.condition, observed);
        if result.outcome == Outcome::Fail {
            result.culprits = rows::culprits(self.quantity, (own.analysis, cx), before);
        }
        result
    }

    fn observe(
        &self,
        analysis: &Analysis,
        cx: &Context<'_>,
        before: Option<(&Analysis, &Context<'_>)>,
    ) -> Result<Observed, String> {
        let unit = self.quantity.unit();
        let (high, low) = self.bounds(analysis, cx)?;
        if !self.condition.is_relative() {
            return Ok(Observed::exact(high, 1, unit).within(low, high));
        }
        let (analysis, cx) = before.ok_or("there is no second recording to compare with")?;
        let bounds = self.bounds(analysis, cx).map_err(|e| format!("of the first recording, {e}"));
        let (most, least) = bounds?;
        Ok(match self.condition.against {
            Against::Factor => {
                let between = (low / most, if least > 0.0 { high / least } else { f64::INFINITY });
                Observed::ratio(high, most, 1, unit)?.within(between.0, between.1)
            }
            Against::Difference | Against::Nothing => {
                Observed::difference(high, most, 1, unit).within(low - most, high - least)
            }
        })
    }

    /// The most and the least that the quantity may be.
    fn bounds(&self, analysis: &Analysis, cx: &Context<'_>) -> Result<(f64, f64), String> {
        let most = self.quantity.of(analysis, cx)?;
        Ok((most, self.quantity.least(analysis).unwrap_or(most)))
    }
}

#[cfg(test)]
mod tests;
