//! A finding: fact, consequence for measuring, remedy.

use serde::Serialize;

/// How a finding bears on a measurement. Ordered from harmless to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Checked, and as a measurement wants it.
    Ok,
    /// Worth knowing when reading the figures; does not disturb by itself.
    Note,
    /// Could not be checked; the fact says why.
    Unknown,
    /// Something coldstart could use is not available here.
    Missing,
    /// Changes the figures of a measurement made now.
    Disturbs,
}

impl Status {
    /// The word that output and JSON use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
            Self::Disturbs => "disturbs",
        }
    }
}

/// What a finding is about. In the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Ids, capabilities, containers.
    Privileges,
    /// What can be recorded.
    Tracing,
    /// Emptying and inspecting the page cache.
    Cache,
    /// Control groups: which controllers can be used, and whether a group can be made.
    Cgroups,
    /// Stall and pressure accounting.
    Accounting,
    /// File systems and block devices.
    Storage,
    /// THP, swap, reclaimers.
    Memory,
    /// Frequency, virtualisation, load.
    Cpu,
    /// Programs that read, write or intercept files in the background.
    Programs,
    /// What will start within the hour.
    Schedule,
    /// Who holds the files of the given command.
    Holders,
    /// Changes an interrupted run of coldstart left behind.
    Leftovers,
}

impl Area {
    /// The heading of the area.
    pub fn title(self) -> &'static str {
        match self {
            Self::Privileges => "Privileges",
            Self::Tracing => "Tracing",
            Self::Cache => "Page cache",
            Self::Cgroups => "Control groups",
            Self::Accounting => "Stall accounting",
            Self::Storage => "File systems and devices",
            Self::Memory => "Memory management",
            Self::Cpu => "Processors and load",
            Self::Programs => "Background programs",
            Self::Schedule => "Due within the hour",
            Self::Holders => "Holders of the command's files",
            Self::Leftovers => "Leftovers of earlier runs",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name for scripts, `check` or `check.detail`.
    pub id: String,
    /// What it is about.
    pub area: Area,
    /// How it bears on a measurement.
    pub status: Status,
    /// The thing it is about where there may be several: a path, device, unit or program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// What is the case, one sentence without a full stop.
    pub fact: String,
    /// What that means for measuring.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consequence: String,
    /// What to do now; absent where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Processes it names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
}

impl Finding {
    fn new(id: &str, status: Status, fact: impl Into<String>) -> Self {
        Self {
            id: id.to_owned(),
            area: Area::Privileges, // set by the runner from the check's area
            status,
            subject: None,
            fact: fact.into(),
            consequence: String::new(),
            remedy: None,
            pids: Vec::new(),
        }
    }

    pub(crate) fn ok(id: &str, fact: impl Into<String>) -> Self {
        Self::new(id, Status::Ok, fact)
    }
    pub(crate) fn note(id: &str, fact: impl Into<String>) -> Self {
        Self::new(id, Status::Note, fact)
    }
    pub(crate) fn missing(id: &str, fact: impl Into<String>) -> Self {
        Self::new(id, Status::Missing, fact)
    }
    pub(crate) fn disturbs(id: &str, fact: impl Into<String>) -> Self {
        Self::new(id, Status::Disturbs, fact)
    }
    /// `what` could not be checked because of `why`. Add the consequence where it is more than this.
    pub(crate) fn unknown(id: &str, what: &str, why: impl std::fmt::Display) -> Self {
        Self::new(id, Status::Unknown, format!("{what}: unknown ({why})"))
            .so("whether it disturbs stays open")
    }
    /// Adds the consequence for measuring.
    pub(crate) fn so(mut self, consequence: impl Into<String>) -> Self {
        self.consequence = consequence.into();
        self
    }
    /// Adds what to do now.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
    /// Adds the thing it is about.
    pub(crate) fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }
    /// Adds the processes it names.
    pub(crate) fn pids(mut self, pids: impl IntoIterator<Item = i32>) -> Self {
        self.pids = pids.into_iter().collect();
        self
    }
}
