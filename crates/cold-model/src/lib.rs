//! The vocabulary of coldstart as types, shared by every crate.
//!
//! Never does I/O, reads no clock; what `stat` answered comes in as a value. Start reading at [`units`] (bytes
//! and nanoseconds that print themselves) and [`known`] (a value the kernel may refuse to tell).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod bench;
pub mod cooling;
pub mod csv;
pub mod device;
pub mod figures;
pub mod file;
pub mod file_system;
pub mod hash;
pub mod io_model;
pub mod kernel;
pub mod known;
pub mod layout;
pub mod linkage;
pub mod observed;
pub mod order;
pub mod pages;
pub mod path_text;
pub mod recording;
#[cfg(feature = "sample")]
pub mod sample;
pub mod text;
pub mod units;
pub mod varint;

pub use cooling::Cooling;
pub use device::Dev;
pub use file::FileId;
pub use io_model::{DeviceModel, Extent};
pub use known::Known;
pub use text::Shown;
pub use units::{Bytes, Nanos};
