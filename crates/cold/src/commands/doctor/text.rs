//! The report for people: the conclusion first, then by area, aligned, wrapped to the terminal.

use anstyle::Style;
use cold_doctor::{Eviction, Finding, Report, Status};
use cold_model::figures::plural;
use cold_model::recording::manifest::Tier;

use crate::ui::{BAD, FAINT, GOOD, STRONG, WARN, paint};
use crate::words::wrap;

/// Columns before the text: two, the longest status word, two.
const INDENT: usize = 2 + STATUS_WIDTH + 2;
const STATUS_WIDTH: usize = 8;
/// Lines longer than this tire the eye, however wide the terminal.
pub(super) const MOST_COLUMNS: usize = 110;
/// The whole report, line by line.
pub(super) fn lines(report: &Report, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    summary(report, width, &mut lines);
    lines.push(String::new());
    let mut area = None;
    for finding in &report.findings {
        if area != Some(finding.area) {
            if area.is_some() {
                lines.push(String::new());
            }
            lines.push(paint(STRONG, finding.area.title()));
            area = Some(finding.area);
        }
        show(finding, width, &mut lines);
    }
    lines
}

fn style(status: Status) -> Style {
    match status {
        Status::Ok => GOOD,
        Status::Note => FAINT,
        Status::Unknown | Status::Missing => WARN,
        Status::Disturbs => BAD,
    }
}

fn show(finding: &Finding, width: usize, lines: &mut Vec<String>) {
    let status = finding.status;
    let word = paint(style(status), format!("{:STATUS_WIDTH$}", status.word()));
    let mut fact = wrap(&finding.fact, width - INDENT).into_iter();
    lines.push(format!("  {word}  {}", fact.next().unwrap_or_default()));
    lines.extend(fact.map(|line| format!("{:INDENT$}{line}", "")));
    let mut add = |mark: &str, text: &str, style: Style| {
        let marked = mark.chars().count();
        for (i, line) in wrap(text, width - INDENT - marked - 1).into_iter().enumerate() {
            let mark = if i == 0 { mark } else { "" };
            lines.push(format!("{:INDENT$}{mark:marked$} {}", "", paint(style, line)));
        }
    };
    if !finding.consequence.is_empty() {
        add("→", &finding.consequence, FAINT);
    }
    if let Some(remedy) = &finding.remedy {
        add("try:", remedy, Style::new());
    }
}

fn summary(report: &Report, width: usize, lines: &mut Vec<String>) {
    let sum = &report.summary;
    let disturbing: Vec<&Finding> = report.findings.iter().filter(|f| f.status == Status::Disturbs).collect();
    let mut headline =
        |style, text: &str| lines.extend(wrap(text, width).into_iter().map(|line| paint(style, line)));
    if disturbing.is_empty() {
        let unsure = if sum.unknown > 0 { ", as far as could be checked" } else { "" };
        headline(GOOD, &format!("Nothing would disturb a cold measurement now{unsure}."));
        facts(report, width, lines);
        return;
    }
    let things = plural(disturbing.len() as u64, "thing");
    headline(BAD, &format!("{things} would disturb a cold measurement now:"));
    for finding in disturbing {
        let wrapped = wrap(&finding.fact, width - 4);
        lines.extend(
            wrapped.into_iter().enumerate().map(|(i, l)| format!("  {} {l}", if i == 0 { "•" } else { " " })),
        );
    }
    facts(report, width, lines);
}

/// What can be recorded and evicted here, and how many checks there were.
fn facts(report: &Report, width: usize, lines: &mut Vec<String>) {
    let sum = &report.summary;
    let tier = match sum.tier {
        Tier::A => "A (every page needed or read, disk reads, waits)",
        Tier::B => "B (pages read, disk reads, waits, page faults)",
        Tier::C => "C (perf events)",
        Tier::D | Tier::Imported => "D (own processes only)",
    };
    let eviction = match sum.eviction {
        Eviction::All => "all (drop_caches)",
        Eviction::Files => "file by file",
    };
    let facts = format!(
        "Recording: tier {tier}. Eviction: {eviction}. {} ok, {} notes, {} missing, {} unknown.",
        sum.ok, sum.notes, sum.missing, sum.unknown
    );
    lines.extend(wrap(&facts, width));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conclusion_comes_first() {
        let roots = cold_doctor::Roots::new("/");
        let config = cold_doctor::Config { window: std::time::Duration::ZERO, ..cold_doctor::Config::new() };
        let report = cold_doctor::examine(roots, cold_doctor::Probes::live(), config).expect("examines");
        let lines = lines(&report, 80);
        let first = anstream::adapter::strip_str(&lines[0]).to_string();
        assert!(first.contains(" would disturb a cold measurement now"), "{first}");
        let disturbing = report.findings.iter().filter(|f| f.status == Status::Disturbs).count();
        assert_eq!(first.starts_with("Nothing"), disturbing == 0, "{first}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let roots = cold_doctor::Roots::new("/");
        let config = cold_doctor::Config { window: std::time::Duration::ZERO, ..cold_doctor::Config::new() };
        let mut report = cold_doctor::examine(roots, cold_doctor::Probes::live(), config).expect("examines");
        for finding in &mut report.findings {
            // Long words (paths) may stick out; blanks instead of slashes take them away.
            finding.fact = finding.fact.replace(['/', '_'], " ");
            finding.remedy = finding.remedy.as_ref().map(|r| r.replace(['/', '_'], " "));
        }
        for width in [40, 80, MOST_COLUMNS] {
            for line in lines(&report, width) {
                let shown = anstream::adapter::strip_str(&line).to_string();
                assert!(shown.chars().count() <= width, "{} > {width}: {shown}", shown.chars().count());
            }
        }
    }
}
