use cold_model::layout::{Layouts, Segment};

use super::*;
use crate::sample::{Build, PAGE, empty, kib, long};

#[test]
fn pages_count_for_every_section_on_them_and_stalls_for_the_largest() {
    let mut r = empty();
    let f = r.file("/lib.so", 16 * PAGE);
    r.fault(1, 3, f, 1, 0..4);
    r.fault(5, 4, f, 8, 8..10);
    let section = |name: &str, offset, bytes| Section { name: name.to_string(), offset, bytes, address: 0 };
    let layout = FileLayout {
        segments: vec![Segment { offset: 0, bytes: 2 * PAGE, address: 0, access: "r-x".to_string() }],
        // Page 1: 1000 bytes of .rodata, the rest .text.
        sections: vec![section(".rodata", 0, PAGE + 1000), section(".text", PAGE + 1000, 4 * PAGE)],
        ..FileLayout::default()
    };
    let mut layouts = Layouts::default();
    layouts.files.insert(f, layout);
    let out = sections(&Context::new(&r, &layouts));
    assert_eq!(out.len(), 2);
    assert_eq!((out[0].needed, out[0].read, out[0].stall), (kib(4), kib(8), long(0)));
    assert_eq!((out[1].needed, out[1].read, out[1].stall), (kib(4), kib(12), long(3)));
    assert_eq!((out[0].segment.as_str(), out[1].segment.as_str()), ("LOAD r-x", "LOAD r-x"));
}
