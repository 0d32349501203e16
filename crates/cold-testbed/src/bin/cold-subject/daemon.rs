//! A daemon as daemons are: started by a process that ends at once, in a session of its own,
//! re-parented to init or the nearest subreaper.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use crate::Failure;

#[derive(Args)]
pub(crate) struct Daemon {
    /// How long it lives
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// It ends earlier when this file appears
    #[arg(long)]
    until: Option<PathBuf>,
    /// Milliseconds before it is ready
    #[arg(long, default_value_t = 0)]
    delay: u64,
    /// Listen on this TCP port of 127.0.0.1
    #[arg(long)]
    port: Option<u16>,
    /// Listen on this Unix socket
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Write its pid to this file when it is ready
    #[arg(long)]
    ready_file: Option<PathBuf>,
    /// Send READY=1 to `NOTIFY_SOCKET` when it is ready
    #[arg(long)]
    notify: bool,
    /// 0 starts the middle process, 1 is it, 2 is the daemon
    #[arg(long, hide = true, default_value_t = 0)]
    generation: u8,
}

impl Daemon {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.generation {
            // The usual two forks: the middle process leads the session, its child cannot.
            0 => {
                let status = next_generation(1)?.status()?;
                if status.success() { Ok(()) } else { Err("the middle process failed".into()) }
            }
            1 => {
                rustix::process::setsid()?;
                next_generation(2)?.spawn()?;
                Ok(())
            }
            _ => self.live(),
        }
    }

    fn live(self) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs_f64(self.seconds.max(0.0));
        std::thread::sleep(Duration::from_millis(self.delay));
        let _tcp = self.port.map(|p| TcpListener::bind(("127.0.0.1", p))).transpose()?;
        let _unix = self.socket.map(UnixListener::bind).transpose()?;
        if let Some(path) = self.ready_file {
            fs::write(path, std::process::id().to_string())?;
        }
        if self.notify {
            notify()?;
        }
        while Instant::now() < end && !self.until.as_ref().is_some_and(|p| p.exists()) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// This program with the same arguments, one generation on.
fn next_generation(generation: u8) -> Result<Command, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if generation > 1 {
        // What generation 1 was given stands at the end.
        arguments.pop();
    }
    command.args(arguments).arg(format!("--generation={generation}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

fn notify() -> Result<(), Failure> {
    let path = std::env::var("NOTIFY_SOCKET")?;
    let socket = UnixDatagram::unbound()?;
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(&path)?,
    };
    socket.send_to_addr(b"READY=1\n", &address)?;
    Ok(())
}
