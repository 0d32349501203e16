//! The figures that matter, and what limits them.

use cold_analyze::model::{Headline, MappedNeed};
use cold_model::recording::FillCause;
use cold_model::recording::manifest::Tier;
use cold_model::{Known, Shown as _};

use super::View;
use crate::ui::{BAD, FAINT, STRONG, WARN, paint};
use crate::words::{count, percent, plural, wrap};

/// The lines above everything.
pub(in crate::commands) fn lines(h: &Headline, view: View) -> Vec<String> {
    // One line, whatever script or class path it was started with; the JSON has all of it.
    let subject = crate::table::cut(h.subject.replace('\n', " ").shown().to_string(), view.table);
    let mut out = vec![paint(STRONG, subject)];
    let mut say = |style: Option<anstyle::Style>, text: &str| {
        for line in wrap(text, view.columns.saturating_sub(2)) {
            let line = style.map_or_else(|| line.clone(), |s| paint(s, &line));
            out.push(format!("  {line}"));
        }
    };
    if !h.lost.values().all(|n| *n == 0) {
        let lost: Vec<String> =
            h.lost.iter().filter(|(_, n)| **n > 0).map(|(c, n)| format!("{} {c}", count(*n))).collect();
        let text =
            format!("INCOMPLETE: events were lost ({}); what they tell of is a lower bound", lost.join(", "));
        say(Some(BAD), &text);
    }
    if !h.complete {
        say(Some(BAD), "INCOMPLETE: the recorder was killed; the figures end where it ended");
    }
    say(None, &time(h));
    say(None, &bytes(h));
    say(None, &requests(h));
    if let Some(text) = causes(h) {
        say(None, &text);
    }
    say(None, &lookups(h));
    if let Some(after) = h.after_ready {
        let (read, requests, waited) = (after.read, plural(after.requests, "request"), after.waited_sum);
        say(Some(FAINT), &format!("after ready, not counted: {read} read in {requests}, {waited} of waits"));
    }
    say(Some(FAINT), &format!("tier {}: {}{}", h.tier, tier(h.tier), unknowns(h)));
    for note in &h.notes {
        say(Some(WARN), note);
    }
    out
}

fn time(h: &Headline) -> String {
    let share = match (h.waited.value(), h.ready.value()) {
        (Some(w), Some(r)) => format!(" ({} of it)", percent(w.0, r.0)),
        _ => String::new(),
    };
    let more = match (h.waited_main.value(), h.waited_sum.value()) {
        (None, None) => String::new(),
        (Some(main), _) if h.main_waits_for_others() => format!(
            "; the first thread itself {main} (when it waited for other tasks, and so for their reads, is not seen), \
             all tasks together {}",
            h.waited_sum
        ),
        _ => format!("; the first thread {}, all tasks together {}", h.waited_main, h.waited_sum),
    };
    let ready = match (h.ready.value(), h.recorded) {
        (_, Some(recorded)) => format!("recorded for {recorded}"),
        (Some(t), None) => format!("ready after {t}{}", ended(h)),
        (None, None) => format!("ready: unknown{}", ended(h)),
    };
    let unknown = match h.unattributed.value() {
        Some(t) if t.0 > 0 => format!("; for what is unknown: {t}"),
        _ => String::new(),
    };
    format!("{ready}; waited for storage {}{share}{more}{unknown}", h.waited)
}

/// What came after ready belongs to no figure here: how much later the tree ended tells how much there is.
fn ended(h: &Headline) -> String {
    match (h.ended, h.first_ended) {
        (Some(t), _) => format!("; the tree ended after {t}"),
        (None, Some(t)) => format!(" (the end of the whole tree; its first process ended after {t})"),
        (None, None) => String::new(),
    }
}

fn bytes(h: &Headline) -> String {
    let mut text = match h.needed_between() {
        Some(MappedNeed { at_least, at_most }) => format!(
            "needed {at_least} for certain, {at_most} at most (around a fault the kernel maps neighbours unasked)"
        ),
        None => format!("needed {}", h.needed),
    };
    if let Some(MappedNeed { at_least, at_most }) = h.mapped {
        text = format!("{text}; of mapped files {at_least} for certain, {at_most} at most");
    }
    if let Some(cached) = h.cached.value().filter(|b| b.0 > 0) {
        text = format!("{text}; {cached} of it already cached");
    }
    text = format!("{text}; read {}", h.read);
    if let Some(came_in) = h.came_in {
        text = format!("{text}; {came_in} came into the cache meanwhile");
    }
    if let (Some(unused), Some(read)) = (h.unused.value(), h.read.value().filter(|b| b.0 > 0)) {
        text = format!("{text}, of which {unused} ({}) were not needed", percent(unused.0, read.0));
    }
    for (n, what) in [
        (&h.metadata, "of it metadata of file systems"),
        (&h.refilled, "read again after it had been evicted"),
        (&h.direct, "read past the cache (O_DIRECT)"),
        (&h.written, "written, not read"),
        (&h.read_by_others, "of the same files read by others"),
    ] {
        if let Some(b) = n.value().filter(|b| b.0 > 0) {
            text = format!("{text}; {b} {what}");
        }
    }
    text
}

