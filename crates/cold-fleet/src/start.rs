//! One recording → the rows that it adds to a dataset.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_analyze::model::Analysis;
use cold_model::Known;
use cold_model::hash::hexadecimal;
use cold_model::pages::LiveRuns;
use cold_model::recording::Recording;
use cold_model::recording::manifest::Subject;
use cold_model::recording::tables::Began;
use cold_plan::identity::build_id_of;
use cold_plan::plan::{FileKind, PlanFile};
use cold_plan::portable::Parts;
use cold_prefetch::learn::{self, StartNeeds, With};
use cold_recording::fleet::{FleetStart, PagesRow, Partition, RemedyRow, StartRow};
use sha2::{Digest, Sha256};

use crate::redact::{Paths, short};

/// Parts into which starts are divided by their names.
pub const FOLDS: u32 = 10;
/// Digits of a build-id that stand for a version.
const SHORT: usize = 12;

/// Name of the way in which a program was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scenario {
    /// By whoever adds the recording.
    Named(String),
    /// Of the arguments, of which it holds words: it is hidden with the paths.
    Derived(String),
}

impl Default for Scenario {
    fn default() -> Self {
        Self::Named("default".to_owned())
    }
}

/// What a recording does not say of itself.
#[derive(Debug, Clone, Default)]
pub struct Words {
    /// Name of the program; `None`: that of the script, else of the executable.
    pub program: Option<String>,
    /// Its version; `None`: the first digits of the executable's build-id, else `unknown`.
    pub version: Option<String>,
    /// Class of the machine; `None`: its CPUs, memory and architecture.
    pub machine: Option<String>,
    /// The way in which it was started.
    pub scenario: Scenario,
    /// The program, as plans know it; `None`: what the first process of the start executed first.
    pub executable: Option<PathBuf>,
    /// The script that an interpreter ran.
    pub script: Option<PathBuf>,
    /// How paths are written.
    pub paths: Paths,
    /// Sections of files that still are the recorded ones, by path.
    pub sections: HashMap<PathBuf, Parts>,
}

/// Why a recording adds nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddsNothing {
    /// Nothing could be learnt from it.
    #[error(transparent)]
    Learn(#[from] learn::TeachesNothing),
    /// Its manifest does not name a time.
    #[error("the recording does not say when it was made")]
    NoTime,
    /// None of its processes executed a file that has a name.
    #[error("the recording does not name the program that was started")]
    NoProgram,
}

/// The program as the recording has it: where it lies, its build-id and size.
fn executable<'a>(
    recording: &'a Recording,
    named: Option<&Path>,
) -> Option<(PathBuf, Option<&'a str>, Option<u64>)> {
    let by_name = named.and_then(|name| recording.files.iter().find(|f| f.place().as_deref() == Some(name)));
    let first = || {
        let first = recording.processes.iter().find(|p| p.how == Began::Exec && p.executable.is_some())?;
        recording.files.get(first.executable? as usize)
    };
    let file = by_name.or_else(first)?;
    Some((file.place()?, file.build_id.as_deref(), file.size))
}

/// What the start adds.
///
/// # Errors
/// [`AddsNothing`].
pub fn rows(recording: &Recording, analysis: &Analysis, words: &Words) -> Result<FleetStart, AddsNothing> {
    let m = &recording.manifest;
    if m.subject != Subject::Command {
        return Err(learn::TeachesNothing::NotACommand.into());
    }
    let observed = learn::observe(recording, &With::default())?;
    let made: jiff::Timestamp = m.started_at.parse().map_err(|_| AddsNothing::NoTime)?;
    let started = u64::try_from(made.as_nanosecond()).map_err(|_| AddsNothing::NoTime)?;
    let (path, build_id, size) =
        executable(recording, words.executable.as_deref()).ok_or(AddsNothing::NoProgram)?;
    let paths = &words.paths;
    let program = words.program.clone().or_else(|| paths.name(words.script.as_deref().unwrap_or(&path)));
    let version = || build_id.map(|id| id.chars().take(SHORT).collect());
    let partition = Partition {
        program: program.ok_or(AddsNothing::NoProgram)?,
        version: words.version.clone().or_else(version).unwrap_or_else(|| "unknown".to_owned()),
        machine: words.machine.clone().unwrap_or_else(|| machine_class(recording)),
        day: made.to_string().chars().take(10).collect(),
    };
    let start = id(recording);
    let whole = m.complete && m.lost_events() == 0;
    let h = &analysis.headline;
    let row = StartRow {
        started,
        fold: fold(&start),
        scenario: match &words.scenario {
            Scenario::Named(name) => name.clone(),
            Scenario::Derived(name) => paths.word(name),
        },
        executable: paths.text(&path),
        executable_build_id: build_id.and_then(build_id_of).map(build_id_text).unwrap_or_default(),
        executable_size: size.unwrap_or(0),
        script: words.script.as_deref().map(|s| paths.text(s)).unwrap_or_default(),
        kernel: m.machine.kernel.clone(),
        os: m.machine.os.clone(),
        tier: m.tier.to_string(),
        state: m.state.wanted.to_string(),
        exact: observed.exact,
        one_thread: observed.one_thread,
        whole,
        undisturbed: whole && m.taints.is_empty() && m.disqualified_by.is_empty(),
        ready: observed.ready_ns,
        computing: observed.computing_ns,
        waited: known(&h.waited).map(|t| t.0),
        needed: known(&h.needed).map(|b| b.0),
        read: known(&h.read).map(|b| b.0),
        unused: known(&h.unused).map(|b| b.0),
        requests: known(&h.requests),
        files: known(&h.files),
        lookups: known(&h.lookups),
        misses: known(&h.misses),
        start: start.clone(),
    };
    let remedies = analysis.suggestions.iter().map(|s| RemedyRow {
        start: start.clone(),
        remedy: s.id.name().to_owned(),
        saves: s.saves_time.map(|t| t.0),
    });
    Ok(FleetStart {
        partition,
        pages: pages(&start, &observed, words),
        remedies: remedies.collect(),
        start: row,
    })
}

