//! What a machine could do otherwise for a start: the existing models' answers as remedies. Nothing of it is tried.

use cold_model::figures::plural;
use cold_model::{Bytes, Known, Nanos};

use super::Diagnosis;
use super::remedies::{Price, Remedy};

/// Files named of those on a slower disk.
const NAMED: usize = 3;

/// A change of the machine, with what its model says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// The files of the start on another disk of this machine, which was measured.
    Disk {
        /// Where the other disk is mounted.
        mounted: String,
        /// Its name, and its model where it has one.
        name: String,
        /// The files that the start reads most of, the most first, with the bytes of each.
        files: Vec<(String, Bytes)>,
        /// The simulated start on the disk of today and on the other one.
        predicted: [Nanos; 2],
    },
    /// What the plan reads, in one piece on its disk.
    Arranged {
        /// How long the disk reads it from the places of today and from arranged ones, doing nothing else.
        reading: [Nanos; 2],
    },
    /// `cold service` follows the plan.
    Service,
}

impl Offer {
    /// As a remedy; `None` where its model promises nothing, or it needs a plan and there is none that helps.
    pub(super) fn remedy(&self, d: &Diagnosis, plan: Option<&Remedy>) -> Option<Remedy> {
        match self {
            Self::Disk { mounted, name, files, predicted } => disk(d, mounted, name, files, *predicted),
            Self::Arranged { reading } => arranged(d, plan?, *reading),
            Self::Service => service(plan?),
        }
    }
}

fn disk(
    d: &Diagnosis,
    mounted: &str,
    name: &str,
    files: &[(String, Bytes)],
    [today, there]: [Nanos; 2],
) -> Option<Remedy> {
    // The model's own start is as long as the recorded one, the measured ones are not: its ratio is told.
    let base = d.cold.value().map(|t| t.median).or(d.recorded_cold.value().copied()).unwrap_or(today);
    let part = 1.0 - there.0 as f64 / today.0.max(1) as f64;
    let saved = Nanos((base.0 as f64 * part.max(0.0)) as u64);
    let named: Vec<String> =
        files.iter().take(NAMED).map(|(path, bytes)| format!("{path} ({bytes})")).collect();
    let more = files.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {} more", plural(more as u64, "file")) } else { String::new() };
    (saved.0 > 0).then(|| Remedy {
        id: "faster_disk".to_owned(),
        what: format!("Put the program's files on the disk that is mounted at {mounted}."),
        why: format!(
            "That disk ({name}) was measured; the simulated start takes {there} on it, and {today} on its own. It reads \
             most of {}{more}.",
            named.join(", ")
        ),
        price: Price::Machine,
        predicted: Known::Value(saved),
        measured: Known::unknown("files would have to move, so it was not tried"),
    })
}

fn arranged(d: &Diagnosis, plan: &Remedy, [today, there]: [Nanos; 2]) -> Option<Remedy> {
    if plan.saves()?.0 == 0 || there >= today {
        return None;
    }
    let faster = today.saturating_sub(there);
    // No start by a plan is faster than a warm one.
    let rest = match (d.prefetched.value(), d.warm.value()) {
        (Some(with), Some(warm)) => with.median.saturating_sub(warm.median),
        _ => faster,
    };
    let saved = faster.min(rest);
    (saved.0 > 0).then(|| Remedy {
        id: "arrange_blocks".to_owned(),
        what: "Besides following the plan, put what it reads in one piece on the disk (cold layout disk --plan NAME).".to_owned(),
        why: format!("The disk reads it in {today} from the places of today, in {there} from one piece."),
        price: Price::Machine,
        predicted: Known::Value(saved),
        measured: Known::unknown("blocks would have to move, so it was not tried"),
    })
}

fn service(plan: &Remedy) -> Option<Remedy> {
    let saved = plan.saves().filter(|t| t.0 > 0)?;
    Some(Remedy {
        id: "service".to_owned(),
        what: "Let the service read it ahead at every start, wrapped by nobody (sudo cold prefetch learn, then sudo cold \
               service run)."
            .to_owned(),
        why: "It reads by the same plan, from some hundred microseconds after the start on, and leaves out some starts \
              to compare with. Instead of cold launch, not besides."
            .to_owned(),
        price: Price::Machine,
        predicted: Known::Value(saved),
        measured: Known::unknown("a service would have to run, so it was not tried; the plan that it follows was looked at"),
    })
}
