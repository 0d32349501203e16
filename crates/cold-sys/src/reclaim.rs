//! Reclaim through memory cgroups: the one way to evict pages that processes have mapped.
//!
//! `drop_caches` and `POSIX_FADV_DONTNEED` skip every page that any process maps, running or asleep
//! (libc.so.6: 404 of 471 pages stay on an idle Debian machine). Reclaim unmaps such pages first. Writing
//! to `memory.force_empty` (cgroup v1) of every memory cgroup took all of libc, ld.so and bash out, and
//! they stayed out until those processes ran again.
//!
//! Limits: a page is reclaimed through the cgroup it is *charged* to (the one that first read it). Pages
//! charged to the root cgroup are out of reach, because the root has no such file (v2) or refuses (v1,
//! EINVAL). The per-node file `/sys/devices/system/node/nodeN/reclaim` of newer kernels answered EAGAIN
//! for every size on 6.18, so it is not used.
//!
//! **Swap.** Reclaim also takes anonymous memory, which would move other programs to swap. The caller
//! has to make sure that no swap is active; v2 kernels that know `swappiness=0` (6.9+) are told so anyway.

use std::io::Write;
use std::os::unix::thread::JoinHandleExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// By which file of a memory cgroup pages are reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimMethod {
    /// cgroup v1: `memory.force_empty`.
    ForceEmpty,
    /// cgroup v2 (5.19+): `memory.reclaim`.
    MemoryReclaim,
}

/// What a [`reclaim_mapped`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimReport {
    /// The file used.
    pub method: ReclaimMethod,
    /// Cgroups that carried the request out (also partly: pages may be busy).
    pub done: Vec<PathBuf>,
    /// Cgroups that refused, with the kernel's words.
    pub refused: Vec<(PathBuf, String)>,
    /// It was interrupted because the time was over.
    pub out_of_time: bool,
}

/// Where memory cgroups can be asked to reclaim: the mounted hierarchy and its method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReclaimRoot {
    /// Mount point of the hierarchy with the memory controller.
    pub path: PathBuf,
    /// Which of its cgroups' files is written to.
    pub method: ReclaimMethod,
}

impl ReclaimRoot {
    /// Finds the hierarchy among the mounts: v1 with the `memory` controller, or v2 when a child has
    /// `memory.reclaim`. `None` when neither exists (no memory controller, or v2 before 5.19).
    pub fn find(mounts: &[crate::procfs::Mount]) -> Option<Self> {
        let v1 = |m: &&crate::procfs::Mount| {
            m.fs_type == "cgroup" && m.mount_point.join("memory.force_empty").exists()
        };
        if let Some(m) = mounts.iter().find(v1) {
            return Some(Self { path: m.mount_point.clone(), method: ReclaimMethod::ForceEmpty });
        }
        let m = mounts.iter().find(|m| m.fs_type == "cgroup2")?;
        let root = Self { path: m.mount_point.clone(), method: ReclaimMethod::MemoryReclaim };
        let known = root.cgroups().iter().any(|c| c.join("memory.reclaim").exists());
        known.then_some(root)
    }

    /// Every cgroup below the root, children before their parents; the root itself refuses and is left out.
    fn cgroups(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.path, 0, &mut found);
        found
    }
}

/// Appends the directories below `dir`, deepest first.
fn collect(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    // The kernel's own limit on nesting is a setting without default; 64 is far above any real tree.
    const MAX_DEPTH: u32 = 64;
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) && depth < MAX_DEPTH {
            collect(&entry.path(), depth + 1, found);
            found.push(entry.path());
        }
    }
}

/// Asks every memory cgroup below `root` to give up what it can, mapped file pages included, in up to
/// `rounds` rounds (referenced pages survive the first look). `done` is asked before each
/// cgroup whether the goal is reached already. After `limit` in all it is interrupted: busy programs
/// bring their pages back as fast as they are taken, and `memory.force_empty` tries until nothing is
/// left (two minutes of system time beside a compiler, measured).
///
/// Only call this when no swap is active (see the module's head).
pub fn reclaim_mapped(
    root: &ReclaimRoot,
    rounds: u32,
    limit: Duration,
    mut done: impl FnMut() -> bool,
) -> ReclaimReport {
    let until = Instant::now() + limit;
    let mut report =
        ReclaimReport { method: root.method, done: Vec::new(), refused: Vec::new(), out_of_time: false };
    let cgroups = root.cgroups();
    for _ in 0..rounds {
        report.refused.clear();
        for cgroup in &cgroups {
            // Asked so often because every cgroup spared keeps its programs' pages warm.
            if done() {
                return report;
            }
            if Instant::now() >= until {
                report.out_of_time = true;
                return report;
            }
            match interruptible(root.method, cgroup, until) {
                Ok(()) if report.done.contains(cgroup) => {}
                Ok(()) => report.done.push(cgroup.clone()),
                // It went away meanwhile: so did its charge.
                Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {}
                Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
                Err(e) => report.refused.push((cgroup.clone(), e.to_string())),
            }
        }
    }
    report
}

