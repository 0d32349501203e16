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
    /// When the kernel issued it (`CLOCK_MONOTONIC`), as far as a punctual disk was told.
    pub issued: Option<Nanos>,
    /// When it arrived at the server.
    pub arrival: Nanos,
    /// When it is done by the model: counted from its issue, or its arrival where that is not known.
    pub due: Nanos,
    /// When the server answered.
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
pub(crate) const CSV_HEADER: &str = "op,offset,bytes,issued_ns,arrival_ns,due_ns,done_ns,model_ns";
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
        let issued = r.issued.map(|at| at.0.to_string()).unwrap_or_default();
        let times = [r.arrival, r.due, r.done, r.model].map(|t| t.0.to_string()).join(",");
        // Writing to a String does not fail.
        let _ = writeln!(text, "{op},{},{},{issued},{times}", r.offset, r.len.0);
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
    let n: Vec<Option<u64>> = rest
        .split(',')
        .map(|field| if field.is_empty() { Some(None) } else { field.parse().ok().map(Some) })
        .collect::<Option<_>>()?;
    let &[Some(offset), Some(len), issued, Some(arrival), Some(due), Some(done), Some(model)] = n.as_slice()
    else {
        return None;
    };
    Some(Request {
        op,
        offset,
        len: Bytes(len),
        issued: issued.map(Nanos),
        arrival: Nanos(arrival),
        due: Nanos(due),
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
            issued: (n > 1).then_some(Nanos(n)),
            arrival: Nanos(n + 1),
            due: Nanos(n + 2),
            done: Nanos(n + 3),
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
