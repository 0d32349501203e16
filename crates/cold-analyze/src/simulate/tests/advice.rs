//! What programs say of their files: asked for, said of mappings and open files, populated.

use super::*;

#[test]
fn pages_that_the_program_asks_for_are_asked_for() {
    let mut r = recording();
    faults(&mut r, 10, 20, 5, 10);
    for (call, pages) in
        [("readahead", 30), ("madvise:WILLNEED", 2), ("madvise:DONTNEED", 7), ("fadvise:WILLNEED", 0)]
    {
        says(&mut r, call, 40..40 + pages);
    }
    let start = Recorded::of(&r).unwrap();
    let asked: Vec<(u64, u64)> = start.tasks[0]
        .steps
        .iter()
        .filter_map(|s| match s {
            Step::Access(Op::WillNeed { first, pages, .. }) => Some((*first, *pages)),
            _ => None,
        })
        .collect();
    // A length of 0 goes to the end of the file.
    assert_eq!(asked, [(40, 30), (40, 2), (40, 60)]);
    assert_eq!(start.needed_pages(), 1);
}

/// A call about pages of the first file, at 5 ms by the first process.
fn says<'r>(r: &'r mut Recording, call: &str, pages: std::ops::Range<u64>) -> &'r mut Advice {
    let rows = r.advice.get_or_insert_default();
    rows.push(Advice {
        at: ms(5),
        ended: ms(5),
        pid: 10,
        tid: 10,
        call: call.into(),
        file: Some(0),
        offset: pages.start * 4096,
        bytes: (pages.end - pages.start) * 4096,
        address: None,
        result: 0,
    });
    rows.last_mut().unwrap()
}

fn ops(start: &Recorded, wanted: impl Fn(&Op) -> bool) -> Vec<Op> {
    let steps = start.tasks.iter().flat_map(|task| &task.steps);
    let ops = steps.filter_map(|s| if let Step::Access(op) = s { Some(*op) } else { None });
    ops.filter(wanted).collect()
}

#[test]
fn what_was_said_of_a_mapping_is_said_of_that_one_and_of_its_copy_in_a_child() {
    let mut r = recording();
    // The same pages mapped a second time, elsewhere.
    let again = Mapping { address: 0x7f11_0000_0000, ..r.mappings.as_ref().unwrap()[0] };
    r.mappings.as_mut().unwrap().push(again);
    says(&mut r, "madvise:RANDOM", 12..22).address = Some(0x7f00_0000_2000 + 10 * 4096);
    says(&mut r, "madvise:SEQUENTIAL", 2..92).address = Some(0x7f11_0000_0000);
    says(&mut r, "madvise:HUGEPAGE", 12..22).result = -22;
    for at in [5, 15] {
        let fork = process(20 + at as u32, "child", None);
        r.processes.push(Process { began: ms(at), how: Began::Fork, parent: 10, ..fork });
        thread(&mut r, 20 + at as u32, 20 + at as u32, at);
    }
    r.advice.as_mut().unwrap().iter_mut().for_each(|a| (a.at, a.ended) = (ms(10), ms(10)));
    for (pid, page) in [(10, 50), (25, 9), (35, 9)] {
        let touch = r.touch(30, 0, page..page + 1, TouchKind::Fault);
        (touch.pid, touch.tid) = (pid, pid);
    }
    let start = Recorded::of(&r).unwrap();
    let address = |of: MapId| {
        let maps = ops(&start, |op| matches!(op, Op::Map { map, .. } if *map == of));
        let [Op::Map { address, .. }] = maps[..] else { panic!("{maps:?}") };
        address * 4096
    };
    let said = ops(&start, |op| matches!(op, Op::AdviseMap { .. }));
    let said: Vec<(u64, u64, u64, MapAdvice)> = said
        .iter()
        .map(|op| match *op {
            Op::AdviseMap { map, first, pages, advice } => (address(map), first, pages, advice),
            _ => panic!("{op:?}"),
        })
        .collect();
    let random = MapAdvice::Pattern(Pattern::Random);
    let own = (0x7f00_0000_2000, 12, 10, random);
    let other = (0x7f11_0000_0000, 2, 90, MapAdvice::Pattern(Pattern::Sequential));
    // Pages are touched through the second mapping. The child of 15 ms has it with what was said, the other without.
    assert_eq!(said, [other, own, other]);
}

#[test]
fn who_opens_a_file_again_has_said_nothing_of_it() {
    let mut r = recording();
    says(&mut r, "fadvise:RANDOM", 0..0);
    says(&mut r, "fadvise:DONTNEED", 10..20).bytes -= 1;
    let last = says(&mut r, "fadvise:DONTNEED", 0..0);
    (last.offset, last.bytes) = (90 * 4096 + 1, 0);
    r.files[0].size = Some(100 * 4096 - 7);
    r.touch(10, 0, 5..6, TouchKind::Read);
    let open = r.lookup(20, LookupKind::Open, "/data", 3);
    open.file = Some(0);
    let start = Recorded::of(&r).unwrap();
    let all = ops(&start, |op| !matches!(op, Op::Read { .. }));
    let (open, file) = (OpenId(0), FileId(0));
    assert_eq!(
        all,
        [
            Op::Open { open, file },
            Op::AdviseOpen { open, pattern: Pattern::Random },
            Op::DontNeed { file, first: 10, pages: 9 },
            Op::DontNeed { file, first: 91, pages: 9 },
            Op::Open { open, file },
        ]
    );
}

#[test]
fn a_file_that_was_only_populated_is_read_and_needed_by_nothing() {
    let mut r = recording();
    says(&mut r, "madvise:POPULATE_READ", 10..12);
    let start = Recorded::of(&r).unwrap();
    let out = simulated(&start, 1);
    assert_eq!((out.bytes(), start.needed_pages()), (2 * 4096, 0));
    let model = Model::default();
    let setting = Setting { helper: Helper::Exact, ..start.setting(&start.today(), &model, None).unwrap() };
    assert_eq!(start.simulate(&setting).unwrap().bytes, Bytes(0));
}
