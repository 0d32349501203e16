//! A plan's bytes.

use std::os::unix::ffi::OsStrExt;

use super::layout::{self, DEPTH, ENTRY, FILE, HEAD, HEADER, META, RANGE, SECTIONS, STEP, aligned, meta};
use super::{FormatError, MAGIC, VERSION, View};
use crate::Plan;
use crate::plan::{Identity, Standing};

/// The bytes of `plan`, or what in it no reader would accept.
pub fn encode(plan: &Plan) -> Result<Vec<u8>, FormatError> {
    let mut texts = Texts::default();
    let mut facts = facts(plan, &mut texts)?;
    let mut files = Vec::with_capacity(plan.files.len() * FILE);
    for f in &plan.files {
        let mut r = Record::<FILE>::new();
        r.u64(layout::file::PATH, texts.add(f.path.as_os_str().as_bytes())?);
        r.identity(layout::file::IDENTITY, &f.identity);
        r.u64(layout::file::NEED, f.need_ns);
        r.put(layout::file::KIND, &[f.kind.byte()]);
        r.put(layout::file::USES, &[f.uses, u8::from(f.exact)]);
        files.extend_from_slice(&r.0);
    }
    let mut depths = Vec::new();
    if let Some(device) = &plan.device {
        facts.u64(meta::DEVICE_NAME, texts.add(device.name.as_bytes())?);
        for d in &device.depths {
            let mut r = Record::<DEPTH>::new();
            r.u32(layout::depth::DEPTH, d.depth);
            r.f64(layout::depth::IOPS, d.iops);
            depths.extend_from_slice(&r.0);
        }
    }
    let sections = [facts.0.to_vec(), files, steps(plan), depths, texts.0, ranges(plan)];
    let bytes = assemble(&sections)?;
    // One set of rules, that of the reader: nothing is saved that cannot be loaded.
    View::parse(&bytes)?.ranges()?;
    Ok(bytes)
}

fn steps(plan: &Plan) -> Vec<u8> {
    use layout::step;
    let mut out = Vec::with_capacity(plan.steps.len() * STEP);
    for s in &plan.steps {
        let mut r = Record::<STEP>::new();
        r.u32(step::FILE, s.file);
        r.u32(step::BYTES, s.bytes);
        r.u64(step::OFFSET, s.offset);
        r.u64(step::NEED, s.need_ns);
        r.put(step::OP, &[s.op.byte()]);
        r.put(step::FLAGS, &[u8::from(s.critical) * step::CRITICAL]);
        out.extend_from_slice(&r.0);
    }
    out
}

fn ranges(plan: &Plan) -> Vec<u8> {
    use layout::range;
    let mut out = Vec::with_capacity(plan.ranges.len() * RANGE);
    for g in &plan.ranges {
        let mut r = Record::<RANGE>::new();
        r.u32(range::FILE, g.file);
        r.u32(range::PAGES, g.pages);
        r.u64(range::FIRST_PAGE, g.first_page);
        r.u64(range::NEED, g.need_ns);
        r.put(range::USES, &[g.uses]);
        r.put(range::FLAGS, &[u8::from(g.around) * range::AROUND]);
        out.extend_from_slice(&r.0);
    }
    out
}

