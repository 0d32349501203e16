//! What a launch is asked to do, and why it may do less.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cold_model::Shown as _;
use cold_plan::format::FormatError;
use cold_plan::plan::Gate;

use crate::guard::Guards;

/// Where the plan is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In this file.
    File(PathBuf),
    /// In the store, under the key of the command.
    Store {
        /// The store's directory; the user's own by default.
        dir: Option<PathBuf>,
        /// The scenario; derived from the arguments by default.
        scenario: Option<String>,
    },
}

/// A start and what may be done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where the plan is.
    pub source: Source,
    /// When the program may begin, instead of what the plan says.
    pub gate: Option<Gate>,
    /// Reading ahead ends after this time, done or not, and the program has begun by then.
    pub deadline: Duration,
    /// Most bytes read ahead.
    pub budget: Option<u64>,
    /// Every so many eligible cold starts one goes without its plan, for comparison; 0 for none.
    pub control_every: u32,
    /// Which questions are asked first.
    pub guards: Guards,
    /// The start is entered in the plan's history.
    pub history: bool,
}

impl Options {
    /// Time limit unless another one is set.
    pub const DEADLINE: Duration = Duration::from_secs(10);

    /// A start of `command` by the plan in the user's store.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            source: Source::Store { dir: None, scenario: None },
            gate: None,
            deadline: Self::DEADLINE,
            budget: None,
            control_every: 0,
            guards: Guards::default(),
            history: true,
        }
    }
}

/// Why a start goes without its plan.
#[derive(Debug, thiserror::Error)]
pub enum Skip {
    /// Nothing was learnt for this command.
    #[error("there is no plan for this command (learn one: cold prefetch learn -- COMMAND)")]
    NoPlan,
    /// The user's own store is another user's, and the system's has none.
    #[error("there is no plan for this command that this user may follow: {0}")]
    NotOurs(cold_plan::store::Error),
    /// The command cannot be told.
    #[error("cannot tell which plan this command has: {0}")]
    Key(#[from] cold_plan::scenario::ScenarioError),
    /// The store has something in its place.
    #[error(transparent)]
    Store(#[from] cold_plan::store::Error),
    /// The plan's file cannot be read.
    #[error("cannot read the plan {}: {why}", .path.shown())]
    Unreadable {
        /// The plan's file, as it was named or as its store names it.
        path: PathBuf,
        /// The kernel's answer, or what is wrong with the file, in words.
        why: String,
    },
    /// The file is no plan.
    #[error("the plan {} cannot be used: {why}", .path.shown())]
    Format {
        /// The plan's file, as it was named or as its store names it.
        path: PathBuf,
        /// What is wrong with its content.
        why: FormatError,
    },
    /// This process has rights that its starter has not.
    #[error("plans are not followed in a set-user-ID process")]
    RaisedRights,
    /// The plan was switched off.
    #[error("the plan is switched off: {0}")]
    Off(String),
    /// It has no steps.
    #[error("the plan has nothing to read ahead")]
    Empty,
    /// Its pages are there.
    #[error("the files are cached already")]
    Warm,
    /// Not even the part that is needed first would fit.
    #[error("too little free memory: {room} bytes may be used, the plan's first part has {needed}")]
    Memory {
        /// Half of what is free for us.
        room: u64,
        /// Bytes of the critical prefix, or of the plan where it has none.
        needed: u64,
    },
    /// Others would have to wait.
    #[error("{0}")]
    Busy(&'static str),
    /// This kernel or container lacks something.
    #[error("cannot read ahead here: {0}")]
    Impossible(#[from] cold_sys::Error),
}

impl Skip {
    /// Something that the user should know of and can repair, not the normal course of things.
    pub fn is_problem(&self) -> bool {
        matches!(
            self,
            Self::Store(_)
                | Self::Unreadable { .. }
                | Self::Format { .. }
                | Self::RaisedRights
                | Self::Impossible(_)
        )
    }
}
