//! Does the operations of a simulation on real files.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use cold_model::Dev;
use cold_model::pages::Runs;
use cold_sim::op::{FileId, Huge, MapAdvice as Said, MapId, Op, OpenId, Pattern};
use cold_sys::evict;
use cold_sys::mapped::{MapAdvice, MapKind, MapPlace, MappedFile};
use cold_sys::page::page_size;
use cold_sys::procfs::{MapEntry, ProcFs};
use cold_sys::readahead::read_ahead;
use cold_sys::residency::{PageMap, PageRun, cachestat};

use crate::subject::Subject;
use crate::verify::Ground;
use crate::{Error, Result};

/// Between two looks at pages that are coming, at most.
const LOOKS: Duration = Duration::from_millis(2);
/// Where the kernel does not tell of pages in flight: no more come after such a time with an idle device.
const QUIET: Duration = Duration::from_millis(20);
/// Reads that nobody waits for are waited for so long.
const SETTLES: Duration = Duration::from_secs(5);

/// Open files and mappings of the files of a simulation. Mappings lie where the operations say, so two that play at
/// once in one process are in each other's way.
pub struct Player<'a> {
    ground: &'a Ground,
    opens: HashMap<OpenId, (FileId, File)>,
    maps: HashMap<MapId, Mapped>,
    buffer: Vec<u8>,
    proc: ProcFs,
}

struct Mapped {
    file: FileId,
    first: u64,
    bytes: u64,
    address: u64,
    map: MappedFile,
}

impl<'a> Player<'a> {
    /// Nothing open; [`FileId`] is the place among the ground's files.
    pub fn new(ground: &'a Ground) -> Self {
        Self {
            ground,
            opens: HashMap::new(),
            maps: HashMap::new(),
            buffer: Vec::new(),
            proc: ProcFs::default(),
        }
    }

