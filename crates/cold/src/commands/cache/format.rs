//! Figures and reasons in words.

use cold_cache::{FileHolders, Reason, SystemHolder};
use cold_model::Bytes;

use crate::words::plural;

/// One reason for pages that stayed.
pub(super) fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Mapped { pid, name, pages, locked } => {
            let pages = pages.map_or_else(|| "pages".to_owned(), |n| plural(n, "page"));
            let locked =
                if *locked > 0 { format!(" ({} locked by mlock)", Bytes(*locked)) } else { String::new() };
            format!("{pages} mapped by {name}[{pid}]{locked}")
        }
        Reason::LargeFolio { pages } => {
            format!("{} in one large folio with mapped pages", plural(*pages, "page"))
        }
        Reason::Dirty { pages } => format!("{} dirty, could not be written", plural(*pages, "page")),
        Reason::Writeback { pages } => format!("{} still being written", plural(*pages, "page")),
        Reason::InMemory => {
            "lives in memory (tmpfs or the like): there is no disk to read it from again".to_owned()
        }
        Reason::Loop { device } => format!("backs the loop device {device}"),
        Reason::Swap => "is active swap".to_owned(),
        Reason::Busy { pages, uninspected } => {
            let pages = plural(*pages, "page");
            if *uninspected > 0 {
                let others = plural(*uninspected, "process");
                format!("{pages} busy, or mapped by one of {others} that may not be inspected")
            } else {
                format!("{pages} busy: in a CPU's batch, being read, or pinned by I/O")
            }
        }
    }
}

/// The first of the reasons, and how many more there are.
pub(super) fn reasons(all: &[Reason], at_most: usize) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(at_most).map(reason).collect();
    if all.len() > at_most {
        lines.push(format!("and {} more", all.len() - at_most));
    }
    lines
}

/// The holders of one file, a line each.
pub(super) fn holders(held: &FileHolders) -> Vec<String> {
    let processes = held.processes.iter().map(|h| {
        let mut parts = Vec::new();
        if h.mapped > 0 {
            let resident = h.resident.map_or_else(|| "unknown".to_owned(), |r| Bytes(r).to_string());
            parts.push(format!("maps {}, {resident} of it in its working set", Bytes(h.mapped)));
        }
        if h.locked > 0 {
            parts.push(format!("{} locked", Bytes(h.locked)));
        }
        if h.open > 0 {
            parts.push(format!("open {}×", h.open));
        }
        if h.executes {
            parts.push("runs it".to_owned());
        }
        format!("{}[{}]: {}", h.name, h.pid, parts.join(", "))
    });
    let system = held.system.iter().map(|s| match s {
        SystemHolder::Loop(device) => format!("backs the loop device {device}"),
        SystemHolder::Swap => "is active swap".to_owned(),
    });
    processes.chain(system).collect()
}

/// The holders of one file for JSON.
pub(super) fn holders_json(held: Option<&FileHolders>) -> serde_json::Value {
    let held = held.cloned().unwrap_or_default();
    let process = |h: &cold_cache::Holder| {
        serde_json::json!({
            "pid": h.pid, "name": h.name, "mapped_bytes": h.mapped, "resident_bytes": h.resident,
            "locked_bytes": h.locked, "open": h.open, "executes": h.executes,
        })
    };
    let system = |s: &SystemHolder| match s {
        SystemHolder::Loop(device) => serde_json::json!({"kind": "loop", "device": device}),
        SystemHolder::Swap => serde_json::json!({"kind": "swap"}),
    };
    serde_json::json!({
        "processes": held.processes.iter().map(process).collect::<Vec<_>>(),
        "system": held.system.iter().map(system).collect::<Vec<_>>(),
    })
}

/// One reason for JSON.
pub(super) fn reason_json(reason: &Reason) -> serde_json::Value {
    match reason {
        Reason::Mapped { pid, name, pages, locked } => serde_json::json!(
            {"kind": "mapped", "pid": pid, "name": name, "pages": pages, "locked_bytes": locked}),
        Reason::LargeFolio { pages } => serde_json::json!({"kind": "large_folio", "pages": pages}),
        Reason::Dirty { pages } => serde_json::json!({"kind": "dirty", "pages": pages}),
        Reason::Writeback { pages } => serde_json::json!({"kind": "writeback", "pages": pages}),
        Reason::InMemory => serde_json::json!({"kind": "in_memory"}),
        Reason::Loop { device } => serde_json::json!({"kind": "loop", "device": device}),
        Reason::Swap => serde_json::json!({"kind": "swap"}),
        Reason::Busy { pages, uninspected } => serde_json::json!(
            {"kind": "busy", "pages": pages, "uninspected_processes": uninspected}),
    }
}
