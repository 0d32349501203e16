//! Facts about the machine that belong to a recording, read from `/proc` and `/sys`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cold_model::Dev;
use cold_model::file_system::Origin;
use cold_model::path_text;
use cold_model::recording::manifest::{Device, DiskCounter, FileSystem, RecordedMachine};
use cold_model::{Bytes, Known};
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::SysFs;

use crate::blocks::{Existing, MapsLine, Mount};

fn text(path: &Path) -> String {
    path_text::encode(path)
}

pub(super) fn mounts(proc: &ProcFs) -> Vec<Mount> {
    let mounts = proc.mounts().unwrap_or_default().into_iter();
    let mount = |m: cold_sys::procfs::Mount| Mount {
        dev: m.dev,
        root: text(&m.root),
        point: text(&m.mount_point),
        kind: m.fs_type,
        source: m.source,
        options: format!("{},{}", m.options, m.super_options),
    };
    mounts.map(mount).collect()
}

/// The device of the superblock that a path lies on, which `st_dev` is not on btrfs.
pub(super) fn superblock(proc: &ProcFs, path: &Path) -> Option<Dev> {
    proc.mount_of(path).ok().flatten().map(|m| m.dev)
}

/// CPUs online (`0-3,5`); CPU 0 where the list cannot be read.
pub(super) fn online_cpus(sys: &SysFs) -> Vec<u32> {
    let list = sys.read_opt("devices/system/cpu/online").ok().flatten().unwrap_or_default();
    let mut cpus = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            cpus.extend(first..=last.min(first.saturating_add(8191)));
        }
    }
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Threads of a process; the process itself where it cannot be listed.
pub(super) fn threads(proc: &ProcFs, pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(proc.path(format!("{pid}/task")));
    let tids = entries.into_iter().flatten();
    let mut tids: Vec<u32> = tids.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    if tids.is_empty() {
        tids.push(pid);
    }
    tids
}

/// The process and its descendants; without this one, which may be a child of the shell that it follows.
pub(crate) fn tree(proc: &ProcFs, pid: u32) -> Vec<u32> {
    let below = cold_sys::tree::descendants(proc, pid.cast_signed());
    let below = below.into_iter().map(i32::cast_unsigned).filter(|pid| *pid != std::process::id());
    std::iter::once(pid).chain(below).collect()
}

/// All processes but the kernel's threads.
pub(super) fn everybody(proc: &ProcFs) -> Vec<u32> {
    const KERNEL_THREAD: u64 = 0x0020_0000; // PF_KTHREAD
    let user = |pid: &i32| proc.stat(*pid).is_ok_and(|stat| stat.flags & KERNEL_THREAD == 0);
    proc.pids().unwrap_or_default().into_iter().filter(user).map(i32::cast_unsigned).collect()
}

/// The regular files that these processes have mapped or open, as far as they can be looked at by path.
pub(super) fn files(proc: &ProcFs, pids: &[u32]) -> Vec<PathBuf> {
    let mut paths = BTreeSet::new();
    for pid in pids.iter().map(|pid| pid.cast_signed()) {
        let maps = proc.maps(pid).unwrap_or_default().into_iter().filter(|m| m.inode != 0 && !m.deleted);
        paths.extend(maps.filter_map(|m| m.path));
        paths.extend(proc.fds(pid).unwrap_or_default().into_iter().map(|fd| fd.target));
    }
    // Sockets, devices, and what was deleted since.
    paths.retain(|path| path.is_absolute() && path.metadata().is_ok_and(|meta| meta.is_file()));
    paths.into_iter().collect()
}

/// A process as it is now.
pub(super) fn existing(proc: &ProcFs, pid: u32, at: u64) -> Option<Existing> {
    let stat = proc.stat(pid.cast_signed()).ok()?;
    let maps = proc.maps(pid.cast_signed()).unwrap_or_default();
    let areas: Vec<MapsLine> = maps
        .into_iter()
        .filter(|m| m.inode != 0 || m.perms[2] == b'x')
        .map(|m| MapsLine {
            start: m.start,
            end: m.end,
            offset: m.offset,
            executable: m.perms[2] == b'x',
            dev: m.dev,
            inode: m.inode,
            path: m.path.as_deref().map(text).unwrap_or_default(),
            deleted: m.deleted,
        })
        .collect();
    let named = |tid: u32| {
        let comm = proc.read(format!("{pid}/task/{tid}/comm")).unwrap_or_default();
        (tid, comm.trim_end_matches('\n').to_owned())
    };
    let exe = proc.exe(pid.cast_signed()).ok().map(|p| text(&p));
    let executable = areas.iter().find(|a| Some(&a.path) == exe.as_ref()).map(|a| (a.dev, a.inode));
    Some(Existing {
        at,
        pid,
        parent: u32::try_from(stat.ppid).unwrap_or(0),
        name: stat.comm,
        arguments: proc.cmdline(pid.cast_signed()).ok().filter(|a| !a.is_empty()),
        threads: threads(proc, pid).into_iter().map(named).collect(),
        areas,
        executable,
    })
}

pub(super) fn machine(proc: &ProcFs) -> RecordedMachine {
    let online = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    RecordedMachine {
        kernel: proc.kernel_release(),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: proc.cpu_model(),
        cpus: online as u32,
        memory: Bytes(proc.meminfo().ok().and_then(|m| m.get("MemTotal").copied()).unwrap_or(0)),
        os: distribution(Path::new("/etc/os-release")),
    }
}

