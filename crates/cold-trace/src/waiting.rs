//! What the kernel itself waits for, by the names of the functions on its stack.
//!
//! Only waits without a page need this: nothing else tells a journal from a lock. The names are those of
//! Linux 5.8 to 6.18; a wait in none of them stays unknown. Functions that a compiler splits off
//! (`x.constprop.0`, `x.cold`) count as the one they come from.

use serde::{Deserialize, Serialize};

/// A function of the running kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFunction {
    /// First address, from `/proc/kallsyms` of the running kernel.
    pub start: u64,
    /// Address behind it: where the next one begins.
    pub end: u64,
    /// What a wait within it is for.
    pub what: Waiting,
}

/// What a task waits for in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A journal or log: room in it, a commit, a block that is being written to it.
    Journal,
    /// Data that is being written, or freed blocks that are being discarded (mount option `discard`).
    Write,
    /// A mutex or semaphore, or another task that looks up the same name or reads the same inode.
    Lock,
}

/// Functions without a common prefix: jbd2 (ext4, ocfs2), btrfs, f2fs.
const JOURNAL: [&str; 11] = [
    "do_get_write_access",
    "start_this_handle",
    "add_transaction_credits",
    "wait_transaction_locked",
    "wait_transaction_switching",
    "btrfs_commit_transaction",
    "btrfs_sync_log",
    "btrfs_wait_for_commit",
    "wait_current_trans",
    "f2fs_issue_checkpoint",
    "f2fs_write_checkpoint",
];
const JOURNALS: [&str; 4] = ["jbd2_", "xlog_", "xfs_log_", "__jbd2_"];

const WRITE: [&str; 5] = [
    "folio_wait_writeback",
    "wait_on_page_writeback",
    "blkdev_issue_discard",
    "blkdev_issue_flush",
    "balance_dirty_pages",
];
const WRITES: [&str; 1] = ["balance_dirty_pages_"];

const LOCK: [&str; 9] = [
    "rwsem_down_read_slowpath",
    "rwsem_down_write_slowpath",
    "__percpu_down_read",
    "percpu_down_write",
    "mutex_lock",
    "mutex_lock_io",
    "d_alloc_parallel",
    "iget_locked",
    "wait_on_new_inode",
];
const LOCKS: [&str; 1] = ["__mutex_lock"];

fn function(name: &str) -> Option<Waiting> {
    let name = name.split('.').next().unwrap_or(name);
    let is = |names: &[&str], prefixes: &[&str]| {
        names.contains(&name) || prefixes.iter().any(|prefix| name.starts_with(prefix))
    };
    if is(&JOURNAL, &JOURNALS) {
        Some(Waiting::Journal)
    } else if is(&WRITE, &WRITES) {
        Some(Waiting::Write)
    } else if is(&LOCK, &LOCKS) {
        Some(Waiting::Lock)
    } else {
        None
    }
}

/// The functions that tell something, out of the text of `/proc/kallsyms` (sorted by address, as the
/// kernel writes it for itself; modules follow). Empty where the kernel hides its addresses.
pub fn kernel_functions(kallsyms: &str) -> Vec<KernelFunction> {
    let mut out: Vec<KernelFunction> = Vec::new();
    let mut open = false;
    for line in kallsyms.lines() {
        let Some((address, (kind, name))) =
            line.split_once(' ').and_then(|(address, rest)| Some((address, rest.split_once(' ')?)))
        else {
            continue;
        };
        if !matches!(kind, "t" | "T" | "w" | "W") {
            continue;
        }
        // A module's name follows behind a tab.
        let what = function(name.split_once('\t').map_or(name, |(name, _)| name));
        // Of 120,000 lines some dozens begin or end what is asked for: only their addresses are read.
        if !open && what.is_none() {
            continue;
        }
        let Some(start) = u64::from_str_radix(address, 16).ok().filter(|start| *start != 0) else { continue };
        if open && let Some(last) = out.last_mut().filter(|last| start > last.start) {
            last.end = start;
            open = false;
        }
        if let Some(what) = what {
            out.push(KernelFunction { start, end: start.saturating_add(1), what });
            open = true;
        }
    }
    out.sort_by_key(|f| f.start);
    out
}

/// What a wait with these addresses on the kernel's stack is for. A lock that is taken in order to use a
/// journal is the journal's, and so is what a journal writes.
pub fn waiting(functions: &[KernelFunction], frames: impl Iterator<Item = u64>) -> Option<Waiting> {
    let mut found = None;
    for address in frames {
        let at = functions.partition_point(|f| f.start <= address);
        let function = at.checked_sub(1).and_then(|at| functions.get(at)).filter(|f| address < f.end);
        match function.map(|f| f.what) {
            Some(Waiting::Journal) => return Some(Waiting::Journal),
            Some(Waiting::Write) => found = Some(Waiting::Write),
            Some(Waiting::Lock) => found = found.or(Some(Waiting::Lock)),
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\n\
        ffffffff81813d70 t do_get_write_access\n\
        ffffffff81814150 T jbd2_journal_get_write_access\n\
        ffffffff81814200 T something\n\
        ffffffff81814200 T its_other_name\n\
        ffffffff821faf40 t __mutex_lock.constprop.0\n\
        ffffffff821fb000 D mutex_lock\n\
        ffffffff821fb970 t next\n\
        garbage\n\
        ffffffffa0000000 T blkdev_issue_discard\n\
        ffffffffa0000100 T more\n\
        ffffffffc0001000 t xlog_grant_head_wait\t[xfs]\n\
        ffffffffc0002000 t xfs_bmap\t[xfs]\n";

    #[test]
    fn a_wait_is_what_its_stack_says() {
        let functions = kernel_functions(KALLSYMS);
        let of = |frames: &[u64]| waiting(&functions, frames.iter().copied());
        assert_eq!(functions.len(), 5, "data is no code: {functions:x?}");
        assert_eq!(of(&[0xffff_ffff_8181_3d80]), Some(Waiting::Journal));
        assert_eq!(of(&[0xffff_ffff_8181_4150]), Some(Waiting::Journal));
        assert_eq!(of(&[0xffff_ffff_8181_4200]), None, "the function behind it");
        assert_eq!(of(&[1, 0xffff_ffff_821f_b100, 7]), Some(Waiting::Lock));
        assert_eq!(of(&[0xffff_ffff_821f_b970]), None);
        assert_eq!(of(&[0xffff_ffff_c000_1fff]), Some(Waiting::Journal));
        let both = [0xffff_ffff_821f_b100, 0xffff_ffff_8181_4151];
        assert_eq!(of(&both), Some(Waiting::Journal), "a journal's own lock");
        let discards = [0xffff_ffff_a000_0010, 0xffff_ffff_821f_b100];
        assert_eq!(of(&discards), Some(Waiting::Write), "below a lock");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn hidden_addresses_tell_nothing() {
        assert_eq!(kernel_functions("0000000000000000 t do_get_write_access\n0000000000000000 t x\n"), []);
        assert_eq!(kernel_functions(""), []);
    }

    #[test]
    fn the_last_function_has_an_end() {
        let functions = kernel_functions("ffffffffc0001000 t jbd2_x\n");
        assert_eq!(waiting(&functions, [0xffff_ffff_c000_1000].into_iter()), Some(Waiting::Journal));
        assert_eq!(waiting(&functions, [u64::MAX].into_iter()), None);
    }
}
