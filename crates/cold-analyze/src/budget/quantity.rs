//! What can be counted of a recording, by name.

use cold_gate::Unit;
use cold_model::recording::TouchKind;
use cold_model::recording::tables::Began;
use cold_model::{Bytes, Known, Nanos, path_text};

use crate::context::Context;
use crate::model::{Analysis, FileUse, Reached};

/// A count of a recording, from the start to ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Regular files that were executed, mapped or opened.
    Files,
    /// Those of them of which pages were needed.
    FilesNeeded,
    /// Shared objects that were mapped.
    Libraries,
    /// Bytes of the pages that were needed, each once.
    Needed,
    /// Bytes read into the cache.
    Read,
    /// Bytes read and not needed.
    Unused,
    /// Bytes of metadata of file systems, part of [`Self::Read`].
    Metadata,
    /// Bytes read past the cache.
    Direct,
    /// Read requests to devices that the start made; merged ones count once.
    Requests,
    /// Faults on pages of mapped files; those that were only mapped around one are none.
    Faults,
    /// Path resolutions, found or not.
    Lookups,
    /// Path resolutions that found nothing.
    LookupsMissed,
    /// Processes of the tree.
    Processes,
    /// Programs executed, the command itself among them.
    Execs,
    /// Threads of the tree, each process' first among them.
    Threads,
}

impl Quantity {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 15] = [
        ("files", Self::Files),
        ("files-needed", Self::FilesNeeded),
        ("libraries", Self::Libraries),
        ("needed", Self::Needed),
        ("read", Self::Read),
        ("unused", Self::Unused),
        ("metadata", Self::Metadata),
        ("direct", Self::Direct),
        ("requests", Self::Requests),
        ("faults", Self::Faults),
        ("lookups", Self::Lookups),
        ("lookups-missed", Self::LookupsMissed),
        ("processes", Self::Processes),
        ("execs", Self::Execs),
        ("threads", Self::Threads),
    ];

    /// The quantity of this name; `misses` is that of benchmarks for `lookups-missed`.
    pub fn named(name: &str) -> Option<Self> {
        let name = if name == "misses" { "lookups-missed" } else { name };
        cold_gate::scan::lookup(&Self::ALL, name)
    }

    /// All names, for an error.
    pub fn names() -> String {
        cold_gate::scan::alternatives(&Self::ALL)
    }

    /// The word that stands for it in a budget and in answers.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, q)| *q == self).map_or("", |(name, _)| name)
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Needed | Self::Read | Self::Unused | Self::Metadata | Self::Direct => Unit::Bytes,
            _ => Unit::Count,
        }
    }

    /// The least that its value may be, where [`Self::of`] is an upper bound: pages that were only mapped around a fault
    /// are part of what was needed, and how many these are varies from start to start (which folios the cache made).
    pub(super) fn least(self, analysis: &Analysis) -> Option<f64> {
        let h = &analysis.headline;
        match self {
            Self::Needed => Some(h.needed.value()?.saturating_sub(*h.needed_upper.value()?).0 as f64),
            _ => None,
        }
    }

    /// Its value, or why that is unknown.
    pub(super) fn of(self, analysis: &Analysis, cx: &Context<'_>) -> Result<f64, String> {
        let h = &analysis.headline;
        let r = cx.recording;
        let bytes = |k: &Known<Bytes>| k.clone().map(|n| n.0);
        let count = |n: usize| Known::Value(n as u64);
        let value = match self {
            Self::Files => h.files.clone(),
            Self::FilesNeeded => h.files_needed.clone(),
            // A tier that does not know the files does not know the libraries either.
            Self::Libraries => {
                let n = analysis.files.iter().filter(|f| is_mapped_library(f)).count();
                h.files.clone().map(|_| n as u64)
            }
            Self::Needed => bytes(&h.needed),
            Self::Read => bytes(&h.read),
            Self::Unused => bytes(&h.unused),
            Self::Metadata => bytes(&h.metadata),
            Self::Direct => bytes(&h.direct),
            Self::Requests => h.requests.clone(),
            Self::Faults => {
                let touches = r.touches.iter().flatten();
                let faults = touches.filter(|t| t.kind == TouchKind::Fault && cx.window.holds(t.at));
                let known = cx.if_table("touches", r.touches.as_ref(), faults.count() as u64);
                cx.unless_lost("touches", known)
            }
            Self::Lookups => cx.unless_lost("lookups", h.lookups.clone()),
            Self::LookupsMissed => cx.unless_lost("lookups", h.misses.clone()),
            Self::Processes => h.processes.clone(),
            Self::Execs | Self::Threads if r.processes.is_empty() => Known::unknown("no process was seen"),
            Self::Execs => count(execs(cx).count()),
            Self::Threads => {
                let threads = r.threads.iter().filter(|t| t.in_tree && lives(t.began, t.ended, cx));
                count(threads.count())
            }
        };
        match value {
            Known::Value(n) => Ok(n as f64),
            Known::Unknown { unknown } => Err(format!("{} is unknown: {unknown}", self.name())),
        }
    }
}

/// Somebody of this life was there in the time that counts.
fn lives(began: Nanos, ended: Option<Nanos>, cx: &Context<'_>) -> bool {
    began <= cx.window.until && ended.is_none_or(|ended| ended >= cx.window.start)
}

/// Images that an exec of the tree began.
pub(super) fn execs<'a>(
    cx: &Context<'a>,
) -> impl Iterator<Item = &'a cold_model::recording::Process> + use<'a> {
    let window = cx.window;
    let all = cx.recording.processes.iter();
    all.filter(move |p| p.in_tree && p.how == Began::Exec && window.holds(p.began))
}

/// A shared object in the address space of the start.
pub(super) fn is_mapped_library(f: &FileUse) -> bool {
    f.reached == Reached::Mapped && path_text::is_library(path_text::without_mark(&f.path).0)
}
