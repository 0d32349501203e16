//! Emptying the page cache, and seeing what it holds.

use std::path::PathBuf;

use cold_model::Shown as _;

use crate::context::Context;
use crate::finding::Finding;
use crate::report::Eviction;

/// Executables that exist nearly everywhere, belong to root and are large enough to be partly absent.
const FOREIGN_FILES: &[&str] = &["/usr/bin/bash", "/usr/bin/perl", "/usr/bin/gdb", "/usr/bin/vim.basic"];

/// How pages can be evicted here.
pub(crate) fn eviction(c: &Context) -> Eviction {
    match (c.probes.writable)(&c.proc.path("sys/vm/drop_caches")) {
        Ok(true) => Eviction::All,
        _ => Eviction::Files,
    }
}

pub(crate) fn drop_caches(c: &Context) -> Vec<Finding> {
    vec![match (c.probes.writable)(&c.proc.path("sys/vm/drop_caches")) {
        Ok(true) => Finding::ok("drop_caches", "vm.drop_caches can be written")
            .so("the whole cache can be emptied, with directory entries and inodes"),
        Ok(false) => Finding::missing("drop_caches", "vm.drop_caches cannot be written")
            .so("pages are evicted file by file (fadvise); metadata stays cached, so a cold start is somewhat \
                 too fast")
            .remedy(if c.is_root() {
                "/proc/sys is read-only here (container?): run on the host or with --privileged"
            } else {
                "run as root: sudo cold …"
            }),
        Err(e) => Finding::unknown("drop_caches", "vm.drop_caches", e).so("pages are evicted file by file"),
    }]
}

pub(crate) fn dropped_by_others(c: &Context) -> Vec<Finding> {
    let id = "caches_dropped";
    let seen = c.observed();
    let (pages, slab) = match (seen.vmstat("drop_pagecache"), seen.vmstat("drop_slab")) {
        (Ok(Some(pages)), Ok(Some(slab))) => (pages, slab),
        (Err(why), _) | (_, Err(why)) => return vec![Finding::unknown(id, "drops of the caches", why)],
        _ => {
            return vec![
                Finding::missing(id, "this kernel does not count drops of the caches")
                    .so("a drop by somebody else in the middle of a run goes unnoticed")
                    .remedy("see that nobody else writes vm.drop_caches while you measure"),
            ];
        }
    };
    let seconds = seen.seconds();
    let moved = pages.1 + slab.1;
    vec![if moved > 0 {
        Finding::disturbs(id, format!("somebody dropped the caches {moved} times within {seconds:.1} s"))
            .so("warm starts turn cold in the middle")
            .remedy("find who writes /proc/sys/vm/drop_caches (dmesg names it) and stop it")
    } else if pages.0 + slab.0 > 0 {
        Finding::note(
            id,
            format!(
                "since boot the page cache was dropped {} times, the slab {} times; not within {seconds:.1} s",
                pages.0, slab.0
            ),
        )
        .so("a run during which caches are dropped does not count")
    } else {
        Finding::ok(id, "nobody has dropped the caches since boot")
            .so("a drop in the middle of a run will be noticed")
    }]
}

/// A file that belongs to somebody else, to try what the kernel tells about it.
fn foreign_file(c: &Context) -> Option<PathBuf> {
    let command = c.program.as_ref().map(|p| p.path.clone());
    let candidates = command.into_iter().chain(FOREIGN_FILES.iter().map(PathBuf::from));
    candidates.map(|p| c.roots.path(p)).find(|p| p.is_file())
}

pub(crate) fn cachestat(c: &Context) -> Vec<Finding> {
    let id = "cachestat";
    let Some(file) = foreign_file(c) else {
        return vec![Finding::unknown(id, "cachestat", "no file to try it on")];
    };
    let shown = file.shown();
    vec![match (c.probes.cachestat)(&file) {
        Ok(Ok(())) => Finding::ok(id, "cachestat works")
            .so("resident and dirty pages are counted without mapping the file"),
        Ok(Err(e)) if e.raw_os_error() == Some(libc::ENOSYS) => {
            let (what, remedy) = if c.since((6, 5)) == Some(true) {
                (
                    "cachestat is refused by a filter that does not know it",
                    "a newer seccomp profile, or --security-opt seccomp=unconfined",
                )
            } else {
                ("this kernel has no cachestat (Linux 6.5)", "Linux 6.5 or later")
            };
            Finding::missing(id, what)
                .so("residency comes from mincore; dirty pages cannot be told apart")
                .remedy(remedy)
        }
        Ok(Err(e)) => Finding::missing(id, format!("cachestat is refused for {shown}: {e}"))
            .so("what is cached of files that you neither own nor may write stays unknown")
            .remedy("run as root: sudo cold …"),
        Err(e) => Finding::unknown(id, "cachestat", e),
    }]
}

pub(crate) fn mincore(c: &Context) -> Vec<Finding> {
    let id = "mincore";
    let Some(file) = foreign_file(c) else {
        return vec![Finding::unknown(id, "mincore on others' files", "no file to try it on")];
    };
    let shown = file.shown();
    let may_write = (c.probes.writable)(&file);
    vec![match ((c.probes.mincore)(&file), may_write) {
        (Ok(answer), Ok(true)) => Finding::ok(
            id,
            format!(
                "mincore tells the truth ({} of {} pages of {shown} are resident)",
                answer.resident, answer.pages
            ),
        )
        .so("cold can be proved page by page"),
        (Ok(answer), _) if answer.resident < answer.pages => {
            Finding::ok(id, format!("mincore tells about others' files too ({shown})"))
                .so("cold can be proved page by page")
        }
        (Ok(_), _) => Finding::missing(
            id,
            format!(
                "mincore says that every page of {shown} is cached, as it does for all files that you may not write"
            ),
        )
        .so("for such files neither cold nor warm can be proved; runs say unknown")
        .remedy("run as root: sudo cold …"),
        (Err(e), _) => Finding::unknown(id, "mincore on others' files", e),
    }]
}
