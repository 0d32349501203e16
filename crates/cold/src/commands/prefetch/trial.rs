//! A copy of a plan in a store of its own, so that measured starts follow exactly this plan and leave no
//! mark in the history of daily use.

use std::ffi::OsString;
use std::path::PathBuf;

use cold_bench::config::Launcher;
use cold_journal::{Guard, Journal};
use cold_plan::plan::FileKind;
use cold_plan::{Plan, Store};

use super::{launcher, plans};
use crate::exit::Failure;

/// Name of the process that the launcher leaves beside the program.
const HELPER: &str = "cold-launch";

/// The store with the one plan; removed with its value, or by whoever finds the journal.
pub(crate) struct Trial {
    store: Store,
    argv: Vec<OsString>,
    _guard: Guard,
}

impl Trial {
    /// In the directory of `of`, so that the plan lies on the same disk as in daily use. Where it is none of ours,
    /// or others could replace what lies there, in a private one. `argv`: the command.
    pub(crate) fn of(of: &Store, argv: &[OsString]) -> Result<Self, Failure> {
        let (journal, dir) = (Journal::open()?, of.directory());
        let ours = dir.is_dir() && of.recognise().is_ok() && cold_sys::place::exposed(dir).is_none();
        let beside = ours.then(|| journal.create_directory(dir, "trial")).and_then(Result::ok);
        // It may be another user's to write.
        let (dir, guard) = beside.map_or_else(|| journal.create_private("cold-trial"), Ok)?;
        Ok(Self { store: Store::at(dir), argv: argv.to_owned(), _guard: guard })
    }

    /// Puts the plan there in place of the last one, to be found as one that was learnt with the command's words. It is
    /// used whatever was decided about it.
    pub(crate) fn put(&self, plan: &Plan) -> Result<(), Failure> {
        let plan = Plan { standing: cold_plan::plan::Standing::Untried, ..plan.clone() };
        let locked = self.store.lock()?;
        locked.save(&plan)?;
        plans::call(&locked, &plan.key, &self.argv);
        Ok(())
    }

    /// What the launcher itself reads: its program and the plan.
    pub(crate) fn own_files(&self, plan: &Plan) -> Result<Vec<PathBuf>, Failure> {
        Ok(vec![launcher::find()?, self.store.path_of(&plan.key)])
    }

    /// How a measured start follows it.
    pub(crate) fn launcher(&self, plan: &Plan, scenario: Option<&str>) -> Result<Launcher, Failure> {
        let program = launcher::find()?;
        let mut arguments = vec![HELPER.into(), "--store".into(), self.store.directory().into()];
        if let Some(name) = scenario {
            arguments.extend(["--scenario".into(), name.into()]);
        }
        arguments.push("--".into());
        // Also what the plan reads and the program does not: else a useless read would cost nothing the second
        // time, and the plan look better than it is.
        let regular = plan.files.iter().filter(|f| f.kind == FileKind::Regular).map(|f| f.path.clone());
        let files = self.own_files(plan)?.into_iter().chain(regular).collect();
        let history: PathBuf = self.store.history_of(&plan.key);
        let name = plans::name(&self.store.path_of(&plan.key));
        Ok(Launcher { program, arguments, plan: name, files, history, helper: HELPER.to_owned() })
    }
}
