//! `cold-subject`: programs with known behaviour, to measure what is known.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)] // a program under test, not shipped

mod asking;
mod daemon;
mod growing;
mod memory;
mod renames;
mod ways;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};

type Failure = Box<dyn std::error::Error>;

/// Programs with known behaviour, for tests.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Order,
}

#[derive(Subcommand)]
enum Order {
    /// Map a file and touch exactly the given pages
    TouchMapped {
        file: PathBuf,
        /// Page numbers and ranges: 0,5,7-9
        pages: String,
        /// Switch read-around off (`MADV_RANDOM`)
        #[arg(long)]
        random: bool,
        /// Before that use the CPU for so many milliseconds of wall time
        #[arg(long, default_value_t = 0)]
        spin: u64,
        /// The same after it
        #[arg(long, default_value_t = 0)]
        spin_after: u64,
    },
    /// Read byte ranges with pread
    ReadRanges {
        file: PathBuf,
        /// OFFSET:LENGTH
        ranges: Vec<String>,
    },
    /// Start a daemon that outlives this process in a session of its own
    Daemon(daemon::Daemon),
    /// Map a whole file, touch every page, and stay
    Hold {
        file: PathBuf,
        /// Map it executable, as a library's code
        #[arg(long)]
        exec: bool,
        #[arg(long, default_value_t = 600.0)]
        seconds: f64,
    },
    /// Print a line, then linger
    Marker {
        text: String,
        #[arg(long, default_value_t = 0.0)]
        linger: f64,
        /// Print it on standard error
        #[arg(long)]
        stderr: bool,
    },
    /// Fail on the n-th run; runs are counted in a file
    FailNth {
        n: u64,
        counter: PathBuf,
        #[arg(long, default_value_t = 1)]
        code: u8,
    },
    /// Ignore SIGTERM, print "ignoring", and linger
    IgnoreTerm {
        #[arg(long, default_value_t = 600.0)]
        seconds: f64,
    },
    /// Use the CPU for so many milliseconds of wall time
    Spin {
        ms: u64,
        /// Print "done", then do nothing for so many seconds
        #[arg(long, default_value_t = 0.0)]
        linger: f64,
    },
    /// Sleep for so many milliseconds
    Sleep { ms: u64 },
    /// Start WIDTH children, each of which does so DEPTH times over, and wait for all
    SpawnTree { depth: u32, width: u32 },
    /// Open N files f0, f1, … of a directory, creating missing ones, then M names that do not exist
    OpenFiles {
        dir: PathBuf,
        n: u32,
        #[arg(long, default_value_t = 0)]
        misses: u32,
    },
    /// Touch so many MiB of memory, print "allocated", and linger
    Alloc {
        mib: usize,
        #[arg(long, default_value_t = 0.0)]
        linger: f64,
    },
    /// Ask for all pages of a file without touching one
    Ask(asking::Ask),
    /// Touch the same pages of a mapped file in several threads at the same time, without read-around
    TouchTogether(asking::TouchTogether),
    /// Fault a known number of times, each in a mapping of one page, so that nothing is mapped around
    CountedFaults(asking::CountedFaults),
    /// Save files: write beside the old one, sync, rename over it; in several threads at the same time
    Renames(renames::Renames),
    /// Start that costs more, or not, the more there were before it
    Growing(growing::Growing),
    /// Use files in every way there is, each page as planned
    Ways(ways::Ways),
    /// Map a file, touch every page and unmap it, again and again
    FaultStorm { file: PathBuf, ms: u64 },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("cold-subject: {e}");
            ExitCode::from(101)
        }
    }
}

