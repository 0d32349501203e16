use std::fs;

use cold_sys::cgroup::Hierarchy;

use super::*;

/// A tree of version 2 whose kernel does nothing: files are what was written.
fn fake(own: &str, controllers: &str) -> (tempfile::TempDir, Hierarchies, ProcFs, Journal) {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    let process = path("proc").join(std::process::id().to_string());
    fs::create_dir_all(&process).unwrap();
    fs::write(process.join("cgroup"), format!("1:cpu:/x\n0::{own}\n")).unwrap();
    fs::create_dir_all(path("v2").join(own.trim_start_matches('/'))).unwrap();
    fs::write(path("v2/cgroup.controllers"), controllers).unwrap();
    fs::write(path("v2/cgroup.subtree_control"), "cpu\n").unwrap();
    let groups = Hierarchies {
        v2: Some(Hierarchy { at: path("v2"), root: "/".into() }),
        v1: [("cpu".to_owned(), Hierarchy { at: path("v1"), root: "/".into() })].into(),
    };
    let proc = ProcFs::new(path("proc"));
    let journal = Journal::open_in(path("journal"));
    (root, groups, proc, journal)
}

#[test]
fn version_2_is_limited_beside_our_own_group() {
    for own in ["/session", "/"] {
        let (root, groups, proc, journal) = fake(own, "cpu memory io\n");
        let v2 = root.path().join("v2");
        let group = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap();
        let begins = format!("cold-{}-", std::process::id());
        let made = |e: fs::DirEntry| e.file_name().to_string_lossy().starts_with(&begins).then(|| e.path());
        let dir = fs::read_dir(&v2).unwrap().find_map(|e| made(e.unwrap())).unwrap();
        assert_eq!(group.version, 2);
        assert_eq!(fs::read_to_string(dir.join("memory.max")).unwrap(), "8388608");
        assert_eq!(fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap().trim(), "+memory");
        // No process has this number: ending the group kills its members.
        group.add(999_999_999).unwrap();
        assert_eq!(fs::read_to_string(dir.join("cgroup.procs")).unwrap(), "999999999");
        let unknown = GroupMemory::default();
        assert_eq!(group.memory(), unknown);
        fs::write(dir.join("memory.current"), "5000\n").unwrap();
        fs::write(dir.join("memory.peak"), "6000\n").unwrap();
        fs::write(dir.join("memory.stat"), "anon 1\nfile 2\nfile_mapped 9\nworkingset_refault_file 3\n")
            .unwrap();
        let known = GroupMemory {
            used: Some(5000),
            cache: Some(2),
            anonymous: Some(1),
            peak: Some(6000),
            refaults: Some(3),
        };
        assert_eq!(group.memory(), known);
        // Undoing is the journal's business, and takes a kernel.
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn without_a_memory_controller_there_is_no_limit() {
    let (_root, groups, proc, journal) = fake("/", "cpu io\n");
    let why = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap_err().to_string();
    assert!(why.contains("no memory controller"), "{why}");
    let none = Hierarchies::default();
    let why = Group::create_in(&none, &proc, &journal, Bytes(8 << 20)).unwrap_err().to_string();
    assert!(why.contains("mounted"), "{why}");
}

#[test]
fn version_1_is_limited_below_our_own_group_and_told_in_its_own_words() {
    let (root, mut groups, proc, journal) = fake("/", "memory\n");
    let v1 = root.path().join("v1");
    fs::create_dir_all(v1.join("session")).unwrap();
    let process = root.path().join("proc").join(std::process::id().to_string());
    fs::write(process.join("cgroup"), "9:memory:/session\n0::/\n").unwrap();
    groups.v1.insert("memory".into(), Hierarchy { at: v1.clone(), root: "/".into() });
    let group = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap();
    let dir = group.cgroup.dir().to_owned();
    assert_eq!((group.version, dir.parent()), (1, Some(&*v1.join("session"))));
    assert_eq!(fs::read_to_string(dir.join("memory.limit_in_bytes")).unwrap(), "8388608");
    fs::write(dir.join("memory.usage_in_bytes"), "5000\n").unwrap();
    // What is no number is not known.
    fs::write(dir.join("memory.max_usage_in_bytes"), "max\n").unwrap();
    fs::write(dir.join("memory.stat"), "cache 2\ntotal_cache 70\nrss_huge 9\nrss 1\n").unwrap();
    let known =
        GroupMemory { used: Some(5000), cache: Some(2), anonymous: Some(1), peak: None, refaults: None };
    assert_eq!(group.memory(), known);
    fs::remove_dir_all(&dir).unwrap();
}
