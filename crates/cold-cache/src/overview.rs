//! The machine's memory by use, as the first page of RAMMap shows it. Pure: from the maps that
//! [`cold_sys::procfs::ProcFs::meminfo`] and `vmstat` return.
//!
//! The rows of [`Overview::uses`] are disjoint and sum to `MemTotal` exactly, because the last one is what
//! Linux does not account for. Its figures are sampled one after the other and cached per CPU, so that
//! row may be slightly negative. Details are parts of a row by another criterion and overlap.

use std::collections::BTreeMap;

use serde::Serialize;

/// One use of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Stable name for scripts.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Bytes; only the row `other` can be negative. `None` when this kernel does not tell.
    pub bytes: Option<i64>,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// Parts of it, overlapping.
    pub details: Vec<Use>,
}

/// The memory of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// `MemTotal`: what the kernel manages, without what firmware and the kernel image hold.
    pub total: u64,
    /// `MemAvailable`: an estimate of what programs could get without swapping.
    pub available: Option<u64>,
    /// `SwapTotal` in bytes: swap space in use or free; `None` where the kernel does not tell.
    pub swap_total: Option<u64>,
    /// `SwapFree` in bytes: swap space not in use; `None` where the kernel does not tell.
    pub swap_free: Option<u64>,
    /// Disjoint uses that sum to `total`.
    pub uses: Vec<Use>,
}

/// Key of the row of the file cache.
const FILES: &str = "files";
/// Key of the row of what is not accounted for.
const OTHER: &str = "other";

impl Overview {
    /// Bytes of the machine's file cache, without shared memory.
    pub fn file_cache(&self) -> Option<u64> {
        let row = self.uses.iter().find(|u| u.key == FILES)?;
        u64::try_from(row.bytes?).ok()
    }

    /// The uses, the largest first. What is not accounted for stays last: it is the check, not a use.
    pub fn largest_first(&self) -> Vec<&Use> {
        let mut uses: Vec<&Use> = self.uses.iter().collect();
        uses.sort_by_key(|u| (u.key == OTHER, std::cmp::Reverse(u.bytes)));
        uses
    }
}

/// The figures, with a subtraction that keeps "not told".
struct Figures<'a> {
    meminfo: &'a BTreeMap<String, u64>,
}

impl Figures<'_> {
    fn get(&self, key: &str) -> Option<i64> {
        self.meminfo.get(key).and_then(|v| i64::try_from(*v).ok())
    }
    fn less(&self, key: &str, minus: &str) -> Option<i64> {
        Some((self.get(key)? - self.get(minus).unwrap_or(0)).max(0))
    }
    fn detail(&self, key: &'static str, field: &str, name: &'static str, meaning: &'static str) -> Use {
        Use { key, name, bytes: self.get(field), meaning, details: Vec::new() }
    }
}

/// Computes the overview; `None` when `meminfo` has no `MemTotal`. `page` is the page size in bytes.
pub fn overview(
    meminfo: &BTreeMap<String, u64>,
    vmstat: &BTreeMap<String, u64>,
    page: u64,
) -> Option<Overview> {
    let f = Figures { meminfo };
    let total = *meminfo.get("MemTotal")?;
    let zspages = vmstat.get("nr_zspages").and_then(|n| i64::try_from(n * page).ok());
    let mut uses = programs(&f);
    uses.extend(caches(&f));
    uses.extend(kernel(&f, zspages));
    let known: i64 = uses.iter().filter_map(|u| u.bytes).sum();
    uses.push(row(
        OTHER,
        "other (not accounted)",
        i64::try_from(total).ok().map(|t| t - known),
        "drivers' own pages (GPU, network), and the inaccuracy of the other rows",
    ));
    Some(Overview {
        total,
        available: meminfo.get("MemAvailable").copied(),
        swap_total: meminfo.get("SwapTotal").copied(),
        swap_free: meminfo.get("SwapFree").copied(),
        uses,
    })
}

fn row(key: &'static str, name: &'static str, bytes: Option<i64>, meaning: &'static str) -> Use {
    Use { key, name, bytes, meaning, details: Vec::new() }
}

fn programs(f: &Figures<'_>) -> Vec<Use> {
    let mut anonymous = row(
        "anonymous",
        "programs' own memory",
        f.get("AnonPages"),
        "heaps, stacks, private copies of written file pages",
    );
    anonymous.details = vec![
        f.detail("anonymous_huge", "AnonHugePages", "in huge pages", "transparent huge pages"),
        f.detail("swap_cached", "SwapCached", "also in swap", "read back from swap, copy still there"),
    ];
    let mut shared = row(
        "shared",
        "shared memory, tmpfs",
        f.get("Shmem"),
        "files in memory, memfd, System V segments; can only be swapped out",
    );
    shared.details =
        vec![f.detail("shared_huge", "ShmemHugePages", "in huge pages", "transparent huge pages")];
    let hugetlb = row(
        "hugetlb",
        "reserved huge pages",
        f.get("Hugetlb"),
        "hugetlbfs, set aside by the administrator, used or not",
    );
    vec![anonymous, shared, hugetlb]
}

