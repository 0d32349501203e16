//! The plans in memory, found by the file that is executed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use cold_launch::Held;
use cold_model::{Nanos, Shown as _};
use cold_plan::plan::Key;
use cold_plan::store::Private;
use cold_plan::{Match, Plan, Store};
use cold_service::keep::{Candidate, Uses};
use cold_service::{Pace, common};
use cold_sys::exec_watch::{ExecWatch, ExecutedFile};

/// Memory for plans. A plan of 1000 ranges has about 50 kB.
const MOST_BYTES: usize = 8 << 20;

/// A plan, and whether a start follows it just now.
#[derive(Debug)]
pub(crate) struct Planned {
    /// As it lies in the store, for everybody.
    pub(crate) held: Held,
    /// With what not everybody may know, for each user who has taught some.
    private: Vec<OfUser>,
    /// With that of all of them, where there are several.
    all: Option<Held>,
    /// A second start meanwhile has the same pages on their way.
    pub(crate) is_followed: AtomicBool,
}

/// What starts of this user follow.
#[derive(Debug)]
struct OfUser {
    user: u32,
    held: Held,
}

impl Planned {
    /// What a start of this user follows. `None`: nobody knows whose it is.
    pub(crate) fn of_user(&self, user: Option<u32>) -> &Held {
        self.private.iter().find(|own| Some(own.user) == user).map_or(&self.held, |own| &own.held)
    }

    /// All that is read for any of its starts.
    pub(crate) fn whole(&self) -> &Held {
        self.all.as_ref().or(self.private.first().map(|own| &own.held)).unwrap_or(&self.held)
    }

    fn bytes(&self) -> usize {
        let beside = self.private.iter().map(|own| &own.held).chain(&self.all);
        self.held.bytes() + beside.map(Held::bytes).sum::<usize>()
    }
}

/// A program, or a script, that has plans.
#[derive(Debug)]
pub(crate) struct Program {
    /// A number of its own.
    pub(crate) number: u64,
    /// That of its executable: a start of a script is told as one of its interpreter as well.
    pub(crate) family: u64,
    /// What is executed in the end; of a script its interpreter.
    pub(crate) executable: PathBuf,
    /// The script that was executed, where that names the plans.
    pub(crate) script: Option<PathBuf>,
    /// Its plans that are not switched off.
    pub(crate) plans: Vec<Arc<Planned>>,
    /// Bytes that reading its own plans takes; pages that several of them read are counted for each.
    pub(crate) reads: u64,
    /// What all of them read.
    pub(crate) common: Option<Held>,
    /// Between its starts.
    pub(crate) pace: Mutex<Pace>,
    /// How likely it is started next.
    pub(crate) uses: Mutex<Uses>,
    /// Starts that were not looked at, or found warm, since this was last written down.
    pub(crate) warm: Arc<AtomicU64>,
}

impl Program {
    /// The plan of this key.
    pub(crate) fn plan(&self, key: &Key) -> Option<&Arc<Planned>> {
        let same = |planned: &&Arc<Planned>| {
            let own = planned.held.key();
            own.executable == key.executable && own.script == key.script && own.scenario == key.scenario
        };
        self.plans.iter().find(same)
    }

    /// What keeping it in memory takes, and how likely it is started next.
    pub(crate) fn candidate(&self, now: Nanos) -> Candidate {
        Candidate { score: self.uses().score(now), bytes: self.reads }
    }

    /// A gain is shown of every one of its plans.
    pub(crate) fn is_proven(&self) -> bool {
        self.plans.iter().all(|planned| planned.held.is_proven())
    }

