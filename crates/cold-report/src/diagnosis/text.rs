//! The story in words: five figures and what follows from them; the same as Markdown.

use std::fmt::Write;

use cold_analyze::reasons::Group;
use cold_analyze::short_name;
use cold_model::figures::{percent, percent_of, plural};
use cold_model::{Known, Nanos};

use super::{Diagnosis, Factor, FirstRequest, Outcome, Part, Remedy, Time};

/// Waits for a CPU that take one in so many of the start are worth a word.
const BUSY_PART: u64 = 5;

/// The story, one sentence each.
pub fn story(d: &Diagnosis) -> Vec<String> {
    let mut out = Vec::new();
    match (d.cold.value(), d.warm.value()) {
        (Some(cold), Some(warm)) => {
            let factor = d
                .cold_by_warm
                .map_or(String::new(), |f| format!(", {:.2} times as long {}", f.ratio, interval(&f, 2)));
            out.push(format!("A first start takes {}, a warm one {}{factor}.", timed(cold), timed(warm)));
        }
        (Some(cold), None) => out.push(format!("A first start takes {}.", timed(cold))),
        (None, _) => {
            if let (Some(recorded), Known::Unknown { unknown }) = (d.recorded_cold.value(), &d.cold) {
                out.push(format!("The recorded start took {recorded}; {unknown}."));
            }
        }
    }
    out.extend(d.first_request.as_ref().and_then(answering));
    if let Some(text) = longer(d) {
        out.push(text);
    }
    if let (Some((group, time)), Some(all)) = (d.groups().first(), d.recorded_cold.value()) {
        let files = d.reasons.value().into_iter().flatten().filter(|r| r.kind.group() == *group);
        let mut files: Vec<_> = files.flat_map(|r| r.files.iter()).collect();
        files.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let most = files
            .first()
            .map_or(String::new(), |(path, time)| format!(", {time} of it for {}", short_name(path)));
        out.push(format!(
            "The most of a recorded start, {time} of {all} ({}), is {}{most}.",
            percent_of(time.0, all.0),
            group.words()
        ));
    }
    out.extend(busy(d));
    if let Some(least) = d.least.value() {
        out.push(format!("On this disk no first start can take less than {least}."));
    }
    out.push(match (d.outcome, d.remedies.first()) {
        (Outcome::Proved | Outcome::Worthwhile, Some(remedy)) => {
            format!("What helps most: {} It {}.", remedy.what, saving(remedy))
        }
        (Outcome::NothingWorthDoing, _) => "Nothing is worth doing: no remedy would be felt.".to_owned(),
        _ => "Too little is known to say what would help.".to_owned(),
    });
    out
}

/// A start of which others took much tells of them more than of itself.
fn busy(d: &Diagnosis) -> Option<String> {
    let all = d.recorded_cold.value()?;
    let (_, time) = d.groups().into_iter().find(|(group, _)| *group == Group::Runnable)?;
    (time.0 * BUSY_PART >= all.0).then(|| {
        format!(
            "For {time} of it other programs, or too many tasks of its own, had the processors: repeat it when the \
             machine has nothing else to do."
        )
    })
}

/// How long it took until it could be asked, and how long its answer took.
fn answering(first: &FirstRequest) -> Option<String> {
    let said = |part: &Part| {
        let cold = part.cold.value()?;
        let warm = part.warm.value().map_or(String::new(), |warm| format!(" (warm {})", timed(warm)));
        Some(format!("{}{warm}", timed(cold)))
    };
    Some(format!(
        "Of that {} pass until it can be asked, and {} more until its first answer.",
        said(&first.serving)?,
        said(&first.answer)?
    ))
}

/// What a cold start does longer than a warm one, most of all.
fn longer(d: &Diagnosis) -> Option<String> {
    let (cold, warm) = (d.recorded_cold.value()?, d.recorded_warm.value()?);
    let all = cold.0.checked_sub(warm.0).filter(|all| *all > 0)?;
    let (group, more) = d.more().into_iter().next()?;
    let more = u64::try_from(more).ok().filter(|more| *more > 0)?;
    if more > all {
        return Some(format!(
            "The recorded cold start is {} longer: {} more for {}, and {} less for the rest.",
            Nanos(all),
            Nanos(more),
            group.words(),
            Nanos(more - all)
        ));
    }
    Some(format!(
        "Of the {} by which the recorded cold start is longer, {} go to {} ({}).",
        Nanos(all),
        Nanos(more),
        group.words(),
        percent_of(more, all)
    ))
}

