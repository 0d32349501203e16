//! `cold service reader`: makes the helpers that read in programs' own control groups, for a service that may not make
//! them itself. Beside it, how a service comes by who makes them.

use std::path::PathBuf;

use cold_launch::Helpers;
use cold_model::Nanos;
use cold_sys::cgroup::Hierarchies;
use cold_sys::copier;
use cold_sys::procfs::ProcFs;
use cold_sys::time::process_cpu;

use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  systemctl start coldstart-reader.socket            who connects to it starts the reader
  cold service run --reader /run/coldstart-reader    a service that has it make helpers
";

const AFTER: &str = "\
For coldstart-reader.service: takes its socket from systemd (sd_listen_fds(3)), serves the first
who connects, whom only root can be, and ends with him. A service that may not make namespaces may
not make a process in another control group either: systemd refuses it the call for that, clone3.
So this one makes them, which may do little else. Without systemd the service makes them itself.

Exit codes: 0 ended with its service; 1 failed.";

/// Flags of `cold service reader`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {}

/// Serves one service, until that ends.
pub(crate) fn run() -> Outcome {
    let listening = copier::inherited_socket().map_err(|e| {
        Failure::from(e).hint("start it by its socket: systemctl start coldstart-reader.socket")
    })?;
    loop {
        let (orders, user) = copier::accept(&listening)?;
        if user == 0 {
            drop(listening);
            cold_launch::serve(&orders);
            return Ok(Exit::Done);
        }
    }
}

/// Who makes helpers for a service, where helpers are of use here: its own process, made while there is one thread, or
/// the one behind this socket. Without one it reads by itself, and says why.
pub(crate) fn helpers(reader: Option<&PathBuf>, ui: &Ui) -> Option<Helpers> {
    let groups = Hierarchies::find(&ProcFs::default()).unwrap_or_default();
    groups.charges_memory()?;
    let made = reader.map_or_else(Helpers::fork, |socket| Helpers::connect(socket));
    made.map_err(|e| ui.warn(format!("nothing is read in programs' own control groups: {e}"))).ok()
}

/// What a process and its helpers that have ended have cost: CPU time, bytes of memory and bytes read from disks, each
/// where the kernel tells.
pub(crate) struct Cost {
    pub(crate) cpu: Option<Nanos>,
    pub(crate) memory: Option<u64>,
    pub(crate) read: Option<u64>,
}

impl Cost {
    pub(crate) fn of(pid: i32) -> Self {
        let field = |file, key| ProcFs::default().process_field(pid, file, key).ok().flatten();
        Self {
            cpu: process_cpu(pid),
            // In KiB (proc_pid_smaps(5)). VmRSS would count the buffer of events twice, which is mapped twice in a row.
            memory: field("smaps_rollup", "Pss").map(|kib| kib << 10),
            // Of children as well that were waited for (wait_task_zombie in kernel/exit.c).
            read: field("io", "read_bytes"),
        }
    }

    /// With that of who makes its helpers, and of these.
    pub(crate) fn with_helpers(self, pid: i32) -> Self {
        let other = Self::of(pid);
        let ended = ProcFs::default().stat(pid).ok().map(|stat| stat.children_cpu);
        let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let cpu = |a: Option<Nanos>, b: Option<Nanos>| Some(Nanos(a?.0.saturating_add(b?.0)));
        Self {
            cpu: cpu(cpu(self.cpu, other.cpu), ended),
            memory: both(self.memory, other.memory),
            read: both(self.read, other.read),
        }
    }
}
