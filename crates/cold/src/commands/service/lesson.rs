//! One start that is recorded while nobody asks for it, and the plan of it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_journal::{Guard, Journal};
use cold_launch::Held;
use cold_model::bench::Ending;
use cold_model::recording::manifest::{READY_AT_EXIT, StackMethod, Subject, Tier};
use cold_model::recording::tables::Began;
use cold_model::recording::{Manifest, Recording};
use cold_model::{Known, Nanos};
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Key, PlanFile};
use cold_plan::store::{Locked, Private};
use cold_prefetch::{StartNeeds, Unneeded};
use cold_service::learning::is_seen;
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::ProcFs;
use cold_sys::time::{monotonic, process_cpu};
use cold_trace::record::{RecordOptions, Spare};

use super::history::{Check, Name, now_ns};
use super::learn::{Inner, Young};
use crate::commands::prefetch::learn::beside;
use crate::commands::prefetch::{device, plans};
use crate::recorder::{Directory, Watch, Whom, manifest};

/// Room for events, held as long as a start is waited for. A cold Firefox makes 17 MB in 1.3 s or more; they are taken
/// out every 20 ms, so there is room for those of seven such turns. A lesson that lost some fails, and comes again.
const BUFFER: usize = 2 << 20;
/// A start has come to rest when its processes slept for so long; as a launch takes it.
const REST: Nanos = Nanos(500_000_000);
/// Bytes of a directory that is listed for one name: a few blocks, each as long to read as the one that is wanted.
const MOST_LISTED: u64 = 16 << 10;
/// What has neither ended nor come to rest by then is no start.
const LONGEST: Nanos = Nanos(30_000_000_000);
/// Between two looks at the process, while it is young and later.
const LOOK: Duration = Duration::from_millis(2);
const LOOK_LATER: Duration = Duration::from_millis(20);
const YOUNG: Nanos = Nanos(200_000_000);
/// A process that has not become its program by then never will.
const BECOMES: Nanos = Nanos(2_000_000_000);

/// What came of a start that was recorded.
pub(super) enum Lesson {
    /// Its plan is in the store.
    Learnt(Box<Key>),
    /// There is a good plan, and it was found out what the start needed of it.
    Checked(Box<Key>, Check),
    /// Nothing, for this reason.
    Failed(Box<Key>, String),
    /// Too much of it had passed when the recorder saw its pages; another start may be slower.
    Missed { key: Box<Key>, missed: Nanos, took: Nanos },
    /// It was another start than wanted.
    Other,
}

/// A recorder that waits. Dropped, it leaves nothing behind.
pub(super) struct Armed {
    // Before the directory that it lies in.
    watch: Watch,
    path: PathBuf,
    _directory: Guard,
}

/// A start that was recorded, and is to be evaluated.
pub(super) struct Recorded {
    armed: Armed,
    key: Key,
    user: Option<u32>,
    young: Young,
    ready: Ready,
    /// When its pages began to be seen.
    seen: Nanos,
}

/// When a start was ready.
struct Ready {
    at: Nanos,
    /// It came to rest, and goes on; else it has ended.
    goes_on: bool,
    /// CPU time of the process itself, at least where it goes on; else at most.
    own_cpu: Nanos,
}

impl Armed {
    /// Loads everything, but what lies in `spare`, and follows nobody yet.
    pub(super) fn new(spare: &Spare) -> Result<Self, String> {
        let tier = spare.tier().map_or_else(possible, Ok)?;
        let made = || -> anyhow::Result<Self> {
            let (dir, guard) = Journal::open()?.create_private("cold-learn")?;
            let path = dir.join("start.cold");
            let options = RecordOptions {
                tier: Some(tier),
                stacks: Some(StackMethod::None),
                buffer: Some(BUFFER),
                armed: true,
                spare: Some(spare.clone()),
                ..RecordOptions::default()
            };
            let before = manifest::before(Subject::Command, &[], READY_AT_EXIT);
            let mut watch = Watch::new(Directory::make(path.clone())?, options, before);
            watch.begin(Whom::WhoComes, &[])?;
            Ok(Self { watch, path, _directory: guard })
        };
        made().map_err(|e| format!("{e:#}"))
    }