/// What a remedy saves: measured, predicted, or both.
pub fn saving(remedy: &Remedy) -> String {
    let predicted = match &remedy.predicted {
        Known::Value(time) => format!("{time} predicted"),
        Known::Unknown { unknown } => unknown.clone(),
    };
    match remedy.measured.value() {
        Some(m) => {
            let what = match (m.factor.is_proved(), m.factor.ratio < 1.0) {
                (true, true) => format!("saves {}", Nanos(m.saves.unsigned_abs())),
                (true, false) => format!("costs {}", Nanos(m.saves.unsigned_abs())),
                (false, _) if m.factor.is_full() => "makes no difference that was proved".to_owned(),
                (false, _) => "has too few runs for a verdict".to_owned(),
            };
            let more = m
                .factor
                .more_rounds
                .map_or(String::new(), |n| format!("; about {n} more rounds would decide"));
            let interval = interval(&m.factor, 3);
            format!("{what}: {:.3} × cold {interval}, measured; {predicted}{more}", m.factor.ratio)
        }
        None => match &remedy.predicted {
            Known::Value(_) => format!("may save {predicted}, not tried"),
            Known::Unknown { unknown } => format!("saves an unknown time: {unknown}"),
        },
    }
}

/// The interval with so many digits, and its level where that is not the usual one.
fn interval(factor: &Factor, digits: usize) -> String {
    let [low, high] = factor.interval;
    let level = if factor.is_full() {
        String::new()
    } else {
        format!(", of {} only: too few runs", percent(factor.level * 100.0))
    };
    format!("[{low:.digits$} … {high:.digits$}{level}]")
}

fn timed(time: &Time) -> String {
    match time.interval {
        Some([low, high]) => format!("{} [{low} … {high}]", time.median),
        None => format!("{} ({})", time.median, plural(time.runs as u64, "run")),
    }
}

/// A text for a bug report.
pub fn markdown(d: &Diagnosis) -> String {
    let mut out = String::new();
    let code = |text: &str| format!("`{}`", text.replace('`', "'"));
    let _ = writeln!(out, "## Why the first start is slow: {}\n", code(&d.command));
    for sentence in story(d) {
        let _ = writeln!(out, "- {}", escaped(&sentence));
    }
    if let Known::Value(rows) = &d.reasons {
        out.push_str("\n| why | cold | warm | more | most of it |\n| --- | ---: | ---: | ---: | --- |\n");
        for row in rows {
            let warm = row.warm.value().map_or("unknown".into(), Nanos::to_string);
            let more = row.more().map_or("unknown".into(), super::page::signed);
            let files: Vec<String> = row
                .files
                .iter()
                .map(|(path, time)| format!("{} {time}", escaped(&short_name(path))))
                .collect();
            let _ = writeln!(
                out,
                "| {} | {} | {warm} | {more} | {} |",
                row.kind.words(),
                row.cold,
                files.join(", ")
            );
        }
    }
    if !d.remedies.is_empty() {
        out.push_str("\n### What would help\n\n");
        for (i, remedy) in d.remedies.iter().enumerate() {
            let _ = writeln!(
                out,
                "{}. {} It {}. Price: {}.",
                i + 1,
                escaped(&remedy.what),
                saving(remedy),
                remedy.price.words()
            );
        }
    }
    for step in d.steps.iter().filter(|s| s.skipped.is_some()) {
        let why = step.skipped.as_deref().unwrap_or_default();
        let _ = writeln!(out, "\nNot done: {}: {}.", step.what, escaped(why));
    }
    out
}

/// Foreign text in a line of Markdown: nothing of it is markup, and it stays one line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '#' | '|' | '!' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
