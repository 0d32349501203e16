//! A copy of a plan in a store of its own, so that measured starts follow exactly this plan and leave no
//! mark in the history of daily use.

use std::path::PathBuf;

use cold_bench::config::Launcher;
use cold_plan::plan::FileKind;
use cold_plan::{Plan, Store};

use super::{launcher, plans};
use crate::exit::Failure;

/// Name of the process that the launcher leaves beside the program.
const HELPER: &str = "cold-launch";

/// The store with the one plan; removed with its value.
pub(crate) struct Trial {
    store: Store,
}

impl Trial {
    /// Beside `of`, so that the plan lies on the same disk as in daily use.
    pub(crate) fn beside(of: &Store) -> Result<Self, Failure> {
        let parent = of.directory().parent().unwrap_or(of.directory());
        remove_old(parent);
        for n in 0..1000 {
            let dir = parent.join(format!("trial-{}-{n}", std::process::id()));
            if !dir.exists() {
                return Ok(Self { store: Store::at(dir) });
            }
        }
        Err(Failure::from(anyhow::anyhow!("{} is full of trials", parent.display())))
    }

    /// Puts the plan there in place of the last one. It is used whatever was decided about it.
    pub(crate) fn put(&self, plan: &Plan) -> Result<(), Failure> {
        let plan = Plan { standing: cold_plan::plan::Standing::Untried, ..plan.clone() };
        self.store.save(&plan)?;
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

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.store.directory());
    }
}

/// Trials of processes that were killed.
fn remove_old(parent: &std::path::Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix("trial-")?.split('-').next()?.parse().ok());
        if pid.is_some_and(|pid: i32| cold_sys::procfs::ProcFs::default().stat(pid).is_err()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