    /// Records the start that it waited for; what came of it where that is not to be evaluated.
    pub(super) fn record(mut self, inner: &Inner, young: &Young) -> Result<Recorded, Lesson> {
        let Ok(Some(process)) = PidFd::open(young.pid) else { return Err(self.other()) };
        // Its arguments are there as long as it is, which may be a millisecond.
        let (followed, told) = std::thread::scope(|scope| {
            let told = scope.spawn(|| (ProcFs::default().user(young.pid), given(inner, young, &process)));
            (self.watch.follow(young.pid.cast_unsigned()), told.join().ok())
        });
        let (user, given) = told.unwrap_or_default();
        let Some((key, about)) = given.filter(|(key, _)| inner.wants(key)) else {
            return Err(self.other());
        };
        let recorded = followed.map_err(|e| format!("{e:#}")).and_then(|seen| {
            let ready = until_ready(inner, &process, young.at)?;
            self.end(about, &ready, young).map_err(|e| format!("{e:#}"))?;
            Ok((seen, ready))
        });
        match recorded {
            Ok((seen, ready)) => Ok(Recorded { armed: self, key, user, young: *young, ready, seen }),
            Err(why) => Err(Lesson::Failed(Box::new(key), why)),
        }
    }

    /// It was not the start that was waited for.
    fn other(&mut self) -> Lesson {
        // So that its programs stay loaded for the next; where that fails they are loaded again.
        let _void = self.watch.end(|_| {});
        Lesson::Other
    }

    /// Nothing is recorded from here on.
    fn end(&mut self, about: Manifest, ready: &Ready, young: &Young) -> anyhow::Result<()> {
        self.watch.end(|m: &mut Manifest| {
            // It waited for hours, perhaps: what was written meanwhile is not of this start.
            m.started_at = about.started_at;
            m.command = about.command;
            m.directory = about.directory;
            m.environment = about.environment;
            m.search_paths = about.search_paths;
            m.start = young.at;
            m.ready = Some(Known::Value(ready.at));
        })
    }
}

impl Recorded {
    /// Whose start it is.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Makes its plan. Also tells the CPU time that others spent for it: the programs, and the thread that read events.
    pub(super) fn evaluate(self, inner: &Inner) -> (Lesson, Nanos) {
        let mut others = Nanos(0);
        let lesson = self.recording().and_then(|recording| {
            let cost = &recording.manifest.cost;
            others = cost.recorder_cpu + cost.in_programs();
            let missed = missed(&recording, &self.young, self.seen);
            let took = self.ready.at.saturating_sub(self.young.at);
            if !is_seen(missed, took) {
                return Ok(Lesson::Missed { key: Box::new(self.key.clone()), missed, took });
            }
            self.learn(inner, &recording)
        });
        (lesson.unwrap_or_else(|why| Lesson::Failed(Box::new(self.key), why)), others)
    }

    /// What was recorded of the start; an error where it was killed.
    fn recording(&self) -> Result<Recording, String> {
        let recording = self.armed.watch.assemble(None).map_err(|e| format!("{e:#}"))?;
        let pid = self.young.pid.cast_unsigned();
        let status = recording.processes.iter().rfind(|p| p.pid == pid).and_then(|p| p.status);
        match status.map(Ending::of_wait_status) {
            Some(Ending::Signal(signal)) => Err(format!("it was killed by signal {signal}")),
            _ => Ok(recording),
        }
    }

