//! Tables as Parquet: encodings, compression, limits.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::schema::{About, Cell, ColumnKind, RowReader, Table, Value};
use crate::{Error, Result};

mod pages;
mod quiet;

/// Rows per row group: what a reader has to hold decoded at once, about 25 MB.
const GROUP: usize = 1 << 18;
/// Rows handed to the encoder at once.
const BATCH: usize = 8192;

/// Most rows a file of so many bytes may have. A row of ours takes more than 2 bytes, because times differ;
/// the rest is room for small regular tables. It bounds the memory that a forged file can ask for.
fn most_rows(file_bytes: u64) -> u64 {
    (1 << 20) + file_bytes.saturating_mul(2)
}

/// Most bytes of text that a file may unpack to, counted per value. Paths repeat, and a dictionary stores them
/// once.
fn most_text(file_bytes: u64) -> u64 {
    (64 << 20) + file_bytes.saturating_mul(128)
}

fn physical(kind: ColumnKind) -> Physical {
    match kind {
        ColumnKind::Bool => Physical::BOOLEAN,
        ColumnKind::Time | ColumnKind::Int | ColumnKind::Unsigned | ColumnKind::Id | ColumnKind::Ref(_) => {
            Physical::INT64
        }
        ColumnKind::Text | ColumnKind::Choice(_) | ColumnKind::List => Physical::BYTE_ARRAY,
    }
}

fn parquet_type(about: &About) -> std::result::Result<Type, ParquetError> {
    let repetition = if about.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let text = |name, repetition| {
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::String))
            .with_converted_type(ConvertedType::UTF8)
            .build()
    };
    match about.kind {
        ColumnKind::Text | ColumnKind::Choice(_) => text(about.name, repetition),
        ColumnKind::List => {
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(text("element", Repetition::REQUIRED)?)])
                .build()?;
            Type::group_type_builder(about.name)
                .with_repetition(repetition)
                .with_logical_type(Some(LogicalType::List))
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()
        }
        ColumnKind::Unsigned => Type::primitive_type_builder(about.name, Physical::INT64)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::integer(64, false)))
            .with_converted_type(ConvertedType::UINT_64)
            .build(),
        _ => {
            Type::primitive_type_builder(about.name, physical(about.kind)).with_repetition(repetition).build()
        }
    }
}

