//! Which plan a command line or a name means, and where it lies.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cold_model::Shown as _;
use cold_plan::identity::build_id_of;
use cold_plan::plan::Key;
use cold_plan::portable::{Part, Parts};
use cold_plan::store::{Listed, Locked};
use cold_plan::{Store, scenario};
use cold_sys::search;

use crate::exit::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// The flag that names another store.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StorePlace {
    /// Directory of the plans [default: /var/lib/coldstart/plans for root, else below ~/.local/state]
    #[arg(long, value_name = "DIR", global = true)]
    store: Option<PathBuf>,
}

impl StorePlace {
    /// Plans in this directory, whoever owns it.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { store: Some(directory) }
    }

    /// The directory, where one is named.
    pub(crate) fn named(&self) -> Result<Option<PathBuf>> {
        Ok(self.store.as_ref().map(std::path::absolute).transpose()?)
    }

    /// As it is typed for the same store elsewhere.
    pub(crate) fn words(&self) -> Result<Vec<OsString>> {
        Ok(self.named()?.map(|dir| ["--store".into(), dir.into()]).into_iter().flatten().collect())
    }

    /// The store that is named, else the user's own.
    pub(crate) fn store(&self) -> Result<Store> {
        match self.named()? {
            Some(dir) => Ok(Store::at(dir)),
            None => Store::user(|name| std::env::var_os(name))
                .map_err(|e| Failure::from(e).hint("set HOME, or name a directory with --store")),
        }
    }

    /// The system's store, where a start of this user also looks into that.
    pub(crate) fn system(&self) -> Option<Store> {
        let system = self.store.is_none().then(Store::system)?;
        (!self.store().is_ok_and(|own| own.is_system())).then_some(system)
    }

    /// Where what is known of devices lies: beside the plans, or among those of a directory that was named.
    pub(crate) fn state(&self) -> Result<PathBuf> {
        match self.named()? {
            Some(dir) => Ok(dir),
            None => Ok(self.store()?.directory().parent().map(Path::to_owned).unwrap_or_default()),
        }
    }
}

/// The key of a command, its executable's build-id included.
pub(crate) fn key(argv: &[OsString], scenario: Option<&str>) -> Result<Key> {
    let path = std::env::var_os("PATH");
    let cwd = std::env::current_dir()?;
    let command = scenario::Command { argv, cwd: &cwd, path: path.as_deref() };
    let mut key = scenario::find(&command, scenario).map_err(|e| Failure::usage(e.to_string()))?;
    key.identity.build_id = build_id(&key.executable);
    Ok(key)
}

/// Lets launchers ask for the plan's first blocks before they know that it is the one (`cold-launch/src/early.rs`): by the
/// word that the program was called by, by its path, and by where that leads, which is what a wrapper calls.
pub(crate) fn call(locked: &Locked<'_>, key: &Key, argv: &[OsString]) {
    let Some(word) = argv.first() else { return };
    let path = search::find(word, std::env::var_os("PATH").as_deref(), Path::new("."));
    let real = path.as_ref().and_then(|path| path.canonicalize().ok());
    for word in [Some(word.into()), path, real].into_iter().flatten() {
        // On a file system without links they ask for nothing early, and no more is lost.
        let _ = locked.call(key, word.as_os_str());
    }
}

/// The build-id of a program or library as plans hold it.
pub(crate) fn build_id(path: &Path) -> [u8; 20] {
    let digits = cold_symbols::build_id(path).ok().flatten();
    digits.as_deref().and_then(build_id_of).unwrap_or_default()
}

/// The sections of a program or library that are loaded; none of what is no such file.
pub(crate) fn sections(path: &Path) -> Parts {
    let sections = cold_symbols::sections(path).unwrap_or_default();
    let loaded = sections.into_iter().filter(|s| s.address > 0);
    loaded.map(|s| Part(s.name, s.offset, s.bytes)).collect::<Vec<_>>().into()
}

/// A command that is started, and the name its plan goes by.
#[derive(Debug, clap::Args)]
pub(crate) struct Planned {
    /// The command with its arguments, exactly as they are
    // An argument: not below the heading of the flag.
    #[arg(last = true, value_name = "CMD ARG", required = true, help_heading = None::<&str>)]
    pub(crate) argv: Vec<OsString>,

    /// Name for this way of starting the program; each has its own plan [default: derived from the arguments]
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
}

impl Planned {
    /// Flags and command as they are typed for the same plan elsewhere; `more` are flags of the start.
    pub(crate) fn words(&self, place: &StorePlace, more: &[OsString]) -> Result<String> {
        let mut words = place.words()?;
        if let Some(name) = &self.scenario {
            words.extend(["--scenario".into(), name.into()]);
        }
        words.extend_from_slice(more);
        words.push("--".into());
        words.extend_from_slice(&self.argv);
        Ok(cold_bench::command::line_of(&words))
    }
}

