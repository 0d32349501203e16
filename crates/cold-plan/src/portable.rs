//! A plan for another machine: JSON with paths and build-ids (docs/formats/plan.md, portable form).
//!
//! Only what was learnt travels. What was made for one machine (identities, steps, device, bound, trial)
//! is made anew there: [`import`] takes the identities from the files it finds and names the files that
//! are missing or others; the caller compiles the steps.
//!
//! A program of another version needs nearly the same places of its files: between two security updates of a
//! distribution 96 % of the pages that a start needed were in the other version's plan (docs/guides/fleet.md). So
//! what is known of another build of a file can be carried over, and is named, since it is a guess.

mod document;
mod moved;

use std::collections::HashMap;
use std::fmt;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cold_model::pages::LiveRuns;
use document::Document;

pub use moved::{Part, Parts};

use crate::Plan;
use crate::format::{FormatError, MAX_FILES, MAX_RANGES, encode};
use crate::plan::{FileKind, Identity, Key, PAGE, PlanFile, Range, Standing};

/// Name and version of the form.
pub const FORMAT: &str = "coldstart.plan-export/1";
/// A longer text is no plan: at its limits one has some 700 MiB.
pub const MAX_BYTES: usize = 1 << 30;

/// A file whose size differs by more than this part of what it was is no other version, but another thing: between the
/// two versions that were measured files grew and shrank by less than 1 %.
const MOST_DIFFERENT: u64 = 8;

/// What becomes of the files of which this machine has another build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// They drop out.
    LeaveOut,
    /// Their pages are read at the same places of their sections, or of the file where nothing tells these, where the
    /// sizes are about the same.
    Carry,
}

/// Why a text is no plan for this machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No JSON, or not of this form.
    #[error("not an exported plan: {0}")]
    Json(#[from] serde_json::Error),
    /// Another form, or a later version of it.
    #[error(
        "its format is {0:?}, and this program reads {FORMAT:?}: export it again, or use the newer program"
    )]
    Version(String),
    /// The executable or the script does not exist here.
    #[error("{path}: {source}; the plan is for a program that is not installed here")]
    Missing {
        /// By the plan.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// It breaks a rule of plans.
    #[error(transparent)]
    Plan(#[from] FormatError),
    /// A number that is no build-id.
    #[error("{0:?} is no build-id: it is up to 20 bytes in hexadecimal digits")]
    BuildId(String),
    /// Larger than any plan.
    #[error("longer than {} MiB: no plan", MAX_BYTES >> 20)]
    TooLarge,
}

/// A plan that came from another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// With the identities of this machine's files and without steps.
    pub plan: Plan,
    /// What did not come along.
    pub dropped: Vec<Dropped>,
    /// What came along although this machine has another build of it, and how it differs.
    pub carried: Vec<Dropped>,
}

/// A file that is not the exported plan's: not part of the imported one, or carried over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Path that the exported plan has for it.
    pub path: PathBuf,
    /// What is different on this machine.
    pub why: Why,
}

/// Why a file did not come along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It cannot be looked at; the kernel's answer.
    Missing(String),
    /// It is no file of the kind that the plan names.
    OtherKind,
    /// Its size is another, and no build-id says that its code is the same.
    OtherSize {
        /// Bytes where the plan was learnt.
        was: u64,
        /// Bytes of the file that is at its path on this machine.
        is: u64,
    },
    /// Its build-id is another: another version.
    OtherBuild,
    /// Blocks of a disk are not at the same places on another.
    Blocks,
}

impl Why {
    /// The file is there, with other content.
    fn is_another_build(&self) -> bool {
        matches!(self, Self::OtherBuild | Self::OtherSize { .. })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => write!(f, "{why}"),
            Self::OtherKind => write!(f, "it is another kind of file here"),
            Self::OtherSize { was, is } => write!(f, "it has {is} bytes here, and had {was}"),
            Self::OtherBuild => write!(f, "it is another build (its build-id differs)"),
            Self::Blocks => write!(f, "a disk's own blocks lie elsewhere on another machine"),
        }
    }
}

/// The plan as JSON text. `sections` reads those of a file, where it has some: by them its pages are found in another build.
pub fn export(plan: &Plan, sections: &dyn Fn(&Path) -> Parts) -> Result<String, Error> {
    Ok(serde_json::to_string_pretty(&Document::of(plan, sections))?)
}