fn schema<R>(table: &Table<R>) -> std::result::Result<TypePtr, ParquetError> {
    let fields = table.columns.iter().map(|c| parquet_type(&c.about).map(Arc::new));
    let fields = fields.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

fn properties<R>(table: &Table<R>) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by("coldstart".to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP));
    for column in table.columns {
        let about = column.about;
        let sorted = matches!(about.kind, ColumnKind::Ref("device_reads" | "lookups"));
        if physical(about.kind) == Physical::INT64 && (sorted || !about.dictionary) {
            // Times, offsets and addresses are near the one before them.
            let path = ColumnPath::from(about.name);
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// Values of one column for some rows, as Parquet wants them.
#[derive(Default)]
struct Batch {
    bools: Vec<bool>,
    ints: Vec<i64>,
    texts: Vec<ByteArray>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl Batch {
    fn clear(&mut self) {
        self.bools.clear();
        self.ints.clear();
        self.texts.clear();
        self.definitions.clear();
        self.repetitions.clear();
    }

    fn push(&mut self, about: &About, cell: Cell<'_>) {
        let present = i16::from(about.optional);
        let level = match cell {
            Cell::Null => 0,
            Cell::Bool(b) => {
                self.bools.push(b);
                present
            }
            Cell::Int(v) => {
                self.ints.push(v);
                present
            }
            Cell::Unsigned(v) => {
                self.ints.push(v.cast_signed());
                present
            }
            Cell::Text(text) => {
                self.texts.push(ByteArray::from(text.as_bytes()));
                present
            }
            Cell::Word(word) => {
                self.texts.push(ByteArray::from(word));
                present
            }
            Cell::List(list) => {
                for (n, text) in list.iter().enumerate() {
                    self.texts.push(ByteArray::from(text.as_str()));
                    self.definitions.push(present + 1);
                    self.repetitions.push(i16::from(n > 0));
                }
                if !list.is_empty() {
                    return;
                }
                present
            }
        };
        self.definitions.push(level);
        self.repetitions.push(0);
    }

    fn write(&self, about: &About, to: &mut ColumnWriter<'_>) -> std::result::Result<(), ParquetError> {
        let list = about.kind == ColumnKind::List;
        let definitions = (about.optional || list).then_some(&self.definitions[..]);
        let repetitions = list.then_some(&self.repetitions[..]);
        match to {
            ColumnWriter::BoolColumnWriter(w) => w.write_batch(&self.bools, definitions, repetitions)?,
            ColumnWriter::Int64ColumnWriter(w) => w.write_batch(&self.ints, definitions, repetitions)?,
            ColumnWriter::ByteArrayColumnWriter(w) => w.write_batch(&self.texts, definitions, repetitions)?,
            _ => return Err(ParquetError::General("a column of another type".to_owned())),
        };
        Ok(())
    }
}

/// Writes the rows as a Parquet file.
pub(crate) fn encode<R>(
    table: &Table<R>,
    rows: &[R],
    to: impl Write + Send,
) -> std::result::Result<(), ParquetError> {
    let mut file = SerializedFileWriter::new(to, schema(table)?, Arc::new(properties(table)))?;
    let mut batch = Batch::default();
    for (group, first) in rows.chunks(GROUP).zip((0..).step_by(GROUP)) {
        let mut writer = file.next_row_group()?;
        for column in table.columns {
            let Some(mut to) = writer.next_column()? else { break };
            for (part, n) in group.chunks(BATCH).zip((first..).step_by(BATCH)) {
                batch.clear();
                for (row, n) in part.iter().zip(n..) {
                    batch.push(&column.about, (column.cell)(row, n));
                }
                batch.write(&column.about, to.untyped())?;
            }
            to.close()?;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(())
}

/// Whether a reader would accept so many rows in so many bytes.
pub(crate) fn readable(rows: usize, file_bytes: u64) -> bool {
    rows as u64 <= most_rows(file_bytes)
}

/// Reads the rows of a Parquet file; everything in it is doubted.
pub(crate) fn decode<R>(table: &Table<R>, file: File, path: &Path) -> Result<Vec<R>> {
    quiet::catch(|| decoded(table, file)).map_err(|why| Error::damaged(path, why))
}

fn decoded<R>(table: &Table<R>, file: File) -> std::result::Result<Vec<R>, String> {
    let said = |e: ParquetError| e.to_string();
    let bytes = file.metadata().map_err(|e| e.to_string())?.len();
    let pages = file.try_clone().map_err(|e| e.to_string())?;
    pages::check_footer(&pages, bytes)?;
    let reader = SerializedFileReader::new(file).map_err(said)?;
    let meta = reader.metadata();
    let places = places(table, meta.file_metadata().schema_descr().root_schema())?;
    let mut text = Budget { left: most_text(bytes) };
    let mut rows = Vec::new();
    for n in 0..reader.num_row_groups() {
        let group = reader.get_row_group(n).map_err(said)?;
        let count = u64::try_from(group.metadata().num_rows()).map_err(|_| "a negative number of rows")?;
        if count > GROUP as u64 || rows.len() as u64 + count > most_rows(bytes) {
            return Err("it claims more rows than its size allows".to_owned());
        }
        for chunk in group.metadata().columns() {
            pages::check(&pages, chunk, bytes)?;
        }
        read_group(table, &places, group.as_ref(), count as usize, &mut rows, &mut text)?;
    }
    Ok(rows)
}

/// Where the columns of a table stand in a file; `None`: an earlier version wrote it, which did not have that column yet.
/// Only columns that may be empty have been added since, and their order is that of the table.
fn places<R>(table: &Table<R>, found: &Type) -> std::result::Result<Vec<Option<usize>>, String> {
    let expected = schema(table).map_err(|e| e.to_string())?;
    let mut fields = if found.is_group() { found.get_fields() } else { &[] }.iter().enumerate().peekable();
    let mut place = |wanted: &TypePtr| match fields.next_if(|(_, field)| *field == wanted) {
        Some((n, _)) => Some(Some(n)),
        None => wanted.is_optional().then_some(None),
    };
    let places: Option<Vec<_>> = expected.get_fields().iter().map(&mut place).collect();
    let all = places.filter(|places| fields.peek().is_none() && places.iter().any(Option::is_some));
    all.ok_or_else(|| "its columns are not those of the format".to_owned())
}

/// Bytes of text that may still be unpacked.
struct Budget {
    left: u64,
}

impl Budget {
    fn take(&mut self, bytes: usize) -> std::result::Result<(), String> {
        self.left =
            self.left.checked_sub(bytes as u64 + 8).ok_or("it unpacks to more text than its size allows")?;
        Ok(())
    }
}

fn read_group<R>(
    table: &Table<R>,
    places: &[Option<usize>],
    group: &dyn RowGroupReader,
    count: usize,
    rows: &mut Vec<R>,
    text: &mut Budget,
) -> std::result::Result<(), String> {
    let mut columns = Vec::with_capacity(table.columns.len());
    for (column, place) in table.columns.iter().zip(places) {
        let name = column.about.name;
        let Some(n) = *place else {
            columns.push(None);
            continue;
        };
        let reader = group.get_column_reader(n).map_err(|e| format!("{name}: {e}"))?;
        columns.push(Some(read_column(&column.about, reader, count).map_err(|e| format!("{name}: {e}"))?));
    }
    rows.reserve(count);
    for _ in 0..count {
        let number = rows.len();
        let mut left = table.columns.iter().zip(&mut columns);
        let mut next = || {
            let Some((column, values)) = left.next() else { return Err("a column is missing".to_owned()) };
            let about = &column.about;
            let Some(values) = values else { return Ok(Value::Null) };
            let value = values.next(about, text).map_err(|e| format!("{}, row {number}: {e}", about.name))?;
            match (about.kind, &value) {
                (ColumnKind::Id, Value::Int(v)) if usize::try_from(*v) != Ok(number) => {
                    Err(format!("{} of row {number} is {v}", about.name))
                }
                _ => Ok(value),
            }
        };
        let row = (table.row)(&mut RowReader { next: &mut next });
        rows.push(row.map_err(|e| format!("row {number}: {e}"))?);
    }
    Ok(())
}

/// Decoded values of a column, consumed row by row.
struct Values {
    bools: std::vec::IntoIter<bool>,
    ints: std::vec::IntoIter<i64>,
    texts: std::vec::IntoIter<ByteArray>,
    definitions: std::iter::Peekable<std::vec::IntoIter<i16>>,
    repetitions: std::iter::Peekable<std::vec::IntoIter<i16>>,
}

impl Values {
    fn next(&mut self, about: &About, text: &mut Budget) -> std::result::Result<Value, String> {
        let short = "it has fewer values than rows";
        let present = i16::from(about.optional);
        let list = about.kind == ColumnKind::List;
        let level = if about.optional || list { self.definitions.next().ok_or(short)? } else { present };
        if level < present {
            self.repetitions.next();
            return Ok(Value::Null);
        }
        if list {
            return self.list(level > present, present, text).map(Value::List);
        }
        Ok(match about.kind {
            ColumnKind::Bool => Value::Bool(self.bools.next().ok_or(short)?),
            ColumnKind::Unsigned => Value::Unsigned(self.ints.next().ok_or(short)?.cast_unsigned()),
            ColumnKind::Text | ColumnKind::Choice(_) => {
                let value = self.texts.next().ok_or(short)?;
                // Words become one byte each; they cost nothing.
                text.take(if about.kind == ColumnKind::Text { value.len() } else { 0 })?;
                Value::Text(value)
            }
            _ => Value::Int(self.ints.next().ok_or(short)?),
        })
    }

    fn list(
        &mut self,
        filled: bool,
        present: i16,
        text: &mut Budget,
    ) -> std::result::Result<Vec<ByteArray>, String> {
        let mut list = Vec::new();
        self.repetitions.next();
        let mut more = filled;
        while more {
            let value = self.texts.next().ok_or("it has fewer values than its levels say")?;
            text.take(value.len() + size_of::<ByteArray>())?;
            list.push(value);
            more = self.repetitions.next_if(|r| *r > 0).is_some();
            if more && self.definitions.next() != Some(present + 1) {
                return Err("a list goes on with nothing".to_owned());
            }
        }
        Ok(list)
    }
}

fn read_column(about: &About, reader: ColumnReader, count: usize) -> std::result::Result<Values, String> {
    let (mut bools, mut ints, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut levels = (Vec::new(), Vec::new());
    match reader {
        ColumnReader::BoolColumnReader(r) => read_all::<BoolType>(about, r, count, &mut levels, &mut bools)?,
        ColumnReader::Int64ColumnReader(r) => read_all::<Int64Type>(about, r, count, &mut levels, &mut ints)?,
        ColumnReader::ByteArrayColumnReader(r) => {
            read_all::<ByteArrayType>(about, r, count, &mut levels, &mut texts)?;
        }
        _ => return Err("a column of another type".to_owned()),
    }
    Ok(Values {
        bools: bools.into_iter(),
        ints: ints.into_iter(),
        texts: texts.into_iter(),
        definitions: levels.0.into_iter().peekable(),
        repetitions: levels.1.into_iter().peekable(),
    })
}

fn read_all<T: DataType>(
    about: &About,
    mut reader: ColumnReaderImpl<T>,
    count: usize,
    levels: &mut (Vec<i16>, Vec<i16>),
    values: &mut Vec<T::T>,
) -> std::result::Result<(), String> {
    let list = about.kind == ColumnKind::List;
    let mut records = 0;
    while records < count {
        let definitions = (about.optional || list).then_some(&mut levels.0);
        let repetitions = list.then_some(&mut levels.1);
        let wanted = (count - records).min(BATCH);
        let (n, ..) =
            reader.read_records(wanted, definitions, repetitions, values).map_err(|e| e.to_string())?;
        if n == 0 {
            return Err(format!("it has {records} of {count} rows"));
        }
        records += n;
    }
    Ok(())
}
