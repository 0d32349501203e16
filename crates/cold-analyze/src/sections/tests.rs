use cold_model::layout::{Layouts, Segment};

use super::*;
use cold_model::sample::{PAGE, empty, kib, long};

#[test]
fn pages_count_for_every_section_on_them_and_stalls_for_the_largest() {
    let mut r = empty();
    let f = r.file("/lib.so", 16 * PAGE);
    r.fault(1, 3, f, 1, 0..4);
    r.fault(5, 4, f, 8, 8..10);
    let section =
        |name: &str, offset, bytes| Section { name: name.to_string(), offset, bytes, address: offset };
    let layout = FileLayout {
        segments: vec![Segment { offset: 0, bytes: 2 * PAGE, address: 0, access: "r-x".to_string() }],
        // Page 1: 1000 bytes of .rodata, the rest .text.
        sections: vec![section(".rodata", 1, PAGE + 999), section(".text", PAGE + 1000, 4 * PAGE)],
        ..FileLayout::default()
    };
    let mut layouts = Layouts::default();
    layouts.files.insert(f, layout);
    let mut out = sections(&Context::new(&r, &layouts));
    assert_eq!(out.remove(0).section, HEADERS);
    assert_eq!(out.len(), 2);
    assert_eq!((out[0].needed, out[0].read, out[0].stall), (kib(4), kib(8), long(0)));
    assert_eq!((out[1].needed, out[1].read, out[1].stall), (kib(4), kib(12), long(3)));
    assert_eq!((out[0].segment.as_str(), out[1].segment.as_str()), ("LOAD r-x", "LOAD r-x"));
}

/// As linkers lay files out: the last page of .data also holds the first sections that nobody loads, and
/// page 0 the headers, which the kernel reads.
#[test]
fn a_shared_page_is_never_charged_to_what_is_not_loaded() {
    let mut r = empty();
    let f = r.file("/lib.so", 16 * PAGE);
    r.fault(1, 3, f, 2, 2..3);
    r.fault(5, 4, f, 4, 4..5);
    let section =
        |name: &str, offset, bytes, address| Section { name: name.to_string(), offset, bytes, address };
    let segment = |offset, bytes| Segment { offset, bytes, address: offset, access: "rw-".to_string() };
    let mut layouts = Layouts::default();
    layouts.files.insert(
        f,
        FileLayout {
            segments: vec![segment(0, PAGE), segment(2 * PAGE, 100)],
            sections: vec![
                section(".dynsym", 400, 200, 400),
                section(".data", 2 * PAGE, 100, 2 * PAGE),
                section(".note.stapsdt", 2 * PAGE + 100, PAGE, 0),
                section(".symtab", 3 * PAGE + 100, 2 * PAGE, 0),
            ],
            ..FileLayout::default()
        },
    );
    let out = sections(&Context::new(&r, &layouts));
    let stall: Vec<_> = out.iter().map(|s| (s.section.as_str(), s.segment.as_str(), s.stall)).collect();
    assert_eq!(
        stall,
        [
            (HEADERS, "LOAD rw-", long(0)),
            (".dynsym", "LOAD rw-", long(0)),
            (".data", "LOAD rw-", long(3)),
            (".note.stapsdt", "not loaded", long(0)),
            (".symtab", "not loaded", long(4)),
        ]
    );
    assert_eq!((out[2].needed, out[3].needed, out[4].needed), (kib(4), kib(0), kib(4)));
}

#[test]
fn a_read_of_the_first_page_is_for_the_headers() {
    let mut r = empty();
    let f = r.file("/lib.so", 16 * PAGE);
    r.fault(1, 3, f, 0, 0..1);
    r.stalls.as_mut().unwrap()[0].cause = StallCause::Exec;
    let section = Section { name: ".dynsym".to_string(), offset: 400, bytes: 3000, address: 400 };
    let segments = vec![Segment { offset: 0, bytes: PAGE, address: 0, access: "r--".to_string() }];
    let mut layouts = Layouts::default();
    layouts.files.insert(f, FileLayout { segments, sections: vec![section], ..FileLayout::default() });
    let out = sections(&Context::new(&r, &layouts));
    assert_eq!((out[0].section.as_str(), out[0].stall, out[1].stall), (HEADERS, long(3), long(0)));
}
