//! The rules that bytes must keep to be a plan.

use super::layout::{
    self, DEPTH, ENTRY, FILE, HEAD, HEADER, META, RANGE, SECTIONS, STEP, aligned, byte, entry, f64_at,
    header, invalid, meta, present, u32_at, u64_at,
};
use super::view::{View, range, step, text};
use super::{FormatError, MAGIC, MAX_BYTES, MAX_OFFSET, MAX_PATH, MAX_READ_BYTES, MAX_TEXT, VERSION};
use crate::plan::{FileKind, Gate, Op, Order, PAGE};
use crate::scenario;

type Checked<T> = Result<T, FormatError>;

/// See [`View::parse`].
pub(super) fn view(bytes: &[u8]) -> Checked<View<'_>> {
    let (head, length) = head(bytes)?;
    let mut placed = [Placed::default(); SECTIONS.len()];
    let mut at = HEAD as u64;
    for (i, (place, kind)) in placed.iter_mut().zip(&SECTIONS).enumerate() {
        let record = head.get(HEADER + i * ENTRY..).unwrap_or_default();
        *place = section(bytes, record, i, kind, at)?;
        at = aligned(place.end);
    }
    if at != length {
        return Err(FormatError::Length { expected: at, found: length });
    }
    let [facts, files, steps, depths, texts, ranges] = placed;
    for (place, kind) in [facts, files, steps, depths, texts].iter().zip(&SECTIONS) {
        if crc32fast::hash(place.bytes) != place.crc {
            return Err(FormatError::Checksum(kind.name));
        }
    }
    let mut view = View {
        facts: facts.bytes.first_chunk().ok_or(invalid("facts", 0, "there are none"))?,
        files: files.bytes.as_chunks().0,
        steps: steps.bytes.as_chunks().0,
        depths: depths.bytes.as_chunks().0,
        texts: texts.bytes,
        ranges: ranges.bytes.as_chunks().0,
        ranges_crc: ranges.crc,
        critical: 0,
        read_bytes: 0,
        // The head's checksum covers those of all sections: other content, another number.
        id: u64::from(u32_at(head, header::CRC)) << 32 | length & 0xffff_ffff,
    };
    check_facts(&view)?;
    for (i, record) in view.files.iter().enumerate() {
        check_file(record, view.texts).map_err(|why| invalid("file", i as u64, why))?;
    }
    for (i, record) in view.depths.iter().enumerate() {
        check_depth(record).map_err(|why| invalid("depth", i as u64, why))?;
    }
    check_steps(&mut view)?;
    Ok(view)
}

/// See [`View::ranges`].
pub(super) fn ranges(view: &View<'_>) -> Checked<()> {
    if crc32fast::hash(view.ranges.as_flattened()) != view.ranges_crc {
        return Err(FormatError::Checksum("ranges"));
    }
    let mut last = 0;
    for (i, record) in view.ranges.iter().enumerate() {
        let why = check_range(record, view.files, &mut last);
        why.map_err(|why| invalid("range", i as u64, why))?;
    }
    Ok(())
}

/// A section's place, its bytes not yet looked at.
#[derive(Clone, Copy, Default)]
struct Placed<'a> {
    bytes: &'a [u8],
    crc: u32,
    end: u64,
}

/// Header and section table, and the length of the whole.
fn head(bytes: &[u8]) -> Checked<(&[u8; HEAD], u64)> {
    if !bytes.starts_with(&MAGIC) {
        // A file cut off within its first bytes is still a plan.
        return Err(if !bytes.is_empty() && MAGIC.starts_with(bytes) {
            FormatError::Length { expected: HEAD as u64, found: bytes.len() as u64 }
        } else {
            FormatError::Magic
        });
    }
    let version = bytes.get(header::VERSION..).and_then(|b| b.first_chunk()).copied().map(u32::from_le_bytes);
    if let Some(version) = version.filter(|v| *v > VERSION) {
        return Err(FormatError::Version(version));
    }
    let found = bytes.len() as u64;
    let head: &[u8; HEAD] =
        bytes.first_chunk().ok_or(FormatError::Length { expected: HEAD as u64, found })?;
    if layout::head_crc(head) != u32_at(head, header::CRC) {
        return Err(FormatError::Checksum("head"));
    }
    if version == Some(0) {
        return Err(invalid("header", 0, "format 0 does not exist"));
    }
    if u32_at(head, header::SECTIONS) != SECTIONS.len() as u32 || !zero(head, header::CRC + 4, HEADER) {
        return Err(invalid("header", 0, "another number of sections than its format has"));
    }
    let length = u64_at(head, header::LENGTH);
    if length != found {
        return Err(FormatError::Length { expected: length, found });
    }
    if length > MAX_BYTES {
        return Err(FormatError::Budget { what: "bytes", found: length, most: MAX_BYTES });
    }
    Ok((head, length))
}

