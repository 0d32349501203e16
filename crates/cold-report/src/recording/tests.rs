//! The page and the picture as text: what is in them, what must not be, what they weigh.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use cold_analyze::{Analysis, analyze, compare};
use cold_model::layout::{FileLayout, Layouts, Section, Symbol};
use cold_model::recording::{FillCause, Recording, TouchKind};
use cold_recording::sample;
use serde_json::Value;

use super::columns::decode::varints;
use super::{View, html, names, svg};

fn page_of(recording: &Recording) -> String {
    html::page(recording, &Layouts::default(), &analyze(recording, &Layouts::default()))
}

/// The data block of a page: its JSON, and per recording and table the columns by name, decoded.
type Columns = HashMap<String, Vec<i64>>;
fn unpack(page: &str) -> (Value, Vec<HashMap<String, Columns>>) {
    let text = page.split("id=\"data\">").nth(1).unwrap().split('<').next().unwrap();
    let packed = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let raw = miniz_oxide::inflate::decompress_to_vec(&packed).unwrap();
    let length = u32::from_le_bytes(raw[..4].try_into().unwrap()) as usize;
    let json: Value = serde_json::from_slice(&raw[4..4 + length]).unwrap();
    let mut at = 4 + length;
    let mut sides = Vec::new();
    for side in json["sides"].as_array().unwrap() {
        let mut tables = HashMap::new();
        for name in ["fills", "touches", "reads", "stalls"] {
            let table = &side["tables"][name];
            let rows = table["rows"].as_u64().unwrap() as usize;
            let mut columns: Columns = HashMap::new();
            for column in table["columns"].as_array().unwrap() {
                let bytes = column["bytes"].as_u64().unwrap() as usize;
                let mut values = varints(&raw[at..at + bytes], rows);
                at += bytes;
                let mut ends: HashMap<i64, i64> = HashMap::new();
                match column["coding"].as_str().unwrap() {
                    "delta" => (1..rows).for_each(|i| values[i] += values[i - 1]),
                    "page" => {
                        for (i, value) in values.iter_mut().enumerate() {
                            let end = ends.entry(columns["file"][i]).or_default();
                            *value += *end;
                            *end = *value + columns["pages"][i];
                        }
                    }
                    other => assert_eq!(other, "plain"),
                }
                columns.insert(column["name"].as_str().unwrap().to_owned(), values);
            }
            tables.insert(name.to_owned(), columns);
        }
        sides.push(tables);
    }
    assert_eq!(at, raw.len(), "the columns are all of the rest");
    (json, sides)
}

/// Path and page of every page of some rows whose `kind` is wanted.
fn pages(json: &Value, columns: &Columns, wanted: impl Fn(i64) -> bool) -> HashSet<(String, i64)> {
    let paths = json["sides"][0]["files"]["path"].as_array().unwrap();
    let mut out = HashSet::new();
    for i in 0..columns["at"].len() {
        if wanted(columns["kind"][i]) {
            let path = paths[columns["file"][i] as usize].as_str().unwrap();
            out.extend((0..columns["pages"][i]).map(|p| (path.to_owned(), columns["first"][i] + p)));
        }
    }
    out
}

#[test]
fn the_data_block_gives_back_every_page_that_was_read_or_needed() {
    let recording = sample::firefox_like(20_000, 3);
    let analysis = analyze(&recording, &Layouts::default());
    let (json, sides) = unpack(&page_of(&recording));
    let path = |file: u32| analysis.files.iter().find(|f| f.file == file).map(|f| f.path.clone()).unwrap();
    let paths: HashMap<u32, String> = (0..recording.files.len() as u32)
        .filter(|f| analysis.files.iter().any(|u| u.file == *f))
        .map(|f| (f, path(f)))
        .collect();
    let each = |file: u32, first: u64, pages: u32| {
        let path = paths[&file].clone();
        (0..i64::from(pages)).map(move |p| (path.clone(), first.cast_signed() + p))
    };
    let touches = recording.touches.as_ref().unwrap();
    let needed: HashSet<_> = touches.iter().flat_map(|t| each(t.file, t.first_page, t.pages)).collect();
    assert!(needed.len() > 1000);
    assert_eq!(pages(&json, &sides[0]["touches"], |_| true), needed);
    for (number, kind) in [(0, TouchKind::Fault), (1, TouchKind::FaultAround), (2, TouchKind::Read)] {
        let of_kind = touches.iter().filter(|t| t.kind == kind);
        let expected: HashSet<_> = of_kind.flat_map(|t| each(t.file, t.first_page, t.pages)).collect();
        assert_eq!(pages(&json, &sides[0]["touches"], |k| k == number), expected, "{kind:?}");
    }
    let fills = recording.fills.as_ref().unwrap();
    for (cause, name) in names::FILLS {
        let of_cause = fills.iter().filter(|f| f.cause == cause);
        let all: HashSet<_> = of_cause.flat_map(|f| each(f.file, f.first_page, f.pages)).collect();
        let number = i64::from(names::fill(cause));
        let shown =
            |used: bool| pages(&json, &sides[0]["fills"], |k| k & 15 == number && (k & 16 != 0) == used);
        let blind = matches!(cause, FillCause::Metadata | FillCause::Write);
        let (used, unused): (HashSet<_>, HashSet<_>) =
            all.into_iter().partition(|p| blind || needed.contains(p));
        assert_eq!(shown(true), used, "{name}, needed");
        assert_eq!(shown(false), unused, "{name}, not needed");
    }
    assert_eq!(sides[0]["reads"]["at"].len(), recording.device_reads.as_ref().unwrap().len());
    assert_eq!(sides[0]["stalls"]["at"].len(), recording.stalls.as_ref().unwrap().len());
}