    pub(crate) fn uses(&self) -> std::sync::MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn pace(&self) -> std::sync::MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which programs are followed up.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Chosen {
    /// Only programs and scripts below this directory; may be given several times
    #[arg(long, value_name = "DIR")]
    only: Vec<PathBuf>,

    /// No programs and scripts below this directory, and no private files (homes); may be given several times
    #[arg(long, value_name = "DIR")]
    except: Vec<PathBuf>,
}

impl Chosen {
    /// Whether programs of this key are among them.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let path = key.script.as_ref().unwrap_or(&key.executable);
        (self.only.is_empty() || self.only.iter().any(|dir| path.starts_with(dir))) && !self.excepts(path)
    }

    /// What lies there is left out by choice.
    pub(crate) fn excepts(&self, path: &Path) -> bool {
        self.except.iter().any(|dir| path.starts_with(dir))
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    by_file: HashMap<ExecutedFile, Arc<Program>>,
    all: Vec<Arc<Program>>,
    /// Plans that are switched off, with the reason.
    pub(crate) off: Vec<(Key, String)>,
    /// Files of the store that cannot be followed, with the reason; the store's own first where it cannot be read.
    pub(crate) refused: Vec<String>,
    /// Bytes of the plans.
    pub(crate) bytes: usize,
    stamp: Option<SystemTime>,
    ids: HashMap<PathBuf, Vec<ExecutedFile>>,
}

/// What the plans of one executed file are kept by: the executable, and the script where that is executed itself.
type Name = (PathBuf, Option<PathBuf>);

impl Programs {
    /// As the store is now; what was remembered of programs that stay goes on.
    pub(crate) fn load(store: &Store, chosen: &Chosen, before: &Self) -> Self {
        let mut new = Self { stamp: stamp(store), ..Self::default() };
        let listing = store.list().unwrap_or_else(|e| {
            new.refused.push(e.to_string());
            cold_plan::store::Listing::default()
        });
        new.refused.extend(listing.refused.iter().map(|(_, e)| e.to_string()));
        let mut plans = listing.plans;
        // The latest are kept where not all fit.
        plans.sort_by_key(|listed| std::cmp::Reverse(listed.saved));
        let mut grouped: BTreeMap<Name, Vec<Arc<Planned>>> = BTreeMap::new();
        for listed in plans {
            if !chosen.has(&listed.plan.key) {
                continue;
            }
            if let cold_plan::plan::Standing::Off(why) = listed.plan.standing {
                new.off.push((listed.plan.key, why));
                continue;
            }
            let held = match Held::open(store, &listed.plan.key) {
                Ok(Some(held)) => held,
                Ok(None) => continue,
                Err(skip) => {
                    new.refused.push(skip.to_string());
                    continue;
                }
            };
            // What lies beside it and cannot be read leaves the rest as it is.
            let (private, all) = private(store, &listed.plan, &held, chosen).unwrap_or_else(|why| {
                new.refused.push(why);
                (Vec::new(), None)
            });
            let planned = Arc::new(Planned { held, private, all, is_followed: AtomicBool::new(false) });
            if new.bytes + planned.bytes() > MOST_BYTES {
                new.refused.push(format!("{}: no room in memory", planned.held.path().shown()));
                continue;
            }
            new.bytes += planned.bytes();
            let key = planned.held.key().clone();
            if key.script.is_some() {
                grouped.entry((key.executable.clone(), key.script)).or_default().push(Arc::clone(&planned));
            }
            grouped.entry((key.executable, None)).or_default().push(planned);
        }
        for ((executable, script), plans) in grouped {
            new.add(executable, script, plans, before);
        }
        new
    }