/// [`ask`] in a thread that is interrupted by a signal when the time is over.
fn interruptible(method: ReclaimMethod, cgroup: &Path, until: Instant) -> std::io::Result<()> {
    let path = cgroup.to_owned();
    let signal = interrupting_signal();
    let asking = std::thread::Builder::new().name("reclaim".into()).spawn(move || ask(method, &path))?;
    #[allow(clippy::unnecessary_cast)] // musl's is a pointer, the standard library's a number
    let thread = asking.as_pthread_t() as libc::pthread_t;
    while !asking.is_finished() {
        if Instant::now() >= until {
            // SAFETY: the handle is not joined yet, so the thread's id is valid even if it has ended.
            unsafe { libc::pthread_kill(thread, signal) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    asking.join().unwrap_or_else(|_| Err(std::io::Error::other("the reclaiming thread panicked")))
}

/// A signal that does nothing but interrupt a system call.
fn interrupting_signal() -> i32 {
    extern "C" fn nothing(_: i32) {}
    static INSTALLED: OnceLock<i32> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        let signal = libc::SIGRTMIN() + 5;
        // SAFETY: a zeroed sigaction is valid: no flags, so no SA_RESTART; the handler does nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        signal
    })
}

fn ask(method: ReclaimMethod, cgroup: &Path) -> std::io::Result<()> {
    let write = |file: &str, text: &str| {
        // One plain write: write_all would go on after the interruption.
        let mut file = std::fs::OpenOptions::new().write(true).open(cgroup.join(file))?;
        file.write(text.as_bytes()).map(|_| ())
    };
    match method {
        ReclaimMethod::ForceEmpty => write("memory.force_empty", "0"),
        ReclaimMethod::MemoryReclaim => {
            let current = std::fs::read_to_string(cgroup.join("memory.current"))?;
            let amount = current.trim();
            if amount == "0" {
                return Ok(());
            }
            let result = match write("memory.reclaim", &format!("{amount} swappiness=0")) {
                // Kernels before 6.9 do not know the argument.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) => write("memory.reclaim", amount),
                other => other,
            };
            match result {
                // It reclaimed less than asked for, which is certain when all is asked for.
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
                other => other,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs::Mount;

    fn mount(fs_type: &str, mount_point: &Path) -> Mount {
        Mount {
            dev: cold_model::Dev::new(0, 30),
            root: "/".into(),
            mount_point: mount_point.into(),
            options: "rw".into(),
            fs_type: fs_type.into(),
            source: fs_type.into(),
            super_options: String::new(),
        }
    }

    #[test]
    fn v2_is_asked_child_before_parent_with_its_whole_charge_and_no_swap() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let child = dir.path().join("a/b");
        std::fs::create_dir_all(&child).expect("mkdir");
        for cgroup in [dir.path().join("a"), child.clone()] {
            std::fs::write(cgroup.join("memory.current"), "8192\n").expect("write");
            std::fs::write(cgroup.join("memory.reclaim"), "").expect("write");
        }
        let root = ReclaimRoot::find(&[mount("cgroup2", dir.path())]).expect("found");
        assert_eq!(root.method, ReclaimMethod::MemoryReclaim);
        let mut asked = 0;
        let report = reclaim_mapped(&root, 3, Duration::from_secs(5), || {
            asked += 1;
            asked > 3
        });
        assert_eq!(report.done, [child.clone(), dir.path().join("a")]);
        let early = reclaim_mapped(&root, 3, Duration::from_secs(5), || true);
        assert_eq!(early.done, Vec::<PathBuf>::new());
        let asked = std::fs::read_to_string(child.join("memory.reclaim")).expect("read");
        assert_eq!(asked, "8192 swappiness=0");
    }

    #[test]
    fn a_hierarchy_without_the_memory_controller_is_not_taken() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::create_dir(dir.path().join("a")).expect("mkdir");
        assert_eq!(ReclaimRoot::find(&[mount("cgroup2", dir.path()), mount("cgroup", dir.path())]), None);
    }
}
