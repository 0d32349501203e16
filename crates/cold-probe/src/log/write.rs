//! The rows of a log as CSV or Parquet.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use cold_model::csv;
use cold_sys::whole::{Ownership, WholeFile};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Sample;

/// Columns of the Parquet file; a CSV has the same.
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

/// Writes the rows, all of them or nothing; a file of that name is replaced.
pub fn write(path: &Path, format: Format, rows: &[Sample]) -> io::Result<()> {
    let mut file = WholeFile::create(path, Ownership::Result)?;
    match format {
        Format::Csv => lines(&mut file, rows)?,
        Format::Parquet => parquet(&mut file, rows).map_err(io::Error::other)?,
    }
    file.commit()
}

fn lines(to: &mut WholeFile, rows: &[Sample]) -> io::Result<()> {
    writeln!(to, "at_ms,phase,subject,counter,value")?;
    for r in rows {
        let (phase, subject) = (csv::text(&r.phase), csv::text(&r.subject));
        writeln!(to, "{:.3},{phase},{subject},{},{}", r.at_ms, r.counter, r.value)?;
    }
    Ok(())
}

fn parquet(file: &mut WholeFile, rows: &[Sample]) -> Result<(), ParquetError> {
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
    group: &mut SerializedRowGroupWriter<'_, &mut WholeFile>,
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
            "1999.000,\"span \"\"1\"\", run 1\",process mapped,major_faults,13993"
        );
        let reader = SerializedFileReader::new(std::fs::File::open(packed).unwrap()).unwrap();
        let found: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 3000);
        let row = &found[1999];
        assert_eq!(row.get_string(1).unwrap(), "span \"1\", run 1");
        assert_eq!((row.get_double(0).unwrap(), row.get_double(4).unwrap()), (1999.0, 13993.0));
        assert_eq!(Format::of(Path::new("x.txt")), None);
    }
}