/// One entry of the section table: `at` is where the section must begin.
fn section<'a>(
    bytes: &'a [u8],
    record: &[u8],
    index: usize,
    kind: &layout::Section,
    at: u64,
) -> Checked<Placed<'a>> {
    let wrong = |why| invalid("section", index as u64, why);
    let fits = u32_at(record, entry::ID) == index as u32 + 1
        && u32_at(record, entry::RECORD) == kind.record as u32
        && u64_at(record, entry::OFFSET) == at
        && zero(record, entry::RECORD + 4, ENTRY);
    if !fits {
        return Err(wrong("its kind, place or record size is not that of the format"));
    }
    let count = u64_at(record, entry::COUNT);
    if count > kind.most {
        return Err(FormatError::Budget { what: kind.name, found: count, most: kind.most });
    }
    // No overflow: counts are bounded, records small, and `at` lies within the file.
    let end = at + count * kind.record as u64;
    let content = bytes.get(at as usize..end as usize).ok_or(wrong("it passes the end of the file"))?;
    if !zero(bytes, end as usize, aligned(end) as usize) {
        return Err(wrong("the bytes that fill it up are not zero"));
    }
    Ok(Placed { bytes: content, crc: u32_at(record, entry::CRC), end })
}

fn check_facts(view: &View<'_>) -> Checked<()> {
    let facts = view.facts;
    let wrong = |why| Err(invalid("facts", 0, why));
    check_path(view.texts, facts, meta::EXECUTABLE).map_err(|why| invalid("executable", 0, why))?;
    if u64_at(facts, meta::SCRIPT) != 0 {
        check_path(view.texts, facts, meta::SCRIPT).map_err(|why| invalid("script", 0, why))?;
    }
    let name = check_text(view.texts, facts, meta::SCENARIO)?;
    if !scenario::is_valid(name) {
        return wrong("its scenario has no valid name");
    }
    match byte(facts, meta::STANDING) {
        0 | 1 if u64_at(facts, meta::REASON) == 0 => {}
        2 => drop(check_text(view.texts, facts, meta::REASON)?),
        _ => return wrong("its standing does not exist"),
    }
    if !matches!(byte(facts, meta::TIER), 0 | b'A'..=b'D') {
        return wrong("a tier outside A to D");
    }
    let flags = [meta::EXACT, meta::METADATA, meta::ONE_THREAD, meta::GOES_ON, meta::DEVICE_ROTATIONAL];
    if flags.iter().any(|at| byte(facts, *at) > 1)
        || Order::from_byte(byte(facts, meta::ORDER)).is_none()
        || Gate::from_byte(byte(facts, meta::GATE)).is_none()
        || byte(facts, meta::PRESENT) > 7
        || byte(facts, meta::MIN_USES) > 8
    {
        return wrong("a choice that does not exist");
    }
    let gaps = [(84, 88), (147, 148), (204, 208), (268, 272), (321, META)];
    if gaps.iter().any(|(from, to)| !zero(facts, *from, *to)) {
        return wrong("bytes without meaning are not zero");
    }
    let absent = |bit| byte(facts, meta::PRESENT) & bit == 0;
    if (absent(present::BOUND) && !zero(facts, meta::BOUND, meta::TRIAL))
        || (absent(present::TRIAL) && !zero(facts, meta::TRIAL, meta::DEVICE))
        || (absent(present::DEVICE) && !(zero(facts, meta::DEVICE, META) && view.depths.is_empty()))
    {
        return wrong("a part that is absent has content");
    }
    let trial = [meta::TRIAL + 32, meta::TRIAL + 40, meta::TRIAL + 48];
    let device = [meta::DEVICE_LATENCY, meta::DEVICE_BYTE];
    if trial.iter().chain(&device).any(|at| !reasonable(f64_at(facts, *at))) {
        return wrong("a number that is negative, infinite or none");
    }
    if !absent(present::DEVICE) {
        check_text(view.texts, facts, meta::DEVICE_NAME)?;
    }
    Ok(())
}

fn check_file(record: &[u8; FILE], texts: &[u8]) -> Result<(), &'static str> {
    check_path(texts, record, layout::file::PATH)?;
    if FileKind::from_byte(byte(record, layout::file::KIND)).is_none() {
        return Err("its kind does not exist");
    }
    if byte(record, layout::file::EXACT) > 1 {
        return Err("a choice that does not exist");
    }
    if !zero(record, 60, 64) || !zero(record, layout::file::EXACT + 1, FILE) {
        return Err("bytes without meaning are not zero");
    }
    Ok(())
}

fn check_depth(record: &[u8; DEPTH]) -> Result<(), &'static str> {
    if !zero(record, 4, 8) || !reasonable(f64_at(record, layout::depth::IOPS)) {
        return Err("a number that is negative, infinite or none");
    }
    Ok(())
}

