//! One self-contained page per recording, or for two beside each other.
//!
//! Headline, warnings and figures are plain markup, so they show at once and without scripts; the
//! pictures and tables are drawn by `web/*.js` from one compressed block of data. The page's own policy
//! (`page.rs`) allows exactly that script and that style.

use std::fmt::Write;

use cold_analyze::model::compare::{Comparison, FigurePair};
use cold_analyze::model::{Headline, Suggestion};
use cold_analyze::{Analysis, story};
use cold_model::Known;
use cold_model::figures::plural;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_model::recording::manifest::WantedState;

use super::View;
use super::data::block;
use crate::escape::{line, markup, together};
use crate::page::Page;

const STYLE: &str = include_str!("web/style.css");
const SECTIONS: &str = include_str!("web/sections.html");
/// In the order of use; one script, so that one digest allows all.
const SCRIPTS: [&str; 11] = [
    include_str!("web/words.js"),
    include_str!("web/data.js"),
    include_str!("web/pixels.js"),
    include_str!("web/chart.js"),
    include_str!("web/bands.js"),
    include_str!("web/offsets.js"),
    include_str!("web/device.js"),
    include_str!("web/timeline.js"),
    include_str!("web/flame.js"),
    include_str!("web/tables.js"),
    include_str!("web/page.js"),
];

/// The page of a recording.
pub fn page(recording: &Recording, layouts: &Layouts, analysis: &Analysis) -> String {
    render(&[View { name: "", recording, layouts, analysis }], None)
}

/// The page of two recordings, *a* the base, with their differences.
pub fn page_of_two(a: View<'_>, b: View<'_>, comparison: &Comparison) -> String {
    render(&[a, b], Some(comparison))
}

fn render(views: &[View<'_>], comparison: Option<&Comparison>) -> String {
    let script = SCRIPTS.concat();
    let title = views
        .iter()
        .map(|v| if v.name.is_empty() { line(&v.analysis.headline.subject, 120) } else { line(v.name, 60) })
        .collect::<Vec<_>>()
        .join(" – ");
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "<header><h1>{}</h1>", markup(&title));
    for view in views {
        let _ = writeln!(out, "<p class=\"sub\">{}</p>", markup(&origin(view)));
    }
    out.push_str("<div id=\"tools\"></div></header>\n<main>\n");
    for view in views {
        warnings(&mut out, view, views.len() > 1);
    }
    match comparison {
        None => views.iter().for_each(|v| {
            cards(&mut out, &v.analysis.headline);
            why(&mut out, v.analysis);
        }),
        Some(c) => compared_cards(&mut out, c),
    }
    out.push_str(SECTIONS);
    let data = block(views, comparison);
    let _ = write!(out, "</main>\n<script type=\"application/octet-stream\" id=\"data\">{data}</script>");
    Page { title: &title, program: "cold report", style: STYLE, script: &script }.html(&out)
}

/// What was recorded, when, where and how.
fn origin(view: &View<'_>) -> String {
    let m = &view.recording.manifest;
    let state = match (&m.state.wanted, m.state.method.as_str()) {
        (WantedState::Unknown, _) => String::new(),
        (wanted, "") => wanted.to_string(),
        (wanted, method) => format!("{wanted} ({method})"),
    };
    let kernel =
        if m.machine.kernel.is_empty() { String::new() } else { format!("Linux {}", m.machine.kernel) };
    let faults = if m.exact_need {
        "recorded with --exact-need".to_owned()
    } else {
        m.fault_around.value().map_or(String::new(), |b| format!("fault-around {b}"))
    };
    let subject = if view.name.is_empty() {
        String::new()
    } else {
        format!("{}: {}", view.name, view.analysis.headline.subject)
    };
    let parts = [
        subject,
        m.started_at.clone(),
        state,
        format!("tier {}", m.tier),
        faults,
        kernel,
        m.machine.cpu.clone(),
        m.machine.os.clone(),
        m.tool.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).map(|p| line(&p, 200)).collect();
    parts.join(" · ")
}

