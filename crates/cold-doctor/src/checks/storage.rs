//! File systems and block devices of the paths that matter.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cold_model::Bytes;
use cold_model::Shown as _;
use cold_model::figures::plural;
use cold_model::file_system::{Origin, caches_itself};
use cold_sys::procfs::Mount;
use cold_sys::sysfs::{BlockDevice, BlockKind};

use crate::context::Context;
use crate::finding::Finding;
use crate::programs::canonical;

/// A mount and the examined paths on it.
pub(crate) struct Target {
    pub(crate) mount: Mount,
    paths: Vec<PathBuf>,
}

/// The mounts of the given paths; without any, of `/`, the home and the command.
pub(crate) fn targets(c: &Context) -> Result<Vec<Target>, String> {
    let mut paths: Vec<PathBuf> = c.config.paths.clone();
    if paths.is_empty() {
        paths.push(PathBuf::from("/"));
        paths.extend(c.config.home.clone());
    }
    paths.extend(c.program.as_ref().map(|p| p.path.clone()));
    let mut targets: Vec<Target> = Vec::new();
    for path in paths {
        // A home that does not exist (nobody's) is not worth a word.
        let absolute = std::path::absolute(&path).unwrap_or(path);
        let Some(real) = canonical(&c.roots, &absolute) else { continue };
        let Some(mount) = c.proc.mount_of(&real).map_err(|e| e.to_string())? else { continue };
        match targets.iter_mut().find(|t| t.mount.mount_point == mount.mount_point) {
            Some(target) if target.paths.contains(&real) => {}
            Some(target) => target.paths.push(real),
            None => targets.push(Target { mount, paths: vec![real] }),
        }
    }
    Ok(targets)
}

pub(crate) fn run(c: &Context) -> Vec<Finding> {
    let targets = match targets(c) {
        Ok(targets) => targets,
        Err(why) => return vec![Finding::unknown("storage", "file systems", why)],
    };
    if targets.is_empty() {
        let why = "no mount is seen for any of the paths; so it is in a plain chroot";
        return vec![Finding::unknown("storage.filesystem", "file systems of the paths", why)];
    }
    let devices: Vec<_> = targets.iter().map(|t| device_of(c, &t.mount)).collect();
    let uppermost = devices.iter().filter_map(|d| Some(d.as_ref().ok()?.as_ref()?.disk.clone())).collect();
    let mut walk = Walk { c, uppermost, seen: BTreeSet::new(), findings: Vec::new() };
    for (target, device) in targets.iter().zip(&devices) {
        walk.findings.push(file_system(target, device));
        walk.findings.extend(options(target));
        if let Ok(Some(device)) = device {
            walk.down(device);
        }
    }
    walk.findings
}

/// The block device of a mount: by number, else (btrfs and others with anonymous numbers) by source.
fn device_of(c: &Context, mount: &Mount) -> Result<Option<BlockDevice>, String> {
    if !mount.dev.is_anonymous() {
        return c.sys.block_device(mount.dev).map_err(|e| e.to_string());
    }
    let Some(_) = mount.source.strip_prefix("/dev/") else { return Ok(None) };
    let node = canonical(&c.roots, Path::new(&mount.source)).unwrap_or_else(|| PathBuf::from(&mount.source));
    let Some(name) = node.file_name() else { return Ok(None) };
    c.sys.block_device_named(&name.to_string_lossy()).map_err(|e| e.to_string())
}

fn file_system(target: &Target, device: &Result<Option<BlockDevice>, String>) -> Finding {
    let (id, mount) = ("storage.filesystem", &target.mount);
    let point = mount.mount_point.shown().to_string();
    let others: Vec<String> =
        target.paths.iter().filter(|p| **p != mount.mount_point).map(|p| p.shown().to_string()).collect();
    let holds = if others.is_empty() { String::new() } else { format!(", holds {}", others.join(", ")) };
    let on = |what: &str| format!("{point}: {}{what}{holds}", mount.fs_type);
    match Origin::of(&mount.fs_type) {
        Origin::Memory => Finding::missing(id, on(", in memory"))
            .so("its pages are the files themselves and cannot be evicted: a start from here is never cold")
            .remedy("measure a copy on a disk file system"),
        Origin::Layers => Finding::note(id, on(", layers over other directories"))
            .so("pages belong to the file systems below, shared with every container on the same layers; \
                 recordings name the lower inodes")
            .remedy("give the lower directory's path to see its device"),
        Origin::Network => Finding::disturbs(id, on(&format!(" from {}", mount.source)))
            .so("the server's cache and the network decide a cold read, and neither is under control here")
            .remedy("measure a copy on a local disk"),
        Origin::Host => Finding::disturbs(id, on(&format!(" from {}", mount.source)))
            .so("the host caches these files: a cold read in the guest may come from the host's memory")
            .remedy("measure a copy on the guest's own disk, or drop the host's caches too"),
        Origin::Process => Finding::disturbs(id, on(&format!(" ({})", mount.source)))
            .so("a user-space server with a cache of its own answers cold reads")
            .remedy("measure a copy on a disk file system"),
        Origin::Volume if caches_itself(&mount.fs_type) => {
            Finding::disturbs(id, on(" with a cache of its own (ARC)"))
                .so("drop_caches does not empty it and mincore does not see it: cold cannot be proved")
                .remedy("zfs set primarycache=metadata on a test dataset, or measure on another file system")
        }
        Origin::Kernel => Finding::note(id, on(", made by the kernel when read"))
            .so("it has neither pages nor a device: nothing in it can be cold"),
        Origin::Device | Origin::Volume | Origin::Automount => match device {
            Ok(Some(d)) => Finding::ok(id, on(&format!(" on {}", d.name)))
                .so("pages can be evicted and come from this device"),
            Ok(None) => Finding::unknown(id, &on(""), format!("no block device found for {}", mount.source))
                .so("where cold reads come from is not known"),
            Err(why) => Finding::unknown(id, &on(""), why),
        },
    }
    .about(point)
}

