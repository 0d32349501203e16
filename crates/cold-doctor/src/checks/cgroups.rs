//! Control groups: which controllers are usable, and whether we may make a group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::procfs::Mount;

use crate::context::Context;
use crate::finding::Finding;

/// Controllers that measuring uses, by the name in v2 and in v1, and what is lost without each.
const WANTED: &[(&str, &str, &str)] = &[
    ("io", "blkio", "--disk-limit is not available"),
    ("memory", "memory", "no start under memory pressure, no cache of one's own"),
    ("pids", "pids", "processes of the tree are counted by other means"),
];

/// Where one controller is, and whether we may make a group for it.
struct Controller {
    /// 1 or 2.
    version: u8,
    /// The directory of the group this process is in.
    directory: PathBuf,
    /// We may make a group there; `None` when that cannot be told.
    writable: Option<bool>,
}

pub(crate) fn run(c: &Context) -> Vec<Finding> {
    let mounts = match c.proc.mounts() {
        Ok(mounts) => mounts,
        Err(e) => return vec![Finding::unknown("cgroup", "control groups", e)],
    };
    let places = places(c, &mounts);
    let v2 = mounts.iter().any(|m| m.fs_type == "cgroup2");
    let v1 = mounts.iter().any(|m| m.fs_type == "cgroup");
    let layout = match (v1, v2) {
        (false, true) => "cgroup v2",
        (true, true) => "cgroup v1 beside v2",
        (true, false) => "cgroup v1",
        (false, false) => {
            return vec![
                Finding::missing("cgroup", "no control groups are mounted")
                    .so("no --disk-limit; processes that leave the tree are found by other means")
                    .remedy("mount -t cgroup2 none /sys/fs/cgroup"),
            ];
        }
    };
    let mut findings = vec![controllers(&places, layout)];
    findings.extend(creation(c, &places));
    // What a group could do matters only where one can be made.
    findings.extend(reclaim_file(&places).filter(|_| places.values().any(|p| p.writable == Some(true))));
    findings
}

fn controllers(places: &BTreeMap<&'static str, Controller>, layout: &str) -> Finding {
    let have: Vec<String> = WANTED
        .iter()
        .filter_map(|(name, v1_name, _)| {
            let place = places.get(name)?;
            Some(format!("{} (v{})", if place.version == 1 { v1_name } else { name }, place.version))
        })
        .collect();
    let lost: Vec<&str> = WANTED.iter().filter(|w| !places.contains_key(w.0)).map(|w| w.2).collect();
    if lost.is_empty() {
        return Finding::ok("cgroup", format!("{layout}: {}", have.join(", ")))
            .so("a group can limit the disk bandwidth and memory of a start");
    }
    let have = if have.is_empty() { "none of io, memory, pids".to_owned() } else { have.join(", ") };
    Finding::missing("cgroup", format!("{layout}: {have}"))
        .so(lost.join("; "))
        .remedy("as root: echo '+io +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control (v2)")
}

fn creation(c: &Context, places: &BTreeMap<&'static str, Controller>) -> Option<Finding> {
    let place = places.get("io").or_else(|| places.values().next())?;
    let shown = place.directory.shown();
    let id = "cgroup.create";
    Some(match place.writable {
        Some(true) => Finding::ok(id, format!("control groups can be made below {shown}"))
            .so("a start gets a group of its own, from which no process escapes"),
        Some(false) if delegated(c).is_some() => Finding::note(id, format!("{shown} is closed to us"))
            .so("no --disk-limit from this session")
            .remedy("systemd-run --user --scope -p Delegate=yes cold …"),
        Some(false) => Finding::missing(id, format!("no control group can be made below {shown}"))
            .so("no --disk-limit; processes that leave the tree are found by other means")
            .remedy(if c.is_root() {
                "the hierarchy is read-only (container?): run on the host or with --privileged"
            } else {
                "run as root: sudo cold …"
            }),
        None => {
            Finding::unknown(id, "whether control groups can be made", format!("{shown} is not reachable"))
        }
    })
}

/// The user's own systemd subtree, where it may make groups.
fn delegated(c: &Context) -> Option<PathBuf> {
    let uid = c.credentials.euid;
    let rel = format!("/sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service");
    let path = c.roots.path(rel);
    (c.probes.writable)(&path).ok().filter(|w| *w).map(|_| path)
}

/// Proactive reclaim of one group: evicts a tree's own pages without touching the machine's.
fn reclaim_file(places: &BTreeMap<&'static str, Controller>) -> Option<Finding> {
    let place = places.get("memory")?;
    let name = if place.version == 2 { "memory.reclaim" } else { "memory.force_empty" };
    // The root group of v2 has no memory.reclaim; groups below it do from 5.19 on.
    let is_root = !place.directory.join("memory.events").exists();
    if place.version == 2 && is_root {
        return None;
    }
    Some(if place.directory.join(name).exists() {
        Finding::ok("cgroup.reclaim", format!("{name} is there"))
            .so("the memory of a group of one's own can be emptied without dropping the machine's caches")
    } else {
        Finding::missing("cgroup.reclaim", format!("this kernel has no {name}"))
            .so("a group's pages cannot be reclaimed on request")
            .remedy("Linux 5.19 or later")
    })
}

fn places(c: &Context, mounts: &[Mount]) -> BTreeMap<&'static str, Controller> {
    let own = c.proc.read("self/cgroup").unwrap_or_default();
    let own: Vec<(&str, &str)> = own
        .lines()
        .filter_map(|l| {
            let mut parts = l.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        })
        .collect();
    let mut places = BTreeMap::new();
    for (name, v1_name, _) in WANTED {
        let found = mounts.iter().find_map(|m| match m.fs_type.as_str() {
            "cgroup" if m.super_options.split(',').any(|o| o == *v1_name) => {
                let line = own.iter().find(|(list, _)| list.split(',').any(|n| n == *v1_name))?;
                Some((1, inside(m, line.1)))
            }
            "cgroup2" => {
                let line = own.iter().find(|(list, _)| list.is_empty())?;
                let directory = inside(m, line.1);
                let listed =
                    std::fs::read_to_string(c.roots.path(&directory).join("cgroup.controllers")).ok()?;
                listed.split_whitespace().any(|n| n == *name).then_some((2, directory))
            }
            _ => None,
        });
        if let Some((version, directory)) = found {
            let directory = c.roots.path(&directory);
            let writable = (c.probes.writable)(&directory).ok();
            places.insert(*name, Controller { version, directory, writable });
        }
    }
    places
}

/// Where the group `path` of `/proc/self/cgroup` lies in the file system: the mount may show only a part
/// of the hierarchy.
fn inside(mount: &Mount, path: &str) -> PathBuf {
    let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    mount.mount_point.join(below)
}
