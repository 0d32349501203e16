//! The memory of a process, and the breakpoints in it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use super::arch::{BREAKPOINT, Word};
use super::code::{Code, Place};
use crate::page::page_size;

/// Most bytes that are patched in one piece.
const RUN: u64 = 1 << 20;

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(n: usize) -> Self {
        Self(vec![0; n.div_ceil(64)])
    }
    fn has(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|word| word >> (n % 64) & 1 == 1)
    }
    fn set(&mut self, n: usize, value: bool) {
        if let Some(word) = self.0.get_mut(n / 64) {
            *word = *word & !(1 << (n % 64)) | u64::from(value) << (n % 64);
        }
    }
}

/// A private executable mapping of a file.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    addresses: Range<u64>,
    /// Offset in the file of its first byte.
    offset: u64,
    code: Rc<Code>,
    /// Its places, by index.
    places: Range<usize>,
    /// Those at which a breakpoint is set, counted from the first.
    set: Bits,
}

impl Mapped {
    pub(super) fn new(addresses: Range<u64>, offset: u64, code: Rc<Code>) -> Self {
        let places = code.within(offset, addresses.end.saturating_sub(addresses.start));
        let set = Bits::new(places.len());
        Self { addresses, offset, code, places, set }
    }

    /// Its places with their numbers and addresses.
    fn places(&self) -> impl Iterator<Item = (usize, u64, &Place)> {
        let places = self.code.places.get(self.places.clone()).unwrap_or_default();
        places.iter().enumerate().map(|(n, p)| (n, self.address(p), p))
    }

    fn address(&self, place: &Place) -> u64 {
        self.addresses.start.saturating_add(place.offset.saturating_sub(self.offset))
    }

    fn at(&self, address: u64) -> Option<(usize, &Place)> {
        let offset = self.offset.checked_add(address.checked_sub(self.addresses.start)?)?;
        let places = self.code.places.get(self.places.clone())?;
        let n = places.binary_search_by_key(&offset, |p| p.offset).ok()?;
        places.get(n).map(|p| (n, p))
    }
}

/// What a stop at an address turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hit {
    /// A function is entered: file and function. `first`: for the first time in the tree.
    Entered { file: u32, function: u32, first: bool },
    /// The memory has no breakpoint there any more: another thread was served before.
    Gone,
    /// Nothing that is known here.
    Unknown,
}

/// The memory of one or more processes.
#[derive(Debug)]
pub(super) struct Space {
    mem: Option<File>,
    mapped: Vec<Mapped>,
    /// Nothing is set in it any more.
    quiet: bool,
    /// The process was bound to processors by somebody of the tree.
    pub(super) is_bound: bool,
    /// It handles SIGTRAP, and is traced all the same.
    pub(super) has_trap_handler: bool,
}

impl Space {
    /// Memory of which nothing is known yet.
    pub(super) fn new() -> Self {
        Self { mem: None, mapped: Vec::new(), quiet: false, is_bound: false, has_trap_handler: false }
    }

    /// That of a forked child: a copy, with the breakpoints in it.
    pub(super) fn forked(&self) -> Self {
        Self { mem: None, mapped: self.mapped.clone(), ..*self }
    }

