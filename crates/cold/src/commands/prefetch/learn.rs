//! `cold prefetch learn`: traced starts become a plan.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use cold_bench::config::Config;
use cold_bench::session::patience::{self, Patience};
use cold_bench::session::single::Single;
use cold_bench::session::starts::Starts;
use cold_journal::{Guard, Journal};
use cold_model::Shown as _;
use cold_model::bench::{Ending, State};
use cold_model::figures;
use cold_model::recording::Recording;
use cold_model::recording::manifest::{StackMethod, Subject};
use cold_plan::plan::Key;
use cold_plan::{Plan, Store};
use cold_prefetch::{StartNeeds, With, Worth};
use cold_trace::record::RecordOptions;

use super::plans::{self, Planned, StorePlace};
use super::{device, show};
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::recorder::{Directory, Watch, manifest};
use crate::start::{Recorded, Start};
use crate::ui::Ui;

type Result<T> = std::result::Result<T, Failure>;

const EXAMPLES: &str = "Examples:
  cold prefetch learn -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/p.html
  cold prefetch learn --ready port:5432 --scenario db -- postgres -D /srv/db
  cold prefetch learn --starts 1 --state warm -- python3 app.py    without emptying any cache
";

const AFTER: &str = "\
Each start is recorded as by `cold trace`, with the best tier this machine allows, and added to the
plan. A page is kept when enough of the last 8 starts needed it. A start whose cache others
disturbed is made again, at most twice.

The kernel also maps neighbours of a page that is needed. As root, the last cold start is made with
--exact-need where leaving them out would make starts clearly faster on this disk (by simulating the
starts before) and reading page by page takes no more than a minute. That changes settings of the
whole machine for as long as it takes.

Without root only the program's own files are evicted, and buffered reads are not seen; the result
says so.

Exit codes: 0 learnt; 1 failed, or the command failed; 2 wrong usage; 5 the state could not be
            reached; 130 interrupted (nothing is saved).";

/// Starts without any wish, and their states.
const STARTS: u32 = 3;
const STATE: &str = "auto";
/// Recordings that one directory keeps.
const MOST_KEPT: u32 = 10_000;

/// Flags of `cold prefetch learn`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = "Learning")]
    planned: Planned,

    /// How many starts to record
    #[arg(long, value_name = "N", default_value_t = STARTS, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Learning")]
    starts: u32,

    /// Begin anew: forget what was learnt before
    #[arg(long, help_heading = "Learning")]
    fresh: bool,

    /// Keep the recordings, as start-1.cold and so on in this directory
    #[arg(long, value_name = "DIR", help_heading = "Learning")]
    keep: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Learning")]
    recorded: Recorded,

    /// State of the cache before the starts: cold, warm, as-is (evict nothing), or auto (the second start warm, the
    /// others cold)
    #[arg(long, value_name = "STATE", default_value = STATE, value_parser = ["auto", "cold", "warm", "as-is"], help_heading = "State")]
    state: String,

    #[command(flatten)]
    start: Start,

    /// Print the result as one JSON document instead of text
    #[arg(long, help_heading = "Results")]
    json: bool,
}

impl Args {
    /// Starts as by default of a command whose recordings are kept: start-1.cold is cold, start-2.cold warm.
    pub(crate) fn keeping(argv: Vec<OsString>, start: Start, keep: PathBuf) -> Self {
        Self {
            planned: Planned { argv, scenario: None },
            starts: STARTS,
            fresh: false,
            keep: Some(keep),
            recorded: Recorded::default(),
            state: STATE.into(),
            start,
            json: false,
        }
    }
}

/// Learns and saves.
pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    let taught = teach(args, place, &mut line, ui, &interrupt);
    line.clear();
    let Taught { plan, path, told } = taught?;
    let next = show::Next {
        bench: args.planned.words(place, &args.start.words())?,
        launch: args.planned.words(place, &[])?,
    };
    show::learnt(ui, &plan, &path, &told, &next, args.json);
    Ok(Exit::Done)
}

