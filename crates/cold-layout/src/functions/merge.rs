//! What the sources say, brought together by address.

use std::ops::Range;

use super::{Function, Name, Sources};

/// Most facts that are kept; chromium with all symbols has 1.2 million functions.
const MAX_FACTS: usize = 8 << 20;
/// Longest name, in bytes; templates of C++ reach some thousand.
const MAX_NAME: usize = 32 << 10;
/// All names together: entries of a made-up table can all have the same long name.
const MAX_NAMES: usize = 512 << 20;

/// One source's word on one address.
struct Fact<'d> {
    address: u64,
    /// 0: not said.
    bytes: u64,
    source: Sources,
    /// Empty where the function has no name.
    name: &'d [u8],
    local: bool,
    /// It says that a function begins there; else it only has a name for the place.
    begins: bool,
}

/// Facts as they are found.
pub(super) struct Found<'d> {
    /// Where functions can be, sorted.
    code: Vec<Range<u64>>,
    facts: Vec<Fact<'d>>,
    name_bytes: usize,
}

pub(super) struct Symbol<'d> {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) name: &'d [u8],
    pub(super) local: bool,
    pub(super) is_function: bool,
}

impl<'d> Found<'d> {
    pub(super) fn new(mut code: Vec<Range<u64>>) -> Self {
        code.sort_by_key(|r| (r.start, r.end));
        Self { code, facts: Vec::new(), name_bytes: 0 }
    }

    /// The end of the code that holds `address`.
    fn end(&self, address: u64) -> Option<u64> {
        let n = self.code.partition_point(|r| r.start <= address).checked_sub(1)?;
        self.code.get(n).filter(|r| address < r.end).map(|r| r.end)
    }

    pub(super) fn symbol(&mut self, symbol: &Symbol<'d>, source: Sources) {
        let &Symbol { address, bytes, name, local, is_function: begins } = symbol;
        let sum = self.name_bytes.saturating_add(name.len());
        if name.is_empty() || name.len() > MAX_NAME || sum > MAX_NAMES || std::str::from_utf8(name).is_err() {
            return;
        }
        self.name_bytes = sum;
        self.fact(Fact { address, bytes, source, name, local, begins });
    }

    pub(super) fn frame(&mut self, address: u64, bytes: u64) {
        let source = Sources::FRAME;
        self.fact(Fact { address, bytes, source, name: &[], local: false, begins: true });
    }

    fn fact(&mut self, fact: Fact<'d>) {
        if self.facts.len() < MAX_FACTS && self.end(fact.address).is_some() {
            self.facts.push(fact);
        }
    }

    /// One function per address at which one begins.
    pub(super) fn merged(mut self) -> Vec<Function> {
        self.facts.sort_by_key(|f| f.address);
        let groups = self.facts.chunk_by(|a, b| a.address == b.address);
        let mut functions: Vec<Function> = groups.filter_map(one).collect();
        let next: Vec<u64> = functions.iter().skip(1).map(|f| f.address).chain([u64::MAX]).collect();
        for (function, next) in functions.iter_mut().zip(next) {
            let room = self.end(function.address).unwrap_or(0).saturating_sub(function.address);
            let gap = next.saturating_sub(function.address).min(room);
            function.bytes = if function.bytes == 0 { gap } else { function.bytes.min(room) };
        }
        functions
    }
}

/// The function at the address of these facts; `None` when nobody says that one begins there.
fn one(facts: &[Fact<'_>]) -> Option<Function> {
    let address = facts.iter().find(|f| f.begins)?.address;
    // In the order in which the sources were read, which is that of preference; a size of 0 is none.
    let bytes = facts.iter().filter(|f| f.begins).map(|f| f.bytes).find(|bytes| *bytes > 0).unwrap_or(0);
    let sources = facts.iter().fold(Sources::default(), |all, f| all.and(f.source));
    let mut names: Vec<Name> = facts
        .iter()
        .filter(|f| !f.name.is_empty())
        .map(|f| Name { text: String::from_utf8_lossy(f.name).into_owned(), local: f.local })
        .collect();
    // A dynamic symbol may say `malloc@@GLIBC_2.2.5` for what .symtab calls `malloc`.
    for name in &mut names {
        if let Some(at) = name.text.find('@').filter(|at| *at > 0) {
            name.text.truncate(at);
        }
    }
    let underscores = |text: &str| text.bytes().take_while(|b| *b == b'_').count();
    names.sort_by(|a, b| {
        (a.local, underscores(&a.text), &a.text).cmp(&(b.local, underscores(&b.text), &b.text))
    });
    names.dedup_by(|later, kept| later.text == kept.text);
    Some(Function { address, bytes, names, sources })
}
