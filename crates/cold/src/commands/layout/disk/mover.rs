//! Making the moves of a record, or undoing them: each is checked by reading its bytes from the disk before and after.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use cold_layout::blocks::{self, Move, Run};
use cold_model::Shown as _;
use cold_sys::blocks::{Aligned, Way, exchange, for_writing, past_the_cache, share};
use cold_sys::exec_gate::ExecGate;

use super::ground::{BLOCK, extents_of};
use super::record::{Named, Record};
use crate::exit::Failure;
use crate::progress::Line;

type Result<T> = std::result::Result<T, Failure>;

/// Bytes per step: at 33 MiB/s, the slowest that was measured, who executes the file waits 30 ms.
const STEP: u64 = 1 << 20;
/// Times that a step which moved nothing is tried again: somebody holds a page of the file for a moment.
const TRIES: u32 = 20;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Into the order, or back to where files were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    /// To the places that the record plans.
    Arranged,
    /// To those of before.
    Before,
}

/// Why some of a file's bytes stayed where they were.
#[derive(Debug)]
pub(super) enum Stayed {
    /// Gone, or replaced by another file.
    Gone,
    /// A program runs it: it cannot be opened for writing.
    Executed,
    /// Pages of it are held.
    Held,
    /// Its bytes are others than when the move was prepared.
    Written,
    /// The kernel refused.
    Refused(String),
}

impl Stayed {
    /// Another run may move it.
    pub(super) fn for_now(&self) -> bool {
        matches!(self, Self::Executed | Self::Held | Self::Refused(_))
    }
}

impl std::fmt::Display for Stayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone => f.write_str("it is gone, or another file has its name"),
            Self::Executed => f.write_str("it is being executed; end the program, and run this again"),
            Self::Held => f.write_str("somebody holds pages of it; run this again later"),
            Self::Written => f.write_str("it was written meanwhile"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Bytes that lie elsewhere now, each compared with what it was.
    pub(super) bytes: u64,
    /// Files of which something stayed, and why.
    pub(super) left: BTreeMap<String, Stayed>,
    /// Starts that waited for a step.
    pub(super) waited: usize,
    /// Asked to end before the last step.
    pub(super) interrupted: bool,
}

/// Makes what is left of the record's moves.
pub(super) fn go(
    record: &Record,
    towards: Towards,
    line: &mut Line<'_>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Moved> {
    let donor = match (&record.old, towards) {
        (Some(old), Towards::Before) => old.open()?,
        _ => record.donor.open()?,
    };
    let gate = (record.way() == Way::Exchange).then(ExecGate::new).transpose();
    let gate = gate.map_err(|e| {
        Failure::from(anyhow::anyhow!("a start of a program would fail while its blocks move: {e}"))
            .hint("this needs Linux 5.0 with CONFIG_FANOTIFY_ACCESS_PERMISSIONS")
    })?;
    let mut mover = Mover { donor, gate, room: Aligned::new(STEP as usize), moved: Moved::default() };
    let mut order: BTreeMap<usize, Vec<(Move, Vec<Run>)>> = BTreeMap::new();
    for planned in &record.moves {
        let places = if towards == Towards::Arranged { planned.after() } else { planned.before() };
        order.entry(planned.step().piece.file).or_default().push((planned.step(), places));
    }
    for (file, moves) in order {
        let Some(named) = record.files.get(file) else { continue };
        line.step(&format!("placing the blocks of {}", named.path().shown()));
        if !mover.file(named, &moves, goes_on)? {
            mover.moved.interrupted = true;
            break;
        }
    }
    Ok(mover.moved)
}

struct Mover {
    donor: File,
    gate: Option<ExecGate>,
    room: Aligned,
    moved: Moved,
}

