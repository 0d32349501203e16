//! A plan from a prefetch file of Windows: its paths are found below a directory, whatever their case.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Identity, Learnt, PlanFile, Range};
use cold_windows::pf::{LAUNCHES, Name, PageRun, Prefetch};

use super::plans;
use crate::exit::Failure;

/// Largest directory that is listed: one with more names has none that a start needs to be searched for in.
const MOST_NAMES: usize = 1 << 20;

/// A plan without steps, and what did not come along: path and why.
pub(super) struct Mapped {
    pub(super) plan: Plan,
    pub(super) dropped: Vec<(String, String)>,
}

/// Makes a plan of what Windows would prefetch, of the files below `root` that stand for those of the program's volume.
/// `argv` is the command that it is for; the program itself where it is empty.
pub(super) fn plan(
    bytes: &[u8],
    root: &Path,
    argv: &[OsString],
    scenario: Option<&str>,
) -> Result<Mapped, Failure> {
    let prefetch = Prefetch::read(bytes)?;
    let root =
        root.canonicalize().map_err(|e| Failure::usage(format!("cannot look at {}: {e}", root.shown())))?;
    let volume = volume(&prefetch);
    let mut tree = Tree { root, names: HashMap::new() };
    let (mut files, mut ranges, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    let mut executable = None;
    let programs: Vec<usize> = prefetch.programs().collect();
    for (row, file) in prefetch.files.iter().enumerate() {
        match tree.find(&file.name, volume) {
            Ok((path, meta)) => {
                let made = file.runs(meta.len());
                if programs.contains(&row) {
                    executable.get_or_insert_with(|| path.clone());
                }
                if !made.is_empty() {
                    let identity = Identity::of(&meta, plans::build_id(&path));
                    let uses = made.iter().fold(0, |uses, run| uses | run.used);
                    let number = files.len() as u32;
                    ranges.extend(made.into_iter().map(|run| (run.phase, range(number, run))));
                    files.push(PlanFile {
                        path,
                        kind: FileKind::Regular,
                        identity,
                        need_ns: 0,
                        uses,
                        exact: false,
                    });
                }
            }
            Err(why) => dropped.push((file.name.text(), why)),
        }
    }
    if ranges.is_empty() {
        let what = format!("none of the {} files is below {}", prefetch.files.len(), tree.root.shown());
        return Err(Failure::usage(what).hint("--root names the directory that stands for the drive"));
    }
    // Windows tells in which part of a start a page was used, not when.
    ranges.sort_by_key(|(phase, r)| (*phase, r.file, r.first_page));
    let argv = match (argv, executable) {
        ([], Some(path)) => vec![path.into_os_string()],
        ([], None) => {
            let what = format!("{} itself is not below {}", prefetch.executable.text(), tree.root.shown());
            return Err(Failure::usage(what).hint("name the command that the plan is for: -- wine …"));
        }
        (argv, _) => argv.to_vec(),
    };
    let starts = prefetch.run_count.clamp(1, LAUNCHES);
    let latest = prefetch.run_times.first().copied().flatten();
    let seconds = latest.and_then(cold_windows::filetime::nanos_since_1970).map(|ns| ns / 1_000_000_000);
    let at = seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0);
    let learnt = Learnt { starts, tier: 'D', first: at, last: at, ..Learnt::default() };
    let ranges = ranges.into_iter().map(|(_, r)| r).collect();
    let key = plans::key(&argv, scenario)?;
    let plan = Plan::unmade(key, learnt, files, ranges, cold_prefetch::default_knobs(None));
    Ok(Mapped { plan, dropped })
}

/// The volume that the program lies on, else that of the first file.
fn volume(prefetch: &Prefetch) -> Option<&Name> {
    let own = prefetch.files.get(prefetch.programs().next().unwrap_or(0))?;
    prefetch.volumes.iter().map(|v| &v.device).find(|device| own.name.parts_behind(device).is_some())
}

fn range(file: u32, PageRun { first, pages, used, .. }: PageRun) -> Range {
    Range { file, first_page: first, pages, need_ns: 0, uses: used, around: false }
}

/// A directory tree in which names are found whatever their case, as Windows finds them.
struct Tree {
    root: PathBuf,
    /// Per directory: names by their upper case.
    names: HashMap<PathBuf, HashMap<String, OsString>>,
}

impl Tree {
    /// The regular file that this name of the program's volume means.
    fn find(&mut self, name: &Name, volume: Option<&Name>) -> Result<(PathBuf, std::fs::Metadata), String> {
        let Some(parts) = volume.and_then(|volume| name.parts_behind(volume)) else {
            return Err("it lies on another volume".to_owned());
        };
        let mut path = self.root.clone();
        for part in parts {
            let part = part.text();
            let Some(found) = self.entry(&path, &part) else {
                return Err(format!("there is no {part} in {}", path.shown()));
            };
            path.push(found);
        }
        let meta = path.symlink_metadata().map_err(|e| e.to_string())?;
        if !meta.is_file() {
            return Err(format!("it is a {} here", cold_sys::open::kind_of(&meta)));
        }
        Ok((path, meta))
    }

    fn entry(&mut self, dir: &Path, name: &str) -> Option<OsString> {
        // Never out of the tree, whatever the file says.
        if name == "." || name == ".." || name.contains('/') {
            return None;
        }
        let names = self.names.entry(dir.to_owned()).or_insert_with(|| list(dir));
        names.get(&name.to_uppercase()).cloned()
    }
}

/// Names in a directory by their upper case; links and what cannot be listed have none.
fn list(dir: &Path) -> HashMap<String, OsString> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_NAMES);
    let real = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir() || t.is_file()));
    real.filter_map(|e| Some((e.file_name().to_str()?.to_uppercase(), e.file_name()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leaves_the_tree() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("Sub")).expect("made");
        std::fs::write(dir.path().join("Sub/größe.DLL"), "x").expect("written");
        let mut tree = Tree { root: dir.path().join("Sub"), names: HashMap::new() };
        let volume = Name::from("\\VOLUME{1}");
        let mut find = |name: &str| tree.find(&Name::from(name), Some(&volume)).map(|(path, _)| path);
        assert_eq!(find("\\VOLUME{1}\\GRÖßE.dll"), Ok(dir.path().join("Sub/größe.DLL")));
        for other in ["\\VOLUME{1}\\..\\Sub", "\\VOLUME{1}\\a/b", "\\VOLUME{1}", "\\VOLUME{10}\\GRÖßE.dll"]
        {
            assert!(find(other).is_err(), "{other}");
        }
    }
}