/// Reads an exported plan for this machine. `build_id` reads the build-id of a file, where it has one; `sections` its
/// sections.
pub fn import(
    text: &str,
    build_id: &dyn Fn(&Path) -> Option<[u8; 20]>,
    sections: &dyn Fn(&Path) -> Parts,
    others: Others,
) -> Result<Imported, Error> {
    if text.len() > MAX_BYTES {
        return Err(Error::TooLarge);
    }
    let document = Document::parse(text)?;
    let counts = [("files", document.files.len(), MAX_FILES), ("ranges", document.ranges.len(), MAX_RANGES)];
    for (what, found, most) in counts {
        if found as u64 > most {
            return Err(FormatError::Budget { what, found: found as u64, most }.into());
        }
    }
    let (plan, were) = document.into_plan()?;
    let key = here(&plan.key, build_id)?;
    let (mut dropped, mut carried) = (Vec::new(), Vec::new());
    let mut files: Vec<PlanFile> = Vec::new();
    let mut places = HashMap::new();
    let mut others_of: HashMap<u32, (&Parts, Parts)> = HashMap::new();
    for (place, file) in plan.files.into_iter().enumerate() {
        let found = look(&file, build_id);
        let other = found.as_ref().err().filter(|_| others == Others::Carry).and_then(|why| {
            let here = identity_here(&file.path, build_id).ok()?;
            (why.is_another_build() && about_the_same(file.identity.size, here.size)).then_some((why, here))
        });
        if let Some((why, identity)) = other {
            carried.push(Dropped { path: file.path.clone(), why: why.clone() });
            if let Some(was) = were.get(place).filter(|was| !was.is_empty()) {
                others_of.insert(place as u32, (was, sections(&file.path)));
            }
            places.insert(place as u32, (files.len() as u32, identity.size.div_ceil(PAGE)));
            files.push(PlanFile { identity, exact: false, ..file });
            continue;
        }
        match found {
            Ok(identity) => {
                places.insert(place as u32, (files.len() as u32, u64::MAX));
                files.push(PlanFile { identity, ..file });
            }
            Err(why) => dropped.push(Dropped { path: file.path, why }),
        }
    }
    // An index beyond the files, in a text that somebody wrote by hand, drops out with them.
    let range = |r: Range| {
        let (file, end) = *places.get(&r.file)?;
        let left = u32::try_from(end.saturating_sub(r.first_page)).unwrap_or(u32::MAX);
        (left > 0).then(|| Range { file, pages: r.pages.min(left), ..r })
    };
    let mut ranges: Vec<Range> = Vec::new();
    for r in plan.ranges {
        match others_of.get(&r.file) {
            Some((was, is)) => ranges.extend(moved::moved(r, was, is).into_iter().filter_map(range)),
            None => ranges.extend(range(r)),
        }
        // A range of many sections becomes several.
        if ranges.len() as u64 > MAX_RANGES {
            let (what, found, most) = ("ranges", ranges.len() as u64, MAX_RANGES);
            return Err(FormatError::Budget { what, found, most }.into());
        }
    }
    let ranges = apart(ranges);
    let plan = Plan { key, files, ranges, standing: Standing::Untried, ..plan };
    encode(&plan)?;
    Ok(Imported { plan, dropped, carried })
}

/// Each page of a file once, at its first need: what was moved may meet.
fn apart(ranges: Vec<Range>) -> Vec<Range> {
    let mut seen: HashMap<u32, LiveRuns> = HashMap::new();
    let mut out = Vec::with_capacity(ranges.len());
    for r in ranges {
        let all = r.first_page..r.first_page.saturating_add(u64::from(r.pages));
        let seen = seen.entry(r.file).or_default();
        for hole in seen.holes(&all) {
            let pages = u32::try_from(hole.end - hole.start).unwrap_or(u32::MAX);
            out.push(Range { first_page: hole.start, pages, ..r });
        }
        seen.insert(&all);
    }
    out
}

/// Two versions of one file, by their sizes.
fn about_the_same(was: u64, is: u64) -> bool {
    is > 0 && was.abs_diff(is) <= was / MOST_DIFFERENT
}

/// The identity of the regular file that is at this path.
fn identity_here(path: &Path, build_id: &dyn Fn(&Path) -> Option<[u8; 20]>) -> std::io::Result<Identity> {
    Ok(Identity::of(&path.metadata()?, build_id(path).unwrap_or_default()))
}

/// The key with this machine's paths and identity.
fn here(key: &Key, build_id: &dyn Fn(&Path) -> Option<[u8; 20]>) -> Result<Key, Error> {
    let canonical = |path: &PathBuf| {
        std::fs::canonicalize(path).map_err(|source| Error::Missing { path: path.clone(), source })
    };
    let executable = canonical(&key.executable)?;
    let meta = executable.metadata().map_err(|source| Error::Missing { path: executable.clone(), source })?;
    let identity = Identity::of(&meta, build_id(&executable).unwrap_or_default());
    let script = key.script.as_ref().map(canonical).transpose()?;
    Ok(Key { executable, identity, script, scenario: key.scenario.clone() })
}

/// The identity of the file here, if it is the one that the plan means.
fn look(file: &PlanFile, build_id: &dyn Fn(&Path) -> Option<[u8; 20]>) -> Result<Identity, Why> {
    let missing = |e: std::io::Error| Why::Missing(e.to_string());
    let kind_is = |meta: &Metadata, right: bool| if right { Ok(meta.clone()) } else { Err(Why::OtherKind) };
    match file.kind {
        FileKind::BlockDevice => Err(Why::Blocks),
        // One that is not there is looked up, too: it need not have been there either.
        FileKind::Name => match file.path.symlink_metadata() {
            Err(e) if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Err(missing(e)),
            _ => Ok(Identity::default()),
        },
        FileKind::Directory => {
            let meta = file.path.metadata().map_err(missing)?;
            kind_is(&meta, meta.is_dir()).map(|_| Identity::default())
        }
        FileKind::Regular => {
            let meta = file.path.metadata().map_err(missing)?;
            let meta = kind_is(&meta, meta.is_file())?;
            same_content(file, Identity::of(&meta, build_id(&file.path).unwrap_or_default()))
        }
    }
}

/// Two builds are told apart by their build-ids; without them only the size can tell.
fn same_content(file: &PlanFile, here: Identity) -> Result<Identity, Why> {
    let was = &file.identity;
    if was.build_id != here.build_id {
        Err(Why::OtherBuild)
    } else if was.build_id == [0; 20] && was.size != here.size {
        Err(Why::OtherSize { was: was.size, is: here.size })
    } else {
        Ok(here)
    }
}

#[cfg(test)]
mod tests;
