use super::super::tests::fake;
use super::*;

#[test]
fn the_load_is_read_whole_or_refused() {
    let load = |text: &str| {
        let (_dir, proc) = fake(&[("loadavg", text)]);
        proc.loadavg().ok().map(|l| (l.one_minute, l.runnable, l.tasks))
    };
    assert_eq!(load("0.25 1.50 2.75 3/412 9876\n"), Some((0.25, 3, 412)));
    for text in ["", "0.25 1.50 2.75", "0.25 1.50 2.75 3 9876", "x 1.50 2.75 3/412", "0.25 1.50 2.75 3/-1"] {
        assert_eq!(load(text), None, "{text:?}");
    }
}

#[test]
fn a_file_that_this_kernel_does_not_have_is_none_and_one_that_cannot_be_read_an_error() {
    let (_dir, proc) = fake(&[("there", " 1\n"), ("directory/x", "")]);
    assert_eq!(proc.read_opt("there").expect("read").as_deref(), Some("1"));
    assert_eq!(proc.read_opt("none").expect("absent"), None);
    assert_eq!(proc.read_opt("directory").expect_err("no file").errno(), Some(libc::EISDIR));
}

#[test]
fn swap_is_told_in_bytes_by_its_whole_name() {
    let head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    let text = format!("{head}/dev/sda2 partition\t1048572\t4\t-2\n/a\\040b file\t8 0 -3\nshort file 1\n");
    let (_dir, proc) = fake(&[("swaps", &text)]);
    let swap = |name: &str, kind: &str, size, used| Swap { name: name.into(), kind: kind.into(), size, used };
    let expected = [swap("/dev/sda2", "partition", 1_073_737_728, 4096), swap("/a b", "file", 8192, 0)];
    assert_eq!(proc.swaps().expect("read"), expected);
    let (_dir, without) = fake(&[("swaps", head)]);
    assert_eq!(without.swaps().expect("read"), []);
    assert_eq!(fake(&[]).1.swaps().expect("a kernel without swap"), []);
}

#[test]
fn a_lock_of_ours_is_among_the_held_ones() {
    use std::os::unix::fs::MetadataExt;
    let file = tempfile::tempfile_in("/var/tmp").expect("a file");
    let inode = file.metadata().expect("stat").ino();
    let of_it = || {
        let locks = ProcFs::default().locks().expect("readable");
        locks.into_iter().filter(|l| l.inode == inode).map(|l| l.pid).collect::<Vec<i32>>()
    };
    assert_eq!(of_it(), [0; 0]);
    file.lock().expect("locked");
    assert_eq!(of_it(), [i32::try_from(std::process::id()).expect("a pid")]);
    file.unlock().expect("unlocked");
    assert_eq!(of_it(), [0; 0]);
}

#[test]
fn a_lock_without_a_file_or_a_whole_line_is_none() {
    for line in [
        "",
        "1: POSIX  ADVISORY  WRITE 4321",
        "1: POSIX  *NOINODE* WRITE 4321 <none>:0 0 EOF",
        "1: POSIX  ADVISORY  WRITE 4321 fe:00 0 EOF",
    ] {
        assert_eq!(parse_lock(line), None, "{line:?}");
    }
    let of_file = parse_lock("2: OFDLCK ADVISORY  READ  -1 00:1b:99 0 EOF");
    assert_eq!(of_file, Some(Lock { pid: -1, dev: Dev::new(0, 0x1b), inode: 99 }));
}

#[test]
fn a_held_lock_and_a_waiter() {
    let held = parse_lock("1: POSIX  ADVISORY  WRITE 4321 fe:00:1234 0 EOF");
    assert_eq!(held, Some(Lock { pid: 4321, dev: Dev::new(0xfe, 0), inode: 1234 }));
    assert_eq!(parse_lock("1: -> POSIX  ADVISORY  WRITE 4322 fe:00:1234 0 EOF"), None);
}
