//! A plan of what many starts agree upon.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

use cold_model::path_text;
use cold_plan::Plan;
use cold_plan::identity::build_id_of;
use cold_plan::plan::{FileKind, Identity, Key, Learnt, PlanFile, Range};
use cold_plan::portable::Parts;
use cold_prefetch::default_knobs;
use serde::Deserialize;

use crate::redact::{PREFIX, WORD_PREFIX};

/// A row of [`crate::query::SUBJECT`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Subject {
    program: String,
    version: String,
    scenario: String,
    executable: String,
    executable_build_id: String,
    executable_size: u64,
    script: String,
    starts: u32,
    cold: u32,
    tier: String,
    all_exact: u8,
    all_one_thread: u8,
    first_at: u64,
    last_at: u64,
    computing: u64,
}

/// A row of [`crate::query::CONSENSUS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Agreed {
    path: String,
    build_id: String,
    size: u64,
    first_page: u64,
    pages: u64,
    used: u64,
    starts: u64,
    need: u64,
    around: bool,
    sections: String,
}

/// A row of [`crate::query::NAMES`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Name {
    kind: String,
    path: String,
    used: u64,
    starts: u64,
    need: u64,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoConsensus {
    /// Nothing was chosen.
    #[error("no start of this kind teaches: there is none in the dataset that was recorded whole")]
    NoStarts,
    /// A plan is for one program, version and scenario.
    #[error("the starts are of more than one {what}: {}", .found.join(", "))]
    Several {
        /// In what they differ.
        what: Differs,
        /// The different values, sorted.
        found: Vec<String>,
    },
    /// Nobody knows any more which program it was, or how it was started.
    #[error("the program or its scenario is redacted: a plan has to name both")]
    Redacted,
    /// No page was needed by enough starts.
    #[error("the starts agree on no page")]
    Nothing,
}

/// In what starts differ that one plan cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Differs {
    /// Name of the program.
    Program,
    /// Version of the program.
    Version,
    /// The way in which it was started.
    Scenario,
    /// Path of the executable.
    Executable,
    /// Path of the script.
    Script,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::Version => "version",
            Self::Scenario => "scenario",
            Self::Executable => "executable",
            Self::Script => "script",
        })
    }
}

/// A consensus as a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Consensus {
    /// Without identities, steps and device, as a plan that travels.
    pub plan: Plan,
    /// Sections of its files, where starts told them.
    pub sections: HashMap<PathBuf, Parts>,
    /// Files and names that cannot be part of it, because their paths are redacted.
    pub redacted: u64,
}

impl Consensus {
    /// Its files' sections by path, as [`cold_plan::portable::export`] asks for them.
    pub fn sections_of(&self) -> impl Fn(&Path) -> Parts {
        |path| self.sections.get(path).cloned().unwrap_or_default()
    }
}

/// The plan of these answers.
///
/// # Errors
/// [`NoConsensus`].
pub fn plan(subjects: &[Subject], pages: &[Agreed], names: &[Name]) -> Result<Consensus, NoConsensus> {
    let first = subjects.first().ok_or(NoConsensus::NoStarts)?;
    one(Differs::Program, subjects, |s| &s.program)?;
    one(Differs::Version, subjects, |s| &s.version)?;
    one(Differs::Scenario, subjects, |s| &s.scenario)?;
    one(Differs::Executable, subjects, |s| &s.executable)?;
    one(Differs::Script, subjects, |s| &s.script)?;
    if [&first.executable, &first.script].iter().any(|path| path.starts_with(PREFIX))
        || first.scenario.starts_with(WORD_PREFIX)
    {
        return Err(NoConsensus::Redacted);
    }
    let Contents { files, ranges, sections, redacted } = contents(pages, names);
    if ranges.is_empty() {
        return Err(NoConsensus::Nothing);
    }
    let identity = Identity {
        size: first.executable_size,
        build_id: build_id_of(&first.executable_build_id).unwrap_or_default(),
        ..Identity::default()
    };
    let key = Key {
        executable: path_text::decode(&first.executable),
        identity,
        script: (!first.script.is_empty()).then(|| path_text::decode(&first.script)),
        scenario: first.scenario.clone(),
    };
    let plan = Plan::unmade(key, learnt(subjects), files, ranges, default_knobs(None));
    Ok(Consensus { plan, sections, redacted })
}

