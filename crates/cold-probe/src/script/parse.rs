//! Lines to values; every mistake with its line.

use std::collections::BTreeSet;
use std::path::Path;

use super::{MOST, Mistake, ProcessLine, ThreadLine, ThreadScript};
use crate::spec::{Act, FileAdvice, Mapping, Mode, actions};
use crate::variate::Normal;

type Result<T> = std::result::Result<T, Mistake>;

/// Largest number that a script may hold.
const LARGEST: f64 = 1e12;
/// Most pages of data.
const MOST_PAGES: u64 = 1 << 18;
/// Most bytes of a record.
const MOST_RECORD: u64 = 16 << 20;

/// A line without comment, in words.
struct ScriptLine<'a> {
    path: &'a Path,
    number: usize,
    words: Vec<&'a str>,
}

impl ScriptLine<'_> {
    fn fail<T>(&self, why: impl Into<String>) -> Result<T> {
        Err(Mistake { path: self.path.to_owned(), line: self.number, why: why.into() })
    }

    fn word(&self, at: usize, what: &str) -> Result<&str> {
        match self.words.get(at) {
            Some(w) => Ok(w),
            None => self.fail(format!("{} needs {what}", self.words.first().unwrap_or(&"the line"))),
        }
    }

    fn number(&self, at: usize, what: &str) -> Result<f64> {
        let word = self.word(at, what)?;
        match word.parse::<f64>() {
            Ok(n) if n.is_finite() && (0.0..=LARGEST).contains(&n) => Ok(n),
            _ => self.fail(format!("{word:?} is no {what} (a number from 0 on)")),
        }
    }

    fn whole(&self, at: usize, what: &str, most: u64) -> Result<u64> {
        let n = self.number(at, what)?;
        if n.fract() != 0.0 || n > most as f64 {
            return self.fail(format!("{n} is no {what} (a whole number up to {most})"));
        }
        Ok(n as u64)
    }

    fn normal(&self) -> Result<Normal> {
        let n = Normal { mean: self.number(1, "mean")?, sd: self.number(2, "standard deviation")? };
        self.ends(3).map(|()| n)
    }

    /// The documentation's own scripts carry units in parentheses behind the values.
    fn ends(&self, after: usize) -> Result<()> {
        match self.words.get(after) {
            Some(more) if !more.starts_with('(') => self.fail(format!("{more:?} is one word too many")),
            _ => Ok(()),
        }
    }

    /// Takes a leading `REPEAT N` off.
    fn repeat(&mut self) -> Result<u64> {
        if !self.words.first().is_some_and(|w| w.eq_ignore_ascii_case("REPEAT")) {
            return Ok(1);
        }
        let n = self.whole(1, "number of repetitions", MOST)?;
        if n == 0 {
            return self.fail("0 repetitions are none");
        }
        self.words.drain(..2);
        Ok(n)
    }
}

fn lines<'a>(path: &'a Path, text: &'a str) -> impl Iterator<Item = ScriptLine<'a>> {
    text.lines().enumerate().filter_map(move |(n, line)| {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        (!words.is_empty()).then_some(ScriptLine { path, number: n + 1, words })
    })
}

fn none<T>(path: &Path, what: &str) -> Result<T> {
    Err(Mistake { path: path.to_owned(), line: 0, why: format!("it names no {what}") })
}

/// Reads a `.SCR`.
pub fn script(path: &Path, text: &str) -> Result<Vec<ProcessLine>> {
    let mut found = Vec::new();
    let mut sum = 0;
    for mut l in lines(path, text) {
        let repeat = l.repeat()?;
        if !l.word(0, "PROCESS")?.eq_ignore_ascii_case("PROCESS") {
            return l
                .fail(format!("{:?} is not known here: [REPEAT n] PROCESS file.SCP pages …", l.words[0]));
        }
        let file = l.word(1, "a .SCP file")?.to_owned();
        let data_pages = l.whole(2, "number of data pages", MOST_PAGES)?;
        // Version 2.0: a file of code pages, then perhaps a name; from 2.1 on no such file.
        let is_program = |w: &&str| w.to_ascii_lowercase().ends_with(".exe");
        let mut rest = l.words.iter().skip(3).copied().peekable();
        let code_file = rest.next_if(|w| !is_program(w)).map(str::to_owned);
        let name = rest.next().map(str::to_owned);
        let class = rest.next().map(|w| class(&l, w)).transpose()?;
        if let Some(more) = rest.next() {
            return l.fail(format!("{more:?} is one word too many"));
        }
        sum += repeat;
        if sum > MOST {
            return l.fail(format!("that makes more than {MOST} processes"));
        }
        found.push(ProcessLine { line: l.number, repeat, file, data_pages, code_file, name, class });
    }
    if found.is_empty() { none(path, "PROCESS") } else { Ok(found) }
}

/// A beginning of one of the four names is enough; its first letter stands for the class.
fn class(l: &ScriptLine<'_>, word: &str) -> Result<char> {
    let found =
        ["IDLE", "NORMAL", "HIGH", "REALTIME"].iter().find(|c| c.starts_with(&word.to_ascii_uppercase()));
    match found.and_then(|c| c.chars().next()) {
        Some(c) => Ok(c),
        None => l.fail(format!("{word:?} is no priority class (Idle, Normal, High, Realtime)")),
    }
}

