//! What recorded starts could not show.

use std::fmt;

use cold_model::recording::manifest::Tier;

use super::StartNeeds;

/// What a start could not show, and so what its plan may lack. Another start may show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Which pages were read by system calls.
    Reads {
        /// Tier of the recording.
        tier: Tier,
        /// The files that were opened are known, and small ones are taken whole.
        opened: bool,
    },
    /// Waits for storage, by a recording of this tier.
    Waits(Tier),
    /// Lookups, by a recording of this tier.
    Lookups(Tier),
    /// Blocks of metadata.
    Metadata,
    /// Which of the pages mapped around a fault were needed.
    Exactness,
    /// That it was cold.
    Coldness,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads { tier, opened } => {
                let how = if *opened {
                    "files up to 128 KiB that were opened are taken whole"
                } else {
                    "only mapped pages are learnt"
                };
                write!(f, "tier {tier} does not see which pages were read by system calls: {how}")
            }
            Self::Waits(tier) => write!(
                f,
                "tier {tier} does not see waits for storage: a cold start shows in which order pages are needed, but not \
                 when"
            ),
            Self::Lookups(tier) => {
                write!(f, "tier {tier} does not see lookups: directories and names are not learnt")
            }
            Self::Metadata => f.write_str(
                "blocks of the file systems' metadata are learnt from cold starts at tier A or B only",
            ),
            Self::Exactness => f.write_str(
                "no start was exact: the kernel maps neighbours of a page that is needed, and these are in the plan, too",
            ),
            Self::Coldness => f.write_str(
                "that the start was cold is not proved: its time does not count as a cold one's",
            ),
        }
    }
}

/// What none of the starts has shown, behind what went wrong in recording each; in sentences.
pub fn not_shown(starts: &[StartNeeds]) -> Vec<String> {
    let faults = starts.iter().flat_map(|s| s.faults.iter().cloned());
    let Some((first, others)) = starts.split_first() else { return Vec::new() };
    let by_all = first.missing.iter().filter(|what| others.iter().all(|s| s.missing.contains(what)));
    faults.chain(by_all.map(ToString::to_string)).collect()
}
