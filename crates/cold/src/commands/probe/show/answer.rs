//! The answer of the table in words: map it, read it, or go past the cache.

use cold_probe::experiments::State;
use cold_probe::experiments::table::{OrderAnswer, Other, TableFindings, TableOptions};
use cold_stats::compare::{Undecided, Verdict};

use super::{digits, heading};
use crate::ui::{BAD, FAINT, STRONG, Ui, paint};
use crate::words::{plural, wrap};

/// The last lines of `table`.
pub(super) fn answer(ui: &Ui, o: &TableOptions, found: &TableFindings) {
    heading(ui, &format!("The answer, over {}", plural(found.rounds as u64, "round")));
    if found.interrupted {
        let (done, all) = (found.rounds, plural(o.repeats, "round"));
        ui.line(format!("{} after {done} of {all}: this is what these say.", paint(BAD, "Interrupted")));
    }
    for (state, word) in [(State::Cold, "Cold: "), (State::Warm, "Warm: ")] {
        let room = ui.width() - word.len();
        let sentences = sentences(found.answers.iter().filter(|a| a.state == state));
        for (n, line) in sentences.iter().flat_map(|s| wrap(s, room)).enumerate() {
            let first = if n == 0 { paint(STRONG, word) } else { " ".repeat(word.len()) };
            ui.line(first + &line);
        }
    }
    ui.line(paint(
        FAINT,
        "×: how many times as long the next way takes, with its interval of 95% within rounds; what is written \
         counts with its share of the flush. One such interval in twenty is off by chance. A call copies a \
         record; of a mapping one byte of each page is touched.",
    ));
}

/// A case in words.
struct Case {
    /// What to do is not proved.
    is_open: bool,
    advice: String,
    /// What it is, with what is known of it.
    words: String,
}

/// The cases by what is to be done: what is not proved comes last.
fn sentences<'a>(answers: impl Iterator<Item = &'a OrderAnswer>) -> Vec<String> {
    let mut groups: Vec<(bool, String, Vec<String>)> = Vec::new();
    for a in answers {
        let Some(Case { is_open, advice, words }) = case(a) else { continue };
        match groups.iter_mut().find(|(_, known, _)| *known == advice) {
            Some((_, _, cases)) => cases.push(words),
            None => groups.push((is_open, advice, vec![words])),
        }
    }
    groups.sort_by_key(|(is_open, _, _)| *is_open);
    groups.iter().map(|(_, advice, cases)| format!("{advice} for {}.", cases.join(", "))).collect()
}

fn case(a: &OrderAnswer) -> Option<Case> {
    let next = a.next()?;
    let name = format!("{} {}", a.order, a.action);
    let (is_open, advice, words) = match next.verdict {
        Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed } => {
            // All cases have as many rounds: said once.
            let more = runs_needed.map_or_else(
                || "one has no interval: --repeat 10".to_owned(),
                |n| format!("at least {} for 95%", plural_more(n)),
            );
            (true, format!("too few rounds ({more})"), name)
        }
        Verdict::Inconclusive { why: Undecided::CrossesTheMargin, runs_needed } => {
            let more =
                runs_needed.map_or_else(String::new, |n| format!(", about {} would decide", plural_more(n)));
            let words = format!("{name} ({} beside {}{more})", times(next), a.least);
            (true, "no difference proved".to_owned(), words)
        }
        Verdict::Slower | Verdict::Faster | Verdict::Same => {
            (false, advice(a.least, a.action).to_owned(), format!("{name} ({})", times(next)))
        }
    };
    Some(Case { is_open, advice, words })
}

fn plural_more(n: u32) -> String {
    plural(n.into(), "more round")
}

fn advice(mode: &str, action: &str) -> &'static str {
    match (mode, action) {
        ("mapped", _) => "map it",
        ("direct", _) => "go past the cache",
        (_, "write") => "write it",
        (_, "read-write") => "read and write it",
        _ => "read it",
    }
}

/// Near 1 the third digit behind the point tells on which side.
fn ratio(v: f64) -> String {
    if (0.95..1.05).contains(&v) { format!("{v:.3}") } else { digits(v) }
}

fn times(other: &Other) -> String {
    other.comparison.as_ref().map_or_else(String::new, |c| {
        let (low, high) = (ratio(c.interval.low), ratio(c.interval.high));
        format!("{} {}× [{low} … {high}]", other.mode, ratio(c.ratio))
    })
}

#[cfg(test)]
mod tests {
    use cold_probe::experiments::Measured;
    use cold_probe::experiments::table::{TableRow, answers};

    use super::*;

    fn answer_of(rows: &[(&'static str, &'static str, Vec<f64>)]) -> Vec<String> {
        let row = |(action, mode, rounds_ms): &(&'static str, &'static str, Vec<f64>)| TableRow {
            order: "normal",
            action,
            mode,
            state: State::Cold,
            rounds_ms: rounds_ms.clone(),
            measured: Measured::default(),
        };
        let rows: Vec<TableRow> = rows.iter().map(row).collect();
        sentences(answers(&rows).iter())
    }

    fn rounds(ms: f64, n: usize, own: &[f64]) -> Vec<f64> {
        (0..n).map(|i| ms * own[i % own.len()]).collect()
    }

    #[test]
    fn what_is_proved_is_advised_and_what_is_not_is_called_so() {
        let all = answer_of(&[
            ("read-write", "buffered", rounds(1.0, 10, &[1.0, 1.1, 0.9])),
            ("read-write", "mapped", rounds(1.0, 10, &[1.05, 0.95, 1.1])),
            ("read", "direct", rounds(9.0, 10, &[1.0])),
            ("read", "buffered", rounds(2.0, 10, &[1.0])),
            ("read", "mapped", rounds(1.0, 10, &[1.0])),
            ("write", "buffered", rounds(1.0, 10, &[1.0])),
            ("write", "mapped", rounds(1.01, 10, &[1.0])),
        ]);
        let [map, write, open] = &all[..] else { panic!("{all:?}") };
        assert_eq!(map, "map it for normal read (buffered 2.00× [2.00 … 2.00]).");
        assert_eq!(write, "write it for normal write (mapped 1.010× [1.010 … 1.010]).");
        assert!(open.starts_with("no difference proved for normal read-write (mapped "), "{open}");
        assert!(open.contains(" beside buffered") && open.ends_with(")."), "{open}");
    }

    #[test]
    fn too_few_rounds_say_how_many_more() {
        let of = |n| {
            let all =
                answer_of(&[("read", "direct", rounds(9.0, n, &[1.0])), ("read", "mapped", vec![1.0; n])]);
            all.join("|")
        };
        assert_eq!(of(1), "too few rounds (one has no interval: --repeat 10) for normal read.");
        assert_eq!(of(4), "too few rounds (at least 2 more rounds for 95%) for normal read.");
        assert_eq!(of(5), "too few rounds (at least 1 more round for 95%) for normal read.");
        assert!(of(6).starts_with("map it for normal read (direct 9.00× ["), "{}", of(6));
    }
}
