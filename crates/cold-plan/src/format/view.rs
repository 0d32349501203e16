//! A plan read in place.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::Dev;
use cold_model::DeviceModel;
use cold_model::io_model::AtDepth;

use super::layout::{self, DEPTH, FILE, META, RANGE, STEP, byte, f64_at, meta, present, u32_at, u64_at};
use super::{FormatError, check};
use crate::Plan;
use crate::plan::{
    Bound, FileKind, Gate, Identity, Key, Knobs, Learnt, Op, Order, PlanFile, Range, Standing, Step, Trial,
};

/// A checked plan in its bytes, usually a mapped file. Its steps and files are read without allocation.
///
/// The bytes must not change while the view lives: plans are replaced by rename, never written in place.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    pub(super) facts: &'a [u8; META],
    pub(super) files: &'a [[u8; FILE]],
    pub(super) steps: &'a [[u8; STEP]],
    pub(super) depths: &'a [[u8; DEPTH]],
    pub(super) texts: &'a [u8],
    /// Not read before it is asked for.
    pub(super) ranges: &'a [[u8; RANGE]],
    pub(super) ranges_crc: u32,
    pub(super) critical: usize,
    pub(super) read_bytes: u64,
    pub(super) id: u64,
}

/// A file of a [`View`].
#[derive(Debug, Clone, Copy)]
pub struct FileView<'a> {
    record: &'a [u8; FILE],
    texts: &'a [u8],
}

/// Which plan it is, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyView<'a> {
    /// See [`Key::executable`].
    pub executable: &'a Path,
    /// See [`Key::identity`].
    pub identity: Identity,
    /// See [`Key::script`].
    pub script: Option<&'a Path>,
    /// See [`Key::scenario`].
    pub scenario: &'a str,
}

impl KeyView<'_> {
    /// The same as values of their own.
    pub fn to_key(self) -> Key {
        Key {
            executable: self.executable.to_owned(),
            identity: self.identity,
            script: self.script.map(Path::to_owned),
            scenario: self.scenario.to_owned(),
        }
    }
}

/// Whether it may be used, in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandingView<'a> {
    /// See [`Standing::Untried`].
    Untried,
    /// See [`Standing::Proven`].
    Proven,
    /// See [`Standing::Off`].
    Off(&'a str),
}

/// Steps in order.
#[derive(Debug, Clone)]
pub struct Steps<'a>(std::slice::Iter<'a, [u8; STEP]>);

/// Ranges in order of first need.
#[derive(Debug, Clone)]
pub struct Ranges<'a>(std::slice::Iter<'a, [u8; RANGE]>);

