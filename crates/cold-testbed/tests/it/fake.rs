//! The ready-made trees against the readers that will use them.

use cold_sys::procfs::ProcFs;
use cold_testbed::FakeTree;

#[test]
fn the_readers_understand_every_ready_made_tree() {
    for (name, tree) in [
        ("laptop", FakeTree::debian12_laptop()),
        ("vm", FakeTree::virtual_machine()),
        ("cgroup2", FakeTree::cgroup2_only()),
        ("container", FakeTree::unprivileged_container()),
    ] {
        let proc = ProcFs::new(tree.proc());
        assert_eq!(proc.meminfo().expect("meminfo")["MemTotal"], 16_303_456 << 10, "{name}");
        assert_eq!(proc.vmstat().expect("vmstat")["drop_pagecache"], 0, "{name}");
        assert_eq!(proc.cpu_times().expect("stat").steal, 5, "{name}");
        let root = proc.mount_of(std::path::Path::new("/usr")).expect("mountinfo").expect("a root");
        assert_eq!(root.mount_point, std::path::Path::new("/"), "{name}");
        assert!(proc.pids().expect("pids").contains(&1), "{name}");
        assert_eq!(proc.stat(1).expect("stat").starttime, 777, "{name}");
        let disks = proc.diskstats().expect("diskstats");
        assert_eq!(disks.len(), if name == "container" { 0 } else { 2 }, "{name}");
    }
    let laptop = FakeTree::debian12_laptop();
    let proc = ProcFs::new(laptop.proc());
    assert!(proc.pressure("io").expect("psi").full.is_some());
    assert_eq!(proc.exe(977).expect("exe"), std::path::Path::new("/usr/bin/apt-get"));
    let vm = FakeTree::virtual_machine();
    assert!(vm.sys().join("fs/cgroup/blkio/cgroup.procs").is_file());
}

#[test]
#[should_panic(expected = "leads out")]
fn a_path_out_of_the_tree_is_refused() {
    let _ = FakeTree::new().file("../etc/passwd", "");
}
