//! Eviction on the real kernel: files on the disk of the build directory, mapped by this process.
#![allow(unsafe_code)] // `Mapping` maps a file, which std cannot

mod support;

use std::io::Write;
use std::path::Path;

use cold_cache::{EvictTarget, Method, Reason, evict};
use cold_model::FileId;
use cold_sys::procfs::ProcFs;
use support::{Mapping, Scratch, cached, need};

fn target(path: &Path) -> EvictTarget {
    EvictTarget { path: path.to_owned(), id: None }
}

#[test]
fn a_written_file_is_synced_and_proved_absent() {
    let scratch = Scratch::new();
    // Others may sync and drop caches between writing and evicting: then it is written again.
    support::retry(|| {
        let path = scratch.file("dirty", 300);
        let report = evict(&[target(&path), target(&path)], Method::FILES).expect("evict");
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.files, cached(&path)), (1, 0));
        (report.before.0 == 300 * 4096).then_some(())
    });
}

#[test]
fn a_hard_link_counts_once_and_another_file_at_the_path_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("one", 3);
    let link = scratch.path("two");
    std::fs::hard_link(&path, &link).expect("link");
    let id = FileId { dev: 1, ino: 1 };
    let targets = [target(&path), target(&link), EvictTarget { path: path.clone(), id: Some(id) }];
    let report = evict(&targets, Method::FILES).expect("evict");
    assert_eq!(report.files, 1);
    assert_eq!(report.failed.len(), 1);
    assert!(report.failed[0].1.contains("another file"), "{report:?}");
}