/// `PRETTY_NAME` of os-release(5).
fn distribution(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let name = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default().trim_matches('"').to_owned()
}

pub(super) fn devices(proc: &ProcFs, sys: &SysFs) -> Vec<Device> {
    let disks = proc.diskstats().unwrap_or_default();
    let number = |name: &str| disks.iter().find(|d| d.name == name).map(|d| d.dev);
    let mut out = Vec::new();
    for disk in &disks {
        let Ok(Some(block)) = sys.block_device(disk.dev) else { continue };
        let attribute = |name: &str| {
            let value = sys.read_opt(format!("class/block/{}/{name}", disk.name)).ok().flatten();
            value.and_then(|v| v.parse::<u64>().ok())
        };
        let size = attribute("size").map(|sectors| sectors.saturating_mul(512));
        if size == Some(0) {
            continue; // a loop device without a file, a drive without a medium
        }
        let kib = |n: Option<u64>, what: &str| known(n.map(|n| Bytes(n.saturating_mul(1024))), what);
        let whole = (block.disk != block.name).then_some(block.disk.as_str());
        out.push(Device {
            dev: disk.dev,
            name: disk.name.clone(),
            partition_of: whole.and_then(|disk| number(disk).zip(attribute("start"))),
            model: block.model,
            rotational: known(block.rotational, "rotational"),
            read_ahead: kib(block.read_ahead_kb, "read_ahead_kb"),
            usual_read_ahead: None,
            max_request: kib(block.max_sectors_kb, "max_sectors_kb"),
            max_segments: known(block.max_segments.and_then(|n| n.try_into().ok()), "max_segments"),
            scheduler: known(block.scheduler, "scheduler"),
            size: known(size.map(Bytes), "size"),
        });
    }
    out
}

fn known<T>(value: Option<T>, attribute: &str) -> Known<T> {
    value.map_or_else(|| Known::unknown(format!("there is no attribute {attribute}")), Known::Value)
}

/// Every mounted file system once, by the mount that shows most of it.
pub(super) fn file_systems(proc: &ProcFs, sys: &SysFs) -> Vec<FileSystem> {
    let mut out: Vec<(usize, FileSystem)> = Vec::new();
    for mount in mounts(proc) {
        if let Some((root, known)) = out.iter_mut().find(|(_, fs)| fs.dev == mount.dev) {
            if mount.root.len() < *root {
                (*root, known.mounted_at) = (mount.root.len(), mount.point);
            }
            continue;
        }
        let Dev { major, minor } = mount.dev;
        let read_ahead = sys.read_opt(format!("class/bdi/{major}:{minor}/read_ahead_kb")).ok().flatten();
        let read_ahead = read_ahead.and_then(|t| t.parse::<u64>().ok());
        let fs = FileSystem {
            dev: mount.dev,
            blind: blind(&mount.kind, &mount.options),
            kind: mount.kind,
            mounted_at: mount.point,
            source: mount.source,
            options: mount.options,
            read_ahead: known(read_ahead.map(|kib| Bytes(kib.saturating_mul(1024))), "read_ahead_kb"),
        };
        out.push((mount.root.len(), fs));
    }
    out.into_iter().map(|(_, fs)| fs).collect()
}

/// Why a file system's reads do not show as fills or device reads.
fn blind(kind: &str, options: &str) -> Option<String> {
    let why = match Origin::of(kind) {
        Origin::Memory => "its files are memory: nothing is read",
        Origin::Kernel => "the kernel makes up its contents: nothing is read",
        Origin::Host => "it is read from another machine, past the page cache where so configured",
        Origin::Network => "it is read over a network: no device reads",
        Origin::Layers => "its pages are those of the layers below",
        Origin::Process => "a process serves it: device reads show as that process'",
        Origin::Device | Origin::Volume if options.split(',').any(|o| o == "dax" || o == "dax=always") => {
            "direct access (DAX): its pages are not cached"
        }
        Origin::Device | Origin::Volume | Origin::Automount => return None,
    };
    Some(format!("{kind}: {why}"))
}

/// Reads of every disk so far.
pub(super) fn disk_counters(proc: &ProcFs) -> Vec<DiskCounter> {
    let disks = proc.diskstats().unwrap_or_default().into_iter();
    disks.map(|d| DiskCounter { dev: d.dev, requests: d.reads, bytes: Bytes(d.read_bytes) }).collect()
}

/// How often a huge page of a file was mapped at once, on the whole machine; `None`: not counted here.
pub(super) fn mapped_huge(proc: &ProcFs) -> Option<u64> {
    proc.vmstat().ok()?.get("thp_file_mapped").copied()
}

/// What was read in between, of the devices that were there all the time and were read at all.
pub(super) fn difference(before: &[DiskCounter], after: &[DiskCounter]) -> Vec<DiskCounter> {
    let of = |a: &DiskCounter| {
        let b = before.iter().find(|b| b.dev == a.dev)?;
        let requests = a.requests.saturating_sub(b.requests);
        let bytes = a.bytes.saturating_sub(b.bytes);
        (requests > 0).then_some(DiskCounter { dev: a.dev, requests, bytes })
    };
    after.iter().filter_map(of).collect()
}
