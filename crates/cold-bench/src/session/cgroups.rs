//! The tree's own control groups: one in version 2 for its stall time, and where a limit is wanted the
//! one that throttles.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cold_journal::{Guard, Journal};
use cold_model::Dev;
use cold_model::Shown as _;
use cold_sys::cgroup::{Cgroup, Hierarchies};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use super::Subject;
use crate::config::{Config, DiskLimit};
use crate::{Error, Result};

/// How the names of groups begin.
const PREFIX: &str = "cold";

/// The groups of one benchmark; removed at its end, in the journal until then.
pub(super) struct TreeCgroups {
    stall: Option<Cgroup>,
    why_no_stall: String,
    throttle: Option<Cgroup>,
    /// Undone in reverse: the setting before the group that needed it.
    guards: Vec<Guard>,
}

impl TreeCgroups {
    /// Makes what is possible and needed. Only a wanted limit that cannot be set is an error.
    pub(super) fn create(
        config: &Config,
        proc: &ProcFs,
        journal: &Journal,
        subjects: &[Subject<'_>],
    ) -> Result<Self> {
        let found = Hierarchies::find(proc)?;
        let mut me = Self { stall: None, why_no_stall: String::new(), throttle: None, guards: Vec::new() };
        if let Err(why) = me.stall_time(proc, &found, journal) {
            me.why_no_stall = why;
        }
        if let Some(limit) = config.disk_limit {
            let devices = whole_devices(subjects)?;
            me.throttle(proc, &found, journal, (limit, &devices))?;
        }
        Ok(me)
    }

    /// The directories a tree starts in.
    pub(super) fn directories(&self) -> Vec<PathBuf> {
        let mut dirs: Vec<PathBuf> = Vec::new();
        for group in self.stall.iter().chain(&self.throttle) {
            if !dirs.iter().any(|d| d == group.dir()) {
                dirs.push(group.dir().to_owned());
            }
        }
        dirs
    }

    /// The group whose `io.pressure` tells the tree's stall time.
    pub(super) fn stall_group(&self) -> Option<&Cgroup> {
        self.stall.as_ref()
    }

    /// Why there is none.
    pub(super) fn why_no_stall(&self) -> &str {
        &self.why_no_stall
    }

    /// Removes the groups and puts settings back.
    pub(super) fn remove(mut self) -> Result<()> {
        while let Some(guard) = self.guards.pop() {
            guard.undo()?;
        }
        Ok(())
    }

    fn make(&mut self, journal: &Journal, parent: &Path) -> Result<Cgroup> {
        let (dir, guard) = journal.create_cgroup(parent, PREFIX)?;
        self.guards.push(guard);
        Ok(Cgroup::at(dir))
    }

    fn stall_time(
        &mut self,
        proc: &ProcFs,
        found: &Hierarchies,
        journal: &Journal,
    ) -> std::result::Result<(), String> {
        let own = found.own_v2(proc).ok_or("no version 2 control group is mounted")?;
        let group = self.make(journal, &own).map_err(|e| e.to_string())?;
        group.io_stall_us().map_err(|e| format!("no pressure information: {e}"))?;
        self.stall = Some(group);
        Ok(())
    }

    fn throttle(
        &mut self,
        proc: &ProcFs,
        found: &Hierarchies,
        journal: &Journal,
        (limit, devices): (DiskLimit, &BTreeSet<Dev>),
    ) -> Result<()> {
        if let Some(own) = found.own_v1(proc, "blkio") {
            let group = self.make(journal, &own)?;
            let throttle = self.throttle.insert(group);
            for dev in devices {
                for (file, value) in [
                    ("blkio.throttle.read_iops_device", limit.iops),
                    ("blkio.throttle.read_bps_device", limit.bps),
                ] {
                    if let Some(value) = value {
                        throttle.set(file, &format!("{dev} {value}"))?;
                    }
                }
            }
            return Ok(());
        }
        // Version 2: the io controller must be on in the parent, which may then hold no processes
        // itself; only the root may hold some. So the group lies at the root.
        let Some(root) = found.v2.as_ref().map(|v2| &*v2.at) else {
            return Err(Error::DiskLimit("no blkio or io control group is mounted".into()));
        };
        let has_io = |file: &str| {
            std::fs::read_to_string(root.join(file)).unwrap_or_default().split_whitespace().any(|c| c == "io")
        };
        if !has_io("cgroup.controllers") {
            return Err(Error::DiskLimit(format!("{} has no io controller", root.shown())));
        }
        if !has_io("cgroup.subtree_control") {
            self.guards.extend(journal.enable_controller(root, "io")?);
        }
        let group = self.make(journal, root)?;
        // One process can be in one version 2 group only: this one also tells the stall time.
        self.stall = Some(group.clone());
        for dev in devices {
            let parts = [("riops", limit.iops), ("rbps", limit.bps)];
            let limits: Vec<String> =
                parts.iter().filter_map(|(k, v)| Some(format!("{k}={}", (*v)?))).collect();
            group.set("io.max", &format!("{dev} {}", limits.join(" ")))?;
        }
        Ok(())
    }
}

/// The devices to limit: whole disks, because the throttle does not know partitions.
fn whole_devices(subjects: &[Subject<'_>]) -> Result<BTreeSet<Dev>> {
    let mut whole = BTreeSet::new();
    for s in subjects {
        // What counts is where the program itself lies; a socket or log on tmpfs is no obstacle.
        if s.devices.devices.is_empty() {
            let why = match s.devices.without.first() {
                Some((kind, path)) => {
                    format!("{} is on {kind}, which has no block device", path.shown())
                }
                None => format!("the files of {} are unknown", s.spec.name),
            };
            return Err(Error::DiskLimit(why));
        }
        for dev in &s.devices.devices {
            let disk = SysFs::default().block_device(*dev)?.and_then(|d| d.disk_dev);
            whole.insert(disk.unwrap_or(*dev));
        }
    }
    Ok(whole)
}
