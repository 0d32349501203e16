//! Made-up starts of a fleet from one real (or made-up) recording, with differences that are known: for tests of
//! queries and of scale. Not part of a release.
//!
//! Parameters, all of them: versions `1.0` to `1.4`, one after the other in time; of each version one needed page in ten
//! is another's (dropped by a hash of version, file and page); each start leaves out one page in fifty by chance.
//! Version [`SLOW_VERSION`] takes a quarter longer. Machine classes [`MACHINES`]; the last takes [`SLOW_MACHINE`] times
//! as long. Beside that times vary by a normal factor of 3 %.

use cold_analyze::analyze;
use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_model::{Known, Nanos};
use cold_recording::fleet::FleetStart;
use cold_stats::Pcg;

use crate::start::{AddsNothing, Scenario, Words, rows};

/// Versions, the oldest first.
pub const VERSIONS: [&str; 5] = ["1.0", "1.1", "1.2", "1.3", "1.4"];
/// The one that is slower than the one before.
pub const SLOW_VERSION: &str = "1.3";
/// Classes of machines.
pub const MACHINES: [&str; 4] = ["desktop", "laptop", "server", "tablet"];
/// How many times as long the last class takes.
pub const SLOW_MACHINE: f64 = 1.8;

/// Start `n` of so many of a fleet whose starts are like `like`.
///
/// # Errors
/// As [`rows`].
pub fn start(like: &Recording, n: u64, of: u64) -> Result<FleetStart, AddsNothing> {
    let mut rng = Pcg::new(n, 1);
    let version = (n * VERSIONS.len() as u64 / of.max(1)) as usize;
    let machine = rng.below(MACHINES.len() as u32) as usize;
    let mut r = like.clone();
    let m = &mut r.manifest;
    let slower = if VERSIONS.get(version) == Some(&SLOW_VERSION) { 1.25 } else { 1.0 };
    let class = if machine + 1 == MACHINES.len() { SLOW_MACHINE } else { 1.0 };
    let factor = slower * class * rng.normal().mul_add(0.03, 1.0).clamp(0.8, 1.2);
    let ready = m.ready.as_ref().and_then(Known::value).map_or(0, |t| t.0.saturating_sub(m.start.0));
    let longer = Nanos(m.start.0 + (ready as f64 * factor) as u64);
    m.ready = Some(Known::Value(longer));
    m.end = m.end.max(longer);
    // Another start, one minute after the one before.
    m.environment = format!("start {n}");
    let began: jiff::Timestamp = m.started_at.parse().map_err(|_| AddsNothing::NoTime)?;
    let later = jiff::SignedDuration::from_mins(n.cast_signed());
    m.started_at = began.checked_add(later).map_err(|_| AddsNothing::NoTime)?.to_string();
    if let Some(touches) = &mut r.touches {
        touches.retain(|t| !another_version(version, t.file, t.first_page) && rng.below(50) > 0);
    }
    let words = Words {
        program: Some("app".to_owned()),
        version: VERSIONS.get(version).map(|v| (*v).to_owned()),
        machine: MACHINES.get(machine).map(|m| (*m).to_owned()),
        scenario: Scenario::Named("plain".to_owned()),
        ..Words::default()
    };
    rows(&r, &analyze(&r, &Layouts::default()), &words)
}

fn another_version(version: usize, file: u32, page: u64) -> bool {
    let stream = u64::from(file) << 8 | version as u64;
    Pcg::new(page, stream).below(10) == 0
}
