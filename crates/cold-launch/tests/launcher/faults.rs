//! Every system call of the launcher fails once, in every way; each is refused for good; the plan is cut at
//! every moment. The program starts, once, with its own arguments.

mod filter;
mod tracer;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracer::{Call, Ran, Side, traced};

use crate::misfit::stored;
use crate::subject::{before, make, says, subreaper};
use crate::world::{LAUNCHER, WITH_MUSL, Whole, add_whole, evict, gone, plan, put, save, text, whole};

const ERRNOS: [i32; 8] = [
    libc::ENOSPC,
    libc::EIO,
    libc::EMFILE,
    libc::ENOMEM,
    libc::EINTR,
    libc::EPERM,
    libc::ENOSYS,
    libc::EAGAIN,
];
const WORDS: [&str; 2] = ["one", "two words"];

/// What the C library asks for before `main` and cannot do without: no program that is linked with it would start
/// (measured; glibc takes the answer to brk, which never fails in earnest, for an address).
const OF_THE_C_LIBRARY: &[i64] = match WITH_MUSL {
    Some(_) => &[libc::SYS_arch_prctl],
    None => &[libc::SYS_arch_prctl, libc::SYS_brk, libc::SYS_mprotect],
};

/// How the launcher is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// With a plan that can be followed.
    Good,
    /// With a file that is no plan.
    Bad,
    /// By a store, with a history, and a name in PATH.
    Store,
    /// As one to whom orphans fall.
    Adopter,
}

const WAYS: [Way; 4] = [Way::Good, Way::Bad, Way::Store, Way::Adopter];

/// The program, a plan that can be followed, the same in a store, and a file that is no plan.
struct Scene {
    whole: Whole,
    subject: PathBuf,
    bad: PathBuf,
    store: PathBuf,
}

fn scene() -> Scene {
    let whole = whole(256 << 10, true, |_| {});
    let dir = whole.dir.path();
    let (subject, bad) = (make(dir), dir.join("bad"));
    put(&bad, b"no plan");
    let argv: Vec<OsString> =
        std::iter::once(subject.clone().into()).chain(WORDS.map(OsString::from)).collect();
    let (store, key) = stored(dir, &argv, Some("name"));
    let mut p = plan();
    p.key = key;
    add_whole(&mut p, &whole.data, true);
    save(&p, &store.path_of(&p.key));
    let store = store.directory().to_owned();
    Scene { whole, subject, bad, store }
}

impl Scene {
    /// The launcher, started this way. The plan's pages are not cached.
    fn launcher(&self, way: Way) -> Command {
        evict(&self.whole.data);
        let mut command = Command::new(LAUNCHER);
        match way {
            Way::Good => command.arg("--plan").arg(&self.whole.at),
            Way::Bad => command.arg("--plan").arg(&self.bad),
            Way::Adopter => before(&mut command, subreaper).arg("--plan").arg(&self.whole.at),
            Way::Store => {
                command.arg("--store").arg(&self.store).args(["--scenario", "name", "--control-every", "2"])
            }
        };
        command.args(["--verbose", "--"]);
        if way == Way::Store {
            command.arg("subject").env("PATH", self.whole.dir.path());
        } else {
            command.arg(&self.subject);
        }
        command.args(WORDS);
        command
    }

    fn says(&self, way: Way) -> Vec<u8> {
        says(if way == Way::Store { "subject".as_ref() } else { &self.subject }, &WORDS)
    }

    /// The program ran, once, and as it was asked for; else what happened.
    fn ran(&self, way: Way, out: &Ran, what: &dyn std::fmt::Debug) -> Result<(), String> {
        let as_asked = (out.code, out.signal) == (Some(7), None) && out.stdout == self.says(way);
        if as_asked { Ok(()) } else { Err(format!("{way:?} {what:?}: {out:?}")) }
    }
}

/// Nothing went wrong; all that did is told at once.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} times:\n{}", wrong.len(), wrong.join("\n"));
}

/// Tells the launcher's own calls from those of the C library before it, of which [`OF_THE_C_LIBRARY`] cannot do
/// without some.
#[derive(Default)]
struct Own(bool);

impl Own {
    fn may_fail(&mut self, call: Call) -> bool {
        // The first things that the launcher does are to look at its descriptors and signals.
        self.0 |= matches!(call.number, libc::SYS_fcntl | libc::SYS_rt_sigaction);
        call.number != libc::SYS_execve && (self.0 || !OF_THE_C_LIBRARY.contains(&call.number))
    }
}

/// A test for each way, so that they run beside each other.
fn any_call_may_fail(way: Way) {
    let scene = scene();
    let (mut calls, mut wrong) = (Vec::new(), Vec::new());
    let out = traced(&mut scene.launcher(way), Side::Launcher, &mut |call: Call| {
        calls.push(call.number);
        None
    });
    wrong.extend(scene.ran(way, &out, &"without faults").err());
    assert!(calls.contains(&libc::SYS_execve) && calls.len() > 20, "{calls:?}");
    // Some more, because a fault leads elsewhere.
    for (errno, nth) in ERRNOS.into_iter().flat_map(|e| (0..calls.len() + 8).map(move |n| (e, n))) {
        let (mut own, mut failed) = (Own::default(), None);
        let out = traced(&mut scene.launcher(way), Side::Launcher, &mut |call: Call| {
            let fails = own.may_fail(call) && call.nth == nth;
            fails.then(|| {
                failed = Some(call.number);
                errno
            })
        });
        wrong.extend(scene.ran(way, &out, &(nth, failed, errno)).err());
    }
    none(&wrong);
    gone(scene.whole.dir.path());
}