/// Names one plan: by its name in `cold prefetch list`, or by the command it is for.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// The plan: its name in `cold prefetch list`, the first letters of that, or the program's name
    #[arg(value_name = "PLAN", conflicts_with = "argv", required_unless_present = "argv")]
    name: Option<String>,

    /// With a command: the name under which the plan was learnt, if it was
    #[arg(long, value_name = "NAME", requires = "argv")]
    scenario: Option<String>,

    /// The command that the plan is for
    #[arg(last = true, value_name = "CMD ARG")]
    argv: Vec<OsString>,
}

impl Which {
    /// The command, where one is given, and its scenario.
    pub(crate) fn command(&self) -> (&[OsString], Option<&str>) {
        (&self.argv, self.scenario.as_deref())
    }

    /// The recording, where one is named instead of a plan: a directory that holds one.
    pub(crate) fn recording(&self) -> Option<&Path> {
        let path = Path::new(self.name.as_ref()?);
        path.extension().is_some_and(|e| e == "cold").then_some(path).filter(|p| p.is_dir())
    }

    /// The plan it names.
    pub(crate) fn find(&self, store: &Store) -> Result<Listed> {
        match &self.name {
            Some(name) => named(store, name),
            None => of_command(store, &self.argv, self.scenario.as_deref(), &[]),
        }
    }
}

/// The plan of a command. `flags` are those of its starts, and of the store: what would be learnt with, if there is
/// no plan.
pub(crate) fn of_command(
    store: &Store,
    argv: &[OsString],
    scenario: Option<&str>,
    flags: &[OsString],
) -> Result<Listed> {
    let key = key(argv, scenario)?;
    let line = cold_bench::command::line_of(argv);
    let named = scenario.map(|name| ["--scenario".into(), name.into()]).into_iter().flatten();
    let words: Vec<OsString> = ["cold", "prefetch", "learn"]
        .map(OsString::from)
        .into_iter()
        .chain(flags.iter().cloned())
        .chain(named)
        .chain(std::iter::once("--".into()))
        .chain(argv.iter().cloned())
        .collect();
    let learn = cold_bench::command::line_of(&words);
    let path = store.path_of(&key);
    let Some(plan) = store.load(&key).map_err(Failure::from)? else {
        let what = format!("there is no plan for {line} (scenario {})", key.scenario);
        return Err(Failure::from(anyhow::anyhow!(what)).hint(learn));
    };
    let meta = path.metadata()?;
    Ok(Listed { path, bytes: meta.len(), saved: meta.modified()?, plan })
}

/// The one plan of that name; a plan that cannot be read is said to be that.
pub(crate) fn named(store: &Store, name: &str) -> Result<Listed> {
    let listing = store.list()?;
    // What cannot be read may be the one that is meant: that there is none would be a guess.
    let mut unread = None;
    for (path, error) in listing.refused {
        let its = self::name(&path);
        if its == name {
            return Err(Failure::from(error));
        }
        if its.starts_with(name) {
            unread = Some(error);
        }
    }
    let (mut exact, mut near) = (Vec::new(), Vec::new());
    for listed in listing.plans {
        let stem = self::name(&listed.path);
        if stem == name {
            exact.push(listed);
        } else if is_called(&listed, name) {
            near.push(listed);
        }
    }
    let mut found = if exact.is_empty() { near } else { exact };
    match (found.pop(), found.as_slice()) {
        (Some(one), []) => Ok(one),
        (None, _) => Err(match unread {
            Some(error) => Failure::from(error),
            None => Failure::usage(format!("there is no plan {name:?}")).hint("cold prefetch list"),
        }),
        (Some(last), rest) => {
            let names: Vec<String> = rest
                .iter()
                .chain([&last])
                .map(|l| format!("{} ({})", self::name(&l.path), l.plan.key.scenario))
                .collect();
            Err(Failure::usage(format!("{name:?} may be any of {}", names.join(", "))))
        }
    }
}

/// Whether the name is the beginning of the plan's, or its program's.
pub(crate) fn is_called(listed: &Listed, name: &str) -> bool {
    let key = &listed.plan.key;
    let file = |p: &Path| p.file_name() == Some(OsStr::new(name)) || p == Path::new(name);
    self::name(&listed.path).starts_with(name)
        || file(&key.executable)
        || key.script.as_deref().is_some_and(file)
}

/// What a plan is called in lists: its file without the ending.
pub(crate) fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// What a plan is for, in one line.
pub(crate) fn what(key: &Key) -> String {
    match &key.script {
        Some(script) => {
            format!("{} with {}, scenario {}", key.executable.shown(), script.shown(), key.scenario)
        }
        None => format!("{}, scenario {}", key.executable.shown(), key.scenario),
    }
}

/// Now, seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long ago, roughly.
pub(crate) fn ago(at: u64) -> String {
    let seconds = now().saturating_sub(at);
    match seconds {
        _ if at == 0 => "never".to_owned(),
        0..120 => format!("{seconds} s ago"),
        120..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
