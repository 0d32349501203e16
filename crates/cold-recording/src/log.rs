//! The raw events of a recording while it is made: blocks appended to one file, each with a checksum.
//!
//! What a block means is the recorder's business. A process that is killed loses what [`Writer`] still
//! holds in memory: at most [`BUFFER`] bytes, and nothing older than [`FLUSH_AFTER`] as long as blocks
//! keep coming or [`Writer::tick`] is called. Nothing is synced to storage while recording, because that
//! would disturb what is measured: after a power cut the log may be shorter, or empty.
//!
//! All numbers are little-endian.
//!
//! | header | size | | block | size | |
//! |---|---|---|---|---|---|
//! | magic | 8 | `COLDLOG\n` | checksum | 4 | CRC-32 of all that follows in the block |
//! | version | 4 | [`VERSION`] | length | 4 | bytes of the payload |
//! | page size | 4 | bytes | kind | 2 | what the payload is |
//! | start | 8 | `CLOCK_MONOTONIC`, ns | flags | 2 | 1: last block, no payload |
//! | checksum | 4 | CRC-32 of the 24 bytes before | sequence | 8 | 0, 1, 2, … |
//! | | | | payload | length | |

use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cold_model::Nanos;

use crate::{Error, Result};

/// Name of the log inside a recording's directory.
pub const NAME: &str = "events.log";
/// Version of the log's format.
pub const VERSION: u32 = 1;
/// Bytes that the writer holds in memory at most.
pub const BUFFER: usize = 256 << 10;
/// Age at which held bytes are written by the next [`Writer::append`] or [`Writer::tick`].
pub const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// Largest payload of a block.
pub const MAX_PAYLOAD: u32 = 64 << 20;

const MAGIC: &[u8; 8] = b"COLDLOG\n";
const HEADER: usize = 28;
const BLOCK_HEADER: usize = 20;
const LAST: u16 = 1;

/// Appends blocks to a new log.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    held: Vec<u8>,
    /// When the oldest held byte was appended.
    held_since: Option<Instant>,
    sequence: u64,
    written: u64,
}

impl Writer {
    /// Creates `dir/events.log`, which must not exist. `start` is the `CLOCK_MONOTONIC` of the recording's
    /// beginning.
    #[allow(clippy::disallowed_methods, reason = "an append-only log, readable wherever it ends")]
    pub fn create(dir: &Path, page_bytes: u32, start: Nanos) -> Result<Self> {
        let path = dir.join(NAME);
        // O_EXCL also refuses a symbolic link at the last component.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io("create", &path))?;
        let mut header = Vec::with_capacity(BUFFER);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&page_bytes.to_le_bytes());
        header.extend_from_slice(&start.0.to_le_bytes());
        let sum = crc32fast::hash(&header);
        header.extend_from_slice(&sum.to_le_bytes());
        let mut writer = Self { file, path, held: header, held_since: None, sequence: 0, written: 0 };
        writer.flush()?;
        Ok(writer)
    }

    /// Appends one block; `kind` is the caller's. May write, never syncs.
    pub fn append(&mut self, kind: u16, payload: &[u8]) -> Result<()> {
        self.block(kind, 0, payload)?;
        self.tick()
    }

    /// Writes what is held for longer than [`FLUSH_AFTER`]. For loops that wait for events.
    pub fn tick(&mut self) -> Result<()> {
        match self.held_since {
            Some(since) if since.elapsed() >= FLUSH_AFTER => self.flush(),
            _ => Ok(()),
        }
    }

    /// Hands everything to the kernel: from then on only a crash of the machine can lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.file.write_all(&self.held).map_err(Error::io("write", &self.path))?;
        self.written += self.held.len() as u64;
        self.held.clear();
        self.held_since = None;
        Ok(())
    }

    /// Marks the log as ended in order and flushes it.
    pub fn finish(mut self) -> Result<()> {
        self.block(0, LAST, &[])?;
        self.flush()
    }

    /// Bytes appended so far, headers included.
    pub fn bytes(&self) -> u64 {
        self.written + self.held.len() as u64
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn block(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<()> {
        let length = u32::try_from(payload.len()).ok().filter(|n| *n <= MAX_PAYLOAD);
        let Some(length) = length else {
            return Err(Error::BlockTooLarge { bytes: payload.len(), limit: MAX_PAYLOAD });
        };
        let header = block_header(length, kind, flags, self.sequence, payload);
        self.sequence += 1;
        if self.held.len() + BLOCK_HEADER + payload.len() > BUFFER {
            self.flush()?;
        }
        self.held.extend_from_slice(&header);
        if payload.len() > BUFFER - BLOCK_HEADER {
            self.flush()?;
            self.file.write_all(payload).map_err(Error::io("write", &self.path))?;
            self.written += payload.len() as u64;
        } else {
            self.held.extend_from_slice(payload);
            self.held_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }
}

impl Drop for Writer {
    /// Keeps what an early return would lose; an error here has nowhere to go, and the log stays readable.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

fn block_header(length: u32, kind: u16, flags: u16, sequence: u64, payload: &[u8]) -> [u8; BLOCK_HEADER] {
    let mut header = [0; BLOCK_HEADER];
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..10].copy_from_slice(&kind.to_le_bytes());
    header[10..12].copy_from_slice(&flags.to_le_bytes());
    header[12..20].copy_from_slice(&sequence.to_le_bytes());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&header[4..]);
    sum.update(payload);
    header[0..4].copy_from_slice(&sum.finalize().to_le_bytes());
    header
}

/// A block as [`Writer::append`] wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What the writer called it.
    pub kind: u16,
    /// Its number, counted from 0.
    pub sequence: u64,
    /// The appended bytes, without the header; its checksum was right.
    pub payload: Vec<u8>,
}