fn one(what: Differs, subjects: &[Subject], of: impl Fn(&Subject) -> &String) -> Result<(), NoConsensus> {
    let mut found: Vec<String> = subjects.iter().map(|s| of(s).clone()).collect();
    found.sort();
    found.dedup();
    if found.len() > 1 { Err(NoConsensus::Several { what, found }) } else { Ok(()) }
}

fn learnt(subjects: &[Subject]) -> Learnt {
    let seconds = |ns: u64| ns / 1_000_000_000;
    let least = |of: fn(&Subject) -> u64| subjects.iter().map(of).min().unwrap_or(0);
    Learnt {
        starts: subjects.iter().map(|s| s.starts).sum(),
        cold_starts: subjects.iter().map(|s| s.cold).sum(),
        // A for the best, so the greater letter is the lower tier.
        tier: subjects.iter().filter_map(|s| s.tier.chars().next()).max().unwrap_or('D'),
        exact: subjects.iter().all(|s| s.all_exact == 1),
        one_thread: subjects.iter().all(|s| s.all_one_thread == 1),
        goes_on: false,
        first: seconds(least(|s| s.first_at)),
        last: seconds(subjects.iter().map(|s| s.last_at).max().unwrap_or(0)),
        cpu_ns: least(|s| s.computing),
        // Machines differ: what one measured is no other's.
        cold_ready_ns: 0,
        own_cpu_ns: 0,
    }
}

/// A history of 8 starts that stands for a share of many.
fn history(used: u64, starts: u64) -> u8 {
    let eighths = (used * 8).div_ceil(starts.max(1)).clamp(1, 8);
    u8::MAX >> (8 - eighths)
}

/// What a plan reads.
struct Contents {
    files: Vec<PlanFile>,
    ranges: Vec<Range>,
    sections: HashMap<PathBuf, Parts>,
    redacted: u64,
}

fn contents(pages: &[Agreed], names: &[Name]) -> Contents {
    let mut files: Vec<PlanFile> = Vec::new();
    let mut ranges = Vec::new();
    let mut sections = HashMap::new();
    // Of several files of one name the one that most starts had.
    let mut users: HashMap<(&str, &str, u64), u64> = HashMap::new();
    for p in pages {
        let most = users.entry((&p.path, &p.build_id, p.size)).or_default();
        *most = (*most).max(p.used);
    }
    let mut best: HashMap<&str, (u64, &str, u64)> = HashMap::new();
    for ((path, build_id, size), used) in users {
        let chosen = best.entry(path).or_insert((used, build_id, size));
        *chosen = (*chosen).max((used, build_id, size));
    }
    let mut redacted: Vec<&str> = Vec::new();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for p in pages {
        if p.path.starts_with(PREFIX) {
            redacted.push(&p.path);
            continue;
        }
        if best.get(p.path.as_str()).is_none_or(|b| (b.1, b.2) != (p.build_id.as_str(), p.size)) {
            continue;
        }
        let next = files.len() as u32;
        let number = *numbers.entry(&p.path).or_insert(next);
        if number == next {
            let build_id = build_id_of(&p.build_id).unwrap_or_default();
            let identity = Identity { size: p.size, build_id, ..Identity::default() };
            files.push(file(&p.path, FileKind::Regular, identity, p.need));
            let parts = Parts::of_text(&p.sections);
            if !parts.is_empty() {
                sections.insert(path_text::decode(&p.path), parts);
            }
        }
        let uses = history(p.used, p.starts);
        if let Some(f) = files.get_mut(number as usize) {
            f.need_ns = f.need_ns.min(p.need);
            f.uses = f.uses.max(uses);
        }
        let Ok(pages) = u32::try_from(p.pages) else { continue };
        ranges.push(Range {
            file: number,
            first_page: p.first_page,
            pages,
            need_ns: p.need,
            uses,
            around: p.around,
        });
    }
    for n in names {
        if n.path.starts_with(PREFIX) {
            redacted.push(&n.path);
            continue;
        }
        let kind = if n.kind == "directory" { FileKind::Directory } else { FileKind::Name };
        if !numbers.contains_key(n.path.as_str()) {
            numbers.insert(&n.path, files.len() as u32);
            let uses = history(n.used, n.starts);
            files.push(PlanFile { uses, ..file(&n.path, kind, Identity::default(), n.need) });
        }
    }
    redacted.sort_unstable();
    redacted.dedup();
    ranges.sort_by_key(|r| (r.need_ns, r.file, r.first_page));
    Contents { files, ranges, sections, redacted: redacted.len() as u64 }
}

