//! How each Rust type of a row becomes a column's value, and back.

use std::borrow::Cow;

use cold_model::Dev;
use cold_model::Nanos;
use cold_model::recording::tables::{
    Began, FileKind, FillCause, LookupKind, OffCpuReason, PathFrom, ReadaheadKind, StallCause, TouchKind,
};
use parquet::data_type::ByteArray;

use super::ColumnKind;

/// A value on its way out.
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Text(Cow<'a, str>),
    Word(&'static str),
    List(&'a [String]),
}

/// A value on its way in.
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Text(ByteArray),
    List(Vec<ByteArray>),
}

/// A type that fills a column.
pub(crate) trait Field: Sized {
    /// The column's kind, unless the table says another.
    const KIND: ColumnKind;
    const OPTIONAL: bool = false;
    /// Few distinct values are expected.
    const DICTIONARY: bool = true;
    fn cell(&self) -> Cell<'_>;
    fn from_value(value: Value) -> Result<Self, String>;
}

fn wrong<T>() -> Result<T, String> {
    Err("a value of another type than documented".to_owned())
}

fn utf8(text: &ByteArray) -> Result<&str, String> {
    text.as_utf8().map_err(|_| "text that is not UTF-8".to_owned())
}

impl Field for bool {
    const KIND: ColumnKind = ColumnKind::Bool;
    fn cell(&self) -> Cell<'_> {
        Cell::Bool(*self)
    }
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Bool(b) = value { Ok(b) } else { wrong() }
    }
}

macro_rules! number {
    ($($t:ty: $kind:ident, $dictionary:expr, $cell:ident;)*) => {$(
        impl Field for $t {
            const KIND: ColumnKind = ColumnKind::$kind;
            const DICTIONARY: bool = $dictionary;
            fn cell(&self) -> Cell<'_> {
                Cell::$cell((*self).into())
            }
            fn from_value(value: Value) -> Result<Self, String> {
                let fits = match value {
                    Value::Int(v) => Self::try_from(v).ok(),
                    Value::Unsigned(v) => Self::try_from(v).ok(),
                    _ => return wrong(),
                };
                fits.ok_or_else(|| "a number outside its range".to_owned())
            }
        }
    )*};
}

number! {
    u32: Int, true, Int;
    i32: Int, true, Int;
    u64: Int, false, Unsigned;
    i64: Int, false, Int;
}

impl Field for Nanos {
    const KIND: ColumnKind = ColumnKind::Time;
    const DICTIONARY: bool = false;
    fn cell(&self) -> Cell<'_> {
        Cell::Unsigned(self.0)
    }
    fn from_value(value: Value) -> Result<Self, String> {
        u64::from_value(value).map(Self)
    }
}

impl Field for String {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.into())
    }
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Text(text) = value { utf8(&text).map(str::to_owned) } else { wrong() }
    }
}

impl Field for Vec<String> {
    const KIND: ColumnKind = ColumnKind::List;
    fn cell(&self) -> Cell<'_> {
        Cell::List(self)
    }
    fn from_value(value: Value) -> Result<Self, String> {
        let Value::List(list) = value else { return wrong() };
        list.iter().map(|text| utf8(text).map(str::to_owned)).collect()
    }
}

/// `MAJOR:MINOR`, as lsblk and mountinfo write it.
impl Field for Dev {
    const KIND: ColumnKind = ColumnKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.to_string().into())
    }
    fn from_value(value: Value) -> Result<Self, String> {
        let Value::Text(text) = value else { return wrong() };
        let numbers = utf8(&text)?
            .split_once(':')
            .and_then(|(major, minor)| Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? }));
        numbers.ok_or_else(|| "a device number that is not MAJOR:MINOR".to_owned())
    }
}

impl<F: Field> Field for Option<F> {
    const KIND: ColumnKind = F::KIND;
    const OPTIONAL: bool = true;
    const DICTIONARY: bool = F::DICTIONARY;
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, F::cell)
    }
    fn from_value(value: Value) -> Result<Self, String> {
        if matches!(value, Value::Null) { Ok(None) } else { F::from_value(value).map(Some) }
    }
}

macro_rules! words {
    ($($t:ident { $($variant:ident = $word:literal),* })*) => {$(
        impl Field for $t {
            const KIND: ColumnKind = ColumnKind::Choice(&[$($word),*]);
            fn cell(&self) -> Cell<'_> {
                Cell::Word(match self { $(Self::$variant => $word),* })
            }
            fn from_value(value: Value) -> Result<Self, String> {
                let Value::Text(text) = value else { return wrong() };
                match text.data() {
                    $(word if word == $word.as_bytes() => Ok(Self::$variant),)*
                    other => Err(format!(
                        "the word {:?}",
                        String::from_utf8_lossy(&other[..other.len().min(40)])
                    )),
                }
            }
        }
    )*};
}

words! {
    Began { Existing = "existing", Fork = "fork", Exec = "exec" }
    FileKind {
        Regular = "regular", Directory = "directory", Symlink = "symlink", BlockDevice = "block_device",
        Memory = "memory", Other = "other"
    }
    PathFrom { OpenFile = "open_file", Mapping = "mapping", Dentry = "dentry", Unknown = "unknown" }
    TouchKind { Fault = "fault", FaultAround = "fault_around", Read = "read" }
    FillCause {
        DemandFault = "demand_fault", ReadAround = "read_around", BufferedRead = "buffered_read",
        ReadAhead = "read_ahead", Advice = "advice", Metadata = "metadata", Write = "write", Other = "other"
    }
    ReadaheadKind { Sync = "sync", Async = "async", Order = "order", Unbounded = "unbounded" }
    StallCause {
        Fault = "fault", Read = "read", Lookup = "lookup", Exec = "exec", Write = "write",
        OtherStorage = "other_storage", Journal = "journal", Lock = "lock", Other = "other"
    }
    OffCpuReason {
        Storage = "storage", Lock = "lock", Event = "event", Sleep = "sleep", Runnable = "runnable", Other = "other"
    }
    LookupKind {
        Open = "open", Stat = "stat", Access = "access", Readlink = "readlink", Exec = "exec", List = "list",
        Change = "change", Other = "other"
    }
}
