//! The first process of a container, and others to whom orphans fall: nothing is left to the program.

use std::process::{Command, Output};

use cold_testbed::attempts;

use crate::subject::{before, subreaper};
use crate::world::{LAUNCHER, MIB, Whole, calm, came, evict, gone, text, whole};

/// The program's children, what its `wait` says, and the helpers there are. The last word ends it.
const LOOK: &str = "cat /proc/$$/task/$$/children; echo; wait; echo waited $?; sleep 0.3; \
                    cat /proc/$$/task/$$/children";

fn check(out: &Output) -> Result<(), String> {
    let said = calm(out)?;
    assert!(said.contains("4194304 of 4194304 bytes"), "{said}");
    let seen = text(&out.stdout);
    let lines: Vec<&str> = seen.lines().collect();
    let children = |n: usize| lines.get(n).map_or(0, |l: &&str| l.split_whitespace().count());
    // cat itself is the one child.
    assert_eq!((children(0), lines.get(1), children(2)), (1, Some(&"waited 0"), 1), "{seen}");
    Ok(())
}

#[test]
fn the_first_process_of_a_container_reads_ahead_before_it_becomes_a_program_without_children() {
    cold_testbed::needs_root!();
    // In parts critical or not: nobody is left to read the rest later.
    for critical in [true, false] {
        let Whole { dir, data, at } = whole(4 * MIB, critical, |p| p.learnt.own_cpu_ns = 3_600_000_000_000);
        attempts(|| {
            evict(&data);
            let mut first = Command::new("unshare");
            first.args(["--pid", "--fork", "--mount-proc", LAUNCHER, "--verbose", "--plan"]).arg(&at);
            let out = first.args(["--", "sh", "-c", &format!("[ $$ = 1 ] && {LOOK}")]).output();
            check(&out.expect("unshare"))?;
            came(&data, 1024)
        });
        gone(dir.path());
    }
}

#[test]
fn who_gets_the_orphans_of_others_gets_no_helper() {
    let Whole { dir, data, at } = whole(4 * MIB, true, |_| {});
    attempts(|| {
        evict(&data);
        let mut launcher = Command::new(LAUNCHER);
        launcher.args(["--verbose", "--plan"]).arg(&at).args(["--", "sh", "-c", LOOK]);
        let out = before(&mut launcher, subreaper).output().expect("runs");
        check(&out)?;
        came(&data, 1024)
    });
    gone(dir.path());
}