fn check_steps(view: &mut View<'_>) -> Checked<()> {
    let chunk = u32_at(view.facts, meta::CHUNK);
    let mut critical = true;
    for (i, record) in view.steps.iter().enumerate() {
        let why = check_step(record, view.files, chunk);
        why.map_err(|why| invalid("step", i as u64, why))?;
        let step = step(record);
        if step.critical && !critical {
            return Err(invalid("step", i as u64, "it is critical, but one before it is not"));
        }
        critical = step.critical;
        view.critical += usize::from(critical);
        // No overflow: a million steps of less than 4 GiB.
        view.read_bytes += u64::from(step.bytes);
    }
    if view.read_bytes > MAX_READ_BYTES {
        return Err(FormatError::Budget {
            what: "bytes to be read",
            found: view.read_bytes,
            most: MAX_READ_BYTES,
        });
    }
    Ok(())
}

fn check_step(record: &[u8; STEP], files: &[[u8; FILE]], chunk: u32) -> Result<(), &'static str> {
    let op = Op::from_byte(byte(record, layout::step::OP)).ok_or("what it does does not exist")?;
    if byte(record, layout::step::FLAGS) > layout::step::CRITICAL
        || !zero(record, layout::step::FLAGS + 1, STEP)
    {
        return Err("bytes without meaning are not zero");
    }
    let step = step(record);
    let file = files.get(step.file as usize).ok_or("its file does not exist")?;
    let of = FileKind::from_byte(byte(file, layout::file::KIND)).ok_or("its file has no kind")?;
    match (op, of) {
        (Op::Read, FileKind::Regular | FileKind::BlockDevice) => {
            let bytes = u64::from(step.bytes);
            if bytes == 0 || !bytes.is_multiple_of(PAGE) || !step.offset.is_multiple_of(PAGE) {
                return Err("it does not read whole pages");
            }
            if step.bytes > chunk {
                return Err("it reads more than the plan's chunk");
            }
            if step.offset > MAX_OFFSET - bytes {
                return Err("it reads beyond the end of all files");
            }
            Ok(())
        }
        (Op::Open, FileKind::Regular) | (Op::List, FileKind::Directory) | (Op::Stat, _)
            if step.bytes == 0 && step.offset == 0 =>
        {
            Ok(())
        }
        _ => Err("what it does does not suit its file"),
    }
}

fn check_range(record: &[u8; RANGE], files: &[[u8; FILE]], last: &mut u64) -> Result<(), &'static str> {
    if byte(record, layout::range::FLAGS) > layout::range::AROUND
        || !zero(record, layout::range::FLAGS + 1, RANGE)
    {
        return Err("bytes without meaning are not zero");
    }
    let range = range(record);
    let file = files.get(range.file as usize).ok_or("its file does not exist")?;
    if !matches!(
        FileKind::from_byte(byte(file, layout::file::KIND)),
        Some(FileKind::Regular | FileKind::BlockDevice)
    ) {
        return Err("its file has no pages");
    }
    if range.pages == 0 || range.first_page > MAX_OFFSET / PAGE - u64::from(range.pages) {
        return Err("it has no pages, or pages beyond the end of all files");
    }
    if range.need_ns < *last {
        return Err("it was needed before the one in front of it");
    }
    *last = range.need_ns;
    Ok(())
}

/// A text that is no path.
fn check_text<'a>(texts: &'a [u8], record: &[u8], at: usize) -> Checked<&'a str> {
    let bytes = bounded(texts, record, at, MAX_TEXT).map_err(|why| invalid("text", 0, why))?;
    std::str::from_utf8(bytes).map_err(|_| invalid("text", 0, "it is not UTF-8"))
}

fn check_path(texts: &[u8], record: &[u8], at: usize) -> Result<(), &'static str> {
    let path = bounded(texts, record, at, MAX_PATH)?;
    if path.first() != Some(&b'/') {
        return Err("its path is not absolute");
    }
    // Seldom true, so that the exact look is seldom made.
    if path.windows(3).any(|w| w == b"/..") && path.split(|b| *b == b'/').any(|name| name == b"..") {
        return Err("its path contains \"..\"");
    }
    Ok(())
}

/// A text that lies where the record says, with its zero byte behind it and none in it.
fn bounded<'a>(texts: &'a [u8], record: &[u8], at: usize, most: usize) -> Result<&'a [u8], &'static str> {
    let (start, length) = (u32_at(record, at) as usize, u32_at(record, at + 4) as usize);
    if length > most {
        return Err("a text that is too long");
    }
    // No overflow: both are below 2^32.
    if texts.get(start + length) != Some(&0) {
        return Err("a text passes the end of its section");
    }
    let bytes = text(texts, record, at);
    if bytes.contains(&0) {
        return Err("a text contains a zero byte");
    }
    Ok(bytes)
}

fn reasonable(number: f64) -> bool {
    number.is_finite() && number.is_sign_positive()
}

fn zero(bytes: &[u8], from: usize, to: usize) -> bool {
    bytes.get(from..to).is_some_and(|b| b.iter().all(|b| *b == 0))
}