impl Mover {
    /// One file's moves; false when asked to end.
    fn file(
        &mut self,
        named: &Named,
        moves: &[(Move, Vec<Run>)],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<bool> {
        let name = named.path().shown().to_string();
        let Some(file) = named.open() else {
            self.moved.left.insert(name, Stayed::Gone);
            return Ok(true);
        };
        let extents = extents_of(&file)?;
        let left: Vec<Move> =
            moves.iter().flat_map(|(m, places)| blocks::misplaced(m, places, &extents)).collect();
        for m in left {
            for part in steps(&m) {
                if !goes_on() {
                    file.sync_all()?;
                    return Ok(false);
                }
                match self.step(&file, &part)? {
                    Ok(bytes) => self.moved.bytes += bytes,
                    Err(why) => {
                        self.moved.left.insert(name, why);
                        file.sync_all()?;
                        return Ok(true);
                    }
                }
            }
        }
        file.sync_all()?;
        Ok(true)
    }

    /// One step, its bytes read from the disk before and after; the inner error is why the file stays.
    fn step(&mut self, file: &File, part: &Move) -> Result<std::result::Result<u64, Stayed>> {
        let direct = past_the_cache(file)?;
        let wanted = (part.piece.bytes as usize).next_multiple_of(BLOCK as usize);
        let before = self.room.read(&direct, part.piece.offset, wanted)?.to_vec();
        let (size, changed) = stamp(file)?;
        let done = match &mut self.gate {
            Some(gate) => exchanged(gate, &mut self.moved.waited, file, &self.donor, part)?,
            None => shared(&self.donor, file, part),
        };
        let after = self.room.read(&direct, part.piece.offset, wanted)?;
        if after != before && stamp(file)? == (size, changed) {
            let name = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)));
            let name = name.unwrap_or_default();
            return Err(anyhow::anyhow!(
                "{} reads differently at byte {} after its blocks were moved, though nobody wrote it; nothing more is \
                 moved. Compare it with its package (debsums, rpm -V), and report this",
                name.shown(),
                part.piece.offset
            )
            .into());
        }
        Ok(done)
    }
}

/// What tells that somebody writes the file.
fn stamp(file: &File) -> Result<(u64, (i64, i64))> {
    let meta = file.metadata()?;
    Ok((meta.len(), (meta.mtime(), meta.mtime_nsec())))
}

fn steps(m: &Move) -> impl Iterator<Item = Move> {
    let m = *m;
    (0..m.piece.bytes).step_by(STEP as usize).map(move |at| {
        let piece = blocks::Piece {
            file: m.piece.file,
            offset: m.piece.offset + at,
            bytes: STEP.min(m.piece.bytes - at),
        };
        Move { piece, donor: m.donor + at }
    })
}

/// Exchanges blocks with the donor's. The file is open for writing for this alone, and who executes it meanwhile waits.
fn exchanged(
    gate: &mut ExecGate,
    waited: &mut usize,
    file: &File,
    donor: &File,
    part: &Move,
) -> Result<std::result::Result<u64, Stayed>> {
    gate.close(file)?;
    gate.settle();
    let done = exchange_all(file, donor, part);
    gate.open(file)?;
    *waited += gate.let_in()?;
    Ok(done)
}

fn exchange_all(file: &File, donor: &File, part: &Move) -> std::result::Result<u64, Stayed> {
    let block = u64::from(BLOCK);
    let blocks = part.piece.bytes.div_ceil(block);
    let (mut done, mut tries) = (0, 0);
    while done < blocks {
        let writable = for_writing(file).map_err(|e| match e.raw_os_error() {
            Some(n) if n == rustix::io::Errno::TXTBSY.raw_os_error() => Stayed::Executed,
            _ => Stayed::Refused(format!("it cannot be opened for writing: {e}")),
        })?;
        let from = part.piece.offset / block + done;
        let moved = exchange(&writable, from, donor, part.donor / block + done, blocks - done);
        drop(writable);
        match moved {
            Ok(0) if tries < TRIES => {
                tries += 1;
                let _ = file.sync_data();
                std::thread::sleep(PAUSE);
            }
            Ok(0) => return Err(Stayed::Held),
            Ok(n) => done += n,
            Err(e) => return Err(Stayed::Refused(e.to_string())),
        }
    }
    Ok(part.piece.bytes)
}

fn shared(donor: &File, file: &File, part: &Move) -> std::result::Result<u64, Stayed> {
    let mut done = 0;
    while done < part.piece.bytes {
        match share(donor, part.donor + done, part.piece.bytes - done, file, part.piece.offset + done) {
            Ok(0) => return Err(Stayed::Written),
            Ok(n) => done += n,
            Err(e) => return Err(Stayed::Refused(e.to_string())),
        }
    }
    Ok(done)
}

/// Copies the pieces into a donor that shares its blocks afterwards, and syncs it.
pub(super) fn fill(donor: &File, files: &[&File], moves: &[Move], line: &mut Line<'_>) -> Result<()> {
    let mut room = Aligned::new(STEP as usize);
    let mut told = BTreeSet::new();
    for part in moves.iter().flat_map(steps) {
        let Some(file) = files.get(part.piece.file) else { continue };
        if told.insert(part.piece.file) {
            line.step(&format!("copying what starts need ({} of {} files)", told.len(), files.len()));
        }
        let direct = past_the_cache(file)?;
        donor.write_all_at(room.read(&direct, part.piece.offset, part.piece.bytes as usize)?, part.donor)?;
    }
    donor.sync_all()?;
    Ok(())
}
