//! A loaded script, run as one trial.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use cold_journal::Journal;
use cold_model::{FileId, Shown as _};

use super::{Loaded, Mistake, ThreadScript, find, nice};
use crate::log::Log;
use crate::spec::{Crew, Limit, Work};
use crate::subject::{ProbeTarget, Subject, held_path};
use crate::trial::Runner;
use crate::variate::{Seek, Variate};
use crate::worker::ThreadReport;
use crate::{Error, Result};

/// How a script is run.
#[derive(Debug, Clone)]
pub struct ScriptOptions {
    /// Length of the trial in seconds.
    pub seconds: f64,
    /// Where files are made that the scripts name and that do not exist.
    pub place: PathBuf,
    /// Bytes of each file that is made.
    pub file_bytes: u64,
    /// Files the user gives up: only these are written among those that exist.
    pub destroy: Vec<PathBuf>,
    /// Of the random numbers.
    pub seed: u64,
    /// How normal numbers are drawn.
    pub variate: Variate,
}

/// One thread that ran.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Number of its process, from 1, and its own in it.
    pub place: (usize, usize),
    /// The `.SCT` that it ran.
    pub script: ThreadScript,
    /// The nice value that its priorities came to.
    pub nice: i32,
    /// What it did.
    pub report: ThreadReport,
}

/// Files of a trial.
struct Files {
    own: BTreeMap<PathBuf, Subject>,
    /// Those that exist, as they were found: workers open them by our descriptors, never by their names again.
    found: Vec<File>,
}

impl Files {
    /// The path and size behind a name: an existing file, or one of our own.
    fn get(
        &mut self,
        t: &ThreadScript,
        loaded: &Loaded,
        o: &ScriptOptions,
        journal: &Journal,
    ) -> Result<(PathBuf, u64)> {
        let path = find(&loaded.directory, &t.access);
        if let Ok((file, meta)) = cold_sys::open::regular(&path, true) {
            let writes = t.action.contains(&crate::spec::Act::W);
            let given_up = o.destroy.iter().any(|d| is_file(d, &meta));
            if writes && !given_up {
                let why =
                    format!("the script writes it; say --destroy {0} if its content may go", path.shown());
                return Err(Error::Subject { path, why });
            }
            let path = held_path(&file);
            self.found.push(file);
            return Ok((path, meta.len()));
        }
        if !self.own.contains_key(&path) {
            let made = Subject::create(&ProbeTarget::Directory(o.place.clone()), o.file_bytes, journal)?;
            self.own.insert(path.clone(), made);
        }
        let made = self.own.get(&path).map(|s| (s.path().to_owned(), s.bytes()));
        made.ok_or(Error::Subject { path, why: "it was not made".to_owned() })
    }
}

fn is_file(path: &Path, meta: &Metadata) -> bool {
    path.metadata().is_ok_and(|m| FileId::of(&m) == FileId::of(meta))
}

/// Most doublings of a trial.
const DOUBLINGS: u32 = 6;

/// Trials of twice the length each, from `o.seconds` on, until the mean response of every thread is within
/// `share` of that in the trial before (the documentation's rule), at most 64 times as long. The last trial,
/// its length in seconds, and whether it repeats the one before.
pub fn run_until_it_repeats(
    loaded: &Loaded,
    o: &ScriptOptions,
    share: f64,
    runner: &Runner,
    journal: &Journal,
    log: &Log,
) -> Result<(Vec<Ran>, f64, bool)> {
    let once = |seconds| run(loaded, &ScriptOptions { seconds, ..o.clone() }, runner, journal, log);
    let (mut seconds, mut last) = (o.seconds, once(o.seconds)?);
    for _ in 0..DOUBLINGS {
        seconds *= 2.0;
        let next = once(seconds)?;
        let means = |ran: &[Ran]| ran.iter().map(|r| r.report.cycles.mean()).collect::<Vec<_>>();
        let same = repeats(&means(&last), &means(&next), share);
        last = next;
        if same {
            return Ok((last, seconds, true));
        }
    }
    Ok((last, seconds, false))
}

/// Whether each mean is that of the trial before, about. A thread without a finished cycle has none.
fn repeats(before: &[Option<f64>], now: &[Option<f64>], share: f64) -> bool {
    let same = |(a, b): (&Option<f64>, &Option<f64>)| {
        a.zip(*b).is_some_and(|(a, b)| (a - b).abs() <= share * a.abs().max(b.abs()))
    };
    before.len() == now.len() && before.iter().zip(now).all(same)
}

/// Runs the script once. Files that the scripts name and that do not exist are made (and go again).
pub fn run(
    loaded: &Loaded,
    o: &ScriptOptions,
    runner: &Runner,
    journal: &Journal,
    log: &Log,
) -> Result<Vec<Ran>> {
    let mut files = Files { own: BTreeMap::new(), found: Vec::new() };
    let (mut crews, mut places, mut stream) = (Vec::new(), Vec::new(), 0);
    for (p, threads) in &loaded.processes {
        for _ in 0..p.repeat {
            let mut works = Vec::new();
            for (t, s) in threads {
                for _ in 0..t.repeat {
                    let (file, bytes) = files.get(s, loaded, o, journal)?;
                    let nice = nice(p.class, t.priority.as_deref());
                    if bytes < s.record {
                        let why =
                            format!("{} has {bytes} bytes, less than a record of {}", s.access, s.record);
                        let path = find(&loaded.directory, &t.file);
                        return Err(Mistake { path, line: 0, why }.into());
                    }
                    works.push(Work { nice, ..work(loaded, s, (file, bytes), p, o) });
                    places.push(((crews.len() + 1, works.len()), s.clone(), nice));
                }
            }
            let name = p.name.clone().unwrap_or_else(|| format!("probe {}", crews.len() + 1));
            let limit = Limit::Time { ms: (o.seconds * 1e3).round() as u64, settle: 0.5 };
            let count = works.len() as u64;
            crews.push(Crew {
                name,
                threads: works,
                limit,
                seed: o.seed,
                stream,
                tick_ms: log.interval_ms(),
            });
            stream += count;
        }
    }
    for own in files.own.values() {
        own.make_cold()?;
    }
    let watched: Vec<(String, &Subject)> = files
        .own
        .iter()
        .map(|(p, s)| (p.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()), s))
        .collect();
    log.watch_files(&watched.iter().map(|(n, s)| (n.as_str(), *s)).collect::<Vec<_>>());
    let trial = runner.run(&crews, None, log)?;
    let reports = trial.crews.into_iter().flat_map(|c| c.threads);
    Ok(places
        .into_iter()
        .zip(reports)
        .map(|((place, script, nice), report)| Ran { place, script, nice, report })
        .collect())
}

fn work(
    loaded: &Loaded,
    t: &ThreadScript,
    (file, bytes): (PathBuf, u64),
    p: &super::ProcessLine,
    o: &ScriptOptions,
) -> Work {
    let seek = if t.sequential { Seek::Sequential } else { Seek::Normal(t.seek) };
    // The built-in code space (version 2.1) is the probe's own program.
    let code_file = p.code_file.as_deref().map(|c| find(&loaded.directory, c)).filter(|c| c.is_file());
    Work {
        action: t.action.clone(),
        think: t.think,
        repeats: t.reads,
        cpu: t.cpu,
        data_page: t.data,
        code_page: t.code,
        data_pages: p.data_pages,
        code_file,
        variate: o.variate,
        watch: 0,
        ..Work::reads(file, bytes, t.record, t.mode, seek)
    }
}

#[cfg(test)]
mod tests;