    fn add(&mut self, executable: PathBuf, script: Option<PathBuf>, plans: Vec<Arc<Planned>>, before: &Self) {
        let file = script.as_ref().unwrap_or(&executable).clone();
        // What is not there now is not executed now; the next look finds it.
        let ids = ExecWatch::ids_of(&file).unwrap_or_default();
        let earlier = before.all.iter().find(|p| (&p.executable, &p.script) == (&executable, &script));
        let number_of = |script: Option<&Path>| {
            let script = script.unwrap_or(Path::new("")).as_os_str();
            cold_model::hash::fnv1a64(&[executable.as_os_str().as_encoded_bytes(), script.as_encoded_bytes()])
        };
        let (number, family) = (number_of(script.as_deref()), number_of(None));
        let pace = earlier.map_or_else(
            || Pace::new(plans.iter().map(|p| p.held.eligible_starts()).sum(), number),
            |earlier| *earlier.pace(),
        );
        // A start that is looked at now has the earlier one.
        let warm = earlier.map(|earlier| Arc::clone(&earlier.warm)).unwrap_or_default();
        let uses = earlier.map(|earlier| *earlier.uses()).unwrap_or_default();
        let all: Vec<_> = plans.iter().filter_map(|planned| planned.held.plan().ok()).collect();
        let own = plans.iter().filter(|planned| planned.held.key().script.is_some() == script.is_some());
        let reads = own.map(|planned| planned.whole().read_bytes()).sum();
        let common = common(&all.iter().collect::<Vec<_>>()).and_then(|plan| Held::made(&plan).ok());
        self.bytes += common.as_ref().map_or(0, Held::bytes);
        let program = Arc::new(Program {
            number,
            family,
            executable,
            script,
            plans,
            reads,
            common,
            pace: Mutex::new(pace),
            uses: Mutex::new(uses),
            warm,
        });
        for id in &ids {
            self.by_file.insert(*id, Arc::clone(&program));
        }
        self.ids.insert(file, ids);
        self.all.push(program);
    }

    /// The program that is this file.
    pub(crate) fn find(&self, file: &ExecutedFile) -> Option<&Arc<Program>> {
        self.by_file.get(file)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arc<Program>] {
        &self.all
    }

    /// Plans that can be followed.
    pub(crate) fn plans(&self) -> usize {
        self.all.iter().filter(|p| p.script.is_none()).map(|p| p.plans.len()).sum()
    }

    /// Keys of plans whose executable is another file than they were learnt with.
    pub(crate) fn outdated(&self) -> impl Iterator<Item = &Key> {
        let plans = self.all.iter().filter(|p| p.script.is_none()).flat_map(|p| &p.plans);
        plans.map(|planned| planned.held.key()).filter(|key| {
            let meta = key.executable.metadata();
            meta.is_ok_and(|meta| key.identity.matches(&meta) == Match::Changed)
        })
    }

    /// Something was saved in the store, or removed from it.
    pub(crate) fn is_old(&self, store: &Store) -> bool {
        stamp(store) != self.stamp
    }

    /// A program was replaced since it was looked at, as by an upgrade.
    pub(crate) fn has_moved(&self) -> bool {
        self.ids.iter().any(|(path, ids)| ExecWatch::ids_of(path).unwrap_or_default() != *ids)
    }
}

/// The plan with what of its starts not everybody may know, but for what is left out by choice: for each user, and for all
/// where there are several.
fn private(
    store: &Store,
    plan: &Plan,
    held: &Held,
    chosen: &Chosen,
) -> Result<(Vec<OfUser>, Option<Held>), String> {
    let parts = store.private(&plan.key).map_err(|e| e.to_string())?;
    let followed = |plan: &Plan| held.followed_as(plan).map_err(|e| e.to_string());
    let with = |plan: &Plan, part: &Private| {
        cold_service::with_private(plan, &part.plan, &|path| chosen.excepts(path))
    };
    let mut users = Vec::new();
    for part in &parts {
        if let Some(own) = with(plan, part) {
            users.push(OfUser { user: part.user, held: followed(&own)? });
        }
    }
    let several = parts.iter().filter(|_| users.len() > 1);
    let all = several.fold(None, |all: Option<Plan>, part| with(all.as_ref().unwrap_or(plan), part).or(all));
    let all = all.map(|all| followed(&all)).transpose()?;
    Ok((users, all))
}

/// Plans are put in place by rename, which changes the directory.
fn stamp(store: &Store) -> Option<SystemTime> {
    store.directory().metadata().ok()?.modified().ok()
}
