//! Which tier works here: one answer for recording and for those who only ask.

use std::io;

use cold_model::recording::manifest::Tier;
use cold_sys::perf_event::{EventKind, OpenPerfEvent, PerfSpec, UserStacks, Whom};
use cold_sys::procfs::ProcFs;

use super::{Error, RecordOptions, kernel};
use crate::perf::recorder::SharedSink;

/// A tier that is not used, with the reason.
pub type Refusal = (Tier, String);

/// What can be recorded here, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The best tier that works here.
    pub tier: Tier,
    /// The better ones, best first, with what stands against them.
    pub refused: Vec<Refusal>,
}

/// Asks the kernel what [`super::Session::start`] would be told, without attaching anything. The verifier
/// has the last word when the programs themselves are loaded.
pub fn survey() -> Survey {
    let proc = ProcFs::default();
    let mut refused = Vec::new();
    for tier in [Tier::A, Tier::B, Tier::C] {
        let possible = match tier {
            Tier::A | Tier::B => kernel::possible(tier),
            _ => perf(&proc),
        };
        match possible {
            Ok(()) => return Survey { tier, refused },
            Err(reason) => refused.push((tier, reason)),
        }
    }
    Survey { tier: Tier::D, refused }
}

/// The tier that is used.
pub(super) struct Chosen {
    pub(super) tier: Tier,
    pub(super) refused: Vec<Refusal>,
    pub(super) bpf: Option<kernel::Programs>,
}

/// The best tier that works here, or the one that was asked for.
pub(super) fn choose(
    options: &RecordOptions,
    everybody: bool,
    proc: &ProcFs,
    sink: &SharedSink,
) -> Result<Chosen, Error> {
    let mut refused = Vec::new();
    let mut last = None;
    for tier in [Tier::A, Tier::B, Tier::C, Tier::D] {
        if options.tier.is_some_and(|wanted| wanted != tier) {
            continue;
        }
        let tried = match tier {
            Tier::A | Tier::B => kernel::attach(tier, options, everybody, sink).map(Some),
            Tier::C => perf(proc).map(|()| None),
            Tier::D if everybody => Err("it follows own processes only: run as root".to_owned()),
            // What is left needs nothing: with perf events faults are seen, without them files.
            Tier::D => Ok(None),
            Tier::Imported => Err("nothing records it: it is of another system".to_owned()),
        };
        match tried {
            Ok(bpf) => return Ok(Chosen { tier, refused, bpf }),
            Err(reason) => {
                last = Some((tier, reason.clone()));
                refused.push((tier, reason));
            }
        }
    }
    let (tier, reason) = last.unwrap_or((Tier::D, "no tier was tried".to_owned()));
    Err(Error::Tier { tier, reason })
}

/// Tier C: events of the kernel's own code too.
fn perf(proc: &ProcFs) -> Result<(), String> {
    try_perf(false).map_err(|e| refusal(&e, proc))
}

/// Opens one event of this thread and closes it again.
pub(super) fn try_perf(user_only: bool) -> io::Result<()> {
    let (kind, stack) = (EventKind::MajorFaults, UserStacks::None);
    let spec = PerfSpec { kind, whom: Whom::Thread(0), user_only, stack, wake_at: 1 };
    OpenPerfEvent::open(&spec, 0).map(drop)
}

pub(super) fn refusal(e: &io::Error, proc: &ProcFs) -> String {
    let level = proc.sysctl("kernel.perf_event_paranoid").unwrap_or_else(|_| "not readable".to_owned());
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf events are refused ({e}; kernel.perf_event_paranoid is {level}): run as root or with CAP_PERFMON"
        ),
        _ => format!("perf events cannot be used ({e})"),
    }
}