    /// The memory of the thread `tid`, whose it is.
    fn mem(&mut self, tid: i32) -> io::Result<&File> {
        if self.mem.is_none() {
            self.mem = Some(File::options().read(true).write(true).open(format!("/proc/{tid}/mem"))?);
        }
        self.mem.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Forgets what was mapped at these addresses.
    pub(super) fn forget(&mut self, addresses: &Range<u64>) {
        self.mapped.retain(|m| m.addresses.end <= addresses.start || addresses.end <= m.addresses.start);
    }

    /// Sets breakpoints in a new mapping where nobody has been yet; returns how many.
    pub(super) fn plant(&mut self, tid: i32, mut mapped: Mapped) -> io::Result<u64> {
        if self.quiet {
            return Ok(0);
        }
        let mem = self.mem(tid)?;
        let wanted: Vec<(usize, u64)> =
            mapped.places().filter(|(_, _, p)| !p.is_seen()).map(|(n, address, _)| (n, address)).collect();
        let page = page_size();
        let code = Rc::clone(&mapped.code);
        let places = code.places.get(mapped.places.clone()).unwrap_or_default();
        let mut planted = 0;
        let mut rest = wanted.as_slice();
        while let Some(&(_, first)) = rest.first() {
            // Pages with places in them that follow each other.
            let begin = first & !(page - 1);
            let mut end = begin + page;
            let n = rest.iter().take_while(|(_, address)| {
                let near = *address < end + page && address - begin < RUN;
                if near {
                    end = end.max((address & !(page - 1)) + page);
                }
                near
            });
            let (run, later) = rest.split_at(n.count().max(1));
            rest = later;
            let mut bytes = vec![0; (end - begin) as usize];
            mem.read_exact_at(&mut bytes, begin)?;
            let mut now = Vec::with_capacity(run.len());
            for (n, address) in run {
                let at = (address - begin) as usize;
                let (Some(word), Some(place)) = (bytes.get_mut(at..at + BREAKPOINT.len()), places.get(*n))
                else {
                    continue;
                };
                if Word::try_from(&*word).is_ok_and(|w| place.may_replace(w)) {
                    word.copy_from_slice(&BREAKPOINT);
                    now.push(*n);
                }
            }
            if now.is_empty() {
                continue;
            }
            mem.write_all_at(&bytes, begin)?;
            planted += now.len() as u64;
            for n in now {
                mapped.set.set(n, true);
            }
        }
        self.forget(&mapped.addresses);
        self.mapped.push(mapped);
        Ok(planted)
    }

    /// Takes note of a mapping that may have breakpoints already, as a forked child's has.
    pub(super) fn adopt(&mut self, tid: i32, mut mapped: Mapped) -> io::Result<()> {
        let mem = self.mem(tid)?;
        let places: Vec<(usize, u64, bool)> =
            mapped.places().map(|(n, address, p)| (n, address, p.original().is_some())).collect();
        let mut bytes = Vec::new();
        let mut from = 0;
        for (n, address, was_set) in places {
            let end = address + BREAKPOINT.len() as u64;
            if address < from || end > from + bytes.len() as u64 {
                from = address;
                bytes.resize(RUN.min(mapped.addresses.end - address) as usize, 0);
                // The file may end before its mapping.
                let read = mem.read_at(&mut bytes, from)?;
                bytes.truncate(read);
            }
            let at = (address - from) as usize;
            let is_set = was_set && bytes.get(at..at + BREAKPOINT.len()) == Some(&BREAKPOINT);
            mapped.set.set(n, is_set);
        }
        self.forget(&mapped.addresses);
        self.mapped.push(mapped);
        Ok(())
    }

    /// A thread has stopped after executing a breakpoint at `address`: takes it out, if it is ours.
    pub(super) fn hit(&mut self, tid: i32, address: u64) -> io::Result<Hit> {
        let found = self.mapped.iter().position(|m| m.addresses.contains(&address));
        let Some((which, (n, _))) = found.and_then(|w| Some((w, self.mapped.get(w)?.at(address)?))) else {
            return Ok(Hit::Unknown);
        };
        let Some(mapped) = self.mapped.get(which) else { return Ok(Hit::Unknown) };
        if !mapped.set.has(n) {
            let mut word = BREAKPOINT;
            self.mem(tid)?.read_exact_at(&mut word, address)?;
            return Ok(if word == BREAKPOINT { Hit::Unknown } else { Hit::Gone });
        }
        let code = Rc::clone(&mapped.code);
        let Some(place) = code.places.get(mapped.places.start + n) else { return Ok(Hit::Unknown) };
        let Some(original) = place.original() else { return Ok(Hit::Unknown) };
        self.mem(tid)?.write_all_at(&original, address)?;
        if let Some(mapped) = self.mapped.get_mut(which) {
            mapped.set.set(n, false);
        }
        Ok(Hit::Entered { file: code.file, function: place.function, first: place.see() })
    }

    /// Sets nothing from now on.
    pub(super) fn leave(&mut self) {
        self.quiet = true;
    }

    /// Takes out every breakpoint, and sets none from now on. What was there stays known: another thread may be about
    /// to stop.
    pub(super) fn clear(&mut self, tid: i32) -> io::Result<()> {
        self.leave();
        let mapped = self.mapped.clone();
        self.mapped.iter_mut().for_each(|m| m.set = Bits::new(m.places.len()));
        let mem = self.mem(tid)?;
        for m in &mapped {
            for (_, address, place) in m.places().filter(|(n, _, _)| m.set.has(*n)) {
                if let Some(original) = place.original() {
                    mem.write_all_at(&original, address)?;
                }
            }
        }
        Ok(())
    }

    /// The places whose code, after their first word, begins with `tail`: what a copy was made of.
    pub(super) fn copied_from(&mut self, tid: i32, tail: &[u8]) -> Option<(u32, u32)> {
        let mapped = self.mapped.clone();
        let mem = self.mem(tid).ok()?;
        mapped.iter().find_map(|m| {
            let bytes = m.addresses.end.saturating_sub(m.addresses.start).min(256 << 20);
            let mut text = vec![0; bytes as usize];
            let read = mem.read_at(&mut text, m.addresses.start).ok()?;
            text.truncate(read);
            m.places().find_map(|(_, address, place)| {
                let at = (address - m.addresses.start) as usize + BREAKPOINT.len();
                (text.get(at..at + tail.len()) == Some(tail)).then_some((m.code.file, place.function))
            })
        })
    }

    /// Reads memory of the process through its thread `tid`.
    pub(super) fn read(&mut self, tid: i32, address: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.mem(tid)?.read_exact_at(bytes, address)
    }

    /// Writes memory of the process through its thread `tid`.
    pub(super) fn write(&mut self, tid: i32, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.mem(tid)?.write_all_at(bytes, address)
    }

    /// The file and its offset at an address.
    pub(super) fn place_of(&self, address: u64) -> Option<(u32, u64)> {
        let mapped = self.mapped.iter().find(|m| m.addresses.contains(&address))?;
        Some((mapped.code.file, mapped.offset.saturating_add(address - mapped.addresses.start)))
    }
}