fn options(target: &Target) -> Vec<Finding> {
    let mount = &target.mount;
    let point = mount.mount_point.shown().to_string();
    let has = |name: &str| mount.options.split(',').chain(mount.super_options.split(',')).any(|o| o == name);
    let mut findings = Vec::new();
    if has("dax") || has("dax=always") {
        findings.push(
            Finding::disturbs("storage.dax", format!("{point} is mounted with dax"))
                .so("files bypass the page cache: cold and warm are the same, and faults are not recorded")
                .remedy("mount with dax=never for the measurement"),
        );
    }
    if has("sync") {
        findings.push(
            Finding::note("storage.sync", format!("{point} is mounted with sync"))
                .so("every write of a start waits for the device"),
        );
    }
    // A mount without relatime or noatime keeps strict access times.
    let origin = Origin::of(&mount.fs_type);
    let on_disks = matches!(origin, Origin::Device | Origin::Volume) && !caches_itself(&mount.fs_type);
    if on_disks && !["relatime", "noatime", "ro"].iter().any(|o| has(o)) {
        findings.push(
            Finding::note("storage.atime", format!("{point} keeps strict access times"))
                .so("each first read of a file dirties its inode, so starts also write")
                .remedy(format!("mount -o remount,relatime {point}")),
        );
    }
    if has("discard") {
        findings.push(
            Finding::note("storage.discard", format!("{point} is mounted with discard"))
                .so("deleting large files (old profiles, packages) sends trims that can delay reads")
                .remedy("delete nothing large just before a run; fstrim.timer instead of discard"),
        );
    }
    findings.into_iter().map(|f| f.about(point.clone())).collect()
}

/// The way from file systems down to disks; each disk once.
struct Walk<'a> {
    c: &'a Context,
    /// Disks that carry a file system themselves, whose read-ahead counts.
    uppermost: BTreeSet<String>,
    seen: BTreeSet<String>,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn down(&mut self, d: &BlockDevice) {
        if !self.seen.insert(d.disk.clone()) {
            return;
        }
        let uppermost = self.uppermost.contains(&d.disk);
        self.findings.push(device(d, uppermost));
        self.findings.extend(read_ahead(d).filter(|_| uppermost));
        self.findings.extend(behind(d));
        if let BlockKind::Loop { backing, .. } = &d.kind {
            // What a loop reads comes from the device below its file; unseen if that lies outside our root.
            let mount = self.c.proc.mount_of(backing).ok().flatten();
            if let Some(Ok(Some(lower))) = mount.map(|m| device_of(self.c, &m)) {
                self.down(&lower);
            }
        }
        for slave in &d.slaves {
            match self.c.sys.block_device_named(slave) {
                Ok(Some(lower)) => self.down(&lower),
                Ok(None) => {}
                Err(e) => {
                    self.findings.push(Finding::unknown("storage.device", slave, e).about(slave.clone()));
                }
            }
        }
    }
}

fn kind(d: &BlockDevice) -> String {
    match &d.kind {
        BlockKind::DeviceMapper { name, subsystem } => {
            format!("device mapper {}{name}", subsystem.as_ref().map_or(String::new(), |s| format!("{s} ")))
        }
        BlockKind::Md { level } => format!("software RAID {level}"),
        BlockKind::Loop { backing, .. } => format!("loop on {}", backing.shown()),
        BlockKind::Zram => "compressed memory".to_owned(),
        BlockKind::Ram => "RAM disk".to_owned(),
        BlockKind::Virtual => "virtual disk".to_owned(),
        BlockKind::Nvme => d.model.clone().unwrap_or_else(|| "NVMe".to_owned()),
        BlockKind::Disk => d.model.clone().unwrap_or_else(|| "disk".to_owned()),
    }
}

