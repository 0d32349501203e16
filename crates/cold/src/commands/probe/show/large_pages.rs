//! Large pages for mapped files: figures by way, and the verdict in words.

use std::collections::BTreeSet;

use cold_model::Bytes;
use cold_probe::experiments::State;
use cold_probe::experiments::large_pages::{
    Gain, Judgement, Kernel, Kind, LargePagesFindings, LargePagesOptions, MARGIN, Row, Seen, Touches,
    WayAnswer,
};
use cold_probe::toucher::{Counted, Way};
use cold_stats::Interval;
use cold_stats::compare::Verdict;

use super::super::grid::{Grid, Weight};
use super::{bytes, digits, heading, known, ms, print};
use crate::ui::{BAD, FAINT, STRONG, Ui, paint};
use crate::words::{count, plural, wrap};

pub(in super::super) fn large_pages(ui: &Ui, o: &LargePagesOptions, found: &LargePagesFindings) {
    heading(ui, &format!("A mapped file of {}, cold, by each way to get its pages", Bytes(found.bytes)));
    for line in kernel(&found.kernel).iter().flat_map(|s| wrap(s, ui.width())) {
        ui.line(line);
    }
    let mut grid = Grid::new(&[
        ("MAPPED", Weight::Word),
        ("TOUCHED", Weight::Word),
        ("WAY", Weight::Word),
        ("COLD ms", Weight::High),
        ("INTERVAL", Weight::Low),
        ("BEFORE ms", Weight::Middle),
        ("WARM ms", Weight::High),
        ("MINFLT", Weight::High),
        ("MAJFLT", Weight::High),
        ("HUGE", Weight::High),
        ("FOLIOS", Weight::Middle),
        ("READ", Weight::High),
        ("REQUESTS", Weight::Low),
        ("CACHED", Weight::Low),
        ("TABLES", Weight::Middle),
        ("TLB MISSES", Weight::Low),
    ]);
    for r in found.rows.iter().filter(|r| r.refused.is_none()) {
        if let Some(seen) = &r.usual {
            grid.row(cells(r, seen));
        }
    }
    print(ui, &grid);
    let note = "COLD and WARM: medians, all told before the touches (BEFORE) included; warm: a new process, in the \
                same way. The rest is of the round nearest to the cold median. HUGE: bytes that huge entries of the \
                page table map; FOLIOS: sizes in the cache; TABLES: memory for page tables. all: every page in \
                order; few: one in each 256 KiB, scattered.";
    for line in wrap(note, ui.width()) {
        ui.line(paint(FAINT, line));
    }
    for line in refusals(found).iter().chain(&uncounted(found)).flat_map(|s| wrap(s, ui.width())) {
        ui.line(line);
    }
    verdict(ui, o, found);
}

fn cells(r: &Row, seen: &Seen) -> Vec<String> {
    let cold = &seen.cold;
    let interval = |i: Option<Interval>| match i {
        Some(i) if i.is_full() => format!("{} … {}", ms(i.low), ms(i.high)),
        _ => "-".to_owned(),
    };
    let folios = seen.folios.as_ref().map(|sizes| {
        let sizes: Vec<String> =
            sizes.iter().rev().map(|s| format!("{}×{}", count(s.count), bytes(s.bytes))).collect();
        shortened(&sizes)
    });
    vec![
        r.kind.word().to_owned(),
        r.touches.word().to_owned(),
        r.way.word().to_owned(),
        known(r.cold_median_ms, ms),
        interval(r.cold_interval_ms),
        ms(cold.before_ns as f64 / 1e6),
        known(r.warm_median_ms, ms),
        count(cold.used.minor_faults),
        count(cold.used.major_faults),
        known(cold.huge_bytes, bytes),
        known(folios, |f| f),
        bytes(cold.used.read_bytes),
        known(seen.device, |d| count(d.reads)),
        known(seen.cached_bytes, bytes),
        known(cold.page_table_bytes, bytes),
        known(cold.tlb_misses.known(), count),
    ]
}

/// The first three, and how many more.
fn shortened(words: &[String]) -> String {
    match words {
        [a, b, c, _, rest @ ..] => format!("{a} {b} {c} +{}", rest.len() + 1),
        few => few.join(" "),
    }
}

/// What is known before anything is measured.
fn kernel(k: &Kernel) -> Vec<String> {
    let system = k.file_system.as_deref().unwrap_or("an unknown file system");
    let large = match k.model_large_folios {
        Some(true) => "which this version keeps in large folios",
        Some(false) => "which the model of this version takes for one without large folios",
        None => "of which nothing is known",
    };
    let setting = k.transparent.as_deref().map_or_else(
        || "this kernel has no transparent huge pages".to_owned(),
        |setting| format!("transparent huge pages of memory: {setting}"),
    );
    let code = match k.model_code_folio {
        Some(folio) => format!("faults in code ask for folios of {}", bytes(folio)),
        None => "faults in code ask for no folio size".to_owned(),
    };
    vec![format!(
        "{system}, {large}; pages of {}, huge entries of {}; {setting}; {code} ({}, Linux {}).",
        bytes(k.page_bytes),
        bytes(k.huge_bytes),
        k.architecture,
        k.release
    )]
}