    fn learn(&self, inner: &Inner, recording: &Recording) -> Result<Lesson, String> {
        let Self { armed, key, user, ready, .. } = self;
        let learnt = Lesson::Learnt(Box::new(key.clone()));
        let excluded = [inner.store.directory().to_owned(), armed.path.clone()];
        let start = cold_prefetch::observe(recording, &beside(&excluded)).map_err(|e| e.to_string())?;
        let start = StartNeeds { own_cpu_ns: ready.own_cpu.0, goes_on: ready.goes_on, ..start };
        let mut key = key.clone();
        key.identity.build_id = plans::build_id(&key.executable);
        let locked = inner.store.lock().map_err(|e| e.to_string())?;
        // The plan is good: what this user's start needs beside it is what is to be learnt.
        if let Some(plan) = inner.good_plan(&key)? {
            let check = checked(inner, &plan, recording);
            if !inner.lacks_part(&key, *user) {
                return Ok(check.map_or(Lesson::Other, |check| Lesson::Checked(Box::new(key), check)));
            }
            if let Some(check) = check {
                inner.is_checked(&key, check);
            }
            let known: HashSet<&PathBuf> = plan.files.iter().map(|file| &file.path).collect();
            let beside = start.without(&|file| known.contains(&file.path) || !inner.may_keep(&file.path));
            return save_private(inner, &locked, &key, *user, beside).map(|()| learnt);
        }
        let (open, private) = divided(inner, start);
        if open.readable() == 0 {
            return Err("it needs no file that everybody may read".to_owned());
        }
        let old = inner.store.load(&key).map_err(|e| e.to_string())?;
        let plan = made(inner, old, &key, open)?;
        // First, so that whoever finds the plan finds this as well. Without it the plan is as good for everybody else.
        let kept = save_private(inner, &locked, &key, *user, private);
        locked.save(&plan).map_err(|e| e.to_string())?;
        plans::call(&locked, &plan.key, &recording.manifest.command);
        if let Err(why) = kept {
            inner.tell("not kept for its user", format!("{}: {why}", Name::of(&key).program()));
        }
        Ok(learnt)
    }
}

/// The tier by which a start that is not one's own can be recorded here.
fn possible() -> Result<Tier, String> {
    let survey = cold_trace::survey();
    if matches!(survey.tier, Tier::A | Tier::B) {
        return Ok(survey.tier);
    }
    let why = survey.refused.last().map_or("", |(_, why)| why);
    Err(format!("recording a start that is not one's own takes BPF: {why}"))
}

/// What the start needed of its plan; `None` where that cannot be told. What faults mapped beside their pages without
/// an event is told by what is cached now, so all of the plan must be.
fn checked(inner: &Inner, plan: &Plan, recording: &Recording) -> Option<Check> {
    let held = Held::open(&inner.store, &plan.key).ok()??;
    if !inner.is_cached(&held) {
        return None;
    }
    let Unneeded { planned, unneeded } = cold_prefetch::unneeded(plan, recording)?;
    Some(Check { at_ns: now_ns(), plan: held.id(), planned: planned.0, unneeded: unneeded.0 })
}

/// What everybody may know of a start, and what is kept for its user alone.
fn divided(inner: &Inner, mut start: StartNeeds) -> (StartNeeds, StartNeeds) {
    let mut shown = open_to_all(&start.files, &|path| inner.is_open(path));
    let private = start.clone().without(&|file| shown.contains(&file.path) || !inner.may_keep(&file.path));
    list_instead(&mut start.files, &mut shown, &|path| inner.is_open(path));
    (start.without(&|file| !shown.contains(&file.path)), private)
}

/// The plan with this start added, with the steps for its device.
fn made(inner: &Inner, old: Option<Plan>, key: &Key, start: StartNeeds) -> Result<Plan, String> {
    let plan = cold_prefetch::lesson(old, key, &[start], plans::now());
    let mut plan = plan.ok_or("there was no start")?;
    let model = device::kept(&plan, &inner.state);
    let knobs = cold_prefetch::knobs_for(&plan, model.as_ref());
    device::steps(&mut plan, &knobs, model.as_ref());
    Ok(plan)
}