/// How far a log could be read; whole once the iterator has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    /// Blocks that were read.
    pub blocks: u64,
    /// Bytes behind the last good block that could not be used.
    pub unreadable_bytes: u64,
    /// Why reading stopped before the end of the file.
    pub reason: Option<String>,
    /// The writer ended in order.
    pub finished: bool,
}

/// Reads the blocks of a log in order, up to the first that is damaged or cut off.
#[derive(Debug)]
pub struct Reader {
    input: BufReader<File>,
    /// Bytes of the file not yet read. Its size is taken once: a log that still grows ends there.
    left: u64,
    page_bytes: u32,
    start: Nanos,
    ended: bool,
    end: End,
}

impl Reader {
    /// Opens the log in `dir`; links, FIFOs and devices are refused.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join(NAME);
        let (file, meta) = cold_sys::open::regular(&path, false)?;
        Self::of(file, meta.len(), &path)
    }

    /// Reads a log from an open file of `size` bytes; `path` is for messages.
    pub fn of(file: File, size: u64, path: &Path) -> Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER, file);
        let mut header = [0; HEADER];
        if size < HEADER as u64 {
            return Err(Error::damaged(path, "it ends inside its header"));
        }
        input.read_exact(&mut header).map_err(Error::io("read", path))?;
        if &header[..8] != MAGIC {
            return Err(Error::damaged(path, "it does not begin as a log of events does"));
        }
        let version = u32_at(&header, 8);
        if version > VERSION {
            return Err(Error::Future { path: path.to_owned(), found: version.into(), known: VERSION });
        }
        if version == 0 || crc32fast::hash(&header[..24]) != u32_at(&header, 24) {
            return Err(Error::damaged(path, "its header does not match its checksum"));
        }
        Ok(Self {
            input,
            left: size - HEADER as u64,
            page_bytes: u32_at(&header, 12),
            start: Nanos(u64_at(&header, 16)),
            ended: false,
            end: End::default(),
        })
    }

    /// Bytes per page of the machine that recorded.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// `CLOCK_MONOTONIC` of the recording's beginning.
    pub fn start(&self) -> Nanos {
        self.start
    }

    /// How far it was read.
    pub fn end(&self) -> &End {
        &self.end
    }

    fn read(&mut self) -> std::result::Result<Option<Block>, String> {
        let mut header = [0; BLOCK_HEADER];
        if self.left == 0 {
            return Err(String::new());
        }
        let cut = || "the last block is cut off".to_owned();
        let rest = self.left.checked_sub(BLOCK_HEADER as u64).ok_or_else(cut)?;
        self.input.read_exact(&mut header).map_err(|e| e.to_string())?;
        let length = u32_at(&header, 4);
        if length > MAX_PAYLOAD {
            return Err(format!("block {} is damaged", self.end.blocks));
        }
        // The payload is allocated only when the file has as many bytes left.
        let rest = rest.checked_sub(length.into()).ok_or_else(cut)?;
        let mut payload = vec![0; length as usize];
        self.input.read_exact(&mut payload).map_err(|e| e.to_string())?;
        let (kind, flags) = (u16_at(&header, 8), u16_at(&header, 10));
        let sequence = u64_at(&header, 12);
        let whole = block_header(length, kind, flags, sequence, &payload) == header;
        if !whole || sequence != self.end.blocks || flags & !LAST != 0 {
            return Err(format!("block {} is damaged", self.end.blocks));
        }
        self.left = rest;
        if flags & LAST != 0 {
            return Ok(None);
        }
        self.end.blocks += 1;
        Ok(Some(Block { kind, sequence, payload }))
    }
}

impl Iterator for Reader {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        if self.ended {
            return None;
        }
        match self.read() {
            Ok(Some(block)) => return Some(block),
            Ok(None) => {
                self.end.finished = true;
                if self.left > 0 {
                    self.end.reason = Some("there are bytes behind the last block".to_owned());
                }
            }
            Err(reason) => self.end.reason = Some(reason).filter(|r| !r.is_empty()),
        }
        self.ended = true;
        self.end.unreadable_bytes = self.left;
        None
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests;
