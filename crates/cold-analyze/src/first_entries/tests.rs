use cold_model::layout::{FileLayout, Layouts, Symbol, Traced, TracedScenario};
use cold_model::order::{Function, Linked, Text, TracedFile};
use cold_model::sample::{PAGE, empty, long};
use cold_model::{Bytes, Nanos};

use crate::analyze;

/// Functions of the program, a quarter of a page each, at the beginning of every fourth page.
const FUNCTIONS: u64 = 1000;

fn traced(command: &[&str], linked: Linked) -> Traced {
    let function = |n: u64| Function {
        address: n * 4 * PAGE,
        bytes: PAGE / 4,
        names: vec![format!("f{n}")],
        sources: vec![],
    };
    let entered: Vec<u32> = (0..20).map(|n| (n * 7 % 20) * 40).collect();
    Traced {
        file: TracedFile {
            path: "/bin/prog".into(),
            build_id: Some("11".to_owned()),
            linked,
            is_go: false,
            texts: vec![Text { offset: 0, bytes: FUNCTIONS * 4 * PAGE, address: 0 }],
            functions: (0..FUNCTIONS).map(function).collect(),
        },
        scenarios: vec![
            TracedScenario {
                name: "help".to_owned(),
                command: vec!["prog".to_owned(), "--help".to_owned()],
                from: "help.order".into(),
                entered: vec![0, 999],
                written: None,
            },
            TracedScenario {
                name: "start".to_owned(),
                command: command.iter().map(|w| (*w).to_owned()).collect(),
                from: "my start.order".into(),
                entered,
                written: None,
            },
        ],
    }
}

/// A start that waits 10 ms for each of its twenty functions.
fn recording() -> cold_model::recording::Recording {
    let mut r = empty();
    let f = r.file("/bin/prog", FUNCTIONS * 4 * PAGE);
    for n in 0..20 {
        let page = (n * 7 % 20) * 160;
        r.fault(n * 20, 10, f, page, page..page + 32);
    }
    r
}

#[test]
fn waits_are_charged_to_the_function_entered_first_and_the_gain_is_predicted() {
    let r = recording();
    let mut layouts = Layouts::default();
    layouts.traced.insert(0, traced(&["prog", "two words"], Linked::Pie));
    let symbols = vec![Symbol { name: "demangled()".to_owned(), offset: 0, bytes: 8 }];
    layouts.files.insert(0, FileLayout { symbols, ..FileLayout::default() });
    let a = analyze(&r, &layouts);
    let [e] = &a.first_entries[..] else { panic!("{:?}", a.first_entries) };
    assert_eq!((e.scenario.as_str(), e.same_command), ("start", true), "not the first, but the recorded one");
    assert_eq!((e.entered, e.named, e.stall), (21, 21, long(200)));
    let names: Vec<_> = e.functions.iter().take(4).map(|f| f.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["demangled()", "f999", "f280", "f560"]);
    let stalls: Vec<Nanos> = e.functions.iter().take(3).map(|f| f.stall).collect();
    assert_eq!(stalls, [long(10), Nanos(0), long(10)]);
    let gain = e.predicted.unwrap();
    // Twenty quarters of a page, behind the function of the first scenario.
    assert_eq!((gain.today.pages, gain.ordered.pages), (20, 6));
    assert_eq!(gain.today.requests, 20, "each lies in a window of its own");
    assert!(gain.ordered.requests <= 2 && gain.ordered.read < Bytes(gain.today.read.0 / 5), "{gain:?}");

    let advice = a.suggestions.iter().find(|s| s.id.name() == "order_code").unwrap();
    assert!(
        advice.what.contains("cold layout order help.order 'my start.order' --file /bin/prog -o prog.txt")
            && advice.what.contains("cold layout link --order prog.txt"),
        "{}",
        advice.what
    );
    assert!(advice.why.contains("touches 20 pages of code"), "{}", advice.why);
    assert_eq!(advice.saves_bytes, Some(gain.today.read - gain.ordered.read));
    assert!(advice.saves_time.unwrap() > long(150) && advice.saves_time.unwrap() < long(200));
}

#[test]
fn the_same_start_of_the_program_by_another_path_is_the_recorded_one() {
    let of = |command: &[&str]| {
        let mut layouts = Layouts::default();
        layouts.traced.insert(0, traced(command, Linked::Pie));
        let found = analyze(&recording(), &layouts).first_entries.remove(0);
        (found.scenario, found.same_command)
    };
    assert_eq!(of(&["../copy/prog", "two words"]), ("start".to_owned(), true));
    assert_eq!(of(&["../copy/prog", "three words"]), ("help".to_owned(), false));
    assert_eq!(of(&["other", "two words"]), ("help".to_owned(), false), "a wrapper starts it otherwise");
}

#[test]
fn another_command_is_told_and_a_library_is_not_advised() {
    let r = recording();
    let mut layouts = Layouts::default();
    layouts.traced.insert(0, traced(&["other"], Linked::Library));
    let a = analyze(&r, &layouts);
    let e = &a.first_entries[0];
    assert_eq!((e.scenario.as_str(), e.same_command, e.is_program), ("help", false, false));
    assert_eq!(e.functions[0].name.as_deref(), Some("f0"), "as the trace has it");
    assert!(a.suggestions.iter().all(|s| s.id.name() != "order_code"), "{:?}", a.suggestions);
}

#[test]
fn tables_that_make_no_sense_do_no_harm() {
    let r = recording();
    let mut layouts = Layouts::default();
    let mut all = traced(&["prog"], Linked::Pie);
    all.file.functions[0].bytes = u64::MAX;
    all.file.functions[40].address = u64::MAX;
    all.scenarios[0].entered.push(77_000);
    layouts.traced.insert(0, all.clone());
    layouts.traced.insert(9, all);
    let a = analyze(&r, &layouts);
    // The first one swallows the file.
    assert_eq!(a.first_entries[0].functions[0].stall, long(200));
}
