use super::*;

#[test]
fn a_file_without_a_name_is_cold_then_warm_and_leaves_nothing() {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let place = ProbeTarget::Directory(dir.path().to_owned());
    let subject = Subject::create(&place, 1 << 20, &journal).unwrap();
    subject.make_cold().unwrap();
    assert_eq!(subject.cached().unwrap(), Some(Bytes(0)));
    subject.make_warm().unwrap();
    assert_eq!(subject.cached().unwrap(), Some(Bytes(1 << 20)));
    // Another process opens it by its path; here we do, which is the same name.
    assert_eq!(File::open(subject.path()).unwrap().metadata().unwrap().len(), 1 << 20);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it has a name");
}

#[test]
fn only_the_file_that_was_looked_at_is_destroyed() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let [given, precious, link] = ["given", "precious", "link"].map(|n| dir.path().join(n));
    std::fs::write(&given, vec![1; 1 << 16]).unwrap();
    std::fs::write(&precious, vec![2; 1 << 16]).unwrap();
    symlink(&precious, &link).unwrap();
    Subject::create(&ProbeTarget::Destroy(link.clone()), 1 << 16, &journal).unwrap_err();
    let inode = given.metadata().unwrap().ino();
    let subject = Subject::create(&ProbeTarget::Destroy(given.clone()), 1 << 16, &journal).unwrap();
    // Whoever opens it again (a worker) must not find what has taken the name meanwhile.
    std::fs::rename(&link, &given).unwrap();
    assert_eq!(File::open(subject.path()).unwrap().metadata().unwrap().ino(), inode);
    // And while it is opened, names change as fast as they can.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let [own, other] = ["own", "other"].map(|n| dir.path().join(n));
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::write(&own, vec![1; 1 << 12]).unwrap();
                std::fs::rename(&own, &given).unwrap();
                symlink(&precious, &other).unwrap();
                std::fs::rename(&other, &given).unwrap();
            }
        });
        for _ in 0..2000 {
            let _ = Subject::create(&ProbeTarget::Destroy(given.clone()), 1 << 12, &journal);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(std::fs::read(&precious).unwrap(), vec![2; 1 << 16]);
}

#[test]
fn what_cannot_be_used_is_refused_with_its_reason() {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let place = ProbeTarget::Directory(dir.path().to_owned());
    let full = Subject::create(&place, 1 << 60, &journal).unwrap_err().to_string();
    assert!(full.contains("are free"), "{full}");
    let small = dir.path().join("small");
    std::fs::write(&small, "precious").unwrap();
    let why =
        Subject::create(&ProbeTarget::Destroy(small.clone()), 1 << 20, &journal).unwrap_err().to_string();
    assert!(why.contains("8 B"), "{why}");
    assert_eq!(std::fs::read(&small).unwrap(), b"precious");
}

#[test]
fn a_file_that_somebody_maps_is_not_cold_and_says_how_much_stayed() {
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let subject = Subject::create(&ProbeTarget::Directory(dir.path().to_owned()), 1 << 16, &journal).unwrap();
    subject.make_warm().unwrap();
    let map =
        cold_sys::mapped::MappedFile::new(subject.file(), 1 << 16, cold_sys::mapped::MapKind::default())
            .unwrap();
    map.touch(0);
    let why = subject.make_cold().unwrap_err().to_string();
    assert!(why.contains(" is not cold: ") && why.ends_with("of its pages stayed in the cache"), "{why}");
    drop(map);
    subject.make_cold().unwrap();
}

#[test]
fn memory_is_no_disk_to_measure() {
    if !cold_testbed::need(
        backing(&File::open("/dev/shm").unwrap()).ok() == Some(Backing::Memory),
        "/dev/shm",
    ) {
        return;
    }
    let dir = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let place = ProbeTarget::Directory(dir.path().to_owned());
    let why = Subject::create(&place, 4096, &journal).unwrap_err().to_string();
    assert!(why.contains("its pages are memory"), "{why}");
}

#[test]
fn content_ends_where_it_was_asked_to_and_no_page_is_another() {
    let dir = tempfile::tempdir().unwrap();
    for bytes in [0, 1, 4096, 4097, (1 << 20) - 1, (3 << 20) + 5] {
        let path = dir.path().join(bytes.to_string());
        let file = File::create(&path).unwrap();
        fill(&file, bytes).unwrap();
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len() as u64, bytes);
        let pages: std::collections::HashSet<&[u8]> = content.chunks(4096).collect();
        assert_eq!(pages.len() as u64, bytes.div_ceil(4096), "{bytes} bytes compress");
    }
}

#[test]
fn code_is_laid_into_each_page_of_a_file_of_our_own_and_never_into_one_that_was_given_up() {
    use std::io::Write;
    let dir = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let journal = Journal::open_in(dir.path().join("journal"));
    let page = page_size();
    let mut own =
        Subject::create(&ProbeTarget::Directory(dir.path().to_owned()), 3 * page, &journal).unwrap();
    assert_eq!(own.make_code(page).unwrap(), RETURN.is_some());
    let content = std::fs::read(own.path()).unwrap();
    assert_eq!(content.len() as u64, 3 * page);
    if let Some(code) = RETURN {
        assert!(content.chunks(page as usize).all(|page| page.starts_with(&code)));
    }
    assert!(own.file().write(b"x").is_err(), "held for reading only");
    own.make_cold().unwrap();
    own.make_warm().unwrap();

    let given = dir.path().join("given");
    std::fs::write(&given, vec![1; 3 * page as usize]).unwrap();
    let mut given = Subject::create(&ProbeTarget::Destroy(given), 3 * page, &journal).unwrap();
    let before = std::fs::read(given.path()).unwrap();
    assert!(!given.make_code(page).unwrap());
    assert!(std::fs::read(given.path()).unwrap() == before);
}