fn device(d: &BlockDevice, uppermost: bool) -> Finding {
    let number = |n: Option<u64>, unit: &str| n.map_or("unknown".to_owned(), |n| format!("{n}{unit}"));
    let below =
        if d.slaves.is_empty() { String::new() } else { format!(", over {}", d.slaves.join(" and ")) };
    let rotational = match d.rotational {
        Some(true) => "rotational",
        Some(false) => "not rotational",
        None => "rotational unknown",
    };
    let wbt = match d.wbt_lat_usec {
        Some(0) => ", wbt off".to_owned(),
        Some(us) => format!(", wbt {} ms", us as f64 / 1000.0),
        None => String::new(),
    };
    let fact = format!(
        "{} ({}{below}): read_ahead_kb {}, max_sectors_kb {}, scheduler {}, {rotational}, nr_requests {}{wbt}",
        d.disk,
        kind(d),
        number(d.read_ahead_kb, ""),
        number(d.max_sectors_kb, ""),
        d.scheduler.as_deref().unwrap_or("unknown"),
        number(d.nr_requests, ""),
    );
    let reads = match (d.read_ahead_kb, d.max_sectors_kb) {
        (Some(0), _) => "a fault reads one page".to_owned(),
        (Some(ahead), Some(most)) => {
            let requests = plural(ahead.div_ceil(most.max(1)), "request");
            format!("a fault may read {} around it, in {requests}", Bytes(ahead * 1024))
        }
        (Some(ahead), None) => format!("a fault may read {} around it", Bytes(ahead * 1024)),
        (None, _) => "how much a fault reads around it is not known".to_owned(),
    };
    // Read-ahead is a matter between the file system and the uppermost device.
    let reads = if uppermost {
        reads
    } else {
        "carries the device above; its own read_ahead_kb does not count".to_owned()
    };
    Finding::ok("storage.device", fact).about(d.disk.clone()).so(reads)
}

fn read_ahead(d: &BlockDevice) -> Option<Finding> {
    let kib = d.read_ahead_kb?;
    let window = Bytes(kib * 1024);
    let set = format!("echo 128 > /sys/block/{}/queue/read_ahead_kb (restore it afterwards)", d.disk);
    let finding = Finding::note;
    Some(
        match kib {
            0 => finding("storage.read_ahead", format!("{} reads nothing ahead (read_ahead_kb 0)", d.disk))
                .so("every fault reads a single page: cold starts take many more requests than elsewhere")
                .remedy(set),
            1..=127 => {
                finding("storage.read_ahead", format!("{} reads ahead less than usual ({window})", d.disk))
                    .so("cold starts take more requests than on a machine with the kernel's 128 KiB")
            }
            128 => return None,
            _ => finding(
                "storage.read_ahead",
                format!(
                    "{} reads ahead {window}, {:.0} times the kernel's 128 KiB",
                    d.disk,
                    kib as f64 / 128.0
                ),
            )
            .so("fewer requests and more unneeded bytes than on machines with 128 KiB".to_string())
            .remedy(format!("to compare with other machines: {set}")),
        }
        .about(d.disk.clone()),
    )
}

/// Caches and translations behind the device that the guest's kernel does not see.
fn behind(d: &BlockDevice) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &d.kind {
        BlockKind::Loop { backing, direct_io: Some(false) } => findings.push(
            Finding::disturbs(
                "storage.loop",
                format!("{} reads {} through the page cache", d.disk, backing.shown()),
            )
            .so("its backing file is cached too: a cold read of the file system comes from memory")
            .remedy(format!("losetup --direct-io=on /dev/{}", d.disk)),
        ),
        BlockKind::Loop { direct_io: None, .. } => findings.push(Finding::unknown(
            "storage.loop",
            &format!("direct I/O of {}", d.disk),
            "this kernel does not say",
        )),
        BlockKind::Zram | BlockKind::Ram => findings.push(
            Finding::disturbs("storage.memory_disk", format!("{} lives in memory", d.disk))
                .so("a cold read costs a copy or a decompression, not a disk access")
                .remedy("measure on a real disk"),
        ),
        BlockKind::Virtual => {
            let rotates = if d.rotational == Some(true) { " and says it rotates" } else { "" };
            findings.push(
                Finding::note("storage.virtual", format!("{} is a virtual disk{rotates}", d.disk))
                    .so("the real medium is unknown, and the host may answer cold reads from its own cache")
                    .remedy("compare the first cold run after a pause with later ones; on the host use cache=none"),
            );
        }
        _ => {}
    }
    if d.scheduler.as_deref() == Some("bfq") {
        findings.push(
            Finding::note("storage.bfq", format!("{} is scheduled by bfq", d.disk))
                .so("bfq favours programs that it takes for just starting: starts beside other I/O look better")
                .remedy(format!("echo 0 > /sys/block/{}/queue/iosched/low_latency", d.disk)),
        );
    }
    findings.into_iter().map(|f| f.about(d.disk.clone())).collect()
}
