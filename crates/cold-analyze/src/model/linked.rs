//! What the order in which a file is linked means for a start: its functions by first entry, its data by page.

use std::path::PathBuf;

use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};
use serde::Serialize;

/// One file's functions by first entry, by traces of the same build (`cold layout trace`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstEntries {
    /// Row of the file in the recording.
    pub file: FileIdx,
    /// Scenarios of the traces, what counts most first.
    pub scenarios: Vec<String>,
    /// The one that figures are about: the recorded command's own; else the first.
    pub scenario: String,
    /// It is of the recorded command.
    pub same_command: bool,
    /// The file can be linked again as a program; not as a library of others.
    pub is_program: bool,
    /// Functions that any scenario enters.
    pub entered: u64,
    /// Those of them that have a name, so that an order file can place them.
    pub named: u64,
    /// Stall time at pages that hold an entered function.
    pub stall: Nanos,
    /// What the recorded kernel reads of the code, by the model; `None`: not known, or no function has a name.
    pub predicted: Option<OrderGain>,
    /// In the order of first entries, bounded.
    pub functions: Vec<EnteredFunction>,
    /// The directories that hold the traces.
    #[serde(skip)]
    pub from: Vec<PathBuf>,
}

/// One data section's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataUse {
    /// Row of the file in the recording.
    pub file: FileIdx,
    /// Its name (`.data.rel.ro`).
    pub section: String,
    /// Size of the section, bytes.
    pub size: Bytes,
    /// Pages that hold bytes of it.
    pub pages: u64,
    /// Of them, those touched for certain.
    pub touched: u64,
    /// Of the others, those perhaps touched (mapped around a fault).
    pub perhaps: u64,
    /// Of all, those that processes of traced starts had written to when they ended; `None`: no trace tells.
    pub written: Option<u64>,
    /// Symbols on pages that were touched, perhaps touched or written to; those on most pages first, bounded.
    pub symbols: Vec<DataSymbol>,
}

/// A symbol on used pages of data: they were used for its sake, or for that of a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DataSymbol {
    /// Its name, demangled where it was mangled.
    pub name: String,
    /// Where it lies in the file, in bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: Bytes,
    /// Used pages that hold bytes of it.
    pub pages: u64,
    /// Of them, those without any other symbol of the section.
    pub alone: u64,
    /// Of `pages`, those that were written to; `None`: no trace tells.
    pub written: Option<u64>,
}

/// A function that a traced start entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnteredFunction {
    /// Its name, demangled where the recording's symbols have it; `None`: the file is stripped.
    pub name: Option<String>,
    /// Where it lies in the file, in bytes.
    pub offset: u64,
    /// Its length, bytes.
    pub bytes: Bytes,
    /// Stall time at pages of which it is the first to be entered.
    pub stall: Nanos,
}

/// Code that a start reads as it is linked, and in the order of first entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OrderGain {
    /// As it is linked.
    pub today: OrderRead,
    /// Linked in the order.
    pub ordered: OrderRead,
}

/// What is read of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OrderRead {
    /// Pages that the start touches.
    pub pages: u64,
    /// Requests for code.
    pub requests: u64,
    /// What they read.
    pub read: Bytes,
}