/// The record of facts, but for the device's name.
fn facts(plan: &Plan, texts: &mut Texts) -> Result<Record<META>, FormatError> {
    use layout::present;
    let mut r = Record::<META>::new();
    r.u64(meta::EXECUTABLE, texts.add(plan.key.executable.as_os_str().as_bytes())?);
    if let Some(script) = &plan.key.script {
        r.u64(meta::SCRIPT, texts.add(script.as_os_str().as_bytes())?);
    }
    r.u64(meta::SCENARIO, texts.add(plan.key.scenario.as_bytes())?);
    r.identity(meta::IDENTITY, &plan.key.identity);
    let standing = match &plan.standing {
        Standing::Untried => 0,
        Standing::Proven => 1,
        Standing::Off(reason) => {
            r.u64(meta::REASON, texts.add(reason.as_bytes())?);
            2
        }
    };
    let l = &plan.learnt;
    r.u32(meta::STARTS, l.starts);
    r.u32(meta::COLD_STARTS, l.cold_starts);
    let times = [l.first, l.last, l.cpu_ns, l.cold_ready_ns, l.own_cpu_ns];
    r.u64s(meta::FIRST, &times);
    let tier = u8::try_from(l.tier).map_err(|_| layout::invalid("facts", 0, "a tier outside A to D"))?;
    r.put(meta::TIER, &[tier, u8::from(l.exact), standing]);
    let k = &plan.knobs;
    r.put(meta::MIN_USES, &[k.min_uses, k.threads, k.order.byte(), k.gate.byte(), u8::from(k.metadata)]);
    r.put(meta::ONE_THREAD, &[u8::from(l.one_thread), u8::from(l.goes_on)]);
    r.u32(meta::GAP, k.gap_bytes);
    r.u32(meta::CHUNK, k.chunk_bytes);
    r.u32(meta::IN_FLIGHT, k.in_flight_bytes);
    r.u32(meta::WINDOW, k.window_us);
    r.u32(meta::CRITICAL, k.critical_us);
    let mut here = 0;
    if let Some(b) = &plan.bound {
        here |= present::BOUND;
        r.u64s(meta::BOUND, &[b.cpu_ns.unwrap_or(0), b.overlapped_ns, b.serial_ns, b.bytes]);
        r.u32(meta::BOUND_REQUESTS, b.requests);
    }
    if let Some(t) = &plan.trial {
        here |= present::TRIAL;
        let ratio = [t.ratio, t.low, t.high].map(f64::to_bits);
        r.u64s(meta::TRIAL, &[t.at, t.plain_ns, t.prefetched_ns, t.warm_ns.unwrap_or(0)]);
        r.u64s(meta::TRIAL + 32, &ratio);
        r.u32(meta::TRIAL_PAIRS, t.pairs);
    }
    if let Some(d) = &plan.device {
        here |= present::DEVICE;
        r.u32(meta::DEVICE, d.dev.major);
        r.u32(meta::DEVICE + 4, d.dev.minor);
        r.f64(meta::DEVICE_LATENCY, d.latency_ns);
        r.f64(meta::DEVICE_BYTE, d.ns_per_byte);
        r.u64s(meta::DEVICE_CAP, &[d.readahead_cap, d.measured_at]);
        r.put(meta::DEVICE_ROTATIONAL, &[u8::from(d.rotational)]);
    }
    r.put(meta::PRESENT, &[here]);
    Ok(r)
}

/// Header, section table, sections, each at a multiple of 8.
fn assemble(sections: &[Vec<u8>; SECTIONS.len()]) -> Result<Vec<u8>, FormatError> {
    let length = sections.iter().fold(HEAD as u64, |at, s| aligned(at + s.len() as u64));
    if length > super::MAX_BYTES {
        return Err(FormatError::Budget { what: "bytes", found: length, most: super::MAX_BYTES });
    }
    let mut head = Record::<HEAD>::new();
    head.put(0, &MAGIC);
    head.u32(layout::header::VERSION, VERSION);
    head.u32(layout::header::SECTIONS, SECTIONS.len() as u32);
    head.u64(layout::header::LENGTH, length);
    let mut out = vec![0; HEAD];
    for (i, (bytes, kind)) in sections.iter().zip(&SECTIONS).enumerate() {
        let at = HEADER + i * ENTRY;
        head.u32(at + layout::entry::ID, i as u32 + 1);
        head.u32(at + layout::entry::CRC, crc32fast::hash(bytes));
        head.u64(at + layout::entry::OFFSET, out.len() as u64);
        head.u64(at + layout::entry::COUNT, (bytes.len() / kind.record) as u64);
        head.u32(at + layout::entry::RECORD, kind.record as u32);
        out.extend_from_slice(bytes);
        out.resize(aligned(out.len() as u64) as usize, 0);
    }
    head.u32(layout::header::CRC, layout::head_crc(&head.0));
    out[..HEAD].copy_from_slice(&head.0);
    Ok(out)
}

/// Paths and other texts, each followed by a zero byte.
#[derive(Default)]
struct Texts(Vec<u8>);

impl Texts {
    /// Adds a text; its offset in the low 32 bits, its length in the high ones, as two fields in a row.
    fn add(&mut self, text: &[u8]) -> Result<u64, FormatError> {
        let at = self.0.len() as u64;
        let end = at + text.len() as u64 + 1;
        if end > super::MAX_BYTES {
            return Err(FormatError::Budget { what: "bytes of text", found: end, most: super::MAX_BYTES });
        }
        self.0.extend_from_slice(text);
        self.0.push(0);
        Ok((text.len() as u64) << 32 | at)
    }
}

/// A record being filled.
struct Record<const N: usize>([u8; N]);

impl<const N: usize> Record<N> {
    fn new() -> Self {
        Self([0; N])
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }
    fn u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }
    fn u64s(&mut self, at: usize, values: &[u64]) {
        for (i, value) in values.iter().enumerate() {
            self.u64(at + 8 * i, *value);
        }
    }
    fn f64(&mut self, at: usize, value: f64) {
        self.u64(at, value.to_bits());
    }
    fn identity(&mut self, at: usize, id: &Identity) {
        use layout::identity;
        self.u32(at + identity::MAJOR, id.dev.major);
        self.u32(at + identity::MINOR, id.dev.minor);
        self.u64(at + identity::INODE, id.inode);
        self.u64(at + identity::SIZE, id.size);
        self.put(at + identity::MTIME, &id.mtime_ns.to_le_bytes());
        self.put(at + identity::BUILD_ID, &id.build_id);
    }
}
