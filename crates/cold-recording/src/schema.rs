//! The tables of a recording: the one source of their columns, types, units and documentation.
//!
//! [`tables`] lists them. Writers and readers of every format, the validation and the generated part of
//! `docs/formats/recording.md` follow these lists, so they cannot disagree.

use cold_model::recording::Recording;

mod fields;
pub mod tables;

pub(crate) use fields::{Cell, Field, Value};

use crate::Result;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// True or false.
    Bool,
    /// A point of `CLOCK_MONOTONIC` in nanoseconds; a signed 64-bit integer, so that differences work.
    Time,
    /// A quantity; a signed 64-bit integer, so that differences work.
    Int,
    /// An identity or address of 64 bits; unsigned, because all of them may be used.
    Unsigned,
    /// Text in UTF-8 that may be anything.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of UTF-8 strings.
    List,
    /// Number of the row, counted from 0: what other tables refer to.
    Id,
    /// Row of this table.
    Ref(&'static str),
}

impl ColumnKind {
    /// Type in words, as the documentation and DuckDB name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOLEAN",
            Self::Time | Self::Int | Self::Id | Self::Ref(_) => "BIGINT",
            Self::Unsigned => "UBIGINT",
            Self::Text | Self::Choice(_) => "VARCHAR",
            Self::List => "VARCHAR[]",
        }
    }
}

/// What is said about a column.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Name of the column, the same in every format.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// It may be null: not known, or not applicable.
    pub optional: bool,
    /// Unit, where it has one.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Few distinct values are expected, so a dictionary is worth its page.
    pub(crate) dictionary: bool,
}

/// A column of rows `R`.
pub(crate) struct Column<R: 'static> {
    pub(crate) about: About,
    pub(crate) cell: for<'a> fn(&'a R, usize) -> Cell<'a>,
}

/// A table of rows `R`.
pub(crate) struct Table<R: 'static> {
    /// Name of the table and of its file.
    pub(crate) name: &'static str,
    /// Tiers that fill it.
    pub(crate) tiers: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) columns: &'static [Column<R>],
    /// Makes a row of the values of one, in the order of the columns.
    pub(crate) row: fn(&mut RowReader<'_>) -> std::result::Result<R, String>,
    /// What is wrong with a row, beyond its references; the number is the page size.
    pub(crate) check: fn(&R, u64) -> Option<&'static str>,
}

/// The values of one row while it is read.
pub(crate) struct RowReader<'a> {
    pub(crate) next: &'a mut dyn FnMut() -> std::result::Result<Value, String>,
}

impl RowReader<'_> {
    /// The next column's value.
    pub(crate) fn take<F: Field>(&mut self) -> std::result::Result<F, String> {
        F::from_value((self.next)()?)
    }
}

/// Something done with every table that a recording has.
pub(crate) trait Visitor {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()>;
}

/// Where tables come from.
pub(crate) trait Source {
    /// The rows, or `None` when the recording has no such table.
    fn rows<R: 'static>(&mut self, table: &Table<R>) -> Result<Option<Vec<R>>>;
}