/// Each refused way once.
fn refusals(found: &LargePagesFindings) -> Vec<String> {
    let mut lines = Vec::new();
    for way in Way::ALL {
        let rows: Vec<&Row> = found.rows.iter().filter(|r| r.way == way && r.refused.is_some()).collect();
        let Some(refusal) = rows.first().and_then(|r| r.refused.as_ref()) else { continue };
        let kinds: BTreeSet<&str> = rows.iter().map(|r| r.kind.word()).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let reserved = match (way, found.kernel.hugetlb_free) {
            (Way::Copy, Some(free)) => format!(
                "; {} of {} reserved and free (vm.nr_hugepages)",
                plural(free, "page"),
                known(found.kernel.hugetlb_bytes, bytes)
            ),
            _ => String::new(),
        };
        lines.push(format!(
            "{} of {}: {} is refused: {}{reserved}.",
            way.word(),
            kinds.join(" and "),
            refusal.call,
            refusal.why
        ));
    }
    lines
}

/// What could not be counted, and why.
fn uncounted(found: &LargePagesFindings) -> Vec<String> {
    let seen = || found.rows.iter().filter_map(|r| r.usual.as_ref());
    let mut lines = Vec::new();
    let why = seen().find_map(|s| match &s.cold.tlb_misses {
        Counted::Unknown(why) => Some(why),
        Counted::Known(_) => None,
    });
    if let Some(why) = why {
        lines.push(format!("TLB misses are unknown: {why}."));
    }
    if seen().any(|s| s.folios.is_none()) {
        lines.push("Folio sizes are unknown: the kernel shows them to root (/proc/kpageflags).".to_owned());
    }
    if !found.entered {
        lines.push(
            "Code was looked at, not entered: what is in a file that was given up is never run.".to_owned(),
        );
    }
    lines
}

fn verdict(ui: &Ui, o: &LargePagesOptions, found: &LargePagesFindings) {
    heading(ui, &format!("The verdict, over {}", plural(found.rounds as u64, "round")));
    if found.interrupted {
        let (done, all) = (found.rounds, plural(o.repeats, "round"));
        ui.line(format!("{} after {done} of {all}: this is what these say.", paint(BAD, "Interrupted")));
    }
    for j in &found.judgements {
        let word = format!("{}: ", capital(j.kind));
        let sentences = sentences(j, &found.answers);
        let room = ui.width().saturating_sub(word.len());
        for (n, line) in sentences.iter().flat_map(|s| wrap(s, room)).enumerate() {
            let first = if n == 0 { paint(STRONG, &word) } else { " ".repeat(word.len()) };
            ui.line(first + &line);
        }
    }
    let note = format!(
        "×: the time as a ratio of that of plain faults, cold, with its interval of 95% within rounds. A difference \
         below {:.0}% is none. Of 20 such intervals one is off by chance.",
        MARGIN * 100.0
    );
    for line in wrap(&note, ui.width()) {
        ui.line(paint(FAINT, line));
    }
}

fn capital(kind: Kind) -> &'static str {
    match kind {
        Kind::Code => "Code",
        Kind::Data => "Data",
    }
}

fn sentences(j: &Judgement, answers: &[WayAnswer]) -> Vec<String> {
    let times = |way| {
        let of = |touches| {
            let same =
                |a: &&WayAnswer| (a.kind, a.way, a.touches, a.state) == (j.kind, way, touches, State::Cold);
            answers.iter().find(same).map_or_else(|| "not measured".to_owned(), ratio)
        };
        format!("all {}, few {}", of(Touches::All), of(Touches::Few))
    };
    vec![
        format!("MADV_HUGEPAGE where huge pages fit {} ({}).", helps(j.huge), times(Way::Huge)),
        format!(
            "Where they do not fit, as in most programs and libraries, it {} ({}).",
            helps(j.huge_unaligned),
            times(Way::HugeUnaligned)
        ),
        format!("A plan {}{}.", plan(j.left_to_kernel), prevents(j)),
        format!("Control (plain faults against themselves): {}.", times(Way::FaultsAgain)),
    ]
}

