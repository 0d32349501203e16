//! Files of which a start needed pages, and that no plan can hold.

use serde::Serialize;

/// Why no plan can hold a file that was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// The start made or removed it: the next one finds another, or none.
    Made,
    /// Its file system reads nothing from a device of this machine.
    NoDevice,
    /// It belongs to `cold` itself.
    OurOwn,
    /// Its path or size is not known, or a plan cannot hold it.
    Unnamed,
}

impl LeftOut {
    /// The reason in words, as said of one or several files.
    pub fn words(self) -> &'static str {
        match self {
            Self::Made => "made or removed meanwhile",
            Self::NoDevice => "read from no device of this machine",
            Self::OurOwn => "of cold itself",
            Self::Unnamed => "without a known path or size",
        }
    }
}
