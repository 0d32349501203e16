use cold_model::layout::Layouts;
use cold_model::recording::{LookupKind, TouchKind};
use cold_model::sample::{PAGE, empty, long};

use crate::analyze;

#[test]
fn the_time_of_a_whole_read_is_from_its_open_to_its_last_read_other_files_apart() {
    let mut r = empty();
    let (model, other) = (r.file("/srv/model.bin", 1024 * PAGE), r.file("/etc/x", PAGE));
    r.lookup(10, LookupKind::Open, "/srv/model.bin", 3).file = Some(model);
    r.touch(100, model, 0..256, TouchKind::Read);
    r.touch(200, model, 256..512, TouchKind::Read);
    // It does something else for 200 ms, between two reads of another file and its own.
    r.touch(250, other, 0..1, TouchKind::Read);
    r.touch(400, model, 512..768, TouchKind::Read);
    // Another thread's reads are no interruption.
    r.touch(450, other, 0..1, TouchKind::Read).tid = 11;
    r.touch(500, model, 768..1024, TouchKind::Read);
    let a = analyze(&r, &Layouts::default());
    // From 11 ms (the open's end) to 200 ms, and from 400 to 500 ms.
    assert_eq!(a.whole_reads.len(), 1);
    let read = &a.whole_reads[0];
    assert_eq!((read.file, read.bytes, read.elapsed), (model, cold_model::Bytes(1024 * PAGE), long(289)));
    let advice = a.suggestions.iter().find(|s| s.id.name() == "read_less").expect("is told");
    assert_eq!((advice.saves_time, advice.files.as_slice()), (Some(long(289)), [model].as_slice()));
    let told: Vec<String> = crate::story(&a).into_iter().map(|r| r.text).collect();
    assert!(
        told.iter().any(|t| t.starts_with("289 ms went to reading srv/model.bin from end to end")),
        "{told:?}"
    );
}

#[test]
fn small_files_mapped_ones_and_parts_are_no_whole_reads() {
    let mut r = empty();
    let small = r.file("/small", 255 * PAGE);
    let part = r.file("/part", 1024 * PAGE);
    let mapped = r.file("/mapped", 1024 * PAGE);
    for at in [100, 200] {
        r.touch(at, small, 0..255, TouchKind::Read);
    }
    for at in [300, 400] {
        r.touch(at, part, 0..800, TouchKind::Read);
    }
    r.touch(500, mapped, 0..1024, TouchKind::Fault);
    assert_eq!(analyze(&r, &Layouts::default()).whole_reads, []);
}
