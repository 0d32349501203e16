use std::fs::File;
use std::io::{Read, Write};
use std::time::Instant;

use super::*;
use crate::cgroup::{Hierarchies, MemoryGroup, Version};
use crate::pidfd::PidFd;
use crate::procfs::ProcFs;

/// In a copy of this process, which has one thread: `work`, with a process of its own that makes copies.
fn with_copier(job: &dyn Fn(Order), work: impl FnOnce(&Copier) -> bool) -> bool {
    // SAFETY: the copy does what the test says, which needs no other thread, and ends.
    let pid = match unsafe { libc::fork() } {
        0 => {
            let made = Copier::fork(c"cold-copies", job);
            let done =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| made.is_ok_and(|c| work(&c))));
            // SAFETY: ends the copy.
            unsafe { libc::_exit(i32::from(!done.unwrap_or(false))) }
        }
        pid => pid,
    };
    let mut status = 0;
    // SAFETY: a child of this test, and a place to write to.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Waits for `what`, which is there when `look` gives something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A new group below ours, removed when this is dropped.
struct Group(MemoryGroup);

impl Group {
    /// Of version 2, whether that charges memory here or not.
    fn new(name: &str) -> Self {
        let found = Hierarchies::find(&ProcFs::default()).expect("mounts");
        let own = found.own_v2(&ProcFs::default()).expect("version 2 is mounted");
        Self::below(MemoryGroup { version: Version::V2, top: own.clone(), dir: own }, name)
    }
    fn below(own: MemoryGroup, name: &str) -> Self {
        let dir = own.dir.join(format!("cold-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a group");
        Self(MemoryGroup { dir, ..own })
    }
    fn members(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.0.dir.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that was killed leaves it a moment later.
        until("the group is empty", || std::fs::remove_dir(&self.0.dir).ok());
    }
}

mod root {
    use super::*;

    fn is_root() -> bool {
        let root = crate::caps::is_root();
        assert!(root || std::env::var_os("CI").is_none(), "needs root");
        root
    }

    #[test]
    fn a_copy_begins_in_the_group_with_what_it_was_given_and_a_new_one_each_time() {
        if !is_root() {
            return;
        }
        for group in memory_and_v2("begins") {
            begins_in(&group);
        }
    }

    /// One that memory is charged to, by whichever version, and one of version 2.
    fn memory_and_v2(name: &str) -> Vec<Group> {
        let own = Hierarchies::find(&ProcFs::default()).expect("mounts");
        let own = own.memory_of(&ProcFs::default(), std::process::id().cast_signed());
        let charged = own.map(|own| Group::below(own, &format!("{name}-charged")));
        charged.into_iter().chain([Group::new(name)]).collect()
    }

    fn begins_in(group: &Group) {
        let job = |order: Order| {
            let (_caller, numbers, fds) = order.into_parts();
            let own = ProcFs::default().own_stat().expect("procfs");
            let groups = std::fs::read_to_string("/proc/self/cgroup").expect("procfs");
            let mut said = File::from(fds.into_iter().next().expect("a pipe"));
            write!(said, "{} {}\n{groups}", numbers.iter().sum::<u64>(), own.comm).expect("said");
        };
        let done = with_copier(&job, |copier| {
            let held = group.0.entrance().expect("held");
            (1..3).all(|number| {
                let (mut hear, say) = std::io::pipe().expect("a pipe");
                let mut numbers = [0; NUMBERS];
                (numbers[0], numbers[NUMBERS - 1]) = (1, number);
                let copy = copier.order(held.as_fd(), numbers, &[say.as_fd()]).expect("ordered");
                drop(say);
                let mut said = String::new();
                hear.read_to_string(&mut said).expect("heard");
                until("it has ended", || copy.has_ended(Duration::from_millis(10)).then_some(()));
                let name = group.0.dir.file_name().expect("a name").to_string_lossy().into_owned();
                copy.refusal().is_none()
                    && said.starts_with(&format!("{} cold-copies\n", 1 + number))
                    && said.lines().any(|group| group.ends_with(&name))
            })
        });
        assert!(done);
    }

    #[test]
    fn a_copy_whose_caller_is_gone_ends_and_so_does_all_when_the_copier_is() {
        if !is_root() {
            return;
        }
        let group = Group::new("ends");
        let job = |order: Order| {
            let (caller, ..) = order.into_parts();
            while !caller.is_gone(Duration::from_mins(1)) {}
        };
        let done = with_copier(&job, |copier| {
            let held = group.0.entrance().expect("held");
            let order = || copier.order(held.as_fd(), [0; NUMBERS], &[]).expect("ordered");
            let (first, second) = (order(), order());
            until("both are there", || (group.members().len() == 2).then_some(()));
            assert!(!first.has_ended(Duration::from_millis(50)));
            drop(first);
            until("one has ended", || (group.members().len() == 1).then_some(()));
            assert!(!second.has_ended(Duration::from_millis(50)));
            let maker = PidFd::open(copier.pid().expect("our own")).expect("asked").expect("lives");
            maker.kill().expect("killed");
            until("the other has ended", || second.has_ended(Duration::from_millis(10)).then_some(()));
            until("nobody is left", || group.members().is_empty().then_some(true))
        });
        assert!(done);
    }

    #[test]
    fn why_there_is_no_copy_is_told() {
        if !is_root() {
            return;
        }
        let done = with_copier(&|_| {}, |copier| {
            let no_group = File::open("/tmp").expect("a directory");
            let copy = copier.order(no_group.as_fd(), [0; NUMBERS], &[]).expect("ordered");
            let began = Instant::now();
            until("it is told", || copy.has_ended(Duration::from_millis(10)).then_some(()));
            let refusal = copy.refusal().and_then(|e| e.raw_os_error());
            // Nor where a group of version 1 lets nobody in.
            let full = File::options().write(true).open("/dev/full").expect("a device");
            let copy = copier.order(full.as_fd(), [0; NUMBERS], &[]).expect("ordered");
            until("it is told", || copy.has_ended(Duration::from_millis(10)).then_some(()));
            let not_in = copy.refusal().and_then(|e| e.raw_os_error());
            // And the next order is heard all the same.
            let group = Group::new("after");
            let held = group.0.entrance().expect("held");
            let next = copier.order(held.as_fd(), [0; NUMBERS], &[]).expect("ordered");
            until("it has ended", || next.has_ended(Duration::from_millis(10)).then_some(()));
            assert!(began.elapsed() < Duration::from_mins(1));
            (refusal, not_in) == (Some(libc::EBADF), Some(libc::ENOSPC)) && next.refusal().is_none()
        });
        assert!(done);
    }
}

#[test]
fn what_could_not_be_given_is_not_ordered() {
    let done = with_copier(&|_| {}, |copier| {
        let file = File::open("/tmp").expect("a directory");
        let many = vec![file.as_fd(); MOST_FDS + 1];
        copier.order(file.as_fd(), [0; NUMBERS], &many).is_err()
    });
    assert!(done);
}

#[test]
fn a_process_of_several_threads_makes_no_copier_and_without_systemd_there_is_no_socket() {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || ended.recv());
    let error = Copier::fork(c"x", &|_| {}).expect_err("refused");
    assert!(error.to_string().ends_with("this process has several threads"), "{error}");
    drop(end);
    let _ = other.join();
    let error = inherited_socket().expect_err("refused");
    assert!(error.to_string().contains("was given none"), "{error}");
}
