//! What a trial does: think, seek, act on the file, compute; and again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::variate::{Normal, Seek, Variate};

/// How the file is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "access", rename_all = "snake_case")]
pub enum Mode {
    /// Past the page cache (`O_DIRECT`); records are multiples of the device's sector.
    Direct,
    /// `pread` and `pwrite`.
    Buffered {
        /// What the kernel is told of the file first.
        advice: FileAdvice,
    },
    /// By loads and stores in a mapping of the file.
    Mapped(Mapping),
}

/// `posix_fadvise(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAdvice {
    /// No advice: the read-ahead that is configured.
    #[default]
    Normal,
    /// Exactly what is asked for is read.
    Random,
    /// Twice the read-ahead.
    Sequential,
}

/// How a file is mapped and touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mapping {
    /// With `PROT_EXEC` too, as code is mapped.
    pub exec: bool,
    /// `MAP_SHARED`; a private mapping's writes never reach the file.
    pub shared: bool,
    /// Copy the record instead of touching one byte of each of its pages.
    pub copy: bool,
    /// What the kernel is told of the mapping first.
    pub advice: Advice,
}

/// What is told of a mapping by madvise(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// No advice: the kernel reads around a fault.
    #[default]
    Normal,
    /// `MADV_RANDOM`: one page per fault, evicted first.
    Random,
    /// `MADV_SEQUENTIAL`: read ahead only, evicted first.
    Sequential,
    /// `MADV_WILLNEED` for the whole file, before the clock starts.
    WillNeed,
    /// `MADV_POPULATE_READ` for the whole file, before the clock starts.
    Populate,
}

impl Mode {
    /// `pread` and `pwrite` without advice.
    pub const BUFFERED: Self = Self::Buffered { advice: FileAdvice::Normal };
    /// A shared data mapping, one byte touched per page.
    pub const MAPPED: Self =
        Self::Mapped(Mapping { exec: false, shared: true, copy: false, advice: Advice::Normal });

    /// The word of the tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Buffered { .. } => "buffered",
            Self::Mapped(_) => "mapped",
        }
    }
}

/// One letter of an action string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Read the next record.
    R,
    /// Rewrite the record that was read last, or the next one when none was.
    W,
}

/// Letters of an action string; more are a mistake in a script.
const LONGEST_ACTION: usize = 1000;

/// Reads an action string like `RRWRR`.
pub fn actions(text: &str) -> Result<Vec<Act>, String> {
    if text.is_empty() || text.len() > LONGEST_ACTION {
        return Err(format!("an action is 1 to {LONGEST_ACTION} letters R and W"));
    }
    let act = |c: char| match c.to_ascii_uppercase() {
        'R' => Ok(Act::R),
        'W' => Ok(Act::W),
        _ => Err(format!("{c:?} in {text:?} is neither R nor W")),
    };
    text.chars().map(act).collect()
}

/// What one thread does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The file, as the worker can open it.
    pub file: PathBuf,
    /// Bytes of it that are used.
    pub bytes: u64,
    /// How it is reached.
    pub mode: Mode,
    /// Bytes of a record.
    pub record: u64,
    /// Where the action string begins.
    pub seek: Seek,
    /// What is done there.
    pub action: Vec<Act>,
    /// Pause before each cycle, milliseconds.
    pub think: Normal,
    /// Action and compute phases per cycle, rounded; a draw of 0 only computes.
    pub repeats: Normal,
    /// Computing after each action, milliseconds at the calibrated speed.
    pub cpu: Normal,
    /// Data page written by each turn of the computing loop: its place.
    pub data_page: Normal,
    /// Code page read by each turn.
    pub code_page: Normal,
    /// Data pages there are.
    pub data_pages: u64,
    /// A file whose pages stand for code; without one, those of the probe's own program.
    pub code_file: Option<PathBuf>,
    /// How normal numbers are drawn.
    pub variate: Variate,
    /// Ask before every so many records whether they are cached (cachestat, outside the timed part); 0 never.
    pub watch: u32,
    /// Its nice value; below 0 takes privileges.
    pub nice: i32,
}

impl Work {
    /// Reads of records of `record` bytes, without thinking or computing; every record is watched.
    pub fn reads(file: PathBuf, bytes: u64, record: u64, mode: Mode, seek: Seek) -> Self {
        Self {
            file,
            bytes,
            mode,
            record,
            seek,
            action: vec![Act::R],
            think: Normal::default(),
            repeats: Normal::fixed(1.0),
            cpu: Normal::default(),
            data_page: Normal::default(),
            code_page: Normal::default(),
            data_pages: 0,
            code_file: None,
            variate: Variate::True,
            watch: 1,
            nice: 0,
        }
    }

    /// Records in the file.
    pub fn records(&self) -> u64 {
        (self.bytes / self.record.max(1)).max(1)
    }

    /// Whether it writes.
    pub fn writes(&self) -> bool {
        self.action.contains(&Act::W)
    }
}

/// When a trial ends, and what of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "until", rename_all = "snake_case")]
pub enum Limit {
    /// When the first thread has used so many records; all count.
    Records {
        /// Records read or written, counting each letter of the action; the first thread there ends all.
        records: u64,
    },
    /// After a time; cycles that begin after the share `settle` of it count.
    Time {
        /// From the start signal on, milliseconds.
        ms: u64,
        /// 0.5 is the rule of 1993.
        settle: f64,
    },
}

/// What one process does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Crew {
    /// Its name in tables and in the process list.
    pub name: String,
    /// What each of its threads does, all at the same time.
    pub threads: Vec<Work>,
    /// When they end.
    pub limit: Limit,
    /// Of the random numbers; each thread has a stream of its own.
    pub seed: u64,
    /// Number of its first stream, so that processes differ.
    pub stream: u64,
    /// Length of the intervals of [`crate::worker::Tick`], milliseconds; 0 keeps none.
    pub tick_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_letters_of_either_case_and_not_too_many() {
        assert_eq!(actions("rWR"), Ok(vec![Act::R, Act::W, Act::R]));
        assert_eq!(actions(&"R".repeat(1000)).map(|a| a.len()), Ok(1000));
        for text in ["", &"R".repeat(1001)] {
            assert_eq!(actions(text), Err("an action is 1 to 1000 letters R and W".to_owned()));
        }
        for (text, why) in [("RxR", "'x' in \"RxR\""), ("R W", "' '"), ("Ｒ", "'Ｒ'"), ("R\n", "'\\n'")] {
            let found = actions(text).unwrap_err();
            assert!(found.starts_with(why) && found.ends_with("is neither R nor W"), "{found}");
        }
    }

    #[test]
    fn a_file_has_the_whole_records_that_fit_and_one_at_least() {
        let records = |bytes, record| {
            Work::reads("/f".into(), bytes, record, Mode::BUFFERED, Seek::Sequential).records()
        };
        for (bytes, record, expected) in [
            (8192, 4096, 2),
            (8191, 4096, 1),
            (100, 4096, 1),
            (0, 4096, 1),
            (10, 0, 10),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(records(bytes, record), expected, "{bytes} in records of {record}");
        }
    }
}