/// A plan that was learnt and saved.
pub(crate) struct Taught {
    /// The plan as it was saved.
    pub(crate) plan: Plan,
    /// Where it lies.
    path: PathBuf,
    told: show::Beside,
}

/// Makes the starts, and the plan of them.
pub(crate) fn teach(
    args: &Args,
    place: &StorePlace,
    line: &mut Line<'_>,
    ui: &Ui,
    interrupt: &AtomicBool,
) -> Result<Taught> {
    let store = place.store()?;
    store.recognise()?;
    let key = plans::key(&args.planned.argv, args.planned.scenario.as_deref())?;
    let config = args.start.single(&args.planned.argv, states(&args.state))?;
    let (recordings, _guard) = recordings(args.keep.as_deref())?;
    let lesson =
        Lesson { args, store: &store, key: &key, place, recordings: &recordings, config: &config, ui };
    let learnt = lesson.starts(line, interrupt).and_then(|learnt| {
        let (plan, path) = lesson.save(&learnt, line)?;
        let told = show::Beside { missing: learnt.missing, last: learnt.starts.into_iter().next_back() };
        Ok(Taught { plan, path, told })
    });
    match learnt {
        Err(failure) if interrupt.load(Ordering::Relaxed) => {
            Err(Failure { exit: Exit::Interrupted, ..failure })
        }
        other => other,
    }
}

/// Where the recordings lie: in the directory that is to keep them, else in one of our own for a while.
fn recordings(keep: Option<&Path>) -> Result<(PathBuf, Option<Guard>)> {
    let Some(dir) = keep else {
        let (dir, guard) = Journal::open()?.create_private("cold-learn")?;
        return Ok((dir, Some(guard)));
    };
    let made = std::fs::create_dir_all(dir).and_then(|()| dir.canonicalize());
    let made = made.map_err(|e| Failure::usage(format!("cannot make the directory {}: {e}", dir.shown())))?;
    Ok((made, None))
}

/// The states of which the starts may be; none: as found.
fn states(state: &str) -> Vec<State> {
    match state {
        "cold" => vec![State::Cold],
        "warm" => vec![State::Warm],
        "as-is" => Vec::new(),
        _ => vec![State::Cold, State::Warm],
    }
}

/// A start to be recorded.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// Which of the lesson's starts, counted from 1.
    number: u32,
    /// From which state; none: as found.
    state: Option<&'a State>,
    /// With exact faults.
    exact: bool,
}

/// What came of a lesson.
struct Learnt {
    starts: Vec<StartNeeds>,
    /// What they could not show.
    missing: Vec<String>,
    /// The last cold start, an exact one where there was one.
    cold: Option<Recording>,
    /// The last warm start.
    warm: Option<Recording>,
}

struct Lesson<'a> {
    args: &'a Args,
    store: &'a Store,
    key: &'a Key,
    place: &'a StorePlace,
    recordings: &'a Path,
    config: &'a Config,
    ui: &'a Ui,
}