fn file(path: &str, kind: FileKind, identity: Identity, need_ns: u64) -> PlanFile {
    let path: PathBuf = path_text::decode(path);
    PlanFile { path, kind, identity, need_ns, uses: 1, exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_plan::portable::Part;

    fn subject(version: &str) -> Subject {
        serde_json::from_value(serde_json::json!({
            "program": "app", "version": version, "scenario": "plain", "executable": "/usr/bin/app",
            "executable_build_id": "ab", "executable_size": 7, "script": "", "starts": 10, "cold": 9, "tier": "B",
            "all_exact": 0, "all_one_thread": 1, "first_at": 5_000_000_000_u64, "last_at": 9_000_000_000_u64,
            "computing": 3
        }))
        .unwrap()
    }

    fn pages(path: &str, build_id: &str, first_page: u64, used: u64) -> Agreed {
        let (path, build_id) = (path.to_owned(), build_id.to_owned());
        Agreed {
            path,
            build_id,
            size: 1 << 20,
            first_page,
            pages: 4,
            used,
            starts: 10,
            need: first_page,
            around: false,
            sections: String::new(),
        }
    }

    #[test]
    fn a_plan_holds_the_files_most_starts_had_with_shares_as_histories() {
        let rows = [
            pages("/a", "11", 0, 5),
            pages("/a", "22", 8, 6),
            pages("/a", "22", 0, 10),
            pages("redacted/x", "", 0, 9),
        ];
        let names = [Name { kind: "name".into(), path: "/a".into(), used: 9, starts: 10, need: 1 }];
        let made = plan(&[subject("1")], &rows, &names).unwrap();
        assert_eq!(made.redacted, 1);
        assert_eq!(made.plan.files.len(), 1, "its name is looked up by opening it");
        let file = &made.plan.files[0];
        assert_eq!((file.identity.build_id[0], file.need_ns, file.uses), (0x22, 0, 0xff));
        let ranges: Vec<_> = made.plan.ranges.iter().map(|r| (r.first_page, r.uses)).collect();
        assert_eq!(ranges, [(0, 0xff), (8, 0x1f)]);
        let learnt = made.plan.learnt;
        assert_eq!((learnt.starts, learnt.tier, learnt.first, learnt.last), (10, 'B', 5, 9));
        assert!(cold_plan::portable::export(&made.plan, &made.sections_of()).is_ok());
    }

    #[test]
    fn sections_go_with_the_file_that_the_plan_has() {
        let with = |build_id, sections: &str, used| Agreed {
            sections: sections.into(),
            ..pages("/a", build_id, 0, used)
        };
        let rows = [with("22", r#"[[".text",4096,9]]"#, 9), with("11", r#"[[".text",0,9]]"#, 1)];
        let made = plan(&[subject("1")], &rows, &[]).unwrap();
        let of = made.sections_of();
        assert_eq!(of(Path::new("/a")), Parts::from(vec![Part(".text".into(), 4096, 9)]));
        assert!(of(Path::new("/b")).is_empty());
        // Redacted, of another program than ELF, or nonsense: nothing is known.
        assert!(plan(&[subject("1")], &[with("22", "{", 9)], &[]).unwrap().sections.is_empty());
    }

    #[test]
    fn what_is_not_one_program_is_no_plan() {
        let rows = [pages("/a", "", 0, 10)];
        assert_eq!(plan(&[], &rows, &[]).unwrap_err(), NoConsensus::NoStarts);
        let several = plan(&[subject("1"), subject("2")], &rows, &[]).unwrap_err();
        assert!(several.to_string().contains("more than one version: 1, 2"), "{several}");
        assert_eq!(plan(&[subject("1")], &[], &[]).unwrap_err(), NoConsensus::Nothing);
        let program = Subject { executable: "redacted/0".into(), ..subject("1") };
        let scenario = Subject { scenario: "redacted-0".into(), ..subject("1") };
        for hidden in [program, scenario] {
            assert_eq!(plan(&[hidden], &rows, &[]).unwrap_err(), NoConsensus::Redacted);
        }
    }

    #[test]
    fn histories_stand_for_shares() {
        let of = [(1, 1000), (1, 2), (10, 10), (9, 10)].map(|(used, starts)| history(used, starts));
        assert_eq!(of, [1, 0xf, 0xff, 0xff]);
    }
}
