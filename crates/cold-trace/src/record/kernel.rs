//! Tiers A and B: the BPF programs, where this was built with them.

use std::sync::{Arc, Mutex, PoisonError};

use cold_model::Nanos;
use cold_model::recording::manifest::Tier;

use super::RecordOptions;
use crate::perf::recorder::SharedSink;

#[cfg(feature = "bpf")]
pub(super) use with::{Kept, Programs, attach, finish, follow, functions, possible, tells_areas};
#[cfg(not(feature = "bpf"))]
pub(super) use without::{Kept, Programs, attach, finish, follow, functions, possible, tells_areas};

/// A place for the programs of tiers A and B between recordings of the same kind: loading them takes 0.3 s of CPU time.
/// Dropped with the last copy of it, they leave the kernel.
#[derive(Debug, Clone, Default)]
pub struct Spare(Arc<Mutex<Option<Kept>>>);

impl Spare {
    /// The tier of what lies there; none: nothing does.
    pub fn tier(&self) -> Option<Tier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Kept::tier)
    }

    #[cfg(feature = "bpf")]
    fn take(&self) -> Option<Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[cfg(feature = "bpf")]
    fn keep(&self, kept: Option<Kept>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }
}

#[cfg(not(feature = "bpf"))]
mod without {
    use cold_model::recording::manifest::Manifest;

    use super::{Nanos, RecordOptions, SharedSink, Spare, Tier};
    use crate::record::{CallCount, Error};
    use crate::waiting::KernelFunction;

    /// As [`Programs`].
    #[derive(Debug)]
    pub(in crate::record) enum Kept {}

    impl Kept {
        pub(in crate::record) fn tier(&self) -> Tier {
            match *self {}
        }
    }

    /// Programs that were not built in: there is no value of it.
    #[derive(Debug)]
    pub(in crate::record) enum Programs {}

    const WHY: &str = "this program was built without its BPF programs: build it where clang, libelf and \
                       zlib are (make does)";

    pub(in crate::record) fn possible(_: Tier) -> Result<(), String> {
        Err(WHY.to_owned())
    }

    pub(in crate::record) fn attach(
        _: Tier,
        _: &RecordOptions,
        _: bool,
        _: &SharedSink,
    ) -> Result<Programs, String> {
        Err(WHY.to_owned())
    }

    pub(in crate::record) fn follow(programs: &mut Programs, _: u32, _: bool) -> Result<Nanos, Error> {
        match *programs {}
    }

    pub(in crate::record) fn functions(programs: &Programs) -> Vec<KernelFunction> {
        match *programs {}
    }

    pub(in crate::record) fn tells_areas(programs: &Programs) -> bool {
        match *programs {}
    }

    #[allow(clippy::needless_pass_by_value)] // as the other one, which ends what it is given
    pub(in crate::record) fn finish(
        programs: Programs,
        _: Option<&Spare>,
        _: &mut Manifest,
    ) -> Result<Vec<CallCount>, Error> {
        match programs {}
    }
}

#[cfg(feature = "bpf")]
mod with {
    use std::io;
    use std::sync::PoisonError;

    use cold_model::Bytes;
    use cold_model::recording::manifest::{Manifest, StackMethod};

    use super::{Nanos, RecordOptions, SharedSink, Spare, Tier};
    use crate::blocks;
    /// Programs between two recordings.
    pub(in crate::record) use crate::bpf::Loaded as Kept;
    use crate::bpf::{self, BpfRecorder, Follow, Scope, Stacks};
    use crate::record::{CallCount, Error};
    use crate::waiting::KernelFunction;

    /// The programs, attached.
    pub(in crate::record) type Programs = BpfRecorder<Blocks>;

    /// Writes whole records as blocks of the log.
    #[derive(Debug)]
    pub(in crate::record) struct Blocks(SharedSink);

    impl io::Write for Blocks {
        fn write(&mut self, records: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).append(blocks::BPF, records)?;
            Ok(records.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).tick()
        }
    }

    pub(in crate::record) fn possible(tier: Tier) -> Result<(), String> {
        bpf::possible(tier).map_err(|e| e.to_string())
    }

    pub(in crate::record) fn attach(
        tier: Tier,
        options: &RecordOptions,
        everybody: bool,
        sink: &SharedSink,
    ) -> Result<Programs, String> {
        let spare = options.spare.as_ref();
        let options = bpf::BpfOptions {
            tier: Some(tier),
            scope: if everybody { Scope::Machine } else { Scope::Tree },
            stacks: match options.stacks(tier) {
                StackMethod::None => Stacks::None,
                StackMethod::FramePointers => Stacks::FramePointers,
                StackMethod::UnwindTables => Stacks::Copy,
            },
            buffer: options.buffer.map_or(bpf::DEFAULT_BUFFER, |bytes| Bytes(bytes as u64)),
            count_calls: options.count_calls,
            armed: options.armed,
        };
        let sink = Blocks(SharedSink::clone(sink));
        let kept = spare.and_then(Spare::take).filter(|kept| *kept.options() == options);
        let attached = match kept {
            Some(kept) => BpfRecorder::attach_loaded(kept, sink),
            None => BpfRecorder::attach(&options, sink),
        };
        attached.map_err(|e| e.to_string())
    }

    pub(in crate::record) fn follow(programs: &mut Programs, pid: u32, itself: bool) -> Result<Nanos, Error> {
        let whom = if itself { Follow::Running(pid) } else { Follow::ChildrenOf(pid) };
        programs.follow(whom).map_err(|e| Error::Bpf(e.to_string()))
    }

    pub(in crate::record) fn functions(programs: &Programs) -> Vec<KernelFunction> {
        programs.kernel_functions().to_vec()
    }

    pub(in crate::record) fn tells_areas(programs: &Programs) -> bool {
        programs.tells_areas()
    }

    pub(in crate::record) fn finish(
        programs: Programs,
        spare: Option<&Spare>,
        manifest: &mut Manifest,
    ) -> Result<Vec<CallCount>, Error> {
        let failed = |e: bpf::Error| Error::Bpf(e.to_string());
        let finished = match spare {
            Some(spare) => {
                let (finished, _, kept) = programs.finish_and_keep().map_err(failed)?;
                spare.keep(kept);
                finished
            }
            None => programs.finish().map_err(failed)?.0,
        };
        manifest.lost.extend(finished.lost);
        manifest.cost.recorder_cpu += finished.recorder_cpu;
        manifest.cost.buffers += finished.buffer;
        manifest.cost.programs = finished.programs;
        Ok(finished.calls)
    }
}
