//! The disk's own record of what it was asked for: the ground truth of the tests.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cold_model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// What a request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Read bytes from the disk.
    Read,
    /// Wrote bytes to the disk.
    Write,
    /// Flushed the disk's cache.
    Flush,
}

/// One block request, as it arrived at the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it did.
    pub op: Op,
    /// Bytes from the disk's start.
    pub offset: u64,
    /// Bytes to read or write; 0 for a flush.
    pub len: Bytes,
    /// When it arrived (`CLOCK_MONOTONIC`).
    pub arrival: Nanos,
    /// When it was answered.
    pub done: Nanos,
    /// What the model says it takes alone on an idle disk.
    pub model: Nanos,
}

/// Sums since the last [`crate::SlowDisk::reset_log`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Read requests, as they came from the loop device.
    pub reads: u64,
    /// Bytes asked for by them.
    pub read_bytes: Bytes,
    /// Write requests, as they came from the loop device.
    pub writes: u64,
    /// Bytes written by them.
    pub written_bytes: Bytes,
    /// Flush requests, which move no bytes.
    pub flushes: u64,
}

/// The header of the CSV form.
pub(crate) const CSV_HEADER: &str = "op,offset,bytes,arrival_ns,done_ns,model_ns";
/// Requests per piece. Pieces do not move, so that the log does not copy itself when it grows while
/// the machine is short of memory.
const PIECE: usize = 1 << 14;

/// The log of a running server.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pieces: Mutex<Vec<Vec<Request>>>,
}

impl Log {
    pub(crate) fn add(&self, request: Request) {
        let mut pieces = self.lock();
        match pieces.last_mut() {
            Some(piece) if piece.len() < PIECE => piece.push(request),
            _ => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(request);
                pieces.push(piece);
            }
        }
    }

    pub(crate) fn reset(&self) {
        self.lock().clear();
    }

    /// All requests in order of completion.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().concat()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Request>>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Totals {
    /// Sums up requests.
    pub fn of(requests: &[Request]) -> Self {
        let mut t = Self::default();
        for r in requests {
            match r.op {
                Op::Read => {
                    t.reads += 1;
                    t.read_bytes.0 += r.len.0;
                }
                Op::Write => {
                    t.writes += 1;
                    t.written_bytes.0 += r.len.0;
                }
                Op::Flush => t.flushes += 1,
            }
        }
        t
    }
}

/// The CSV form, with header.
pub(crate) fn to_csv(requests: &[Request]) -> String {
    let mut text = String::from(CSV_HEADER);
    text.push('\n');
    for r in requests {
        let op = match r.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "{op},{},{},{},{},{}", r.offset, r.len.0, r.arrival.0, r.done.0, r.model.0);
    }
    text
}

/// Reads the CSV form; `None` if a line has another form.
pub(crate) fn from_csv(text: &str) -> Option<Vec<Request>> {
    let mut lines = text.lines();
    if lines.next()? != CSV_HEADER {
        return None;
    }
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Request> {
    let (op, rest) = line.split_once(',')?;
    let op = match op {
        "read" => Op::Read,
        "write" => Op::Write,
        "flush" => Op::Flush,
        _ => return None,
    };
    let n: Vec<u64> = rest.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[offset, len, arrival, done, model] = n.as_slice() else { return None };
    Some(Request {
        op,
        offset,
        len: Bytes(len),
        arrival: Nanos(arrival),
        done: Nanos(done),
        model: Nanos(model),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_goes_there_and_back() {
        let r = |op, n| Request {
            op,
            offset: n,
            len: Bytes(4096),
            arrival: Nanos(n + 1),
            done: Nanos(n + 2),
            model: Nanos(3),
        };
        let log = Log::default();
        let all = [r(Op::Read, 1), r(Op::Write, 2), r(Op::Flush, 3)];
        for r in all {
            log.add(r);
        }
        assert_eq!(from_csv(&to_csv(&log.requests())).as_deref(), Some(&all[..]));
        assert_eq!(Totals::of(&all).read_bytes, Bytes(4096));
        log.reset();
        assert_eq!(to_csv(&log.requests()), format!("{CSV_HEADER}\n"));
    }
}