#[test]
fn times_and_lengths_come_back_to_the_microsecond() {
    let recording = sample::small();
    let (json, sides) = unpack(&page_of(&recording));
    assert_eq!(json["sides"][0]["quantum"], 1000);
    let start = recording.manifest.start.0;
    for (i, read) in recording.device_reads.as_ref().unwrap().iter().enumerate() {
        let t = &sides[0]["reads"];
        assert_eq!(t["at"][i] as u64, (read.queued.0 - start) / 1000);
        let length = |from: u64, to: u64| (to - from).div_ceil(1000).cast_signed() + 1;
        assert_eq!(t["wait"][i], length(read.queued.0, read.issued.unwrap().0));
        assert_eq!(t["service"][i], length(read.issued.unwrap().0, read.completed.unwrap().0));
        assert_eq!((t["sector"][i] as u64, t["bytes"][i] as u32), (read.sector, read.bytes));
    }
}

#[test]
fn the_page_names_no_other_place_and_forbids_all_requests() {
    let page = page_of(&sample::small());
    for word in [
        "http:",
        "https:",
        "//cdn",
        " src=",
        " href=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "innerHTML",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    // The first example of FIPS 180-4.
    assert_eq!(html::policy_source("abc"), "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

/// A recording whose every text tries to leave its place.
fn hostile() -> Recording {
    let mut r = sample::small();
    let text = "</script><img src=x onerror=alert(1)>\u{2028}\"'&\u{1b}[31m".to_owned();
    r.files.iter_mut().for_each(|f| f.path = Some(format!("/{text}")));
    r.processes.iter_mut().for_each(|p| (p.name, p.arguments) = (text.clone(), Some(vec![text.clone()])));
    r.threads.iter_mut().for_each(|t| t.name.clone_from(&text));
    r.lookups.iter_mut().flatten().for_each(|l| l.path = Some(text.clone()));
    r.manifest.command = vec![text.clone().into()];
    r.manifest.notes = vec![text.clone()];
    r.manifest.taints = vec![text.clone()];
    r.manifest.ready_means.clone_from(&text);
    r.manifest.machine.cpu = text;
    r
}

#[test]
fn text_of_a_recording_stays_text() {
    let recording = hostile();
    let analysis = analyze(&recording, &Layouts::default());
    let name = "<img src=x onerror=alert(1)>";
    let view = View { name, recording: &recording, layouts: &Layouts::default(), analysis: &analysis };
    let comparison = compare(&recording, &analysis, &recording, &analysis);
    let texts = [
        page_of(&recording),
        html::page_of_two(view, view, &comparison),
        svg::picture(view),
        svg::picture_of_two(view, view),
    ];
    for text in &texts {
        assert!(!text.contains("<img") && !text.contains('\u{1b}'));
    }
    assert_eq!(texts[0].matches("</script>").count(), 2, "the data and the script, no more");
}

#[test]
fn losses_and_a_killed_recorder_stand_above_the_figures() {
    let mut recording = sample::small();
    assert!(!page_of(&recording).contains("events were lost"));
    recording.manifest.lost = [("filemap".to_owned(), 12), ("block".to_owned(), 0)].into();
    recording.manifest.complete = false;
    let page = page_of(&recording);
    let lost = page.find("12 events were lost (filemap 12)").unwrap();
    let killed = page.find("The recorder was killed").unwrap();
    assert!(lost < page.find("class=\"cards\"").unwrap() && killed < page.find("class=\"cards\"").unwrap());
    let analysis = analyze(&recording, &Layouts::default());
    let view = View { name: "", recording: &recording, layouts: &Layouts::default(), analysis: &analysis };
    assert!(svg::picture(view).contains("12 EVENTS LOST"));
}

#[test]
fn what_a_tier_cannot_see_is_unknown_and_not_nought() {
    let mut recording = sample::small();
    (recording.fills, recording.device_reads, recording.transfers, recording.stalls) =
        (None, None, None, None);
    recording.manifest.tier = cold_model::recording::manifest::Tier::D;
    let page = page_of(&recording);
    assert!(page.contains("<dt>read</dt><dd><b>unknown</b>"), "{}", &page[..page.len().min(6000)]);
    let (json, _) = unpack(&page);
    let has: Vec<&str> =
        json["sides"][0]["has"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(has.contains(&"touches") && !has.contains(&"fills"));
}

/// Sections and one function of each of the first files.
fn layouts(analysis: &Analysis) -> Layouts {
    let mut layouts = Layouts::default();
    for used in analysis.files.iter().take(5) {
        let section = Section { name: ".text".into(), offset: 0x1000, bytes: 1 << 30, address: 0x1000 };
        let symbol = Symbol { name: "start_of<everything>".into(), offset: 0, bytes: 1 << 40 };
        let layout = FileLayout { sections: vec![section], symbols: vec![symbol], ..FileLayout::default() };
        layouts.files.insert(used.file, layout);
    }
    layouts
}

#[test]
fn sections_and_functions_are_named_where_layouts_are_known() {
    let recording = sample::small();
    let plain = analyze(&recording, &Layouts::default());
    let layouts = layouts(&plain);
    let (json, _) = unpack(&html::page(&recording, &layouts, &analyze(&recording, &layouts)));
    let side = &json["sides"][0];
    assert!(side["sections"].as_object().unwrap().values().all(|s| s[0][0] == ".text"));
    let symbols = side["symbols"].as_object().unwrap();
    assert!(
        !symbols.is_empty() && symbols.values().all(|s| s[0][1] == "start_of<everything>" && s[0][2] == 0)
    );
}

/// The budget of the project's design: 3 MB for a million events; two of that size in one page too.
#[test]
fn a_million_events_fit_into_three_megabytes() {
    let recording = sample::firefox_like(1_000_000, 7);
    let layouts = Layouts::default();
    let analysis = analyze(&recording, &layouts);
    let page = html::page(&recording, &layouts, &analysis);
    assert!(page.len() <= 3_000_000, "{}", page.len());
    assert_eq!(unpack(&page).0["sides"][0]["notes"].as_array().unwrap().len(), 0, "nothing was left out");
    let view = View { name: "a", recording: &recording, layouts: &layouts, analysis: &analysis };
    let comparison = compare(&recording, &analysis, &recording, &analysis);
    let two = html::page_of_two(view, view, &comparison);
    assert!(two.len() <= 3_000_000, "{}", two.len());
    let notes = unpack(&two).0["sides"][0]["notes"].to_string();
    assert!(notes.contains("To keep this page small"), "{notes}");
}

#[test]
fn the_picture_is_one_balanced_svg_with_all_kinds_of_marks() {
    let recording = sample::firefox_like(20_000, 3);
    let analysis = analyze(&recording, &Layouts::default());
    let view = View { name: "", recording: &recording, layouts: &Layouts::default(), analysis: &analysis };
    let picture = svg::picture(view);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    for tag in ["text", "g", "svg", "title"] {
        let open =
            picture.matches(&format!("<{tag}>")).count() + picture.matches(&format!("<{tag} ")).count();
        assert_eq!(open, picture.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    for word in ["needed: fault", "read-around", "waiting", "ready ", "libxul.so", "not needed"] {
        assert!(picture.contains(word), "{word}");
    }
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
}

#[test]
fn a_comparison_has_tiles_of_what_differs() {
    let recording = sample::firefox_like(2_000, 3);
    let analysis = analyze(&recording, &Layouts::default());
    let view = View { name: "", recording: &recording, layouts: &Layouts::default(), analysis: &analysis };
    let mut comparison = compare(&recording, &analysis, &recording, &analysis);
    let page = html::page_of_two(view, view, &comparison);
    assert_eq!(page.matches("<div class=\"card\">").count(), 0);
    assert!(page.contains("The same in both: time to ready "), "named with their values");
    comparison.headline[0].difference = Some(-5);
    let page = html::page_of_two(view, view, &comparison);
    assert_eq!(page.matches("<div class=\"card\">").count(), 1);
}