fn use_cpu(ms: u64) {
    let end = Instant::now() + Duration::from_millis(ms);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn run(order: Order) -> Result<ExitCode, Failure> {
    match order {
        Order::TouchMapped { file, pages, random, spin, spin_after } => {
            use_cpu(spin);
            let map = memory::FileMap::new(&File::open(file)?, false)?;
            if random {
                map.advise_random()?;
            }
            for page in parse_pages(&pages)? {
                map.touch(page)?;
            }
            use_cpu(spin_after);
        }
        Order::ReadRanges { file, ranges } => {
            let file = File::open(file)?;
            for range in ranges {
                let (offset, len) = range.split_once(':').ok_or("a range is OFFSET:LENGTH")?;
                let mut bytes = vec![0; len.parse()?];
                file.read_exact_at(&mut bytes, offset.parse()?)?;
            }
        }
        Order::Daemon(daemon) => daemon.run()?,
        Order::Hold { file, exec, seconds } => {
            let map = memory::FileMap::new(&File::open(file)?, exec)?;
            map.touch_all()?;
            say("holding")?;
            linger(seconds);
        }
        Order::Marker { text, linger: seconds, stderr } => {
            if stderr {
                writeln!(io::stderr(), "{text}")?;
            } else {
                say(&text)?;
            }
            linger(seconds);
        }
        Order::FailNth { n, counter, code } => return fail_nth(n, &counter, code),
        Order::IgnoreTerm { seconds } => {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal_hook::consts::SIGTERM, flag)?;
            say("ignoring")?;
            linger(seconds);
        }
        Order::Spin { ms, linger: seconds } => {
            use_cpu(ms);
            if seconds > 0.0 {
                say("done")?;
                linger(seconds);
            }
        }
        Order::Sleep { ms } => std::thread::sleep(Duration::from_millis(ms)),
        Order::SpawnTree { depth, width } => spawn_tree(depth, width)?,
        Order::OpenFiles { dir, n, misses } => open_files(&dir, n, misses)?,
        Order::Alloc { mib, linger: seconds } => {
            memory::touch_anonymous(mib << 20)?;
            say("allocated")?;
            linger(seconds);
        }
        Order::Ask(ask) => ask.run()?,
        Order::TouchTogether(together) => together.run()?,
        Order::CountedFaults(storm) => storm.run()?,
        Order::Renames(renames) => renames.run()?,
        Order::Growing(growing) => growing.run()?,
        Order::Ways(order) => ways::run(&order)?,
        Order::FaultStorm { file, ms } => {
            let file = File::open(file)?;
            let end = Instant::now() + Duration::from_millis(ms);
            while Instant::now() < end {
                memory::FileMap::new(&file, false)?.touch_all()?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens `n` files, which are made where they are missing, and looks for `misses` that are not there.
fn open_files(dir: &Path, n: u32, misses: u32) -> Result<(), Failure> {
    for i in 0..n {
        let path = dir.join(format!("f{i}"));
        if File::open(&path).is_err() {
            fs::write(&path, "x")?;
        }
    }
    for i in 0..misses {
        if File::open(dir.join(format!("missing{i}"))).is_ok() {
            return Err(format!("missing{i} exists").into());
        }
    }
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Sleeps on, also after a signal.
fn linger(seconds: f64) {
    std::thread::sleep(Duration::from_secs_f64(seconds.max(0.0)));
}

fn fail_nth(n: u64, counter: &std::path::Path, code: u8) -> Result<ExitCode, Failure> {
    let run = match fs::read_to_string(counter) {
        Ok(text) => text.trim().parse::<u64>()? + 1,
        Err(_) => 1,
    };
    fs::write(counter, run.to_string())?;
    Ok(if run == n { ExitCode::from(code) } else { ExitCode::SUCCESS })
}

fn spawn_tree(depth: u32, width: u32) -> Result<(), Failure> {
    if depth == 0 {
        return Ok(());
    }
    let me = std::env::current_exe()?;
    let start =
        |_| Command::new(&me).args(["spawn-tree", &(depth - 1).to_string(), &width.to_string()]).spawn();
    let children: Vec<_> = (0..width).map(start).collect::<io::Result<_>>()?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a child failed".into());
        }
    }
    Ok(())
}

fn parse_pages(text: &str) -> Result<Vec<usize>, Failure> {
    let mut pages = Vec::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => pages.extend(first.parse::<usize>()?..=last.parse()?),
            None => pages.push(part.parse()?),
        }
    }
    Ok(pages)
}
