use cold_model::layout::Layouts;
use cold_model::recording::LookupKind;

use super::*;
use cold_model::sample::empty;

#[test]
fn names_tell_files_apart() {
    for (path, name) in [
        ("/usr/lib/python3.11/json/__pycache__/__init__.cpython-311.pyc", "json/__init__.cpython-311.pyc"),
        ("/usr/lib/firefox-esr/browser/omni.ja", "browser/omni.ja"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6"),
        ("/usr/bin/python3.11", "python3.11"),
        ("/etc/ld.so.cache", "ld.so.cache"),
        ("/x", "x"),
        ("/", "/"),
        ("metadata of ext4 on /dev/vda", "metadata of ext4 on /dev/vda"),
        ("unknown file 3", "unknown file 3"),
    ] {
        assert_eq!(short_name(path), name, "{path}");
    }
}

#[test]
fn the_story_names_causes_files_and_searches() {
    let mut r = empty();
    let f = r.file("/lib/liba.so", 1 << 20);
    let g = r.file("/usr/bin/prog", 1 << 20);
    r.fault(1, 300, f, 0, 0..8);
    r.fault(500, 100, g, 0, 0..1);
    for i in 0..3 {
        r.lookup(700 + i, LookupKind::Open, &format!("/usr/lib/locale/{i}/locale-archive"), -2);
    }
    let a = crate::analyze(&r, &Layouts::default());
    let told: Vec<String> = story(&a).into_iter().map(|r| r.text).collect();
    assert!(
        told[0].starts_with("Of 1.00 s it waited 400 ms for storage, 40.0% (page faults 100%)"),
        "{told:?}"
    );
    assert_eq!(told[1], "100% of the waiting is for 2 files: liba.so 300 ms, prog 100 ms.");
    assert!(told.last().unwrap().contains("most by locale (3 in 3 directories)"), "{told:?}");
    let searches = searches(&a.misses);
    assert_eq!((searches.len(), searches[0].misses, searches[0].directories.len()), (1, 3, 3));
}
