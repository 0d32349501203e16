use std::os::unix::fs::MetadataExt;

use super::*;

/// A fake `/proc` and `/sys` about real files.
#[test]
fn a_fake_tree_with_a_mapper_an_opener_a_loop_device_and_a_stranger_device_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |p: &str| dir.path().join(p);
    let write = |p: &str, text: &str| {
        std::fs::create_dir_all(at(p).parent().expect("parent")).expect("mkdir");
        std::fs::write(at(p), text).expect("write");
    };
    write("file", "x");
    write("other", "y");
    let meta = std::fs::metadata(at("file")).expect("stat");
    let (id, ino) = (FileId::of(&meta), meta.ino());
    // As on btrfs: another device number in maps; the link in map_files leads to the real file.
    let head = |start: &str| format!("{start} r--p 00000000 00:77 {ino}     /x/file\n");
    write("proc/5/maps", &(head("1000-3000") + &head("5000-6000")));
    write("proc/5/smaps", &(head("1000-3000") + "Rss: 4 kB\n" + &head("5000-6000") + "Rss: 0 kB\n"));
    write("proc/5/comm", "mapper\n");
    std::fs::create_dir_all(at("proc/5/fd")).expect("mkdir");
    std::fs::create_dir_all(at("proc/5/map_files")).expect("mkdir");
    std::os::unix::fs::symlink(at("file"), at("proc/5/map_files/1000-3000")).expect("link");
    std::os::unix::fs::symlink(at("other"), at("proc/5/map_files/5000-6000")).expect("link");
    write("proc/6/maps", "");
    write("proc/6/comm", "opener\n");
    std::fs::create_dir_all(at("proc/6/fd")).expect("mkdir");
    std::os::unix::fs::symlink(at("file"), at("proc/6/fd/3")).expect("link");
    std::os::unix::fs::symlink(at("file"), at("proc/6/exe")).expect("link");
    write("proc/swaps", &format!("Filename Type Size Used Priority\n{} file 4 0 -2\n", at("file").display()));
    write("sys/block/loop3/loop/backing_file", &format!("{}\n", at("file").display()));

    let proc = ProcFs::new(at("proc"));
    let file = at("file");
    let found = holders(&proc, &at("sys"), [(file.as_path(), id)]).expect("holders");
    let held = &found.by_file[&id];
    let seen: Vec<_> = held
        .processes
        .iter()
        .map(|h| (h.pid, h.name.as_str(), h.mapped, h.resident, h.open, h.executes))
        .collect();
    assert_eq!(seen, [(5, "mapper", 0x2000, Some(4096), 0, false), (6, "opener", 0, None, 1, true)]);
    assert_eq!(held.system, [SystemHolder::Loop("loop3".into()), SystemHolder::Swap]);
    assert_eq!(found.uninspected, 0);
}
