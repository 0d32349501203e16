//! Huge pages, large folios, swap, and how much room the cache has.

use std::collections::BTreeSet;

use cold_model::Bytes;
use cold_model::file_system::large_folios_since;
use cold_sys::sysfs::SysFs;

use super::storage;
use crate::context::Context;
use crate::finding::Finding;

pub(crate) fn huge_pages(c: &Context) -> Vec<Finding> {
    let dir = "kernel/mm/transparent_hugepage";
    let enabled = match c.sys.read_opt(format!("{dir}/enabled")) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return vec![
                Finding::note("thp", "this kernel has no transparent huge pages")
                    .so("neither anonymous memory nor the page cache uses large folios"),
            ];
        }
        Err(e) => return vec![Finding::unknown("thp", "transparent huge pages", e)],
    };
    let chosen = SysFs::chosen(&enabled).unwrap_or(&enabled).to_owned();
    let shmem = c.sys.read_opt(format!("{dir}/shmem_enabled")).ok().flatten();
    let shmem = shmem.as_deref().and_then(SysFs::chosen).unwrap_or("unknown").to_owned();
    let mut sizes: Vec<u64> = c
        .sys
        .list(dir)
        .unwrap_or_default()
        .iter()
        .filter_map(|n| n.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok())
        .filter(|kib| {
            let rel = format!("{dir}/hugepages-{kib}kB/enabled");
            let text = c.sys.read_opt(rel).ok().flatten().unwrap_or_default();
            // "inherit" follows the global switch, "never" is off.
            SysFs::chosen(&text).is_some_and(|s| s == "always" || s == "madvise" || s == "inherit")
        })
        .collect();
    sizes.sort_unstable();
    let sizes: Vec<String> = sizes.iter().map(|kib| Bytes(kib * 1024).to_string()).collect();
    let sizes =
        if sizes.is_empty() { String::new() } else { format!("; sizes allowed: {}", sizes.join(", ")) };
    let fact = format!("transparent huge pages: {chosen}, shared memory: {shmem}{sizes}");
    vec![if chosen == "always" {
        Finding::note("thp", fact)
            .so("heap memory is cleared 2 MiB at a time and khugepaged works in the background: fewer, slower \
                 minor faults, and more variance between runs")
            .remedy("compare under the setting your users have; madvise varies less")
    } else {
        Finding::ok("thp", fact).so("only programs that ask for them get huge pages")
    }]
}

pub(crate) fn large_folios(c: &Context) -> Vec<Finding> {
    let targets = match storage::targets(c) {
        Ok(targets) => targets,
        Err(why) => return vec![Finding::unknown("large_folios", "large folios", why)],
    };
    let types: BTreeSet<String> = targets.into_iter().map(|t| t.mount.fs_type).collect();
    let has = |name: &&str| large_folios_since(name).is_some_and(|since| c.since(since) == Some(true));
    let with: Vec<&str> = types.iter().map(String::as_str).filter(has).collect();
    let thp = c.sys.path("kernel/mm/transparent_hugepage").is_dir();
    vec![if with.is_empty() || !thp {
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        Finding::ok(
            "large_folios",
            format!("no large folios on {} with Linux {}", types.join(", "), c.release),
        )
        .so("the cache fills and is evicted page by page")
    } else {
        Finding::note(
            "large_folios",
            format!("{} caches files in large folios (Linux {})", with.join(", "), c.release),
        )
        .so("the cache fills and is evicted several pages at a time: one mapped page keeps its whole folio, \
                 and a prefetch leaves other folio sizes than demand reads do")
    }]
}

pub(crate) fn swap(c: &Context) -> Vec<Finding> {
    let swaps = match c.proc.swaps() {
        Ok(swaps) => swaps,
        Err(e) => return vec![Finding::unknown("swap", "swap", e)],
    };
    let zswap = c.sys.read_opt("module/zswap/parameters/enabled").ok().flatten();
    let zswap = zswap.is_some_and(|v| v == "Y" || v == "1");
    if swaps.is_empty() {
        return vec![Finding::ok("swap", "no swap").so("anonymous pages of a start never come from storage")];
    }
    let size = Bytes(swaps.iter().map(|s| s.size).sum());
    let used: u64 = swaps.iter().map(|s| s.used).sum();
    let zram = swaps.iter().any(|s| s.name.contains("zram"));
    let kind = match (zram, zswap) {
        (true, _) => " on zram",
        (false, true) => " behind zswap",
        (false, false) => "",
    };
    let fact = format!("{} of {size} swap{kind} in use", Bytes(used));
    vec![if used == 0 {
        Finding::note("swap", fact).so(
            "under memory pressure parts of running programs are swapped out; reading them back adds disk reads",
        )
    } else {
        Finding::note("swap", fact)
            .so("waking programs read their swapped pages back: reads that belong to no start")
            .remedy("swapoff -a && swapon -a before measuring, if memory suffices")
    }]
}

pub(crate) fn available(c: &Context) -> Vec<Finding> {
    let info = match c.proc.meminfo() {
        Ok(info) => info,
        Err(e) => return vec![Finding::unknown("memory", "memory", e)],
    };
    let get = |key: &str| info.get(key).copied();
    let (Some(total), Some(available)) = (get("MemTotal"), get("MemAvailable")) else {
        return vec![Finding::unknown("memory", "memory", "no MemAvailable in /proc/meminfo")];
    };
    let needed = c.program.as_ref().map(|p| file_bytes(c, p));
    let needs = needed.map_or(String::new(), |n| format!("; the command's own files are {}", Bytes(n)));
    let fact = format!("{} of {} memory available{needs}", Bytes(available), Bytes(total));
    // A file set that fills more than half of what is free is partly evicted by its own start.
    let short = available < total / 10 || needed.is_some_and(|n| n > available / 2);
    let mut findings = vec![if short {
        Finding::disturbs("memory", fact)
            .so("the cache cannot keep a whole start: warm runs lose pages and read again")
            .remedy("end programs that use much memory")
    } else {
        Finding::ok("memory", fact).so("a warm start stays warm")
    }];
    let dirty = get("Dirty").unwrap_or(0) + get("Writeback").unwrap_or(0);
    // 64 MiB take a second on a disk that writes 64 MiB/s: longer than many starts.
    if dirty > 64 << 20 {
        findings.push(
            Finding::disturbs("memory.dirty", format!("{} wait to be written", Bytes(dirty)))
                .so("writeback competes with a start's reads, and dirty pages cannot be evicted")
                .remedy("sync, and see who writes"),
        );
    }
    findings
}

/// Sizes of the command's file, its libraries and the files in its own directory (one level).
fn file_bytes(c: &Context, program: &crate::programs::Program) -> u64 {
    let mut files: BTreeSet<_> = program.libraries.iter().chain(&program.interpreters).cloned().collect();
    files.insert(program.path.clone());
    if let Some(directory) = &program.directory {
        let entries = std::fs::read_dir(c.roots.path(directory)).into_iter().flatten().flatten();
        files.extend(entries.map(|e| directory.join(e.file_name())));
    }
    let size = |p: &std::path::PathBuf| {
        std::fs::symlink_metadata(c.roots.path(p)).ok().filter(std::fs::Metadata::is_file)
    };
    files.iter().filter_map(size).map(|m| m.len()).sum()
}