fn known<T: Copy>(value: &Known<T>) -> Option<T> {
    value.value().copied()
}

/// CPUs, memory (rounded to a power of two from 1 GiB on, as machines are sold) and architecture.
fn machine_class(recording: &Recording) -> String {
    let m = &recording.manifest.machine;
    let gib = m.memory.0.div_ceil(1 << 30).next_power_of_two();
    let memory = if m.memory.0 == 0 { "unknown".to_owned() } else { format!("{gib}GiB") };
    format!("{}cpu-{memory}-{}", m.cpus, m.architecture)
}

/// The same for the same recording, another for any other: points of two clocks and the command.
fn id(recording: &Recording) -> String {
    let m = &recording.manifest;
    let mut digest = Sha256::new();
    let clocks = [m.start.0, m.end.0].map(u64::to_le_bytes).concat();
    let words = m.command.iter().map(|w| w.as_encoded_bytes());
    let texts = [m.started_at.as_bytes(), m.environment.as_bytes(), m.machine.kernel.as_bytes(), &clocks];
    for part in texts.into_iter().chain(words) {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    short(&digest.finalize())
}

/// By the name's last digits: no engine has to hash for it.
fn fold(start: &str) -> u32 {
    let digits = start.get(start.len().saturating_sub(8)..).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or(0) % FOLDS
}

/// What it needed, in order of need, each page of a file once.
fn pages(start: &str, observed: &StartNeeds, words: &Words) -> Vec<PagesRow> {
    let row = |f: &PlanFile| {
        let kind = match f.kind {
            FileKind::Regular => "regular",
            FileKind::Directory => "directory",
            FileKind::Name => "name",
            // Where a file system keeps its metadata is the matter of one disk.
            FileKind::BlockDevice => return None,
        };
        Some(PagesRow {
            start: start.to_owned(),
            kind: kind.to_owned(),
            path: words.paths.text(&f.path),
            build_id: build_id_text(f.identity.build_id),
            size: f.identity.size,
            first_page: 0,
            pages: 0,
            need: f.need_ns,
            around: false,
            sections: words.sections.get(&f.path).map(Parts::text).unwrap_or_default(),
        })
    };
    let files: Vec<Option<PagesRow>> = observed.files.iter().map(row).collect();
    let mut out: Vec<PagesRow> = files.iter().flatten().filter(|f| f.kind != "regular").cloned().collect();
    let mut seen = vec![LiveRuns::default(); files.len()];
    for r in &observed.ranges {
        let at = r.file as usize;
        let (Some(Some(file)), Some(seen)) = (files.get(at), seen.get_mut(at)) else { continue };
        let all = r.first_page..r.first_page.saturating_add(r.pages.into());
        for new in seen.holes(&all) {
            let (first_page, pages) = (new.start, new.end - new.start);
            out.push(PagesRow { first_page, pages, need: r.need_ns, around: r.around, ..file.clone() });
        }
        seen.insert(&all);
    }
    out
}

/// As plans have it: 40 digits; empty where it has none.
fn build_id_text(id: [u8; 20]) -> String {
    if id == [0; 20] { String::new() } else { hexadecimal(&id) }
}

#[cfg(test)]
mod tests;
