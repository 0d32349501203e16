use cold_model::layout::Layouts;
use cold_model::recording::manifest::Tier;
use cold_model::recording::{Recording, StallCause};

use super::*;
use cold_model::sample::{DISK, PAGE, empty};

fn holds(r: &Recording, id: &str) -> Option<bool> {
    let all = checks(&Context::new(r, &Layouts::default()));
    all.iter().find(|c| c.id == id).unwrap().holds
}

#[test]
fn device_reads_may_differ_by_one_percent_from_the_kernels_count() {
    let mut r = empty();
    assert_eq!(holds(&r, "device_reads_agree"), Some(true), "none was seen, and none counted");
    r.manifest.complete = false;
    assert_eq!(holds(&r, "device_reads_agree"), None, "killed before the counters were read again");
    r.manifest.complete = true;
    let f = r.file("/a", 1000 * PAGE);
    r.request(1, 1, f, 0..100);
    assert_eq!(holds(&r, "device_reads_agree"), None, "seen, but not counted");
    r.request(1, 1, f, 0..100).in_tree = false; // the kernel counts everybody's
    for (pages, expected) in [(200, true), (202, true), (203, false), (190, false)] {
        let counter = DiskCounter { dev: DISK, requests: 2, bytes: Bytes(pages * PAGE) };
        r.manifest.disk_counters = vec![counter];
        assert_eq!(holds(&r, "device_reads_agree"), Some(expected), "{pages}");
    }
    r.device_reads = None;
    assert_eq!(holds(&r, "device_reads_agree"), None);
}

#[test]
fn losses_ends_waits_and_paths_are_checked() {
    let mut r = empty();
    assert_eq!((holds(&r, "complete"), holds(&r, "no_losses")), (Some(true), Some(true)));
    assert_eq!((holds(&r, "stalls_attributed"), holds(&r, "paths_resolved")), (None, None));
    r.manifest.complete = false;
    r.manifest.lost.insert("block".to_string(), 3);
    assert_eq!((holds(&r, "complete"), holds(&r, "no_losses")), (Some(false), Some(false)));
    let f = r.file("/a", 1000 * PAGE);
    r.stall(1, 90, StallCause::Read).file = Some(f);
    r.stall(100, 10, StallCause::Read);
    assert_eq!(holds(&r, "stalls_attributed"), Some(true));
    r.stall(200, 1, StallCause::Read);
    assert_eq!(holds(&r, "stalls_attributed"), Some(false));
    r.fill(1, f, 0..1, cold_model::recording::FillCause::ReadAhead);
    assert_eq!(holds(&r, "paths_resolved"), Some(true));
    r.files[0].path = None;
    assert_eq!(holds(&r, "paths_resolved"), Some(false));
}

#[test]
fn a_touch_without_its_page_is_found() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(1, 1, f, 5, 0..8);
    assert_eq!(holds(&r, "needed_within_read_or_cached"), Some(true));
    r.evict(5, f, 5..6);
    r.touch(6, f, 5..6, cold_model::recording::TouchKind::Read);
    assert_eq!(holds(&r, "needed_within_read_or_cached"), Some(false));
    r.fills = None;
    assert_eq!(holds(&r, "needed_within_read_or_cached"), None);
}

#[test]
fn needed_is_a_bound_unless_touches_are_missing() {
    const ID: &str = "needed_is_upper_bound";
    let mut r = empty();
    r.manifest.mapped_huge = Some(0);
    assert_eq!(holds(&r, ID), Some(true));
    r.manifest.mapped_huge = None;
    assert_eq!(holds(&r, ID), None, "recorded by a version that did not ask");
    r.manifest.mapped_huge = Some(3);
    r.manifest.lost = [("evictions".into(), 1)].into();
    assert_eq!(holds(&r, ID), Some(true), "tells of no touch");
    r.manifest.lost.insert("touches".into(), 1);
    assert_eq!(holds(&r, ID), Some(false));
    r.manifest.lost.clear();
    r.manifest.tier = Tier::B;
    assert_eq!(holds(&r, ID), None, "rings are not seen");
    r.manifest.tier = Tier::C;
    assert_eq!(holds(&r, ID), None, "what reads copy is not seen");
    r.touches = None;
    assert_eq!(holds(&r, ID), None);
}
