//! What each thread looked up and read, in order of time: how long it was busy with one file or one package.

use std::iter::Peekable;

use cold_model::Nanos;
use cold_model::recording::{Lookup, Touch, TouchKind};

use crate::context::Context;

/// A thread's dealing with a file. Faults are none: code that is called later faults in between.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'a> {
    /// A path was resolved.
    Looked(&'a Lookup),
    /// Pages were copied by a read.
    Read(&'a Touch),
}

impl Step<'_> {
    pub(crate) fn tid(&self) -> u32 {
        match self {
            Self::Looked(l) => l.tid,
            Self::Read(t) => t.tid,
        }
    }
    /// When it began: of a read, when its pages were there.
    pub(crate) fn began(&self) -> Nanos {
        match self {
            Self::Looked(l) => l.at,
            Self::Read(t) => t.at,
        }
    }
    /// When it was over.
    pub(crate) fn ended(&self) -> Nanos {
        match self {
            Self::Looked(l) => l.ended,
            Self::Read(t) => t.at,
        }
    }
}

/// All threads' steps in the window, in order of time: both tables are sorted by it.
pub(crate) fn steps<'a>(cx: &'a Context<'a>) -> impl Iterator<Item = Step<'a>> {
    let window = cx.window;
    let reads = cx.recording.touches.iter().flatten();
    let reads = reads.filter(move |t| t.kind == TouchKind::Read && window.holds(t.at)).map(Step::Read);
    merged(cx.lookups().map(|(_, l)| Step::Looked(l)), reads)
}

fn merged<'a>(
    a: impl Iterator<Item = Step<'a>>,
    b: impl Iterator<Item = Step<'a>>,
) -> impl Iterator<Item = Step<'a>> {
    let (mut a, mut b): (Peekable<_>, Peekable<_>) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if y.began() < x.began() => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
