use std::io::Write;
use std::os::fd::AsRawFd;

use super::*;
use crate::procfs::ProcFs;

/// A copy of this process that does `job` and ends with its answer.
fn copy_of_this(job: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the copy does what the test says, which needs no other thread, and ends.
    match unsafe { libc::fork() } {
        // SAFETY: ends the copy.
        0 => unsafe { libc::_exit(job()) },
        pid => pid,
    }
}

fn status(pid: c_int) -> c_int {
    let mut status = 0;
    // SAFETY: a child of this test, and a place to write to.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

#[test]
fn a_process_of_several_threads_is_not_copied() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || ended.recv());
    assert!(!single_threaded());
    let mut done = false;
    let error = run(&mut || done = true).expect_err("refused");
    assert_eq!(error.to_string(), "cannot start a helper process: this process has several threads");
    assert!(!done, "the job was not done by this one");
    drop(end);
    let _ = other.join();
    let pid = copy_of_this(|| c_int::from(!single_threaded()));
    assert_eq!(status(pid), 0, "a copy has one thread");
}

#[test]
fn a_child_is_waited_for_once_and_then_is_nobodys() {
    let (wait, mut go) = std::io::pipe().expect("a pipe");
    let waits = wait.as_raw_fd();
    let pid = copy_of_this(|| {
        // Sockets of a test beside this must end with that test.
        close_range(3, waits.cast_unsigned());
        close_range(waits.cast_unsigned() + 1, u32::MAX);
        // SAFETY: a place to write to.
        unsafe { libc::read(waits, [0_u8; 1].as_mut_ptr().cast(), 1) };
        5
    });
    assert!(!has_ended(pid, libc::WNOHANG).expect("asked"), "it waits");
    go.write_all(b"x").expect("told");
    assert!(has_ended(pid, 0).expect("waited"));
    assert!(has_ended(pid, libc::WNOHANG).expect("nobody's child"));
}

#[test]
fn a_copy_keeps_the_descriptors_that_it_names_and_no_others() {
    let file = || std::fs::File::open("/dev/null").expect("opens");
    let files = [file(), file(), file(), file()];
    let numbers = files.each_ref().map(AsRawFd::as_raw_fd);
    let pid = copy_of_this(|| {
        // In no order, one twice, and one that is none.
        drop_inherited(c"cold-test", &[numbers[2], -1, numbers[0], numbers[2]]);
        // SAFETY: asks for flags of descriptors.
        let open = |fd: c_int| unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1;
        let kept = (0..1000).filter(|fd| open(*fd)).eq({
            let mut kept = [numbers[0], numbers[2]];
            kept.sort_unstable();
            kept
        });
        let mut name = [0_u8; 16];
        let mut place = [0_u8; 16];
        // SAFETY: places of these sizes to write to.
        unsafe {
            libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr());
            libc::getcwd(place.as_mut_ptr().cast(), place.len());
        }
        c_int::from(!kept)
            | c_int::from(!name.starts_with(b"cold-test\0")) << 1
            | c_int::from(&place[..2] != b"/\0") << 2
    });
    assert_eq!(status(pid) >> 8, 0, "1: descriptors, 2: name, 4: directory");
}

/// What `/proc` calls the size of the table.
fn places_for_files() -> u64 {
    ProcFs::default().process_field(std::process::id().cast_signed(), "status", "FDSize").unwrap().unwrap()
}

#[test]
fn the_table_of_descriptors_is_made_larger_and_none_is_left_open() {
    let pid = copy_of_this(|| {
        close_range(3, u32::MAX);
        let (before, most) = (places_for_files(), crate::exec::open_files_limit());
        make_room_for_files(500);
        let made = places_for_files();
        // No larger than it may be.
        make_room_for_files(usize::MAX);
        // SAFETY: asks for flags of descriptors.
        let open = |fd: c_int| unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1;
        let none = !(3..most.min(5000) as c_int).any(open);
        c_int::from(before > 500) | c_int::from(made < 500) << 1 | c_int::from(!none) << 2
    });
    assert_eq!(status(pid) >> 8, 0, "1: it is as large already, 2: it is not larger, 4: one is open");
}
