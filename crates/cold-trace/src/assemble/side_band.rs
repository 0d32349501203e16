//! What is mapped where, told by BPF or perf records and by facts; faults of tiers C and D. Pure.

use cold_model::Nanos;
use cold_model::recording::{Mapping, Touch, TouchKind};

use super::builder::Builder;
use super::files::escape;
use super::space::{Area, PROT_EXEC, UNKNOWN_PROT};
use super::stacks;
use crate::blocks::{Existing, PerfClass};
use crate::perf::record::{Map, PerfFault, PerfRecord, What};
use crate::raw::{self, Header};
use crate::unwind::{Unwinder, Unwound};

/// Code of the kernel's own in a process.
const KERNELS: [&[u8]; 3] = [b"[vdso]", b"[vsyscall]", b"[uprobes]"];
/// Addresses of the kernel have the highest bit set.
const KERNEL: u64 = 1 << 63;

/// A perf record. With BPF records beside them, only mappings are taken from these.
pub(super) fn perf(b: &mut Builder<'_>, record: &PerfRecord<'_>, unwinder: &mut dyn Unwinder) {
    let own = !b.input.has_bpf;
    match record.what {
        What::Map(map) => mapped(b, record.at, &map),
        What::Fork { pid, tid, parent } => {
            if pid != parent {
                b.spaces.fork(parent, pid);
            }
            // Everybody's forks are reported; only the start's are of interest.
            if own && (b.tasks.is_parent(parent) || b.tasks.in_tree(parent)) {
                b.tasks.fork(record.at, pid, tid, parent, None);
            }
        }
        What::Comm { pid, tid, exec, name } => {
            if exec {
                b.spaces.clear(pid);
            }
            if own && b.tasks.in_tree(pid) {
                let name = escape(name);
                if exec { b.tasks.exec(record.at, pid, &name) } else { b.tasks.rename(pid, tid, &name) }
            }
        }
        What::Exit { pid, tid } => {
            if own && b.tasks.in_tree(pid) {
                if b.tasks.exit(record.at, pid, tid, None, None) {
                    b.spaces.clear(pid);
                }
            } else if pid == tid && !b.tasks.in_tree(pid) {
                b.spaces.clear(pid);
            }
        }
        What::Lost { id, count } => {
            let class = match b.input.perf_events.class(id) {
                Some(PerfClass::Minor | PerfClass::Major) => "touches",
                Some(PerfClass::SideBand) | None => "mappings",
            };
            let lost = b.lost.entry(class).or_default();
            *lost = lost.saturating_add(count);
        }
        What::Fault(fault) if own => faulted(b, record, &fault, unwinder),
        What::Fault(_) => {}
    }
}

fn mapped(b: &mut Builder<'_>, at: u64, map: &Map<'_>) {
    let in_tree = b.tasks.in_tree(map.pid);
    // Other processes' files would swell the table; their memory is nobody's concern here.
    if !in_tree {
        return;
    }
    let file = b.files.mapped(map, &b.mounts);
    let prot = if KERNELS.contains(&map.path) { map.prot & !PROT_EXEC } else { map.prot };
    let end = map.address.saturating_add(map.bytes);
    put(b, at, map.pid, Area { start: map.address, end, offset: map.offset, file, prot });
    // The kernel maps the program itself first, then its interpreter.
    if file.is_some() && b.tasks.lacks_executable(map.pid) {
        b.tasks.executable(map.pid, file);
    }
}

/// A mapping, or another protection of what is mapped, that BPF records tell.
pub(super) fn area(b: &mut Builder<'_>, head: &Header, area: &raw::Area) {
    let end = area.address.saturating_add(area.bytes).checked_next_multiple_of(b.page).unwrap_or(u64::MAX);
    let new = if area.state & raw::AREA_PROTECTED != 0 {
        let within = b.spaces.of(head.pid).into_iter().flat_map(|space| space.within(area.address, end));
        // What is no file's is given and taken by the hundred, and matters only where it is code.
        let matters = |part: &Area| part.file.is_some() || (part.prot ^ area.prot) & PROT_EXEC != 0;
        within.filter(matters).map(|part| part.protected(area.prot)).collect()
    } else {
        if area.state & raw::AREA_IMAGE != 0 {
            b.spaces.clear(head.pid);
        }
        let file = b.files.index(area.file);
        vec![Area { start: area.address, end, offset: area.offset, file, prot: area.prot }.owned()]
    };
    for area in new {
        let area = b.spaces.of(head.pid).map_or(area, |space| space.merged(area));
        put(b, head.at, head.pid, area);
    }
}

/// From now on this lies there; a row of its own where it is a file's.
fn put(b: &mut Builder<'_>, at: u64, pid: u32, area: Area) {
    b.spaces.put(pid, area);
    let Area { start: address, end, offset, file, .. } = area;
    if let Some(file) = file {
        let (bytes, executable) = (end.saturating_sub(address), area.executable());
        b.mappings.push(Mapping { at: Nanos(at), pid, address, bytes, offset, file, executable });
    }
}

pub(super) fn existing(b: &mut Builder<'_>, e: &Existing) {
    b.tasks.existing(e.at, e.pid, e.parent, &e.name, &e.threads);
    b.tasks.arguments(e.pid, e.arguments.clone().unwrap_or_default());
    let executable = e.executable.and_then(|(dev, inode)| b.files.by_inode(dev, inode));
    b.tasks.executable(e.pid, executable);
    for area in &e.areas {
        let file = b.files.area(area, &b.mounts);
        let code = area.executable && !KERNELS.contains(&area.path.as_bytes());
        let prot = UNKNOWN_PROT | if code { PROT_EXEC } else { 0 };
        put(b, e.at, e.pid, Area { start: area.start, end: area.end, offset: area.offset, file, prot });
    }
}

/// Tiers C and D: a fault that was resolved, by its address.
fn faulted(b: &mut Builder<'_>, record: &PerfRecord<'_>, fault: &PerfFault<'_>, unwinder: &mut dyn Unwinder) {
    if !b.tasks.in_tree(record.pid) {
        return;
    }
    let Some((file, offset)) = b.spaces.find(record.pid, fault.address) else { return };
    let stack = if let Some(copy) = stacks::of_perf(fault) {
        b.stacks.unwind(record.pid, &copy, &b.spaces, &b.files.rows, unwinder)
    } else {
        let unwound = Unwound { addresses: fault.frames().collect(), truncated: false };
        b.stacks.add(record.pid, unwound, &b.spaces)
    };
    let touch = Touch {
        at: Nanos(record.at),
        pid: record.pid,
        tid: record.tid,
        file,
        first_page: offset / b.page,
        pages: 1,
        kind: TouchKind::Fault,
        major: Some(fault.major),
        ip: (fault.ip < KERNEL).then_some(fault.ip),
        stack,
        call: None,
        end: None,
    };
    b.pages.push(touch);
    b.may_have_mapped(touch, (record.tid, 0), fault.address, false);
}
