//! How much memory there is for pages that are read ahead.

use std::path::Path;

use cold_sys::cgroup::{Hierarchies, MemoryGroup, Version};
use cold_sys::procfs::{Mount, ProcFs};

/// Bytes that can be taken without pushing anybody out: by the machine, and by every control group from
/// ours up. `None` when nothing tells.
pub(crate) fn room(proc: &ProcFs, mounts: &[Mount]) -> Option<u64> {
    let machine = proc.meminfo().ok().and_then(|m| m.get("MemAvailable").copied());
    let own = Hierarchies::of(mounts).memory_of(proc, std::process::id().cast_signed());
    [machine, own.as_ref().and_then(room_of)].into_iter().flatten().min()
}

/// Bytes that a group may take beside what it has, by its limits and those of the groups above it; `None` where there
/// is no limit.
pub(crate) fn room_of(group: &MemoryGroup) -> Option<u64> {
    let (limit, usage) = match group.version {
        Version::V1 => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        Version::V2 => ("memory.max", "memory.current"),
    };
    group_room(&group.top, &group.dir, limit, usage)
}

/// The least room of the groups from `own` up to `top`.
fn group_room(top: &Path, own: &Path, limit: &str, usage: &str) -> Option<u64> {
    /// What version 1 says instead of "no limit" is this rounded to pages.
    const UNLIMITED: u64 = i64::MAX.cast_unsigned() - (1 << 20);
    let number = |dir: &Path, file: &str| std::fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok();
    own.ancestors()
        .take_while(|dir| dir.starts_with(top))
        .filter_map(|dir| {
            let most: u64 = number(dir, limit).filter(|m| *m < UNLIMITED)?;
            let used: u64 = number(dir, usage)?;
            // Cached pages that nobody has used twice give way to others at once, as in MemAvailable.
            Some(most.saturating_sub(used.saturating_sub(inactive_file(dir))))
        })
        .min()
}

fn inactive_file(dir: &Path) -> u64 {
    let Ok(text) = std::fs::read_to_string(dir.join("memory.stat")) else { return 0 };
    // Version 1 has both; the total includes the groups below, as the usage does.
    let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
    field("total_inactive_file ").or_else(|| field("inactive_file ")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_on_the_way_up_decides() {
        let dir = tempfile::tempdir().expect("a directory");
        let (top, mid) = (dir.path(), dir.path().join("mid"));
        let own = mid.join("own");
        std::fs::create_dir_all(&own).expect("made");
        let put = |d: &Path, f: &str, t: &str| std::fs::write(d.join(f), t).expect("written");
        put(&own, "memory.max", "max\n");
        put(&own, "memory.current", "5000\n");
        assert_eq!(group_room(top, &own, "memory.max", "memory.current"), None, "no limit anywhere");
        put(&mid, "memory.max", "100000\n");
        put(&mid, "memory.current", "90000\n");
        assert_eq!(group_room(top, &own, "memory.max", "memory.current"), Some(10_000));
        put(&mid, "memory.stat", "anon 1\ninactive_file 60000\n");
        assert_eq!(group_room(top, &own, "memory.max", "memory.current"), Some(70_000));
    }
    #[test]
    fn without_groups_the_machine_decides_and_where_nothing_tells_nobody() {
        let tree = cold_testbed::FakeTree::new();
        assert_eq!(room(&ProcFs::new(tree.proc()), &[]), None);
        let tree = tree.file("proc/meminfo", "MemTotal: 900 kB\nMemFree: 1 kB\nMemAvailable: 300 kB\n");
        assert_eq!(room(&ProcFs::new(tree.proc()), &[]), Some(300 << 10));
    }
}
