use std::os::fd::AsRawFd;

use super::*;

fn collector() -> Collector {
    Collector::new(Instant::now())
}

fn finished(set: Collector) -> ObservedStart {
    set.finish(Ending::Code(0), 0)
}

const NOT: How = How { executed: false, mapped: false, opened: false, written: false, inherited: false };
const OPENED: How = How { opened: true, ..NOT };
const MAPPED: How = How { mapped: true, ..NOT };

/// The magic link of a file that this process holds.
fn link(file: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[test]
fn a_file_is_in_the_set_once_with_all_that_was_done_to_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, other) = (dir.path().join("file"), dir.path().join("other name"));
    std::fs::write(&path, "12345").expect("written");
    std::fs::hard_link(&path, &other).expect("linked");
    let mut set = collector();
    let first = set.file_at_link(&link(&std::fs::File::open(&path).expect("opens")), OPENED);
    let again = set.file_at_link(&link(&std::fs::File::open(&other).expect("opens")), MAPPED);
    assert_eq!(first, again);
    let start = finished(set);
    assert_eq!(start.files.len(), 1);
    let file = &start.files[0];
    assert_eq!((&file.path, file.size, file.gone, file.elsewhere), (&path, Bytes(5), false, false));
    assert_eq!(file.how, How { mapped: true, ..OPENED });
}

#[test]
fn what_has_no_content_on_a_disk_is_counted_or_left_out() {
    let mut set = collector();
    let kernels = std::fs::File::open("/proc/version").expect("opens");
    for _ in 0..2 {
        assert_eq!(set.file_at_link(&link(&kernels), OPENED), Seen::Other);
    }
    let memory = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).expect("made");
    let (pipe, _end) = std::io::pipe().expect("a pipe");
    assert_eq!(set.file_at_link(&link(&memory), OPENED), Seen::Other, "it never had a name");
    assert_eq!(set.file_at_link(&link(&pipe), OPENED), Seen::Other);
    assert_eq!(set.file_at_link(Path::new("/proc/self/fd/999999"), OPENED), Seen::Unidentified);
    let start = finished(set);
    assert_eq!((start.files.len(), start.kernel_file_opens, start.unidentified), (0, 2, 1));
}

#[test]
fn a_directory_is_named_once_and_only_where_it_was_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    let held = std::fs::File::open(dir.path()).expect("opens");
    let mut set = collector();
    set.file_at_link(&link(&held), MAPPED);
    assert_eq!(set.directories.len(), 0);
    set.file_at_link(&link(&std::fs::File::open("/").expect("opens")), OPENED);
    set.file_at_link(&link(&held), OPENED);
    set.file_at_link(&link(&held), OPENED);
    let canonical = dir.path().canonicalize().expect("is there");
    assert_eq!(finished(set).directories, [PathBuf::from("/"), canonical]);
}

#[test]
fn a_file_without_its_name_is_gone_whenever_it_lost_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let files = [&before, &after].map(|path| std::fs::File::create_new(path).expect("made"));
    std::fs::remove_file(&before).expect("removed");
    let mut set = collector();
    for file in &files {
        assert!(matches!(set.file_at_link(&link(file), OPENED), Seen::File(_)));
    }
    // Another one has its name at the end.
    std::fs::remove_file(&after).expect("removed");
    std::fs::write(&after, "another").expect("written");
    let files: Vec<_> = finished(set).files.into_iter().map(|f| (f.path, f.gone, f.elsewhere)).collect();
    assert_eq!(files, [(before, true, false), (after, true, false)]);
}

#[test]
fn a_name_of_the_kernel_is_taken_at_its_word_only_where_it_leads_to_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let marked = dir.path().join("file (deleted)");
    std::fs::write(&marked, "").expect("written");
    let id = FileId::of(&marked.metadata().expect("stat"));
    let other = FileId { ino: id.ino + 1, ..id };
    assert_eq!(locate(marked.clone(), id), (marked.clone(), false, false), "that is its name");
    assert_eq!(locate(marked, other), (dir.path().join("file"), false, true));
    let elsewhere = dir.path().join("in another root");
    assert_eq!(locate(elsewhere.clone(), id), (elsewhere, true, false));
}

#[test]
fn the_directories_with_most_misses_are_named_and_the_others_counted() {
    let mut set = collector();
    for n in 0..70 {
        let times = if n == 69 { 3 } else { 1 };
        (0..times).for_each(|_| set.miss(Some(format!("/d{n:02}").into())));
    }
    set.miss(None);
    (0..100).for_each(|_| set.lookup());
    let start = finished(set);
    assert_eq!((start.lookups, start.misses), (100, 73));
    let named: Vec<_> =
        start.misses_by_dir.iter().map(|m| (m.dir.to_str().expect("text"), m.count)).collect();
    assert_eq!(named.len(), NAMED_MISS_DIRS);
    assert_eq!((named[0], named[1], named[63]), (("/d69", 3), ("/d00", 1), ("/d62", 1)));
    assert_eq!(start.misses_elsewhere, 73 - 3 - 63);
}

#[test]
fn a_remark_is_kept_once_and_no_more_than_somebody_reads() {
    let mut set = collector();
    (0..2).for_each(|_| set.note("again".into()));
    (0..300).for_each(|n| set.note(format!("number {n}")));
    assert_eq!(finished(set).notes.len(), MAX_NOTES);
}

#[test]
fn the_mapped_files_of_a_process_are_those_of_its_maps() {
    let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
    file.as_file().set_len(4096).expect("set");
    let map = memmap2::MmapOptions::new().len(4096).map_raw_read_only(file.as_file()).expect("mapped");
    let own = std::process::id().cast_signed();
    let mut set = collector();
    set.maps(own);
    set.maps(own);
    drop(map);
    let start = finished(set);
    let found: Vec<_> = start.files.iter().filter(|f| f.path == file.path()).collect();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].how, found[0].size), (MAPPED, Bytes(4096)));
    let exe = std::env::current_exe().expect("known");
    assert!(start.files.iter().any(|f| f.path == exe), "this program itself");
}