impl<'a> View<'a> {
    /// Checks header, section table and everything that a launcher uses, once, without allocation. The
    /// ranges are checked by [`View::ranges`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        check::view(bytes)
    }

    /// Which plan it is.
    pub fn key(&self) -> KeyView<'a> {
        let script = self.text(meta::SCRIPT);
        KeyView {
            executable: path(self.text(meta::EXECUTABLE)),
            identity: identity(self.facts, meta::IDENTITY),
            script: (!script.is_empty()).then(|| path(script)),
            scenario: utf8(self.text(meta::SCENARIO)),
        }
    }

    /// It is for this executable, script and scenario; the identity may differ.
    pub fn is_for(&self, key: &Key) -> bool {
        let own = self.key();
        own.executable == key.executable
            && own.script == key.script.as_deref()
            && own.scenario == key.scenario
    }

    /// A number that another save of the plan does not have: by it, history tells which plan was used.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it may be used.
    pub fn standing(&self) -> StandingView<'a> {
        match byte(self.facts, meta::STANDING) {
            0 => StandingView::Untried,
            1 => StandingView::Proven,
            _ => StandingView::Off(utf8(self.text(meta::REASON))),
        }
    }

    /// How it was learnt.
    pub fn learnt(&self) -> Learnt {
        let n = |at| u64_at(self.facts, at);
        Learnt {
            starts: u32_at(self.facts, meta::STARTS),
            cold_starts: u32_at(self.facts, meta::COLD_STARTS),
            tier: char::from(byte(self.facts, meta::TIER)),
            exact: byte(self.facts, meta::EXACT) != 0,
            one_thread: byte(self.facts, meta::ONE_THREAD) != 0,
            goes_on: byte(self.facts, meta::GOES_ON) != 0,
            first: n(meta::FIRST),
            last: n(meta::LAST),
            cpu_ns: n(meta::CPU),
            cold_ready_ns: n(meta::COLD_READY),
            own_cpu_ns: n(meta::OWN_CPU),
        }
    }

    /// How its steps were made, and how they are to be issued.
    pub fn knobs(&self) -> Knobs {
        let (b, n) = (|at| byte(self.facts, at), |at| u32_at(self.facts, at));
        Knobs {
            min_uses: b(meta::MIN_USES),
            gap_bytes: n(meta::GAP),
            chunk_bytes: n(meta::CHUNK),
            in_flight_bytes: n(meta::IN_FLIGHT),
            threads: b(meta::THREADS),
            order: Order::from_byte(b(meta::ORDER)).unwrap_or(Order::Need),
            window_us: n(meta::WINDOW),
            gate: Gate::from_byte(b(meta::GATE)).unwrap_or(Gate::None),
            critical_us: n(meta::CRITICAL),
            metadata: b(meta::METADATA) != 0,
        }
    }

    /// The least time of such a start.
    pub fn bound(&self) -> Option<Bound> {
        let n = |i: usize| u64_at(self.facts, meta::BOUND + 8 * i);
        self.has(present::BOUND).then(|| Bound {
            cpu_ns: known(n(0)),
            overlapped_ns: n(1),
            serial_ns: n(2),
            bytes: n(3),
            requests: u32_at(self.facts, meta::BOUND_REQUESTS),
        })
    }

    /// Its last trial.
    pub fn trial(&self) -> Option<Trial> {
        let n = |i: usize| u64_at(self.facts, meta::TRIAL + 8 * i);
        self.has(present::TRIAL).then(|| Trial {
            at: n(0),
            pairs: u32_at(self.facts, meta::TRIAL_PAIRS),
            plain_ns: n(1),
            prefetched_ns: n(2),
            warm_ns: known(n(3)),
            ratio: f64::from_bits(n(4)),
            low: f64::from_bits(n(5)),
            high: f64::from_bits(n(6)),
        })
    }

    /// The device its steps were made for. Allocates; not for launchers.
    pub fn device(&self) -> Option<DeviceModel> {
        self.has(present::DEVICE).then(|| DeviceModel {
            dev: Dev { major: u32_at(self.facts, meta::DEVICE), minor: u32_at(self.facts, meta::DEVICE + 4) },
            name: utf8(self.text(meta::DEVICE_NAME)).to_owned(),
            rotational: byte(self.facts, meta::DEVICE_ROTATIONAL) != 0,
            latency_ns: f64_at(self.facts, meta::DEVICE_LATENCY),
            ns_per_byte: f64_at(self.facts, meta::DEVICE_BYTE),
            ns_per_byte_alone: None,
            depths: self.depths.iter().map(depth).collect(),
            readahead_cap: u64_at(self.facts, meta::DEVICE_CAP),
            measured_at: u64_at(self.facts, meta::DEVICE_MEASURED),
        })
    }

    /// All files; steps name them by their place.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileView<'a>> + Clone + use<'a> {
        let texts = self.texts;
        self.files.iter().map(move |record| FileView { record, texts })
    }

    /// The file that a step names.
    pub fn file(&self, index: u32) -> Option<FileView<'a>> {
        self.files.get(index as usize).map(|record| FileView { record, texts: self.texts })
    }

    /// All steps, the critical ones first.
    pub fn steps(&self) -> Steps<'a> {
        Steps(self.steps.iter())
    }

    /// The critical prefix of the steps.
    pub fn critical_steps(&self) -> Steps<'a> {
        Steps(self.steps.get(..self.critical).unwrap_or_default().iter())
    }

    /// The steps behind the critical prefix.
    pub fn tail_steps(&self) -> Steps<'a> {
        Steps(self.steps.get(self.critical..).unwrap_or_default().iter())
    }

    /// Bytes that all steps read together.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The evidence, checked now.
    pub fn ranges(&self) -> Result<Ranges<'a>, FormatError> {
        check::ranges(self)?;
        Ok(Ranges(self.ranges.iter()))
    }

    /// The whole plan as values.
    pub fn to_plan(&self) -> Result<Plan, FormatError> {
        Ok(Plan {
            key: self.key().to_key(),
            learnt: self.learnt(),
            files: self.files().map(FileView::to_file).collect(),
            ranges: self.ranges()?.collect(),
            knobs: self.knobs(),
            device: self.device(),
            bound: self.bound(),
            steps: self.steps().collect(),
            standing: match self.standing() {
                StandingView::Untried => Standing::Untried,
                StandingView::Proven => Standing::Proven,
                StandingView::Off(reason) => Standing::Off(reason.to_owned()),
            },
            trial: self.trial(),
        })
    }

    fn has(&self, part: u8) -> bool {
        byte(self.facts, meta::PRESENT) & part != 0
    }

    /// The text that the facts name at `at`; `check` saw that it is there.
    fn text(&self, at: usize) -> &'a [u8] {
        text(self.texts, self.facts, at)
    }
}

