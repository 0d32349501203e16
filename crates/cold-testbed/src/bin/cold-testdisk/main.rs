//! `cold-testdisk`: a slow disk to try programs on, with a log of every block request.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command of its own; it is not shipped

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::mpsc;

use clap::{Parser, Subcommand};
use cold_model::Bytes;
use cold_testbed::disk::{FileSystem, Info, Options, Preset, Serve, Stack, clean, running};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A slow disk for tests: a file served by FUSE, under a loop device, under a file system.
///
/// Examples:
///   cold-testdisk create --preset hdd --size 2G
///   cold-testdisk create --preset sata-ssd --punctual
///   cold-testdisk log
///   cold-testdisk clean
#[derive(Parser)]
#[command(verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Order,
}

#[derive(Subcommand)]
enum Order {
    /// Make a disk, mount it, and keep it until Ctrl-C
    Create {
        /// Its speed
        #[arg(long, value_enum, default_value = "hdd")]
        preset: Preset,
        /// Answer so that the kernel has each answer when it is due, not later (needs BPF)
        #[arg(long)]
        punctual: bool,
        /// Its size in bytes, or with K, M, G
        #[arg(long, default_value = "1G", value_parser = parse_size)]
        size: u64,
        /// Its file system
        #[arg(long = "fs", value_enum, default_value = "ext4")]
        file_system: FileSystem,
        /// Where to mount it [default: a directory of its own]
        #[arg(long)]
        mount: Option<PathBuf>,
        /// Directory for the file with its bytes [default: they are kept in memory]
        #[arg(long)]
        backing: Option<PathBuf>,
        /// Describe the disk as one line of JSON
        #[arg(long)]
        json: bool,
        /// End also when standard input ends
        #[arg(long, hide = true)]
        until_eof: bool,
    },
    /// Print the log of a running disk as CSV
    Log {
        /// The disk's directory or mount point; needed when several run
        disk: Option<PathBuf>,
    },
    /// Remove what killed disks left behind
    Clean,
    /// The process behind a disk
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        mount: PathBuf,
        #[arg(long)]
        backing: PathBuf,
        #[arg(long)]
        size: u64,
        #[arg(long)]
        model: String,
        #[arg(long)]
        control: PathBuf,
        #[arg(long)]
        parent: i32,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("cold-testdisk: {e}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn run(order: Order) -> Result<ExitCode, Failure> {
    match order {
        Order::Create { preset, punctual, size, file_system, mount, backing, json, until_eof } => {
            let options = Options { preset, punctual, size: Bytes(size), file_system, mount, backing };
            create(&options, json, until_eof)
        }
        Order::Log { disk } => {
            io::stdout().write_all(choose(disk)?.csv()?.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
        Order::Clean => {
            let undone = clean()?;
            for u in &undone {
                println!("{u}");
            }
            let failed = undone.iter().any(|u| u.outcome.is_err());
            Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        Order::Serve { mount, backing, size, model, control, parent } => {
            let model = serde_json::from_str(&model)?;
            let serve = Serve { mount, backing, size, model, control, parent };
            serve.run(io::stdin().lock(), io::stdout())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn create(options: &Options, json: bool, until_eof: bool) -> Result<ExitCode, Failure> {
    let (end, ended) = mpsc::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let on_signal = end.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let _ = on_signal.send(());
        }
    });
    if until_eof {
        std::thread::spawn(move || {
            let _ = io::stdin().lock().read_to_end(&mut Vec::new());
            let _ = end.send(());
        });
    }
    let mut server = Command::new(std::env::current_exe()?);
    server.arg("serve");
    let stack = Stack::build(options, server)?;
    describe(stack.info(), json)?;
    let _ = ended.recv();
    let mut code = ExitCode::SUCCESS;
    for undone in stack.take_down() {
        if undone.outcome.is_err() {
            eprintln!("cold-testdisk: {undone}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn describe(info: &Info, json: bool) -> Result<(), Failure> {
    // A reader that has gone is no reason to leave the disk behind: the caller's end shows otherwise.
    let _ = if json {
        writeln!(io::stdout(), "{}", serde_json::to_string(info)?)
    } else {
        let (at, on) = (info.mount_point.display(), info.device.display());
        writeln!(io::stdout(), "mounted on {at}\ndevice {on}\nCtrl-C removes it")
    };
    Ok(())
}

fn choose(disk: Option<PathBuf>) -> Result<Info, Failure> {
    let mut all = running();
    if let Some(path) = disk {
        all.retain(|i| i.directory == path || i.mount_point == path);
    }
    match all.len() {
        1 => Ok(all.remove(0)),
        0 => Err("no such test disk is running".into()),
        _ => {
            let names: Vec<String> = all.iter().map(|i| i.directory.display().to_string()).collect();
            Err(format!("several test disks are running, name one: {}", names.join(" ")).into())
        }
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let n: u64 = digits.parse().map_err(|_| format!("{text:?} is no size; try 2G"))?;
    let bytes = n.checked_mul(1 << unit).ok_or("too large")?;
    // Whole pages, and the least that every mkfs.ext4 accepts with a journal.
    if bytes % 4096 != 0 || bytes < 8 << 20 {
        return Err("the size must be a multiple of 4096 bytes and at least 8M".to_owned());
    }
    Ok(bytes)
}
