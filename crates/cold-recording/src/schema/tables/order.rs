//! The tables of traced first entries (`NAME.order/`).

use cold_model::Nanos;

use super::super::{About, Cell, Column, ColumnKind, Field, Table};
use super::{dictionary_of, kind_of, optional_of};

/// A function of a file that was entered.
pub(crate) struct FunctionRow {
    pub(crate) file: u32,
    pub(crate) build_id: Option<String>,
    pub(crate) path: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) name: Option<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) sources: Vec<String>,
}

/// A first entry.
pub(crate) struct EntryRow {
    pub(crate) scenario: String,
    pub(crate) repeat: u32,
    pub(crate) sequence: u32,
    pub(crate) at: Nanos,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) function: u32,
    pub(crate) build_id: Option<String>,
    pub(crate) path: String,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) name: Option<String>,
}

/// Addresses of the kernel's half mean damage, and sizes are quantities.
fn place(address: u64, bytes: u64) -> Option<&'static str> {
    (address.checked_add(bytes).is_none() || bytes > 1 << 62).then_some("a function beyond the last address")
}

table! {
    FUNCTIONS: FunctionRow = "functions", "",
        "Every function of every file of which one was entered, by file and address.";
    id function: "Number of the function, to which the column `function` of `entries` refers.";
    check |r, _| place(r.address, r.bytes);
    file, "", "Number of the file in the list `files` of `order.json`.";
    build_id, "", "GNU build-id of the file in hexadecimal. Null: it has none.";
    path, "", "The file, as a text that can be turned back ([paths](paths.md)).";
    address as ColumnKind::Unsigned, "", "Address of its first instruction as the file states it, before relocation.";
    bytes, "bytes", "Its length; 0: not known.";
    name, "", "Its best name as the symbol table has it, mangled. Null: the file is stripped.";
    aliases, "", "Other names of the same address.";
    sources, "", "Who knows it: `symtab`, `debug_file`, `eh_frame`, `dynsym`.";
}

table! {
    ENTRIES: EntryRow = "entries", "",
        "First entries: each function that any thread of a start entered, once per start, in the order of time.";
    check |r, _| place(r.address, r.bytes);
    scenario, "", "Name of the scenario.";
    repeat, "", "Number of the start, from 0.";
    sequence, "", "Number of the entry in its start, from 0.";
    at, "ns", "When, since the exec of the program. Tracing slows a start down: use it for order, not for cost.";
    pid, "", "Process.";
    tid, "", "Thread.";
    function as ColumnKind::Ref("functions"), "", "Function.";
    build_id, "", "As in `functions`, here and in what follows.";
    path, "", "The file.";
    address as ColumnKind::Unsigned, "", "Address.";
    bytes, "bytes", "Length.";
    name, "", "Best name.";
}
