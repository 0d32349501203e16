//! Kinds and causes in words, the same in every report and export.

use super::tables::{LookupKind, StallCause};

impl StallCause {
    /// What was waited for: `fault`, `other storage`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Read => "read",
            Self::Lookup => "lookup",
            Self::Exec => "exec",
            Self::Write => "write",
            Self::OtherStorage => "other storage",
            Self::Lock => "lock",
        }
    }
}

impl LookupKind {
    /// The family of system calls: `open`, `stat`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Access => "access",
            Self::Readlink => "readlink",
            Self::Exec => "exec",
            Self::List => "list",
        }
    }
}