    fn subject(&self, file: FileId) -> Result<&'a Subject> {
        self.ground.subjects.get(file.0 as usize).ok_or_else(|| unknown("file", file.0))
    }

    fn opened(&self, open: OpenId) -> Result<&(FileId, File)> {
        self.opens.get(&open).ok_or_else(|| unknown("open file", open.0))
    }

    fn mapping(&mut self, map: MapId) -> Result<&mut Mapped> {
        self.maps.get_mut(&map).ok_or_else(|| unknown("mapping", map.0))
    }

    /// Does an operation.
    pub fn play(&mut self, op: &Op) -> Result<()> {
        let page_bytes = page_size();
        match *op {
            Op::Open { open, file } => {
                let subject = self.subject(file)?;
                let opened = File::open(subject.path()).map_err(Error::io("open", subject.path()))?;
                self.opens.insert(open, (file, opened));
            }
            Op::Map { map, open, address, first, pages, exec } => {
                let (file, opened) = self.opened(open)?;
                let place = MapPlace { offset: first * page_bytes, address: address * page_bytes };
                // Data is mapped as the loader does it: written pages become copies.
                let kind = MapKind { exec, write: !exec, shared: false };
                let bytes = pages * page_bytes;
                let made = MappedFile::at(opened, place, bytes, kind)?;
                let file = *file;
                self.maps.insert(map, Mapped { file, first, bytes, address: place.address, map: made });
            }
            Op::Unmap { map } => drop(self.maps.remove(&map)),
            Op::Touch { map, page, write } => {
                let mapped = self.mapping(map)?;
                let at = page.saturating_sub(mapped.first) * page_bytes;
                if write {
                    mapped.map.poke(at, 1);
                } else {
                    mapped.map.touch(at);
                }
            }
            Op::Read { open, offset, bytes } => self.read(open, offset, bytes)?,
            Op::WillNeed { open, first, pages } => {
                let (_, file) = self.opened(open)?;
                read_ahead(file, first * page_bytes, pages * page_bytes)
                    .map_err(Error::io("ask for pages of", Path::new("an open file")))?;
            }
            Op::AdviseOpen { open, pattern } => {
                let (_, file) = self.opened(open)?;
                match pattern {
                    Pattern::Random => evict::advise_random(file)?,
                    Pattern::Sequential => evict::advise_sequential(file)?,
                    Pattern::Normal => evict::advise_normal(file)?,
                }
            }
            Op::AdviseMap { map, first, pages, advice } => {
                let said = match advice {
                    Said::Pattern(Pattern::Random) => MapAdvice::Random,
                    Said::Pattern(Pattern::Sequential) => MapAdvice::Sequential,
                    Said::Pattern(Pattern::Normal) => MapAdvice::Normal,
                    Said::Huge(Huge::Wanted) => MapAdvice::Huge,
                    Said::Huge(Huge::Unwanted | Huge::Untold) => MapAdvice::NotHuge,
                };
                self.advise(map, said, first, pages)?;
            }
            Op::Populate { map, first, pages } => {
                // Pages behind the end of the file cannot be populated.
                let file = self.mapping(map)?.file;
                let last = self.subject(file)?.bytes().div_ceil(page_bytes);
                let pages = pages.min(last.saturating_sub(first));
                self.advise(map, MapAdvice::PopulateRead, first, pages)?;
            }
            Op::Forget { map, first, pages } => self.advise(map, MapAdvice::Forget, first, pages)?,
            Op::DontNeed { file, first, pages } => {
                evict::advise_dontneed_run(self.subject(file)?.file(), PageRun { first, pages })?;
            }
        }
        Ok(())
    }

    /// Says something of pages of the file in a mapping.
    fn advise(&mut self, map: MapId, advice: MapAdvice, first: u64, pages: u64) -> Result<()> {
        let page_bytes = page_size();
        let mapped = self.mapping(map)?;
        let offset = first.saturating_sub(mapped.first) * page_bytes;
        Ok(mapped.map.advise(advice, offset, pages * page_bytes)?)
    }

    fn read(&mut self, open: OpenId, offset: u64, bytes: u64) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(1 << 30);
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let (_, file) = self.opened(open)?;
        let part = buffer.get_mut(..bytes).unwrap_or_default();
        file.read_at(part, offset).map_err(Error::io("read", Path::new("an open file")))?;
        self.buffer = buffer;
        Ok(())
    }

    /// The file that an operation may bring pages of, or drop.
    pub fn file_of(&self, op: &Op) -> Option<FileId> {
        match *op {
            Op::Touch { map, .. }
            | Op::AdviseMap { map, .. }
            | Op::Populate { map, .. }
            | Op::Forget { map, .. }
            | Op::Map { map, .. } => self.maps.get(&map).map(|m| m.file),
            Op::Read { open, .. } | Op::WillNeed { open, .. } | Op::AdviseOpen { open, .. } => {
                self.opens.get(&open).map(|o| o.0)
            }
            Op::Open { file, .. } | Op::DontNeed { file, .. } => Some(file),
            Op::Unmap { .. } => None,
        }
    }

    /// The mapping that an operation may map pages of.
    pub fn map_of(&self, op: &Op) -> Option<MapId> {
        match *op {
            // Advice splits mappings, which takes entries of 2 MiB away.
            Op::Touch { map, .. }
            | Op::AdviseMap { map, .. }
            | Op::Populate { map, .. }
            | Op::Forget { map, .. } => Some(map),
            _ => None,
        }
    }

    /// The cached pages of a file, when everything that is being read has come.
    pub fn cached(&self, file: FileId) -> Result<Runs> {
        let subject = self.subject(file)?;
        let meta = subject.file().metadata().map_err(Error::io("stat", subject.path()))?;
        let begun = Instant::now();
        let untold = |why: &str| Error::Subject { path: subject.path().to_owned(), why: why.to_owned() };
        // What is there, and since when no more came.
        let mut last = (None, begun);
        loop {
            let Some(pages) = PageMap::of(subject.file(), &meta)? else {
                return Err(untold("the kernel does not tell which of its pages are cached"));
            };
            let complete = match cachestat(subject.file(), 0, 0)? {
                // It counts pages in flight, too.
                Some(stat) => stat.cached <= pages.resident(),
                // Before Linux 6.5 the device tells.
                None => last.1.elapsed() > QUIET && last.0.as_ref() == Some(&pages) && !self.reads()?,
            };
            if complete {
                return Ok(Runs::of(pages.runs().map(|run| run.first..run.end()).collect()));
            }
            if begun.elapsed() > SETTLES {
                return Err(untold("reads of it do not end"));
            }
            if last.0.as_ref() != Some(&pages) || self.reads()? {
                last = (Some(pages), Instant::now());
            }
            std::thread::sleep(LOOKS.min(begun.elapsed()));
        }
    }

    /// The device has requests in flight.
    fn reads(&self) -> Result<bool> {
        let disks = self.proc.diskstats()?;
        Ok(disks.iter().any(|disk| disk.dev == self.ground.device && disk.in_flight > 0))
    }

    /// The pages of the file that a mapping of ours shows.
    pub fn mapped(&self, map: MapId) -> Result<Runs> {
        let mapped = self.maps.get(&map).ok_or_else(|| unknown("mapping", map.0))?;
        let entry = MapEntry {
            start: mapped.address,
            end: mapped.address + mapped.bytes,
            perms: *b"r--p",
            offset: mapped.first * page_size(),
            dev: Dev::default(),
            inode: 0,
            path: None,
            deleted: false,
        };
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let runs = self.proc.file_pages_of_mapping(own, &entry)?;
        Ok(Runs::of(runs.iter().map(|run| run.first..run.end()).collect()))
    }
}

fn unknown(what: &str, number: u32) -> Error {
    Error::Subject { path: format!("{what} {number}").into(), why: "no operation made it".to_owned() }
}