#[test]
fn any_call_may_fail_in_any_way_and_the_program_starts() {
    any_call_may_fail(Way::Good);
}

#[test]
fn any_call_may_fail_beside_a_file_that_is_no_plan() {
    any_call_may_fail(Way::Bad);
}

#[test]
fn any_call_may_fail_with_a_store() {
    any_call_may_fail(Way::Store);
}

#[test]
fn any_call_may_fail_of_one_to_whom_orphans_fall() {
    any_call_may_fail(Way::Adopter);
}

#[test]
fn any_call_of_the_helper_may_fail_and_the_program_does_not_notice() {
    let scene = scene();
    let (mut most, mut wrong) = (0, Vec::new());
    let out = traced(&mut scene.launcher(Way::Good), Side::Helper, &mut |call: Call| {
        most = most.max(call.nth);
        None
    });
    wrong.extend(scene.ran(Way::Good, &out, &"without faults").err());
    assert!(most > 5, "the helper made {most} calls");
    for (errno, nth) in
        [libc::ENOMEM, libc::EINTR, libc::EPERM].into_iter().flat_map(|e| (0..most).map(move |n| (e, n)))
    {
        let out = traced(&mut scene.launcher(Way::Good), Side::Helper, &mut |call: Call| {
            (call.nth == nth).then_some(errno)
        });
        wrong.extend(scene.ran(Way::Good, &out, &(nth, errno)).err());
    }
    none(&wrong);
    gone(scene.whole.dir.path());
}

#[test]
fn a_plan_that_is_cut_at_any_moment_does_not_keep_the_program_from_starting() {
    let scene = scene();
    let plan = std::fs::read(&scene.whole.at).expect("read");
    let (mut count, mut noticed, mut wrong) = (0, 0, Vec::new());
    traced(&mut scene.launcher(Way::Good), Side::Launcher, &mut |call: Call| {
        count = count.max(call.nth);
        None
    });
    for nth in 0..count {
        put(&scene.whole.at, &plan);
        let cut = |path: &Path| std::fs::File::options().write(true).open(path)?.set_len(0);
        let out = traced(&mut scene.launcher(Way::Good), Side::Launcher, &mut |call: Call| {
            if call.nth == nth {
                cut(&scene.whole.at).expect("cut");
            }
            None
        });
        wrong.extend(scene.ran(Way::Good, &out, &nth).err());
        noticed += usize::from(text(&out.stderr).contains("was cut short"));
    }
    none(&wrong);
    assert!(noticed > 0, "at some moment it lay in memory that was gone");
    gone(scene.whole.dir.path());
}

impl Scene {
    /// What launcher, helper and program ask the kernel for when nothing is refused.
    fn calls(&self, way: Way) -> BTreeSet<i64> {
        // The program's own are not traced; the last one it makes where the one before is refused.
        let mut calls = BTreeSet::from([libc::SYS_write, libc::SYS_exit_group, libc::SYS_exit]);
        // Twice, because with a store every second start is one without help.
        for side in [Side::Launcher, Side::Launcher, Side::Helper, Side::Helper] {
            let out = traced(&mut self.launcher(way), side, &mut |call: Call| {
                calls.insert(call.number);
                None
            });
            none(&Vec::from_iter(self.ran(way, &out, &"without faults").err()));
        }
        calls
    }

    /// With these calls refused the program runs as it was asked for; else what happened.
    fn refused(&self, way: Way, numbers: &[i64], errno: i32) -> Result<(), String> {
        let mut command = self.launcher(way);
        let out = filter::refusing(&mut command, numbers, errno).output().expect("the launcher runs");
        // Where nothing can be written the program says nothing either.
        let says = if numbers.contains(&libc::SYS_write) { Vec::new() } else { self.says(way) };
        let as_asked = (out.status.code(), &out.stdout) == (Some(7), &says);
        if as_asked { Ok(()) } else { Err(format!("{way:?} {numbers:?} {errno}: {out:?}")) }
    }
}

/// The calls that nobody makes are refused at once: where that changes nothing, each alone changes nothing.
#[test]
fn a_container_that_refuses_any_one_call_does_not_keep_the_program_from_starting() {
    let scene = scene();
    let mut wrong = Vec::new();
    for way in WAYS {
        let made = scene.calls(way);
        let may = |n: &i64| *n != libc::SYS_execve && !OF_THE_C_LIBRARY.contains(n);
        let (made, others): (Vec<i64>, Vec<i64>) =
            (0..filter::CALLS).filter(may).partition(|n| made.contains(n));
        assert!(made.len() > 10 && others.len() > 300, "{made:?}");
        for errno in [libc::EPERM, libc::ENOSYS] {
            let mut each = made.clone();
            // Twice, for the same reason.
            if (0..2).any(|_| scene.refused(way, &others, errno).is_err()) {
                each.extend(&others);
            }
            wrong.extend(each.into_iter().filter_map(|n| scene.refused(way, &[n], errno).err()));
        }
    }
    none(&wrong);
    gone(scene.whole.dir.path());
}
