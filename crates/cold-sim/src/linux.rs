//! Linux' page cache: which pages a fault or a read brings in.

mod reader;
mod rules;
mod walk;

pub(crate) use reader::{Faulted, Limits, ReadAhead, Reader};
pub use rules::LinuxVersion;
pub(crate) use rules::{Forgives, Remembers, Rules};