#[test]
fn a_mapped_file_stays_and_the_process_is_named() {
    let scratch = Scratch::new();
    let path = scratch.file("mapped", 256);
    evict(&[target(&path)], Method::FILES).expect("evict");
    let mapping = Mapping::new(&path);
    mapping.touch(100);
    let report = evict(&[target(&path)], Method::FILES).expect("evict");
    let [stayed] = &report.stayed[..] else { panic!("one file stays: {report:?}") };
    assert_eq!(stayed.path, path);
    assert!(stayed.pages >= 1 && stayed.pages < 256, "{stayed:?}");
    let own = i32::try_from(std::process::id()).expect("pid");
    let mapped = stayed.reasons.iter().find_map(|r| match r {
        Reason::Mapped { pid, pages, .. } if *pid == own => Some(*pages),
        _ => None,
    });
    assert!(mapped.flatten().is_some_and(|n| n >= 1), "{stayed:?}");
    drop(mapping);
    let report = evict(&[target(&path)], Method::FILES).expect("evict");
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_mapping_without_touched_pages_holds_nothing() {
    let scratch = Scratch::new();
    let path = scratch.file("untouched", 64);
    let _mapping = Mapping::new(&path);
    let report = evict(&[target(&path)], Method::FILES).expect("evict");
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn locked_pages_are_said_to_be_locked() {
    let scratch = Scratch::new();
    let path = scratch.file("locked", 8);
    let mapping = Mapping::new(&path);
    if !need(mapping.lock(), "RLIMIT_MEMLOCK of 32 KiB") {
        return;
    }
    let report = evict(&[target(&path)], Method::FILES).expect("evict");
    let reasons = &report.stayed[0].reasons;
    assert!(reasons.iter().any(|r| matches!(r, Reason::Mapped { locked: 32768, .. })), "{reasons:?}");
}

#[test]
fn a_file_in_memory_cannot_be_evicted() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory on tmpfs");
    let path = dir.path().join("f");
    std::fs::File::create(&path).and_then(|mut f| f.write_all(&[1; 8192])).expect("write");
    let report = evict(&[target(&path)], Method::FILES).expect("evict");
    assert_eq!(report.stayed[0].reasons, [Reason::InMemory]);
    assert_eq!(report.stayed_bytes().0, 8192);
}

#[test]
fn a_thousand_absent_files_and_special_files() {
    let scratch = Scratch::new();
    let fifo = scratch.path("fifo");
    support::mkfifo(&fifo);
    let mut targets: Vec<_> = (0..1000).map(|i| target(&scratch.file(&format!("f{i}"), 1))).collect();
    targets.push(target(&fifo));
    targets.push(target(&scratch.path("missing")));
    let report = evict(&targets, Method::FILES).expect("evict");
    assert_eq!((report.files, report.failed.len()), (1000, 2), "{:?}", report.failed);
    assert!(report.failed[0].1.contains("FIFO"));
    let absent = evict(&targets, Method::FILES).expect("evict");
    assert!(absent.stayed.is_empty());
    for target in &targets[..1000] {
        std::fs::read(&target.path).expect("read");
    }
    let clean = evict(&targets, Method::FILES).expect("evict");
    assert!(clean.stayed.is_empty());
    eprintln!(
        "evict of 1000 files: {:?} dirty, {:?} clean, {:?} absent",
        report.took, clean.took, absent.took
    );
}

#[test]
fn a_fifo_in_a_tree_is_not_opened() {
    let scratch = Scratch::new();
    // With a FIFO, an open for reading would wait for a writer for ever.
    support::mkfifo(&scratch.path("fifo"));
    scratch.file("file", 2);
    let roots = [scratch.path("")];
    let scan = cold_cache::scan(&roots, cold_cache::ScanOptions::default(), &()).expect("scan");
    assert_eq!((scan.totals().files, scan.special), (1, 1));
}

#[test]
fn the_holders_of_a_file_are_found_by_mapping_and_by_descriptor() {
    let scratch = Scratch::new();
    let path = scratch.file("held", 32);
    let id = FileId::of(&std::fs::metadata(&path).expect("stat"));
    let mapping = Mapping::new(&path);
    (0..32).for_each(|p| mapping.touch(p));
    let _open = std::fs::File::open(&path).expect("open");
    let found =
        cold_cache::holders(&ProcFs::default(), Path::new("/sys"), [(path.as_path(), id)]).expect("holders");
    let own = i32::try_from(std::process::id()).expect("pid");
    let me = found.by_file[&id].processes.iter().find(|h| h.pid == own).expect("this process");
    assert_eq!((me.mapped, me.resident, me.open), (32 * 4096, Some(32 * 4096), 1));
    assert!(!me.executes);
}

mod root {
    use super::*;

    #[test]
    fn dropping_all_caches_takes_a_target_out() {
        support::needs_root!();
        let scratch = Scratch::new();
        support::retry(|| {
            let path = scratch.file("all", 50);
            let report = evict(&[target(&path)], Method::ALL).expect("evict");
            assert!(report.is_clean(), "{report:?}");
            (report.before.0 == 50 * 4096).then_some(())
        });
    }

    /// Runs in a child as nobody; does nothing in a normal test run.
    #[test]
    fn child_as_nobody() {
        let Some(path) = std::env::var_os("COLD_TEST_FOREIGN_FILE") else { return };
        let path = Path::new(&path);
        let (file, meta) = cold_sys::open::regular(path, false).expect("open");
        assert!(!cold_sys::residency::shows_residency(&file, &meta));
        assert_eq!(cold_sys::residency::PageMap::of(&file, &meta).expect("mincore"), None);
        assert_eq!(cold_sys::residency::cached_pages(&file, &meta).expect("cachestat"), None);
        let report = evict(&[target(path)], Method::FILES).expect("evict");
        assert_eq!(report.unknown, [(path.to_owned(), cold_model::Bytes(10 * 4096))]);
        assert!(!report.is_clean());
        let own = Path::new(&std::env::var_os("COLD_TEST_OWN_FILE").expect("own")).to_owned();
        assert!(cached(&own) <= 5, "an own file is told");
    }

    #[test]
    fn a_foreign_file_is_unknown_to_an_ordinary_user_and_is_evicted_nevertheless() {
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        support::needs_root!();
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        let foreign = dir.path().join("foreign");
        std::fs::write(&foreign, vec![1; 10 * 4096]).expect("write");
        let own = dir.path().join("own");
        std::fs::write(&own, vec![1; 5 * 4096]).expect("write");
        std::os::unix::fs::chown(&own, Some(65534), Some(65534)).expect("chown");
        let test = dir.path().join("test");
        std::fs::copy(std::env::current_exe().expect("exe"), &test).expect("copy");
        // Another worker's fork may hold the copy open for writing for a moment (ETXTBSY).
        let output = support::retry(|| {
            std::process::Command::new(&test)
                .args(["--exact", "root::child_as_nobody", "--nocapture"])
                .env("COLD_TEST_FOREIGN_FILE", &foreign)
                .env("COLD_TEST_OWN_FILE", &own)
                .uid(65534)
                .gid(65534)
                .output()
                .ok()
        });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        assert_eq!(cached(&foreign), 0, "DONTNEED works without ownership");
    }
}

/// An overlay's file has its pages in another inode, which cachestat does not look at: it says 0 whatever is cached.
#[test]
fn files_of_an_overlay_are_told_and_evicted() {
    support::needs_root!();
    let scratch = Scratch::new();
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(scratch.path(name)).expect("made");
    }
    let lower = scratch.file("lower/data", 64);
    let merged = scratch.path("merged");
    let dir = |name| scratch.path(name).display().to_string();
    let options = format!("lowerdir={},upperdir={},workdir={}", dir("lower"), dir("upper"), dir("work"));
    let mount = ["-t", "overlay", "-o", &options, "overlay"];
    let mounted = std::process::Command::new("mount").args(mount).arg(&merged).status().expect("mount");
    assert!(mounted.success());
    let path = merged.join("data");
    let told = std::panic::catch_unwind(|| {
        support::retry(|| (std::fs::read(&path).is_ok() && cached(&path) == 64).then_some(()));
        let scan = cold_cache::scan(std::slice::from_ref(&path), cold_cache::ScanOptions::default(), &());
        let report = evict(&[target(&path)], Method::FILES).expect("evict");
        (scan, report, cached(&path), cached(&lower))
    });
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&merged).status().expect("umount");
    assert!(unmounted.success());
    let (scan, report, above, below) = told.expect("no panic");
    assert_eq!(scan.expect("scanned").totals().resident.0, 64 * 4096);
    assert_eq!((report.before.0, report.is_clean(), above, below), (64 * 4096, true, 0, 0), "{report:?}");
}
