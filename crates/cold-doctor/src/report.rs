//! The document of an examination: findings and their sum.

use cold_model::recording::manifest::Tier;
use serde::Serialize;

use crate::checks;
use crate::context::Context;
use crate::finding::{Finding, Status};

/// Name and version of the JSON document; described in docs/formats/doctor-json.md.
pub const SCHEMA: &str = "coldstart.doctor/1";

/// How the page cache can be emptied here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Eviction {
    /// All of it, through `drop_caches`.
    All,
    /// Only named files, one by one; metadata stays.
    Files,
}

/// The sum of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Findings by status.
    pub ok: usize,
    /// Findings of [`Status::Note`].
    pub notes: usize,
    /// Findings of [`Status::Unknown`].
    pub unknown: usize,
    /// Findings of [`Status::Missing`].
    pub missing: usize,
    /// Findings of [`Status::Disturbs`].
    pub disturbing: usize,
    /// The tier that a recording made now would have.
    pub tier: Tier,
    /// How pages can be evicted.
    pub eviction: Eviction,
}

/// An examination of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Name and version of this document: [`SCHEMA`].
    pub schema: &'static str,
    /// Version of coldstart.
    pub version: &'static str,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Effective user id the examination ran with.
    pub euid: u32,
    /// The command and its arguments, as given.
    pub command: Vec<String>,
    /// How many findings have which status, and what is possible here.
    pub summary: Summary,
    /// Findings in the order of [`checks::CHECKS`].
    pub findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(findings: Vec<Finding>, context: &Context) -> Self {
        let count = |status| findings.iter().filter(|f| f.status == status).count();
        let summary = Summary {
            ok: count(Status::Ok),
            notes: count(Status::Note),
            unknown: count(Status::Unknown),
            missing: count(Status::Missing),
            disturbing: count(Status::Disturbs),
            tier: checks::tracing::recording(context).tier,
            eviction: checks::cache::eviction(context),
        };
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            kernel: context.release.clone(),
            euid: context.credentials.euid,
            command: context.config.command.clone(),
            summary,
            findings,
        }
    }
}