const PRIORITIES: [&str; 7] =
    ["TimeCritical", "Highest", "AboveNormal", "Normal", "BelowNormal", "Lowest", "Idle"];

/// Reads a `.SCP`.
pub fn process(path: &Path, text: &str) -> Result<Vec<ThreadLine>> {
    let mut found = Vec::new();
    let mut sum = 0;
    for mut l in lines(path, text) {
        let repeat = l.repeat()?;
        if !l.word(0, "THREAD")?.eq_ignore_ascii_case("THREAD") {
            return l
                .fail(format!("{:?} is not known here: [REPEAT n] THREAD file.SCT [priority]", l.words[0]));
        }
        let file = l.word(1, "a .SCT file")?.to_owned();
        let priority = match l.words.get(2) {
            None => None,
            Some(w) => {
                match PRIORITIES.iter().find(|p| p.to_ascii_lowercase().starts_with(&w.to_ascii_lowercase()))
                {
                    Some(p) => Some((*p).to_owned()),
                    None => return l.fail(format!("{w:?} is no priority ({})", PRIORITIES.join(", "))),
                }
            }
        };
        l.ends(3)?;
        sum += repeat;
        if sum > MOST {
            return l.fail(format!("that makes more than {MOST} threads"));
        }
        found.push(ThreadLine { line: l.number, repeat, file, priority });
    }
    if found.is_empty() { none(path, "THREAD") } else { Ok(found) }
}

const REQUIRED: [&str; 7] =
    ["THINKTIME", "CYCLEREADS", "FILESEEK", "CPUTIME", "DATAPAGE", "CODEPAGE", "FILEACCESS"];

/// Reads a `.SCT`.
pub fn thread(path: &Path, text: &str) -> Result<ThreadScript> {
    let mut t = ThreadScript {
        think: Normal::default(),
        reads: Normal::fixed(1.0),
        seek: Normal::default(),
        cpu: Normal::default(),
        data: Normal::default(),
        code: Normal::default(),
        access: String::new(),
        sequential: false,
        mode: Mode::BUFFERED,
        record: 4096,
        action: vec![Act::R],
    };
    let mut seen = BTreeSet::new();
    for l in lines(path, text) {
        let keyword = l.word(0, "a keyword")?.to_ascii_uppercase();
        match keyword.as_str() {
            "THINKTIME" => t.think = l.normal()?,
            "CYCLEREADS" => t.reads = l.normal()?,
            "FILESEEK" => t.seek = l.normal()?,
            "CPUTIME" => t.cpu = l.normal()?,
            "DATAPAGE" => t.data = l.normal()?,
            "CODEPAGE" | "FUNCTION" => t.code = l.normal()?,
            "FILEACCESS" => l.word(1, "a file")?.clone_into(&mut t.access),
            "FILEATTRIBUTE" => t.sequential = attribute(&l)?,
            "FILEACCESSMODE" => t.mode = mode(&l)?,
            "RECORDSIZE" => t.record = l.whole(1, "record size in bytes", MOST_RECORD)?,
            // The second is how an example of the documentation spells it.
            "FILEACTION" | "FILEACTIO" => {
                t.action = actions(l.word(1, "letters R and W")?).or_else(|why| l.fail(why))?;
            }
            _ => return l.fail(format!("{:?} is no keyword of a thread", l.words[0])),
        }
        if !matches!(
            keyword.as_str(),
            "THINKTIME" | "CYCLEREADS" | "FILESEEK" | "CPUTIME" | "DATAPAGE" | "CODEPAGE" | "FUNCTION"
        ) {
            l.ends(2)?;
        }
        let keyword = if keyword == "FUNCTION" { "CODEPAGE".to_owned() } else { keyword };
        if !seen.insert(keyword.clone()) {
            return l.fail(format!("{keyword} stands there a second time"));
        }
        if t.record == 0 {
            return l.fail("a record has at least 1 byte");
        }
        if t.mode == Mode::Direct && !t.record.is_multiple_of(512) {
            return l.fail(format!(
                "unbuffered records are multiples of a sector, 512 bytes; {} is none",
                t.record
            ));
        }
    }
    match REQUIRED.iter().find(|k| !seen.contains(**k)) {
        Some(missing) => none(path, &format!("{missing}, which every thread needs")),
        None => Ok(t),
    }
}

fn attribute(l: &ScriptLine<'_>) -> Result<bool> {
    match l.word(1, "RANDOM or SEQUENTIAL")?.to_ascii_uppercase().as_str() {
        "RANDOM" => Ok(false),
        "SEQUENTIAL" => Ok(true),
        other => l.fail(format!("{other:?} is neither RANDOM nor SEQUENTIAL")),
    }
}

fn mode(l: &ScriptLine<'_>) -> Result<Mode> {
    // The original copies whole records through its view of the file.
    let mapped = Mode::Mapped(Mapping { shared: true, copy: true, ..Mapping::default() });
    match l.word(1, "MAPPED, BUFFERED or UNBUFFERED")?.to_ascii_uppercase().as_str() {
        "MAPPED" => Ok(mapped),
        "BUFFERED" | "BUFFER" => Ok(Mode::Buffered { advice: FileAdvice::Normal }),
        "UNBUFFERED" | "UNBUFFER" => Ok(Mode::Direct),
        other => l.fail(format!("{other:?} is none of MAPPED, BUFFERED, UNBUFFERED")),
    }
}