/// Keeps beside the plan what is for starts of this user alone; where that is nothing, that it was looked for.
fn save_private(
    inner: &Inner,
    locked: &Locked<'_>,
    key: &Key,
    user: Option<u32>,
    start: StartNeeds,
) -> Result<(), String> {
    // It was over before anybody could see whose it was.
    let Some(user) = user else { return Ok(()) };
    let parts = inner.store.private(key).map_err(|e| e.to_string())?;
    let old = parts.into_iter().find(|part| part.user == user).map(|part| part.plan);
    let plan = made(inner, old, key, start)?;
    locked.save_private(Private { user, plan }).map_err(|e| e.to_string())
}

/// In place of a missing name that may not be shown its directory is listed, which reads the block that the lookup wants.
/// Only where everybody may list it, and not where that takes more than [`MOST_LISTED`]. `shown`: see [`open_to_all`].
fn list_instead(files: &mut [PlanFile], shown: &mut HashSet<PathBuf>, is_open: &dyn Fn(&Path) -> bool) {
    // Asked in this order: nothing is looked up where a server might not answer.
    let hidden = |file: &PlanFile| {
        file.kind == FileKind::Name
            && !shown.contains(&file.path)
            && file.path.parent().is_some_and(is_open)
            && is_missing(&file.path)
    };
    // The root directory is no part of a plan: whoever starts anything has it.
    let small = |path: &Path| {
        path.parent().is_some()
            && path.metadata().is_ok_and(|meta| meta.is_dir() && meta.len() <= MOST_LISTED)
    };
    let listed = |(at, file): (usize, &PlanFile)| {
        let directory = file.path.parent().filter(|directory| hidden(file) && small(directory))?;
        Some((at, directory.to_owned(), file.need_ns))
    };
    let listed: Vec<_> = files.iter().enumerate().filter_map(listed).collect();
    let seen = files.iter().enumerate().filter(|(_, file)| shown.contains(&file.path));
    let mut places: HashMap<PathBuf, usize> = seen.map(|(at, file)| (file.path.clone(), at)).collect();
    for (at, directory, need_ns) in listed {
        let place = *places.entry(directory.clone()).or_insert(at);
        let Some(lists) = files.get_mut(place) else { continue };
        (lists.path, lists.kind) = (directory.clone(), FileKind::Directory);
        lists.need_ns = lists.need_ns.min(need_ns);
        shown.insert(directory);
    }
}

fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound)
}

/// The paths of these files that everybody may know, as everybody may read the plan: not of files, directories and names
/// that only some may see. Of a disk it holds numbers of blocks. A name that is missing tells what somebody looked for: it
/// is shown where everybody may list its directory, and a file of this name lies elsewhere for everybody to see (a program
/// that is looked for along PATH).
fn open_to_all(files: &[PlanFile], is_open: &dyn Fn(&Path) -> bool) -> HashSet<PathBuf> {
    let device = |file: &PlanFile| file.kind == FileKind::BlockDevice;
    let (open, hidden): (Vec<_>, Vec<_>) = files.iter().partition(|file| device(file) || is_open(&file.path));
    let known: HashSet<&OsStr> = open.iter().filter_map(|file| file.path.file_name()).collect();
    let is_shown = |file: &&PlanFile| {
        file.kind == FileKind::Name
            && file.path.file_name().is_some_and(|name| known.contains(name))
            && file.path.parent().is_some_and(is_open)
            && is_missing(&file.path)
    };
    let missing = hidden.into_iter().filter(is_shown);
    missing.chain(open.iter().copied()).map(|file| file.path.clone()).collect()
}

/// How much of the start had passed when its pages began to be seen: from its exec, else from when it was heard of.
fn missed(recording: &Recording, young: &Young, seen: Nanos) -> Nanos {
    let pid = young.pid.cast_unsigned();
    let exec = recording.processes.iter().find(|p| p.pid == pid && p.how == Began::Exec);
    seen.saturating_sub(exec.map_or(young.at, |exec| exec.began))
}