fn requests(h: &Headline) -> String {
    let Some(n) = h.requests.value() else { return "requests: unknown".to_owned() };
    let mut text = plural(*n, "request");
    if let Some(b) = h.mean_request.value() {
        text = format!("{text}, {b} each on average");
    }
    if let Some(t) = h.mean_service.value() {
        text = format!("{text}, {t} in the device");
    }
    if let Some(t) = h.mean_queueing.value() {
        text = format!("{text} after {t} in its queue");
    }
    match h.requests_by_others.value() {
        Some(n) if *n > 0 => format!("{text}; {} by others beside them", count(*n)),
        _ => text,
    }
}

/// How much each cause brought, most first.
fn causes(h: &Headline) -> Option<String> {
    let list = h.read_because_of();
    let all: u64 = list.iter().map(|(_, bytes)| bytes.0).sum();
    let words: Vec<String> =
        list.iter().map(|(c, bytes)| format!("{} {}", cause(*c), percent(bytes.0, all))).collect();
    (all > 0).then(|| format!("read because of: {}", words.join(", ")))
}

/// A cause in words.
pub(in crate::commands::report) fn cause(c: FillCause) -> &'static str {
    match c {
        FillCause::DemandFault => "faults",
        FillCause::ReadAround => "read-around",
        FillCause::BufferedRead => "reads",
        FillCause::ReadAhead => "read-ahead",
        FillCause::Advice => "advice",
        FillCause::Metadata => "metadata",
        FillCause::Write => "writes",
        FillCause::Other => "other",
    }
}

fn lookups(h: &Headline) -> String {
    let processes = match h.processes.value() {
        Some(n) => plural(*n, "process"),
        None => "processes: unknown".to_owned(),
    };
    let rest = format!("{}; {processes}", files(h));
    match (h.lookups.value(), h.misses.value()) {
        (Some(n), Some(m)) => {
            let vain = format!("{} found nothing", count(*m));
            format!("{}, {vain}; {rest}", plural(*n, "lookup"))
        }
        _ => format!("lookups: unknown; {rest}"),
    }
}

/// Two counts of files, each with what it is of.
fn files(h: &Headline) -> String {
    let needed = match (h.files.value(), h.files_needed.value()) {
        (_, None) => String::new(),
        (Some(all), Some(n)) if all == n => ", pages of all of them needed".to_owned(),
        (_, Some(n)) => format!(", pages of {} needed", count(*n)),
    };
    match h.files.value() {
        Some(n) => format!("{} executed, mapped or opened{needed}", plural(*n, "file")),
        None => format!("files executed, mapped or opened: unknown{needed}"),
    }
}

/// What a tier sees.
const fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::A => "every fault, read, request, wait and lookup is seen",
        Tier::B => "faults by address, every read, request, wait and lookup are seen",
        Tier::C => "only page faults of mapped files are seen",
        Tier::D => "only page faults of the program outside the kernel are seen",
        Tier::Imported => "what another system's files tell",
    }
}

/// Why figures are unknown: each reason once, with the figures it concerns.
fn unknowns(h: &Headline) -> String {
    fn why<T>(k: &Known<T>) -> Option<&str> {
        match k {
            Known::Unknown { unknown } => Some(unknown),
            Known::Value(_) => None,
        }
    }
    let figures = [
        ("ready", if h.recorded.is_none() { why(&h.ready) } else { None }),
        ("waiting", why(&h.waited)),
        ("needed", why(&h.needed)),
        ("read", why(&h.read)),
        ("requests", why(&h.requests)),
        ("lookups", why(&h.lookups)),
        ("files", why(&h.files)),
    ];
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in figures {
        let Some(why) = why else { continue };
        match reasons.iter_mut().find(|(r, _)| *r == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let words: Vec<String> =
        reasons.iter().map(|(why, names)| format!("; {} unknown: {why}", names.join(", "))).collect();
    words.concat()
}