/// Shows every table that is present to `visitor`, in the documented order.
pub(crate) fn visit(r: &Recording, visitor: &mut impl Visitor) -> Result<()> {
    fn some<R: 'static>(v: &mut impl Visitor, table: &Table<R>, rows: Option<&Vec<R>>) -> Result<()> {
        rows.map_or(Ok(()), |rows| v.table(table, rows))
    }
    visitor.table(&tables::PROCESSES, &r.processes)?;
    visitor.table(&tables::THREADS, &r.threads)?;
    visitor.table(&tables::FILES, &r.files)?;
    some(visitor, &tables::TOUCHES, r.touches.as_ref())?;
    some(visitor, &tables::FILLS, r.fills.as_ref())?;
    some(visitor, &tables::EVICTIONS, r.evictions.as_ref())?;
    some(visitor, &tables::RESIDENCY, r.residency.as_ref())?;
    some(visitor, &tables::READAHEAD, r.readahead.as_ref())?;
    some(visitor, &tables::ADVICE, r.advice.as_ref())?;
    some(visitor, &tables::DEVICE_READS, r.device_reads.as_ref())?;
    some(visitor, &tables::TRANSFERS, r.transfers.as_ref())?;
    some(visitor, &tables::STALLS, r.stalls.as_ref())?;
    some(visitor, &tables::OFF_CPU, r.off_cpu.as_ref())?;
    some(visitor, &tables::LOOKUPS, r.lookups.as_ref())?;
    some(visitor, &tables::MAPPINGS, r.mappings.as_ref())?;
    if let Some(stacks) = &r.stacks {
        let (stacks, frames) = tables::flat(stacks);
        visitor.table(&tables::STACKS, &stacks)?;
        visitor.table(&tables::STACK_FRAMES, &frames)?;
    }
    Ok(())
}

/// The tables of `source`, with an empty manifest.
pub(crate) fn collect(source: &mut impl Source) -> Result<Recording> {
    let stacks = source.rows(&tables::STACKS)?;
    let frames = source.rows(&tables::STACK_FRAMES)?;
    Ok(Recording {
        processes: source.rows(&tables::PROCESSES)?.unwrap_or_default(),
        threads: source.rows(&tables::THREADS)?.unwrap_or_default(),
        files: source.rows(&tables::FILES)?.unwrap_or_default(),
        touches: source.rows(&tables::TOUCHES)?,
        fills: source.rows(&tables::FILLS)?,
        evictions: source.rows(&tables::EVICTIONS)?,
        residency: source.rows(&tables::RESIDENCY)?,
        readahead: source.rows(&tables::READAHEAD)?,
        advice: source.rows(&tables::ADVICE)?,
        device_reads: source.rows(&tables::DEVICE_READS)?,
        transfers: source.rows(&tables::TRANSFERS)?,
        stalls: source.rows(&tables::STALLS)?,
        off_cpu: source.rows(&tables::OFF_CPU)?,
        lookups: source.rows(&tables::LOOKUPS)?,
        mappings: source.rows(&tables::MAPPINGS)?,
        stacks: tables::nested(stacks, frames)?,
        ..Recording::default()
    })
}

/// A table as the documentation shows it.
#[derive(Debug, Clone)]
pub struct Documented {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// Tiers that fill it.
    pub tiers: &'static str,
    /// What a row is.
    pub doc: &'static str,
    /// Its columns in order.
    pub columns: Vec<About>,
}

/// What the documentation says about tables.
struct Documentation(Vec<Documented>);

impl Visitor for Documentation {
    fn table<R: 'static>(&mut self, table: &Table<R>, _: &[R]) -> Result<()> {
        self.0.push(Documented {
            name: table.name,
            tiers: table.tiers,
            doc: table.doc,
            columns: table.columns.iter().map(|c| c.about).collect(),
        });
        Ok(())
    }
}

/// Every table, in the documented order.
pub fn documented() -> Vec<Documented> {
    let mut all = Documentation(Vec::new());
    // Pushing to a list does not fail.
    let _ = visit(&every_table(), &mut all);
    all.0
}

/// A recording with all tables, all empty.
pub(crate) fn every_table() -> Recording {
    Recording {
        touches: Some(Vec::new()),
        fills: Some(Vec::new()),
        evictions: Some(Vec::new()),
        residency: Some(Vec::new()),
        readahead: Some(Vec::new()),
        advice: Some(Vec::new()),
        device_reads: Some(Vec::new()),
        transfers: Some(Vec::new()),
        stalls: Some(Vec::new()),
        off_cpu: Some(Vec::new()),
        lookups: Some(Vec::new()),
        mappings: Some(Vec::new()),
        stacks: Some(Vec::new()),
        ..Recording::default()
    }
}

#[cfg(test)]
mod doc_tests;
#[cfg(test)]
mod tests;
