//! What the machine does at the moment, watched for a while.

use cold_model::Bytes;
use cold_model::figures::percent;

use crate::context::Context;
use crate::finding::Finding;
use crate::observation::{Busy, DiskMoved};

/// Share of the machine's time in percent from which steal counts as a disturbance: 20 ms of a start of
/// 1 s. Less is near the resolution of the counter (10 ms).
const TELLING_PERCENT: f64 = 2.0;
/// Share of one CPU in percent from which a process is named.
const BUSY_PERCENT: f64 = 5.0;
/// Reads per second from which foreign disk activity counts: a cold start makes hundreds.
const TELLING_READS: f64 = 5.0;
/// And bytes per second: less is the housekeeping of file systems.
const TELLING_READ_BYTES: f64 = 128.0 * 1024.0;
/// Writes in bytes per second from which they count.
const TELLING_WRITES: f64 = 4.0 * 1024.0 * 1024.0;

pub(crate) fn steal(c: &Context) -> Vec<Finding> {
    let seen = c.observed();
    let (now, moved) = match seen.cpu() {
        Ok(times) => times,
        Err(why) => return vec![Finding::unknown("steal", "steal time", why)],
    };
    let share = |part: u64, total: u64| if total == 0 { 0.0 } else { 100.0 * part as f64 / total as f64 };
    let (window, boot) = (share(moved.steal, moved.total), share(now.steal, now.total));
    let fact = format!(
        "the hypervisor took {} of the last {:.1} s, {} since boot",
        percent(window),
        seen.seconds(),
        percent(boot)
    );
    vec![if window >= TELLING_PERCENT {
        Finding::disturbs("steal", fact)
            .so("the program stands still at random moments")
            .remedy("measure when the host is quieter; runs with stolen time are marked and repeated")
    } else if now.steal > 0 {
        Finding::note("steal", fact).so("it does happen here: runs with stolen time are marked and repeated")
    } else {
        Finding::ok("steal", "no time stolen by a hypervisor since boot").so("programs run when they can")
    }]
}

pub(crate) fn thermal(c: &Context) -> Vec<Finding> {
    match c.observed().throttles() {
        None => Vec::new(), // no such counters: virtual machines, most of AMD and ARM
        Some((_, moved)) if moved > 0 => vec![
            Finding::disturbs("thermal", format!("cores throttled {moved} times for heat just now"))
                .so("the clock drops while it is hot, so runs get slower along the series")
                .remedy("let it cool down; clean the fans; pause between runs"),
        ],
        Some((total, _)) if total > 0 => vec![
            Finding::note("thermal", format!("cores throttled {total} times for heat since boot"))
                .so("long series may heat the machine up and drift"),
        ],
        Some(_) => {
            vec![Finding::ok("thermal", "no core throttled for heat since boot").so("the clock is steady")]
        }
    }
}

pub(crate) fn processors(c: &Context) -> Vec<Finding> {
    let seen = c.observed();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let (_, moved) = match seen.cpu() {
        Ok(times) => times,
        Err(why) => return vec![Finding::unknown("load", "load", why)],
    };
    let average = c.proc.loadavg().map_or_else(|_| "unknown".to_owned(), |l| format!("{:.2}", l.one_minute));
    let busy_share = if moved.total == 0 {
        0.0
    } else {
        100.0 * moved.total.saturating_sub(moved.idle + moved.steal) as f64 / moved.total as f64
    };
    let busy: Vec<Busy> =
        seen.busy().into_iter().filter(|b| b.pid != own && b.cpu_percent >= BUSY_PERCENT).collect();
    let fact = format!(
        "processors {} busy over {:.1} s, load average {average}",
        percent(busy_share),
        seen.seconds()
    );
    if busy.is_empty() {
        // Our own share and short-lived processes remain.
        return vec![if busy_share >= 25.0 {
            Finding::disturbs("load", format!("{fact}, by processes too short-lived to name"))
                .so("the measured program shares its processors")
                .remedy("see what keeps starting processes (execsnoop, a build?)")
        } else {
            Finding::ok("load", fact).so("the processors are free for the measured program")
        }];
    }
    let names: Vec<String> = busy
        .iter()
        .take(4)
        .map(|b| format!("{} (pid {}, {})", c.name_of(b.pid), b.pid, percent(b.cpu_percent)))
        .collect();
    vec![
        Finding::disturbs("load", format!("{fact}: {}", names.join(", ")))
            .so("the measured program shares processors, caches and memory bandwidth with them")
            .remedy("end them or wait; interleaved runs spread the harm, they do not remove it")
            .pids(busy.iter().map(|b| b.pid)),
    ]
}

pub(crate) fn disks(c: &Context) -> Vec<Finding> {
    let seen = c.observed();
    let disks = match seen.disks() {
        Ok(disks) => disks,
        Err(why) => return vec![Finding::unknown("disk_activity", "activity of the disks", why)],
    };
    let seconds = seen.seconds();
    let mut findings = Vec::new();
    let own_reads = seen.own_read_bytes();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut readers: Vec<Busy> = seen.busy();
    readers.retain(|b| b.pid != own && b.read_bytes.unwrap_or(0) > 0);
    readers.sort_by_key(|b| std::cmp::Reverse(b.read_bytes));
    // The kernel counts what a process reads, and not from which disk.
    let from = if disks.len() > 1 { "this or another disk read by" } else { "read by" };
    for DiskMoved { name, reads, read, written } in disks {
        // Partitions repeat their disk's figures.
        if c.sys.path(format!("class/block/{name}/partition")).exists() {
            continue;
        }
        // Which disk our own reads went to is not told: take them off each, rather than report ourselves.
        let read = read.saturating_sub(own_reads);
        let reading = reads as f64 / seconds >= TELLING_READS && read as f64 / seconds >= TELLING_READ_BYTES;
        if !reading && (written as f64) / seconds < TELLING_WRITES {
            continue;
        }
        let per_second = |bytes: u64| Bytes((bytes as f64 / seconds) as u64);
        let by: Vec<String> =
            readers.iter().take(3).map(|b| format!("{} (pid {})", c.name_of(b.pid), b.pid)).collect();
        let by =
            if by.is_empty() || !reading { String::new() } else { format!(", {from} {}", by.join(", ")) };
        findings.push(
            Finding::disturbs(
                "disk_activity",
                format!("{name}: {}/s read, {}/s written{by}", per_second(read), per_second(written)),
            )
            .about(name)
            .so("a cold start waits behind these requests, and its own cannot be told apart in the disk's counters")
            .remedy("stop or wait for whoever reads and writes; runs during which others read do not count")
            .pids(readers.iter().filter(|_| reading).map(|b| b.pid)),
        );
    }
    if findings.is_empty() {
        findings.push(
            Finding::ok("disk_activity", format!("the disks were quiet for {seconds:.1} s"))
                .so("what a start reads can be counted"),
        );
    }
    findings
}
