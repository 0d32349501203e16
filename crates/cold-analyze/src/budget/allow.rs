//! A list of the files that a start may use, in the manner of Firefox' tests of start-up I/O
//! (`browser_startup_mainthreadio.js`): whatever is on no line fails, by name.
//!
//! ```text
//! # a comment
//! /usr/lib/**/libc.so.6          pages=310
//! /usr/lib/**/libfoo.so.*        pages=40 margin=8
//! /etc/app/*.conf                pages=2 margin=50% optional
//! ```
//! A line is a pattern and, behind it, what limits it. `*` stands for any characters within one name, `**` for any
//! characters at all, `?` for one character within a name; a backslash takes the next character as it is. The first
//! line that matches a file decides about it. `pages=N` is how many pages of it may be needed for certain (those that
//! were only mapped around a fault do not count, so record with `--exact-need` to notice every page), `margin=N` or
//! `margin=N%` how many more are let pass; `optional` lines are not told when no file matches them.

mod pattern;
mod write;

use cold_gate::{Culprit, Culprits, GateResult, Outcome, Unit};

use super::BudgetedStart;
use super::asked::Askers;
use crate::context::Context;
use crate::model::FileUse;
use pattern::Pattern;
pub use write::write;

/// The margin of a line that names none, in percent of its pages: which functions share a page moves with every build,
/// and read-around maps neighbours …
const MARGIN_PERCENT: u64 = 10;
/// … but at least so many pages, or small files would have none.
const MARGIN_PAGES: u64 = 2;
/// More lines, or longer ones, are no list that anybody wrote.
const MOST_LINES: usize = 1_000_000;
const LONGEST: usize = 16 << 10;

/// A line that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// A list of files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AllowList {
    lines: Vec<AllowLine>,
}

#[derive(Debug, Clone, PartialEq)]
struct AllowLine {
    number: usize,
    text: String,
    pattern: Pattern,
    /// Pages that may be needed, margin included; `None`: any number.
    most: Option<(u64, u64)>,
    optional: bool,
}

/// What a list says of a start.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether all files are on the list, and whether all keep to their pages.
    pub results: Vec<GateResult>,
    /// Lines, as they stand in the list, that no file matched first.
    pub unused: Vec<String>,
}

impl AllowList {
    /// Reads a list.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut lines = Vec::new();
        for (i, text) in text.lines().enumerate() {
            let number = i + 1;
            let error = |what: String| Malformed { line: number, what };
            if number > MOST_LINES || text.len() > LONGEST {
                return Err(error(format!(
                    "a list has at most {MOST_LINES} lines of at most {LONGEST} bytes each"
                )));
            }
            let text = text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                lines.push(line(number, text).map_err(error)?);
            }
        }
        Ok(Self { lines })
    }

    /// Compares the files that a start executed, mapped or opened with the list. `list` is the list's name.
    pub fn judge(&self, list: &str, start: BudgetedStart<'_>) -> Verdict {
        let cx = Context::new(start.recording, start.layouts);
        let askers = Askers::of(&cx);
        let mut used = vec![false; self.lines.len()];
        let (mut strangers, mut grown) = (Vec::new(), Vec::new());
        let files = used_files(&start, &cx);
        let all = files.len();
        for f in files {
            // What was only mapped around faults varies from start to start: it is no reason to fail.
            let pages = f.needed.saturating_sub(f.needed_upper).0 / cx.page;
            let culprit = |before| Culprit {
                name: f.path.clone(),
                amount: pages,
                before,
                asked: askers.of_file(&cx, f.file),
            };
            match self.lines.iter().position(|l| l.pattern.matches(&f.path)) {
                None => strangers.push(culprit(None)),
                Some(i) => {
                    if let Some(used) = used.get_mut(i) {
                        *used = true;
                    }
                    if let Some((most, margin)) = self.lines.get(i).and_then(|l| l.most)
                        && pages > most.saturating_add(margin)
                    {
                        grown.push(culprit(Some(most)));
                    }
                }
            }
        }
        let files = start.analysis.headline.files.value().map(|_| all);
        let unknown = start.analysis.headline.files.reason();
        let needed = start.analysis.headline.needed.reason();
        let on_list = answer(
            &format!("a file is not in {list}"),
            start.name,
            unknown,
            format!("{} of {} not in it", strangers.len(), files.unwrap_or(0)),
            Culprits::of("files", "not in the list, with their pages", Unit::Count, strangers),
        );
        let in_size = answer(
            &format!("a file needs more pages than {list} allows"),
            start.name,
            unknown.or(needed),
            format!("{} beyond its margin", grown.len()),
            Culprits::of("files", "that need more pages than allowed", Unit::Count, grown),
        );
        let idle = self.lines.iter().zip(&used).filter(|(l, used)| !**used && !l.optional);
        Verdict {
            results: vec![on_list, in_size],
            unused: idle.map(|(l, _)| format!("line {}: {}", l.number, l.text)).collect(),
        }
    }
}

fn answer(
    gate: &str,
    name: &str,
    unknown: Option<&str>,
    observed: String,
    culprits: Option<Culprits>,
) -> GateResult {
    let outcome = match (unknown, &culprits) {
        (Some(reason), _) => Outcome::Inconclusive { reason: reason.to_owned(), runs_needed: None },
        (None, Some(_)) => Outcome::Fail,
        (None, None) => Outcome::Pass,
    };
    let mut result = GateResult::new(gate, name, observed, outcome);
    result.culprits = culprits;
    result
}

/// Those that the headline counts as files.
fn used_files<'a>(start: &BudgetedStart<'a>, cx: &Context<'_>) -> Vec<&'a FileUse> {
    let (used, _) = crate::files::used(cx);
    start.analysis.files.iter().filter(|f| used.contains(&f.file)).collect()
}

fn line(number: usize, text: &str) -> Result<AllowLine, String> {
    let (mut pages, mut margin, mut optional) = (None, None, false);
    let mut rest = text;
    // From the end, so that a path may hold blanks.
    while let Some((before, word)) = rest.rsplit_once([' ', '\t']) {
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| format!("{word:?} has no number"));
        if word == "optional" {
            optional = true;
        } else if let Some(n) = word.strip_prefix("pages=") {
            pages = Some(number(n)?);
        } else if let Some(n) = word.strip_prefix("margin=") {
            margin = Some(match n.strip_suffix('%') {
                Some(percent) => (number(percent)?, true),
                None => (number(n)?, false),
            });
        } else {
            break;
        }
        rest = before.trim_end();
    }
    if margin.is_some() && pages.is_none() {
        return Err("a margin needs pages=N".to_owned());
    }
    let most = pages.map(|pages| {
        let part = |percent: u64| pages.saturating_mul(percent).div_ceil(100);
        let margin = match margin {
            Some((percent, true)) => part(percent),
            Some((n, false)) => n,
            None => part(MARGIN_PERCENT).max(MARGIN_PAGES),
        };
        (pages, margin)
    });
    let pattern = Pattern::parse(rest)?;
    Ok(AllowLine { number, text: text.to_owned(), pattern, most, optional })
}
