//! Reclaim of mapped pages, in a memory cgroup of our own, so that nobody else loses pages.
#![allow(unsafe_code)] // the shared `support` maps files

mod support;

mod root {
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command};

    use cold_cache::{EvictTarget, Method, evict};
    use cold_sys::procfs::ProcFs;
    use cold_sys::reclaim::{ReclaimRoot, reclaim_mapped};

    use super::support::{Scratch, cached, need, needs_root, retry};

    /// A cgroup with one child, and a process in it; all gone at the end.
    struct Sleeper {
        parent: PathBuf,
        child: Child,
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            // The process leaves its cgroup a moment after it was waited for.
            retry(|| std::fs::remove_dir(self.parent.join("c")).ok());
            let _ = std::fs::remove_dir(&self.parent);
        }
    }

    /// Starts `program 600` in a new cgroup below `hierarchy`.
    fn start(hierarchy: &Path, program: &Path) -> Sleeper {
        let parent = hierarchy.join(format!("cold-test-{}", std::process::id()));
        std::fs::create_dir_all(&parent).expect("a cgroup");
        // Version 2 hands a controller down only on demand; version 1 has no such file.
        let _ = std::fs::write(parent.join("cgroup.subtree_control"), "+memory");
        std::fs::create_dir(parent.join("c")).expect("a cgroup");
        let script = r#"echo $$ > "$0/cgroup.procs" && exec "$1" 600"#;
        let child = Command::new("sh").args(["-c", script]).arg(parent.join("c")).arg(program).spawn();
        Sleeper { parent, child: child.expect("a shell") }
    }

    #[test]
    fn a_sleeping_program_loses_its_mapped_pages() {
        needs_root!();
        let found = ReclaimRoot::find(&ProcFs::default().mounts().expect("mounts"));
        let Some(found) = found else {
            assert!(!need(false, "a memory cgroup hierarchy"));
            return;
        };
        let scratch = Scratch::new();
        let program = scratch.path("sleeper");
        std::fs::copy("/bin/sleep", &program).expect("copy");
        let target = [EvictTarget { path: program.clone(), id: None }];
        // So that its pages are charged to the cgroup of the process that reads them.
        assert!(evict(&target, Method::FILES).expect("evict").is_clean());
        let sleeper = start(&found.path, &program);
        let pid = sleeper.child.id();
        let name = format!("sleeper[{pid}]");
        let stayed = retry(|| {
            let report = evict(&target, Method::FILES).expect("evict");
            let stayed = report.stayed.first()?;
            stayed.mapped_by().contains(&name).then_some(stayed.pages)
        });
        assert!(stayed > 0);
        // On a busy machine it is still on its way there.
        let sleeps = || ProcFs::default().stat(i32::try_from(pid).ok()?).ok().filter(|s| s.state == 'S');
        cold_testbed::until("the program sleeps", sleeps);
        let own = ReclaimRoot { path: sleeper.parent.clone(), method: found.method };
        let report = reclaim_mapped(&own, 5, std::time::Duration::from_secs(20), || {
            let _ = evict(&target, Method::FILES);
            cached(&program) == 0
        });
        assert!(report.refused.is_empty(), "{report:?}");
        assert_eq!(report.done, [sleeper.parent.join("c")]);
        assert_eq!(cached(&program), 0, "the program sleeps, and none of its {stayed} pages is left");
        cold_testbed::until("it is still alive, and sleeps", sleeps);
    }
}