impl<'a> FileView<'a> {
    /// Absolute path, as it stands in the plan's bytes.
    pub fn path(&self) -> &'a Path {
        path(text(self.texts, self.record, layout::file::PATH))
    }
    /// The same for system calls, without a copy.
    pub fn path_cstr(&self) -> &'a CStr {
        let at = u32_at(self.record, layout::file::PATH) as usize;
        let rest = self.texts.get(at..).unwrap_or_default();
        CStr::from_bytes_until_nul(rest).unwrap_or_default()
    }
    /// What it is.
    pub fn kind(&self) -> FileKind {
        FileKind::from_byte(byte(self.record, layout::file::KIND)).unwrap_or(FileKind::Name)
    }
    /// What must still be true of it.
    pub fn identity(&self) -> Identity {
        identity(self.record, layout::file::IDENTITY)
    }
    /// First use, nanoseconds from the exec.
    pub fn need_ns(&self) -> u64 {
        u64_at(self.record, layout::file::NEED)
    }
    /// In which of the last 8 starts it was used.
    pub fn uses(&self) -> u8 {
        byte(self.record, layout::file::USES)
    }
    fn to_file(self) -> PlanFile {
        PlanFile {
            path: self.path().to_owned(),
            kind: self.kind(),
            identity: self.identity(),
            need_ns: self.need_ns(),
            uses: self.uses(),
            exact: byte(self.record, layout::file::EXACT) != 0,
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;
    fn next(&mut self) -> Option<Step> {
        self.0.next().map(step)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
    fn nth(&mut self, n: usize) -> Option<Step> {
        self.0.nth(n).map(step)
    }
}
impl ExactSizeIterator for Steps<'_> {}

impl Iterator for Ranges<'_> {
    type Item = Range;
    fn next(&mut self) -> Option<Range> {
        self.0.next().map(range)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
impl ExactSizeIterator for Ranges<'_> {}

pub(super) fn text<'a>(texts: &'a [u8], record: &[u8], at: usize) -> &'a [u8] {
    let (start, length) = (u32_at(record, at) as usize, u32_at(record, at + 4) as usize);
    start.checked_add(length).and_then(|end| texts.get(start..end)).unwrap_or_default()
}

pub(super) fn identity(record: &[u8], at: usize) -> Identity {
    use layout::identity;
    Identity {
        dev: Dev { major: u32_at(record, at + identity::MAJOR), minor: u32_at(record, at + identity::MINOR) },
        inode: u64_at(record, at + identity::INODE),
        size: u64_at(record, at + identity::SIZE),
        mtime_ns: u64_at(record, at + identity::MTIME).cast_signed(),
        build_id: layout::bytes(record, at + identity::BUILD_ID),
    }
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// `check` saw that it is UTF-8.
fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[inline]
pub(super) fn step(record: &[u8; STEP]) -> Step {
    use layout::step;
    Step {
        op: Op::from_byte(byte(record, step::OP)).unwrap_or(Op::Stat),
        critical: byte(record, step::FLAGS) & step::CRITICAL != 0,
        file: u32_at(record, step::FILE),
        offset: u64_at(record, step::OFFSET),
        bytes: u32_at(record, step::BYTES),
        need_ns: u64_at(record, step::NEED),
    }
}

#[inline]
pub(super) fn range(record: &[u8; RANGE]) -> Range {
    use layout::range;
    Range {
        file: u32_at(record, range::FILE),
        first_page: u64_at(record, range::FIRST_PAGE),
        pages: u32_at(record, range::PAGES),
        need_ns: u64_at(record, range::NEED),
        uses: byte(record, range::USES),
        around: byte(record, range::FLAGS) & range::AROUND != 0,
    }
}

pub(super) fn depth(record: &[u8; DEPTH]) -> AtDepth {
    AtDepth { depth: u32_at(record, layout::depth::DEPTH), iops: f64_at(record, layout::depth::IOPS) }
}

/// A time that was measured: where it was not, a plan holds 0.
fn known(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}