fn caches(f: &Figures<'_>) -> Vec<Use> {
    let mut files = row(
        FILES,
        "file cache",
        f.less("Cached", "Shmem"),
        "pages of files (secret memory of memfd_secret is counted here as well)",
    );
    files.details = vec![
        f.detail(
            "mapped",
            "Mapped",
            "mapped by processes",
            "stays when caches are dropped or files evicted; includes mapped shared memory",
        ),
        f.detail("active", "Active(file)", "active", "used more than once lately"),
        f.detail("inactive", "Inactive(file)", "inactive", "first to be reclaimed"),
        f.detail("dirty", "Dirty", "dirty", "has to be written before it can go"),
        f.detail("writeback", "Writeback", "being written", "on its way to the device"),
        f.detail("files_huge", "FileHugePages", "in huge pages", "transparent huge pages"),
        f.detail("locked", "Mlocked", "locked", "by mlock; includes locked memory of programs"),
    ];
    let buffers = row(
        "buffers",
        "block device cache",
        f.get("Buffers"),
        "file systems' metadata, raw device reads; drop_caches drops it",
    );
    vec![files, buffers]
}

fn kernel(f: &Figures<'_>, zspages: Option<i64>) -> Vec<Use> {
    let page_tables = f.get("PageTables").map(|p| p + f.get("SecPageTables").unwrap_or(0));
    // zswap keeps its pages in zsmalloc, which nr_zspages counts already; kernels without that counter
    // still tell zswap's pool.
    let compressed = zspages.max(f.get("Zswap"));
    vec![
        row(
            "slab_reclaimable",
            "kernel objects, reclaimable",
            f.get("SReclaimable"),
            "dentries, inodes: path look-ups stay fast while they are here",
        ),
        row(
            "slab_unreclaimable",
            "kernel objects, fixed",
            f.get("SUnreclaim"),
            "slab that nobody can take back",
        ),
        row(
            "kernel_reclaimable",
            "other reclaimable kernel memory",
            f.less("KReclaimable", "SReclaimable"),
            "page pools that drivers give back under pressure",
        ),
        row("page_tables", "page tables", page_tables, "of processes, virtual machines and I/O"),
        row("kernel_stacks", "kernel stacks", f.get("KernelStack"), "one per thread"),
        row(
            "vmalloc",
            "vmalloc",
            f.less("VmallocUsed", "KernelStack"),
            "modules, BPF, large kernel tables; kernel stacks taken off, which lie there too",
        ),
        row("percpu", "per-CPU data", f.get("Percpu"), "counters and caches, one copy per CPU"),
        row(
            "compressed",
            "compressed (zram, zswap)",
            compressed,
            "memory squeezed instead of written to disk",
        ),
        row(
            "bounce",
            "bounce buffers",
            f.get("Bounce").map(|b| b + f.get("WritebackTmp").unwrap_or(0)),
            "copies for devices and FUSE writes",
        ),
        row("free", "free", f.get("MemFree"), "used by nothing"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }

    fn get(o: &Overview, key: &str) -> Option<i64> {
        o.uses.iter().find(|u| u.key == key).expect("the row exists").bytes
    }

    #[test]
    fn rows_sum_to_the_total_and_other_is_the_rest() {
        let meminfo = map(&[
            ("MemTotal", 10_000),
            ("MemFree", 2_000),
            ("AnonPages", 1_000),
            ("Cached", 3_000),
            ("Shmem", 500),
            ("Mapped", 700),
            ("Buffers", 100),
            ("SReclaimable", 200),
            ("SUnreclaim", 300),
            ("KReclaimable", 250),
            ("KernelStack", 64),
            ("VmallocUsed", 100),
            ("PageTables", 40),
            ("SecPageTables", 2),
            ("Percpu", 8),
            ("Hugetlb", 1_024),
            ("Zswap", 10),
        ]);
        let o = overview(&meminfo, &map(&[("nr_zspages", 3)]), 16).expect("MemTotal is there");
        assert_eq!(o.uses.iter().filter_map(|u| u.bytes).sum::<i64>(), 10_000);
        assert_eq!((get(&o, "files"), get(&o, "shared")), (Some(2_500), Some(500)));
        assert_eq!(o.file_cache(), Some(2_500));
        let order: Vec<&str> = o.largest_first().iter().map(|u| u.key).collect();
        assert_eq!((order.first(), order.last()), (Some(&"files"), Some(&"other")), "{order:?}");
        assert_eq!(
            (get(&o, "vmalloc"), get(&o, "compressed"), get(&o, "page_tables")),
            (Some(36), Some(48), Some(42))
        );
        assert_eq!(get(&o, "bounce"), None, "not told is not zero");
        let sum = 2_000 + 1_000 + 2_500 + 500 + 100 + 200 + 300 + 50 + 64 + 36 + 42 + 8 + 1_024 + 48;
        assert_eq!(get(&o, "other"), Some(10_000 - sum));
    }

    #[test]
    fn overlapping_figures_show_as_a_negative_rest_and_an_empty_file_as_none() {
        let o = overview(&map(&[("MemTotal", 10), ("MemFree", 11)]), &map(&[]), 4096).expect("MemTotal");
        assert_eq!(get(&o, "other"), Some(-1));
        assert_eq!(overview(&map(&[]), &map(&[]), 4096), None);
    }

    #[test]
    fn this_machine_sums_too() {
        let proc = cold_sys::procfs::ProcFs::default();
        let (meminfo, vmstat) = (proc.meminfo().expect("meminfo"), proc.vmstat().expect("vmstat"));
        let o = overview(&meminfo, &vmstat, 4096).expect("MemTotal");
        assert_eq!(o.uses.iter().filter_map(|u| u.bytes).sum::<i64>(), i64::try_from(o.total).expect("fits"));
        // The kernel's own pages that nobody accounts for are a small share of any machine.
        assert!(get(&o, "other").expect("told").unsigned_abs() < o.total / 4, "{o:?}");
    }
}
