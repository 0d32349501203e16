//! The model of a page cache with too little room against the running kernel: a program in a memory control group uses a
//! file of several times the group's limit, and what it reads is compared.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // the lints know only functions marked as tests

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use cold_sim::op::{Access, FileId, MapId, Op, OpenId, PageCache, PageRead, Progress};
use cold_sim::{Cache, LinuxVersion, Paging, Policy, SimFile};
use cold_stats::Pcg;
use cold_sys::mapped::{MapKind, MappedFile};
use cold_sys::procfs::ProcFs;

/// Names a program and its file in the process that runs it.
const CHILD: &str = "COLD_MEMORY_CHILD";
const PAGE: u64 = 4096;
/// Limit of the group; the program's own memory is in it.
const LIMIT: u64 = 24 << 20;
/// Pages of the file: four times the limit.
const PAGES: u64 = 24_576;
/// What the model reads is at most so far from what the kernel reads.
const WITHIN: f64 = 0.15;

/// Programs that need more than there is room for: touches of pages, or reads of four pages.
const PROGRAMS: [&str; 6] = [
    "forward twice, mapped",
    "forward twice, read",
    "random, mapped",
    "random, read",
    "hot and cold, mapped",
    "hot and cold, read",
];

/// The pages that a program uses, in order.
fn pages(name: &str) -> Vec<u64> {
    let mut rng = Pcg::new(15, 2);
    let mut below = |n: u64| u64::from(rng.below(n as u32));
    match name.split(',').next().unwrap() {
        "forward twice" => (0..2).flat_map(|_| 0..PAGES / 2).collect(),
        // Of twice the limit.
        "random" => (0..20_000).map(|_| below(PAGES / 2)).collect(),
        // Half of it in a quarter of the limit, the others anywhere.
        _ => (0..20_000).map(|_| if below(2) == 0 { below(PAGES / 16) } else { below(PAGES) }).collect(),
    }
}

fn is_mapped(name: &str) -> bool {
    name.ends_with("mapped")
}

/// Four pages in order for a read, else the page.
fn places(name: &str) -> impl Iterator<Item = u64> {
    let every = if is_mapped(name) || !name.starts_with("forward") { 1 } else { 4 };
    pages(name).into_iter().step_by(every)
}

/// Pages that the model reads, with room for so many.
fn modelled(name: &str, about: SimFile, room: u64) -> u64 {
    let release = ProcFs::default().sysctl("kernel.osrelease").unwrap();
    let policy = Policy::Linux(LinuxVersion::of_release(release.trim()));
    let mut cache = Cache::new(policy, Paging::default(), &[about]).with_room(room);
    let (open, map, file) = (OpenId(0), MapId(0), FileId(0));
    let mut read = 0;
    let mut does = |op: Op| {
        let (mut progress, mut reads) = (Progress::default(), Vec::<PageRead>::new());
        loop {
            let access = cache.access(&op, &mut progress, &mut reads);
            for r in reads.drain(..) {
                read += r.pages;
                cache.arrived(&r);
            }
            if access == Access::Done {
                return;
            }
        }
    };
    does(Op::Open { open, file });
    does(Op::Map { map, open, address: 1 << 20, first: 0, pages: PAGES, exec: false });
    for page in places(name) {
        does(if is_mapped(name) {
            Op::Touch { map, page, write: false }
        } else {
            Op::Read { open, offset: page * PAGE, bytes: 4 * PAGE }
        });
    }
    read
}

/// Bytes that this process made the devices read.
fn read_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    text.lines().find_map(|l| l.strip_prefix("read_bytes: ")?.parse().ok()).unwrap()
}

/// What the process in the group does: a line begins it, it tells bytes read, and a second line ends it.
fn child(order: &str) {
    let (name, path) = order.split_once('\t').unwrap();
    let mut input = std::io::stdin().lines();
    input.next().unwrap().unwrap();
    let file = File::open(path).unwrap();
    let map = MappedFile::new(&file, PAGES * PAGE, MapKind::default()).unwrap();
    let mut buffer = vec![0; 4 * PAGE as usize];
    let before = read_bytes();
    for page in places(name) {
        if is_mapped(name) {
            map.touch(page * PAGE);
        } else {
            let _ = file.read_at(&mut buffer, page * PAGE).unwrap();
        }
    }
    // The harness has written the test's name on this line.
    println!("\nread {}", read_bytes() - before);
    input.next();
}

mod root {
    use cold_journal::Journal;
    use cold_model::Bytes;
    use cold_probe::group::Group;
    use cold_testbed::disk::Preset;
    use cold_testbed::{SlowDisk, attempts, needs_root};

    use super::*;

    /// Pages that the kernel read, and those of the file in the group in the end.
    fn measured(name: &str, path: &Path, journal: &Journal) -> (u64, u64) {
        let group = Group::create(journal, Bytes(LIMIT)).unwrap();
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        cold_sys::evict::advise_dontneed(&file).unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "root::a_cache_with_too_little_room_reads_what_the_kernel_reads",
            ])
            .env(CHILD, format!("{name}\t{}", path.to_str().unwrap()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        group.add(process.id()).unwrap();
        let mut input = process.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let read = lines.find_map(|l| l.unwrap().strip_prefix("read ").map(|n| n.parse::<u64>().unwrap()));
        let cached = group.memory().cache.unwrap();
        input.write_all(b"end\n").unwrap();
        assert!(process.wait().unwrap().success());
        (read.unwrap() / PAGE, cached / PAGE)
    }

    /// Prints the table of docs/concepts/simulation.md, too.
    #[test]
    fn a_cache_with_too_little_room_reads_what_the_kernel_reads() {
        if let Ok(order) = std::env::var(CHILD) {
            return child(&order);
        }
        needs_root!();
        let disk = SlowDisk::create(Preset::Fast, Bytes(256 << 20)).unwrap();
        let path = disk.mount_point().join("data");
        let mut rng = Pcg::new(1, 1);
        let bytes: Vec<u8> = (0..PAGES * PAGE / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        let setting = |name: &str| -> u64 {
            let path = format!("/sys/block/{}/queue/{name}", disk.device_name());
            std::fs::read_to_string(path).unwrap().trim().parse::<u64>().unwrap() * 1024 / PAGE
        };
        let release = ProcFs::default().sysctl("kernel.osrelease").unwrap();
        let about = SimFile {
            bytes: PAGES * PAGE,
            window_pages: setting("read_ahead_kb"),
            io_pages: setting("max_sectors_kb"),
            large_folios: LinuxVersion::of_release(release.trim()).has_large_folios("ext4"),
        };
        let state = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(state.path());
        println!("| program | room MiB | kernel MiB | model MiB | ratio |");
        for name in PROGRAMS {
            attempts(|| {
                let (kernel, room) = measured(name, &path, &journal);
                let model = modelled(name, about, room);
                let ratio = model as f64 / kernel as f64;
                let mib = |pages: u64| (pages * PAGE) >> 20;
                println!("| {name} | {} | {} | {} | {ratio:.3} |", mib(room), mib(kernel), mib(model));
                // A larger cache reads everything once.
                assert!(kernel > PAGES / 4 && room < LIMIT / PAGE, "{name}: no pressure");
                if (ratio - 1.0).abs() <= WITHIN { Ok(()) } else { Err(format!("{name}: {ratio}")) }
            });
        }
    }
}