/// The key of the process, and what it was started with; none where it ends before that can be told.
fn given(inner: &Inner, young: &Young, process: &PidFd) -> Option<(Key, Manifest)> {
    loop {
        if let Some(key) = inner.key_of(young) {
            return Some((key, manifest::of_process(young.pid)));
        }
        let late = monotonic().saturating_sub(young.at) > BECOMES;
        if late || process.wait(Duration::from_micros(300)).unwrap_or(true) {
            return None;
        }
    }
}

/// Waits until it has ended, or it and all that it started sleep.
fn until_ready(inner: &Inner, process: &PidFd, at: Nanos) -> Result<Ready, String> {
    let proc = ProcFs::default();
    let pid = process.pid();
    let (mut awake, mut last) = ((at, Nanos(0)), (at, Nanos(0)));
    loop {
        let now = monotonic();
        let pause = if now.saturating_sub(at) < YOUNG { LOOK } else { LOOK_LATER };
        if process.wait(pause).unwrap_or(true) {
            let end = monotonic();
            let own_cpu = last.1 + end.saturating_sub(last.0);
            return Ok(Ready { at: end, goes_on: false, own_cpu });
        }
        let now = monotonic();
        if now.saturating_sub(at) > LONGEST {
            return Err(format!("it neither ended nor came to rest within {LONGEST}"));
        }
        if inner.end.load(std::sync::atomic::Ordering::Relaxed) {
            return Err("the service ended".to_owned());
        }
        last = (now, process_cpu(pid).unwrap_or(last.1));
        let tree = cold_sys::tree::descendants(&proc, pid);
        if !proc.is_asleep(pid) || !tree.into_iter().all(|pid| proc.is_asleep(pid)) {
            awake = last;
        } else if now.saturating_sub(awake.0) >= REST {
            return Ok(Ready { at: awake.0, goes_on: true, own_cpu: awake.1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn of_missing_names_a_plan_for_everybody_has_those_that_are_seen_elsewhere() {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, mode) in [("", 0o755), ("bin", 0o755), ("empty", 0o755), ("own", 0o700)] {
            let made = dir.path().join(name);
            std::fs::create_dir_all(&made).expect("made");
            std::fs::set_permissions(&made, PermissionsExt::from_mode(mode)).expect("set");
        }
        for (name, mode) in [("bin/tool", 0o755), ("bin/secret", 0o600)] {
            let made = dir.path().join(name);
            std::fs::write(&made, "1").expect("written");
            std::fs::set_permissions(&made, PermissionsExt::from_mode(mode)).expect("set");
        }
        let names = [
            ("bin/tool", FileKind::Regular),
            ("bin/secret", FileKind::Regular),
            ("empty/tool", FileKind::Name),
            ("empty/secret", FileKind::Name),
            ("empty/diary", FileKind::Name),
            ("own/tool", FileKind::Name),
        ];
        let mut files = names.map(|(name, kind)| PlanFile {
            path: dir.path().join(name),
            kind,
            identity: cold_plan::plan::Identity::default(),
            need_ns: 1,
            uses: 1,
            exact: false,
        });
        let shown = open_to_all(&files, &cold_sys::place::everybody_may_read);
        let wanted = ["bin/tool", "empty/tool"].map(|name| dir.path().join(name));
        assert_eq!(shown, HashSet::from(wanted));

        // The directory of the others is listed in their place, once, as early as the first of them is needed.
        files[3].need_ns = 7;
        files[4].need_ns = 5;
        let mut shown = shown;
        list_instead(&mut files, &mut shown, &cold_sys::place::everybody_may_read);
        let mut told: Vec<_> = files
            .iter()
            .filter(|f| shown.contains(&f.path))
            .map(|f| (f.kind, f.need_ns, f.path.clone()))
            .collect();
        told.sort_by_key(|(_, _, path)| path.clone());
        let wanted = [
            (FileKind::Regular, 1, "bin/tool"),
            (FileKind::Directory, 5, "empty"),
            (FileKind::Name, 1, "empty/tool"),
        ];
        assert_eq!(told, wanted.map(|(kind, need_ns, name)| (kind, need_ns, dir.path().join(name))));
    }
}
