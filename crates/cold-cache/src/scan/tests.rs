use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::*;

fn names(scan: &Scan) -> Vec<String> {
    let mut names: Vec<String> = scan.files().map(|(_, f)| f.name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn plain(roots: &[&Path], options: ScanOptions) -> Scan {
    scan(&roots.iter().map(|p| p.to_path_buf()).collect::<Vec<_>>(), options, &()).expect("scan")
}

#[test]
fn links_count_once_special_files_are_passed_by_and_loops_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |p: &str| dir.path().join(p);
    std::fs::create_dir_all(at("sub/deep")).expect("mkdir");
    std::fs::write(at("a"), vec![1; 5000]).expect("write");
    std::fs::hard_link(at("a"), at("sub/a2")).expect("link");
    std::fs::write(at("sub/deep/b"), "").expect("write");
    let sparse = std::fs::File::create(at("sparse")).expect("create");
    sparse.set_len(10 << 30).expect("grow");
    symlink(dir.path(), at("sub/loop")).expect("link");
    symlink(at("nowhere"), at("dangling")).expect("link");
    let _socket = UnixListener::bind(at("socket")).expect("socket");

    let scan = plain(&[dir.path()], ScanOptions::default());
    assert_eq!((scan.totals().files, scan.repeated, scan.special), (3, 1, 3));
    assert_eq!(scan.totals().size.0, 5000 + (10 << 30));
    assert_eq!(scan.totals().unknown_files, 0);
    assert!(scan.skipped.is_empty(), "{:?}", scan.skipped);

    let followed = plain(&[dir.path()], ScanOptions { follow: true, ..ScanOptions::default() });
    assert_eq!(followed.totals().files, 3, "{:?}", names(&followed));
    // The same tree, a tree inside it and a file in it: still each file once.
    let both = plain(&[&at("a"), dir.path(), &at("sub/deep")], ScanOptions::default());
    assert_eq!(both.totals().files, 3, "{:?}", names(&both));
}

#[test]
fn sums_per_tree_include_what_is_deeper() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |p: &str| dir.path().join(p);
    std::fs::create_dir_all(at("x/y")).expect("mkdir");
    for (path, size) in [("top", 1), ("x/one", 10), ("x/y/two", 100)] {
        std::fs::write(at(path), vec![0; size]).expect("write");
    }
    let roots = [dir.path().to_path_buf()];
    let scan = scan(&roots, ScanOptions::default(), &()).expect("scan");
    let sizes = |depth| -> Vec<u64> { scan.trees(&roots, depth).iter().map(|t| t.1.size.0).collect() };
    assert_eq!(sizes(0), [111]);
    assert_eq!(sizes(1), [111, 110]);
    assert_eq!(sizes(9), [111, 110, 100]);
}

#[test]
fn other_file_systems_and_those_without_a_cache_are_not_entered() {
    let proc = plain(&[Path::new("/proc")], ScanOptions::default());
    assert_eq!(proc.totals().files, 0);
    assert!(matches!(proc.skipped[..], [Skipped::NoPageCache { .. }]), "{:?}", proc.skipped);
    let dev = plain(&[Path::new("/dev")], ScanOptions::default());
    assert!(dev.skipped.contains(&Skipped::OtherDevice { path: "/dev/shm".into() }), "{:?}", dev.skipped);
    assert!(scan(&["/does/not/exist".into()], ScanOptions::default(), &()).is_err());
    assert!(scan(&["/dev/null".into()], ScanOptions::default(), &()).is_err());
}

#[test]
fn progress_counts_all_files() {
    struct Last(std::sync::atomic::AtomicU64);
    impl Progress for Last {
        fn files(&self, done: u64) {
            self.0.fetch_max(done, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let dir = tempfile::tempdir().expect("a directory");
    for i in 0..20 {
        std::fs::create_dir(dir.path().join(format!("d{i}"))).expect("mkdir");
        std::fs::write(dir.path().join(format!("d{i}/f")), "x").expect("write");
    }
    let last = Last(0.into());
    scan(&[dir.path().to_path_buf()], ScanOptions::default(), &last).expect("scan");
    assert_eq!(last.0.into_inner(), 20);
}