impl Lesson<'_> {
    /// Makes and observes all starts.
    fn starts(&self, line: &mut Line<'_>, interrupt: &AtomicBool) -> Result<Learnt> {
        let mut starts =
            Starts::begin(self.config, line, interrupt).map_err(crate::commands::bench::failure)?;
        let mut observed = Vec::new();
        let (mut cold, mut warm) = (None, None);
        let mut result = Ok(());
        let mut patience = Patience::default();
        for n in 0..self.args.starts {
            // Warm starts tell how long the program computes; cold ones what is read, metadata included.
            let state = self.config.states.get(usize::from(n == 1)).or(self.config.states.first());
            let exact = self.args.recorded.exact_need
                || (self.may_be_exact(n, state)
                    && self.is_worth_exact(&observed, cold.as_ref(), warm.as_ref(), line));
            let wanted = Wanted { number: n + 1, state, exact };
            match self.undisturbed(&mut starts, wanted, &mut patience, line) {
                Ok((start, recording)) => {
                    observed.push(start);
                    match state {
                        Some(State::Cold) => cold = Some(recording),
                        Some(State::Warm) => warm = Some(recording),
                        _ => {}
                    }
                }
                Err(failure) => {
                    result = Err(failure);
                    break;
                }
            }
        }
        let ended = starts.end().map_err(crate::commands::bench::failure);
        result?;
        ended?;
        Ok(Learnt { missing: cold_prefetch::not_shown(&observed), starts: observed, cold, warm })
    }

    /// Adds the starts to the plan as it is by now: others may have learnt meanwhile. From reading it to writing it
    /// nobody else changes the store.
    fn save(&self, learnt: &Learnt, line: &mut Line<'_>) -> Result<(Plan, PathBuf)> {
        let locked = self.store.lock()?;
        let old = self.earlier(|e| self.ui.warn(format!("the earlier plan is not used: {e}")));
        let plan = cold_prefetch::lesson(old, self.key, &learnt.starts, plans::now());
        let mut plan = plan.ok_or_else(|| Failure::usage("no start was made"))?;
        let recorded = device::Of { cold: learnt.cold.as_ref(), warm: learnt.warm.as_ref() };
        device::compile(&mut plan, recorded, &self.place.state()?, line, self.ui);
        let path = locked.save(&plan)?;
        plans::call(&locked, &plan.key, &self.args.planned.argv);
        Ok((plan, path))
    }

    /// What earlier starts taught; a plan that cannot be read teaches nothing.
    fn earlier(&self, unreadable: impl FnOnce(cold_plan::store::Error)) -> Option<Plan> {
        if self.args.fresh {
            return None;
        }
        self.store.load(self.key).unwrap_or_else(|e| {
            unreadable(e);
            None
        })
    }

    /// Whether a start may be made with exact faults unasked: the last one, as the others tell whether that pays, and
    /// only a cold one shows by them what is needed. Only root can have them.
    fn may_be_exact(&self, n: u32, state: Option<&State>) -> bool {
        let is_last_of_several = n > 0 && n + 1 == self.args.starts;
        is_last_of_several && state == Some(&State::Cold) && cold_sys::caps::is_root()
    }

    /// Whether exact needs pay, by the starts made so far.
    fn is_worth_exact(
        &self,
        observed: &[StartNeeds],
        cold: Option<&Recording>,
        warm: Option<&Recording>,
        line: &mut Line<'_>,
    ) -> bool {
        let plan = cold_prefetch::lesson(self.earlier(|_| {}), self.key, observed, plans::now());
        let (Some(plan), Some(cold), Ok(state)) = (plan, cold, self.place.state()) else { return false };
        let device = device::model(&plan, &state, line, self.ui);
        line.step("simulating what exact needs would bring");
        let worth = Worth::of(cold, warm, &plan, device.as_ref(), &device::extents).ok();
        let Some(worth) = worth.filter(Worth::is_worth_an_exact_start) else { return false };
        let part = figures::percent(worth.gain() * 100.0);
        self.ui
            .note(format!("the last start is made with exact needs: they may save {part} of a start here"));
        true
    }

    /// One recorded start, made again while others disturb it and that may help.
    fn undisturbed(
        &self,
        starts: &mut Starts<'_>,
        wanted: Wanted<'_>,
        patience: &mut Patience,
        line: &mut Line<'_>,
    ) -> Result<(StartNeeds, Recording)> {
        loop {
            let (start, disturbed) = self.start(starts, wanted, line)?;
            if disturbed.is_empty() {
                patience.next();
                return Ok(start);
            }
            let (n, why) = (wanted.number, disturbed.join("; "));
            if !patience.again() {
                self.ui.note(format!("start {n} was disturbed, but is used all the same: {why}"));
                return Ok(start);
            }
            self.ui.note(format!("start {n} was disturbed and is made again: {why}"));
        }
    }

    /// One recorded start, and by what its cache was disturbed.
    fn start(
        &self,
        starts: &mut Starts<'_>,
        Wanted { number, state, exact }: Wanted<'_>,
        line: &mut Line<'_>,
    ) -> Result<((StartNeeds, Recording), Vec<String>)> {
        let argv = self.config.commands.first().map(|c| c.argv.as_slice()).unwrap_or_default();
        let before = manifest::before(Subject::Command, argv, &self.args.start.ready_means());
        let directory = self.directory()?;
        let path = directory.path().to_owned();
        let mut watch = Watch::new(directory, self.options(), before);
        let single = starts
            .one(state, exact, &mut watch, line)
            .map_err(crate::commands::bench::failure)?
            .filter(|s| !s.start.interrupted)
            .ok_or_else(|| Failure::from(anyhow::anyhow!("interrupted; nothing was learnt")))?;
        self.ended_well(&single)?;
        let mut disturbed = patience::lasting(&single);
        line.step(&format!("learning from start {number} of {}", self.args.starts));
        let own_cpu = single.start.own_cpu.map_or(0, |t| t.0);
        let recording: Recording = match &self.args.keep {
            Some(_) => watch.finish(Some(single))?,
            None => watch.assemble(Some(single))?,
        };
        drop(watch);
        // What was cached when it was prepared may be gone when it starts.
        if state == Some(&State::Warm) && cold_analyze::simulate::read_as_cold(&recording) {
            disturbed
                .push("it was to be warm, and had to read more than a tenth of what it needed".to_owned());
        }
        let excluded = [self.store.directory().to_owned(), path];
        let with = With { opened: starts.observed(), ..beside(&excluded) };
        let start = cold_prefetch::observe(&recording, &with).map_err(|e| {
            Failure::from(anyhow::anyhow!("nothing could be learnt from start {number}: {e}"))
                .hint("`cold doctor` tells what can be recorded here")
        })?;
        let goes_on = !matches!(self.config.ready, cold_bench::ready::Ready::Exit);
        Ok(((StartNeeds { own_cpu_ns: own_cpu, goes_on, ..start }, recording), disturbed))
    }

    /// A failed start is none that should be made faster.
    fn ended_well(&self, single: &Single) -> Result<()> {
        let why = match single.start.ending {
            _ if self.args.start.ignore_failure => return Ok(()),
            Ending::TimedOut => {
                let by_exit = matches!(self.config.ready, cold_bench::ready::Ready::Exit);
                let why = "the command was not ready within --timeout; nothing was learnt";
                return Err(Failure::from(anyhow::anyhow!(why))
                    .hint(crate::commands::bench::ready_hint(None, by_exit)));
            }
            Ending::Code(c) if c != 0 => format!("failed (exit code {c})"),
            Ending::Signal(s) => format!("was killed by signal {s}"),
            _ => return Ok(()),
        };
        Err(Failure::from(anyhow::anyhow!("the command {why}; nothing was learnt"))
            .hint("--ignore-failure learns from it all the same, --output inherit shows what it says"))
    }

    /// Where the recording of a start lies, for good or for a while. Other lessons may keep theirs there, too.
    fn directory(&self) -> Result<Directory> {
        let name = |n| self.recordings.join(format!("start-{n}.cold"));
        Directory::first_free((1..=MOST_KEPT).map(name))?
            .ok_or_else(|| Failure::usage(format!("{} is full of recordings", self.recordings.shown())))
    }

    fn options(&self) -> RecordOptions {
        RecordOptions {
            tier: self.args.recorded.tier(),
            stacks: Some(StackMethod::None), // who wanted a page does not matter to a plan
            ..RecordOptions::default()
        }
    }
}

/// What this machine tells beside a recording. Files at or below `excluded` are not learnt.
pub(crate) fn beside(excluded: &[PathBuf]) -> With<'_> {
    With {
        excluded,
        opened: None,
        readable: Some(|device| std::fs::File::open(device).is_ok()),
        inode: Some(cold_sys::inode::inode),
        inode_page: Some(cold_sys::ext4::inode_page),
        interpreter: Some(cold_doctor::interpreter),
    }
}