/// Losses and an incomplete recording first, then what disqualifies the start, then notes.
fn warnings(out: &mut String, view: &View<'_>, named: bool) {
    let h = &view.analysis.headline;
    let m = &view.recording.manifest;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let lost: u64 = h.lost.values().sum();
    if lost > 0 {
        let classes: Vec<String> =
            h.lost.iter().filter(|(_, n)| **n > 0).map(|(class, n)| format!("{class} {n}")).collect();
        rows.push((
            "error",
            format!("{lost} events were lost ({}): what they tell of is a lower bound.", classes.join(", ")),
        ));
    }
    if !h.complete {
        rows.push((
            "error",
            "The recorder was killed: this recording ends where it was, not where the start did.".into(),
        ));
    }
    rows.extend(m.taints.iter().map(|t| ("warning", format!("Not a clean measurement: {t}"))));
    let others = h.notes.iter().chain(m.notes.iter().filter(|n| !h.notes.contains(n)));
    rows.extend(others.filter(|n| !m.taints.contains(n)).map(|n| ("note", n.clone())));
    // What does not disqualify the figures waits until somebody asks.
    let (notes, grave): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(class, _)| *class == "note");
    let some = notes.len();
    list(out, view, named, &grave);
    if some > 0 {
        let of = if named { markup(&line(view.name, 60)) } else { "this recording".into() };
        let _ = write!(out, "<details><summary>{} on {of}</summary>", plural(some as u64, "note"));
        list(out, view, named, &notes);
        out.push_str("</details>\n");
    }
}

fn list(out: &mut String, view: &View<'_>, named: bool, rows: &[(&str, String)]) {
    if rows.is_empty() {
        return;
    }
    out.push_str("<ul class=\"notices\">\n");
    for (class, text) in rows {
        let name = if named { format!("{}: ", line(view.name, 60)) } else { String::new() };
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><b>{class}</b> <span>{}</span></li>",
            markup(&format!("{name}{text}"))
        );
    }
    out.push_str("</ul>\n");
}

/// Why the start was slow and what would help, in words, above all pictures.
fn why(out: &mut String, analysis: &Analysis) {
    let story = story(analysis);
    if !story.is_empty() {
        let title = cold_analyze::story_title(analysis);
        let _ = writeln!(
            out,
            "<section class=\"why\" aria-labelledby=\"h-why\"><h2 id=\"h-why\">{title}</h2>\n<ul>"
        );
        for reason in story {
            let _ = writeln!(out, "<li>{}</li>", markup(&together(&reason.text)));
        }
        out.push_str("</ul></section>\n");
    }
    if analysis.suggestions.is_empty() {
        return;
    }
    out.push_str(
        "<section class=\"why\" id=\"help\" aria-labelledby=\"h-help\"><h2 id=\"h-help\">What would help</h2>\n<ol>\n",
    );
    for s in &analysis.suggestions {
        suggestion(out, analysis, s);
    }
    out.push_str("</ol></section>\n");
}

/// One suggestion; how it was estimated is there for who asks.
fn suggestion(out: &mut String, analysis: &Analysis, s: &Suggestion) {
    let saves = s.savings();
    let saves = if saves.is_empty() { String::new() } else { format!(" Saves up to {}.", saves.join(", ")) };
    let names: Vec<String> = s
        .files
        .iter()
        .filter_map(|f| analysis.files.iter().find(|x| x.file == *f))
        .map(|f| line(&cold_analyze::short_name(&f.path), 200))
        .collect();
    let names =
        if names.is_empty() { String::new() } else { format!("<br>Files: {}", markup(&names.join(", "))) };
    let _ = writeln!(
        out,
        "<li><b>{}</b>{}<p>{}{names}</p><details><summary>how this was estimated</summary><p>{}</p></details></li>",
        markup(&line(&s.what, 4_096)),
        markup(&together(&saves)),
        markup(&together(&line(&s.why, 4_096))),
        markup(&together(&line(&s.estimate, 4_096))),
    );
}

/// One figure: what, how much, and a line on what it is made of.
fn card(out: &mut String, what: &str, value: &str, detail: &str) {
    let _ = writeln!(
        out,
        "<div class=\"card\"><dt>{}</dt><dd><b>{}</b><span>{}</span></dd></div>",
        markup(what),
        markup(&together(value)),
        markup(&together(detail))
    );
}

fn share(part: u64, of: u64) -> Option<String> {
    (of > 0).then(|| cold_model::figures::percent_of(part, of))
}

/// `known` in words with `detail` of the value, or `unknown` with the reason.
fn known<T: std::fmt::Display>(known: &Known<T>, detail: impl FnOnce(&T) -> String) -> (String, String) {
    match known {
        Known::Value(v) => (v.to_string(), detail(v)),
        Known::Unknown { unknown } => ("unknown".into(), unknown.clone()),
    }
}

