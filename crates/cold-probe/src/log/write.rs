//! The rows of a log as CSV or Parquet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Sample;

/// The columns.
const SCHEMA: &str = "message counters {
    REQUIRED DOUBLE at_ms;
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED BYTE_ARRAY subject (UTF8);
    REQUIRED BYTE_ARRAY counter (UTF8);
    REQUIRED DOUBLE value;
}";

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with a line of names.
    Csv,
    /// Apache Parquet, packed with zstd.
    Parquet,
}

impl Format {
    /// By the file's extension.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Writes the rows; a file of that name is replaced.
pub fn write(path: &Path, format: Format, rows: &[Sample]) -> io::Result<()> {
    let file = File::create(path)?;
    match format {
        Format::Csv => csv(BufWriter::new(file), rows),
        Format::Parquet => parquet(file, rows).map_err(io::Error::other),
    }
}

fn csv(mut to: impl Write, rows: &[Sample]) -> io::Result<()> {
    writeln!(to, "at_ms,phase,subject,counter,value")?;
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for r in rows {
        writeln!(to, "{:.3},{},{},{},{}", r.at_ms, quoted(&r.phase), quoted(&r.subject), r.counter, r.value)?;
    }
    to.flush()
}

fn parquet(file: File, rows: &[Sample]) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by("coldstart".to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let text = |of: fn(&Sample) -> &str| -> Vec<ByteArray> { rows.iter().map(|r| of(r).into()).collect() };
    column::<DoubleType>(&mut group, &rows.iter().map(|r| r.at_ms).collect::<Vec<_>>())?;
    column::<ByteArrayType>(&mut group, &text(|r| &r.phase))?;
    column::<ByteArrayType>(&mut group, &text(|r| &r.subject))?;
    column::<ByteArrayType>(&mut group, &text(|r| r.counter))?;
    column::<DoubleType>(&mut group, &rows.iter().map(|r| r.value).collect::<Vec<_>>())?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn both_forms_hold_the_same_rows() {
        let rows: Vec<Sample> = (0..3000)
            .map(|n| Sample {
                at_ms: f64::from(n),
                phase: format!("span \"{}\", run 1", n / 1000).into(),
                subject: "process mapped".into(),
                counter: "major_faults",
                value: f64::from(n * 7),
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let (text, packed) = (dir.path().join("a.csv"), dir.path().join("a.parquet"));
        write(&text, Format::of(&text).unwrap(), &rows).unwrap();
        write(&packed, Format::of(&packed).unwrap(), &rows).unwrap();
        let text = std::fs::read_to_string(text).unwrap();
        assert_eq!(text.lines().count(), 3001);
        assert_eq!(
            text.lines().nth(2000).unwrap(),
            "1999.000,\"span \"\"1\"\", run 1\",\"process mapped\",major_faults,13993"
        );
        let reader = SerializedFileReader::new(File::open(packed).unwrap()).unwrap();
        let found: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 3000);
        let row = &found[1999];
        assert_eq!(row.get_string(1).unwrap(), "span \"1\", run 1");
        assert_eq!((row.get_double(0).unwrap(), row.get_double(4).unwrap()), (1999.0, 13993.0));
        assert_eq!(Format::of(Path::new("x.txt")), None);
    }
}
