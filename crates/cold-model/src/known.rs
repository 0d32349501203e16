//! A value that may be unknown. Unknown is said as such, never as 0.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value with evidence, or the reason why there is none. In JSON: the value itself, or
/// `{"unknown": "reason"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Known<T> {
    /// The value was observed.
    Value(T),
    /// The kernel (or this tier) does not tell.
    Unknown {
        /// Why, in words a user understands.
        unknown: String,
    },
}

impl<T> Known<T> {
    /// An unknown value with its reason.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown { unknown: reason.into() }
    }
    /// The value, if it is known.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(v) => Some(v),
            Self::Unknown { .. } => None,
        }
    }
    /// Why it is not known, if it is not.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Value(_) => None,
            Self::Unknown { unknown } => Some(unknown),
        }
    }
    /// Applies `f` to a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Value(v) => Known::Value(f(v)),
            Self::Unknown { unknown } => Known::Unknown { unknown },
        }
    }
}

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(v) => v.fmt(f),
            Self::Unknown { .. } => f.pad("unknown"),
        }
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self::unknown("it was not looked at")
    }
}