fn cards(out: &mut String, h: &Headline) {
    let ready = h.ready.value().map_or(0, |r| r.0);
    let of_ready = |n: u64| share(n, ready).map_or(String::new(), |s| format!("{s} of it; "));
    out.push_str("<dl class=\"cards\">\n");
    let mut add = |what: &str, (value, detail): (String, String)| card(out, what, &value, &detail);
    let processes =
        h.processes.value().map_or_else(|| "processes unknown".to_owned(), |n| plural(*n, "process"));
    if let Some(recorded) = h.recorded {
        let text = recorded.to_string();
        let (lasted, until) = text.split_once(", ").unwrap_or((&text, ""));
        let until = if until.is_empty() { String::new() } else { format!("{until}; ") };
        add("recorded for", (lasted.to_owned(), format!("{until}{processes}")));
    } else {
        let ended = h.ended.map_or(String::new(), |t| format!("; the tree ended after {t}"));
        let after = h.after_ready.map_or(String::new(), |a| {
            format!("; after it, not counted: {} read, {} of waits", a.read, a.waited_sum)
        });
        add("start to ready", known(&h.ready, |_| format!("{processes}{ended}{after}")));
    }
    add(
        "waited for storage",
        known(&h.waited, |w| {
            let main = h.waited_main.value().map_or(String::new(), |m| format!("main thread {m}"));
            let unknown = h.unattributed.value().filter(|t| t.0 > 0);
            let unknown = unknown.map_or(String::new(), |t| format!("; for what is unknown: {t}"));
            format!("{}{main}{unknown}", of_ready(w.0))
        }),
    );
    add(
        "needed",
        known(&h.needed, |_| {
            let upper = h.needed_upper.value().filter(|b| b.0 > 0);
            let upper = upper.map_or(String::new(), |b| format!("at most: {b} of it perhaps; "));
            let cached = h.cached.value().map_or(String::new(), |b| format!("{b} was cached"));
            format!("{upper}{cached}")
        }),
    );
    add(
        "read",
        known(&h.read, |_| {
            let others = h.read_by_others.value().filter(|b| b.0 > 0);
            others.map_or(String::new(), |b| format!("and {b} by others"))
        }),
    );
    if let Some(mapped) = h.mapped {
        let value =
            known(&Known::Value(mapped.at_most), |_| format!("at most; {} for certain", mapped.at_least));
        add("needed of mapped files", value);
    }
    if let Some(bytes) = h.came_in {
        add("came into the cache", known(&Known::Value(bytes), |_| "who read it is not seen".to_owned()));
    }
    add(
        "read, not needed",
        known(&h.unused, |u| {
            let of = h.read.value().and_then(|r| share(u.0, r.0));
            of.map_or(String::new(), |s| format!("{s} of what was read"))
        }),
    );
    add(
        "device requests",
        known(&h.requests, |_| {
            let size = h.mean_request.value().map(|b| format!("mean {b}"));
            let service = h.mean_service.value().map(|t| format!("{t} in the device"));
            [size, service].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }),
    );
    add(
        "failed lookups",
        known(&h.misses, |_| h.lookups.value().map_or(String::new(), |l| format!("of {l} lookups"))),
    );
    out.push_str("</dl>\n");
}

fn compared_cards(out: &mut String, comparison: &Comparison) {
    if !comparison.conditions.is_empty() {
        out.push_str("<ul class=\"notices\">\n");
        for c in &comparison.conditions {
            let class = if c.forbids.is_some() { "warning" } else { "note" };
            let forbids = c.forbids.as_ref().map_or(String::new(), |f| format!(" Not comparable: {f}."));
            let text = format!("{} differs: {} against {}.{forbids}", c.id.replace('_', " "), c.a, c.b);
            let _ = writeln!(out, "<li class=\"{class}\"><b>{class}</b> <span>{}</span></li>", markup(&text));
        }
        out.push_str("</ul>\n");
    }
    // What is as before needs no tile: one line names it.
    let same = |f: &&FigurePair| f.difference == Some(0);
    out.push_str("<dl class=\"cards two\">\n");
    for figure in comparison.headline.iter().filter(|f| !same(f)) {
        let side = |k: &Known<u64>| k.value().map_or("unknown".into(), |v| figure.unit.show(*v));
        let change = figure.difference.map_or(String::new(), |d| {
            let sign = if d < 0 { "−" } else { "+" };
            let ratio = figure.ratio.map_or(String::new(), |r| format!(", × {:.2}", r.value()));
            format!("{sign}{}{ratio}", figure.unit.show(d.unsigned_abs()))
        });
        card(out, &figure.what, &format!("{} → {}", side(&figure.a), side(&figure.b)), &change);
    }
    out.push_str("</dl>\n");
    let value = |f: &FigurePair| f.a.value().map_or_else(String::new, |v| format!(" {}", f.unit.show(*v)));
    let equal: Vec<String> =
        comparison.headline.iter().filter(same).map(|f| format!("{}{}", f.what, value(f))).collect();
    if !equal.is_empty() {
        let text = together(&format!("The same in both: {}.", equal.join(", ")));
        let _ = writeln!(out, "<p class=\"sub\">{}</p>", markup(&text));
    }
}