/// Near 1 the third digit behind the point tells on which side.
fn ratio(a: &WayAnswer) -> String {
    let figure = |v: f64| if (0.95..1.05).contains(&v) { format!("{v:.3}") } else { digits(v) };
    let Some(c) = &a.comparison else { return "one round, no interval".to_owned() };
    let times = format!("{}× [{} … {}]", figure(c.ratio), figure(c.interval.low), figure(c.interval.high));
    match a.verdict {
        Verdict::Inconclusive { .. } => format!("{times}, not decided"),
        _ => times,
    }
}

/// Whether it helps a cold start, without its subject.
fn helps(gain: Gain) -> &'static str {
    match gain {
        Gain::Gains => "helps a cold start here",
        Gain::GainsWithAll => {
            "helps a cold start that touches all; for one that touches little nothing is proved"
        }
        Gain::GainsWithFew => {
            "helps a cold start that touches little; for one that touches all nothing is proved"
        }
        Gain::OnlyWithAll => "helps a cold start that touches all, and slows one that touches little",
        Gain::OnlyWithFew => "helps a cold start that touches little, and slows one that touches all",
        Gain::NoDifference => "makes no difference to a cold start here",
        Gain::Loses => "slows a cold start here",
        Gain::NothingProved => "proves nothing here",
        Gain::Refused => "could not be measured",
        Gain::Unsteady => {
            "proves nothing: the control differs from its equal; once more on a quieter machine"
        }
    }
}

/// What a plan should do with a mapping for which the program asks for huge pages.
fn plan(gain: Gain) -> &'static str {
    match gain {
        Gain::Gains => {
            "should leave a mapping with MADV_HUGEPAGE to the kernel: asking for its pages ahead is slower"
        }
        Gain::GainsWithAll | Gain::OnlyWithAll => {
            "should leave a mapping with MADV_HUGEPAGE to the kernel if the start touches most of it; if it touches little, its few pages may be asked for"
        }
        Gain::GainsWithFew | Gain::OnlyWithFew => {
            "should leave a mapping with MADV_HUGEPAGE to the kernel if the start touches little of it"
        }
        Gain::NoDifference => {
            "may ask for the pages of a mapping with MADV_HUGEPAGE or leave it: the time is the same"
        }
        Gain::Loses => {
            "should ask for the pages that a start needs, also of a mapping with MADV_HUGEPAGE: leaving it to the kernel is slower in one kind of start, and proved faster in none"
        }
        Gain::NothingProved => "has nothing to go by: nothing is proved of asking ahead beside MADV_HUGEPAGE",
        Gain::Refused => "has nothing to go by: one of both ways could not be measured",
        Gain::Unsteady => "has nothing to go by: the control differs from its equal",
    }
}

fn prevents(j: &Judgement) -> &'static str {
    match j.ahead_prevents {
        Some(true) => {
            "; what is asked for ahead comes in small folios, which huge entries cannot map any more"
        }
        Some(false) | None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(huge: Gain, left_to_kernel: Gain) -> Judgement {
        Judgement {
            kind: Kind::Code,
            huge,
            huge_unaligned: Gain::NoDifference,
            left_to_kernel,
            ahead_prevents: Some(true),
        }
    }

    #[test]
    fn every_gain_has_words_of_its_own() {
        const ALL: [Gain; 10] = [
            Gain::Gains,
            Gain::GainsWithAll,
            Gain::GainsWithFew,
            Gain::OnlyWithAll,
            Gain::OnlyWithFew,
            Gain::NoDifference,
            Gain::Loses,
            Gain::NothingProved,
            Gain::Refused,
            Gain::Unsteady,
        ];
        let words: BTreeSet<&str> = ALL.into_iter().map(helps).collect();
        assert_eq!(words.len(), ALL.len());
        assert!(ALL.into_iter().all(|g| !plan(g).is_empty()));
    }

    #[test]
    fn the_words_say_what_is_proved_and_that_asking_ahead_prevents() {
        let all = sentences(&judgement(Gain::Gains, Gain::Gains), &[]);
        assert_eq!(
            all[0],
            "MADV_HUGEPAGE where huge pages fit helps a cold start here (all not measured, few not measured)."
        );
        assert!(
            all[2].starts_with("A plan should leave a mapping with MADV_HUGEPAGE to the kernel: "),
            "{}",
            all[2]
        );
        assert!(all[2].ends_with("huge entries cannot map any more."), "{}", all[2]);
        let open = sentences(&judgement(Gain::NothingProved, Gain::Unsteady), &[]);
        assert!(
            open[0].contains("proves nothing here") && open[2].contains("the control differs"),
            "{open:?}"
        );
    }

    #[test]
    fn folios_of_many_sizes_are_cut_short() {
        let words = |n: usize| (1..=n).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!((shortened(&words(3)).as_str(), shortened(&words(5)).as_str()), ("1 2 3", "1 2 3 +2"));
    }
}
