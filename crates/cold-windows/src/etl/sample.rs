//! Writes made-up traces with the layout of real ones, for tests and the fuzzers' corpus. Not part of a release.

use crate::lz77;

/// A trace in the making: a session of one second's ticks, 10 MHz, begun at tick 1000.
#[derive(Debug)]
pub struct Writer {
    pointer: u8,
    compress: bool,
    out: Vec<u8>,
}

/// An event: its hook, version, time in ticks and payload.
pub type Logged = (u16, u16, i64, Vec<u8>);

impl Writer {
    /// A trace with its header, of pointers of 4 or 8 bytes; buffers behind the first compressed or not.
    pub fn new(pointer: u8, compress: bool) -> Self {
        let mut writer = Self { pointer, compress: false, out: Vec::new() };
        let header = writer.header();
        writer.buffer(0, &[(0, 2, 1000, header)]);
        Self { compress, ..writer }
    }

    fn header(&self) -> Vec<u8> {
        let mut b = Vec::new();
        for v in [4096_u32, 0x0005_0106, 9200, 2] {
            b.extend(v.to_le_bytes());
        }
        b.extend(132_000_000_010_000_000_u64.to_le_bytes());
        for v in [156_250_u32, 0, 1, 3, 1, self.pointer.into(), 5, 3592] {
            b.extend(v.to_le_bytes());
        }
        b.resize(b.len() + 2 * usize::from(self.pointer), 0);
        b.extend((-60_i32).to_le_bytes());
        b.resize((b.len() + 168).next_multiple_of(8), 0);
        for v in [131_999_000_000_000_000_u64, 10_000_000, 132_000_000_000_000_000] {
            b.extend(v.to_le_bytes());
        }
        for v in [1_u32, 7] {
            b.extend(v.to_le_bytes());
        }
        b.extend(wide("Sample"));
        b
    }

    /// A pointer of this trace.
    pub fn pointer(&self, value: u64) -> Vec<u8> {
        value.to_le_bytes()[..usize::from(self.pointer)].to_vec()
    }

    /// Adds a buffer of `processor` with these events, those of process, thread and file names with full headers.
    pub fn buffer(&mut self, processor: u16, events: &[Logged]) {
        let mut body = Vec::new();
        for (hook, version, time, payload) in events {
            let perf = matches!(hook, 0x010a..=0x010f | 0x0220 | 0x1820);
            let (kind, size) = if perf { (0x11, 16) } else { (2, 32) };
            let kind = if self.pointer == 4 { kind - 1 } else { kind };
            body.extend(version.to_le_bytes());
            body.extend([kind, 0xc0]);
            body.extend(((payload.len() + size) as u16).to_le_bytes());
            body.extend(hook.to_le_bytes());
            if !perf {
                body.extend([0xff; 8]);
            }
            body.extend(time.to_le_bytes());
            body.resize(body.len() + size - if perf { 16 } else { 24 }, 0);
            body.extend(payload);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        let filled = (body.len() + 72) as u32;
        if self.compress {
            body = lz77::compress(&body);
        }
        let mut head = vec![0; 72];
        let flags = if self.compress { 0x60_u16 } else { 0x20 };
        head[..4].copy_from_slice(&((body.len() + 72) as u32).to_le_bytes());
        head[4..8].copy_from_slice(&filled.to_le_bytes());
        head[40..42].copy_from_slice(&processor.to_le_bytes());
        head[48..52].copy_from_slice(&filled.to_le_bytes());
        head[52..54].copy_from_slice(&flags.to_le_bytes());
        self.out.extend(head);
        self.out.extend(body);
    }

    /// The file's bytes.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// UTF-16 with its NUL.
pub fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// One process with a thread, an image, a named file, a disk read, the hard fault that waited for it, and its stack,
/// written by two processors out of the order of time.
pub fn small(pointer: u8, compress: bool) -> Vec<u8> {
    let mut w = Writer::new(pointer, compress);
    let parts = |parts: &[&[u8]]| parts.concat();
    let n = |v: u32| v.to_le_bytes();
    let (object, irp, address) = (w.pointer(0x8000_1230), w.pointer(0x8000_4560), w.pointer(0x40_1234));
    let (zero, base, size) = (w.pointer(0), w.pointer(0x40_0000), w.pointer(0x9000));
    let command = wide("app.exe --größe");
    let process = parts(&[&zero, &n(77), &n(4), &n(1), &n(259), &zero, &n(0), &n(0), b"app.exe\0", &command]);
    let thread = parts(&[&n(77), &n(78), &[0; 40]]);
    let image = parts(&[
        &base,
        &size,
        &n(77),
        &[0; 12],
        &zero,
        &[0; 16],
        &wide("\\Device\\HarddiskVolume1\\app.exe"),
    ]);
    let disk = parts(&[
        &n(0),
        &n(0x60043),
        &n(16384),
        &n(0),
        &5_000_192_u64.to_le_bytes(),
        &object,
        &irp,
        &900_u64.to_le_bytes(),
        &n(78),
    ]);
    let fault =
        parts(&[&2000_u64.to_le_bytes(), &0x1400_u64.to_le_bytes(), &address, &object, &n(78), &n(16384)]);
    let name = parts(&[&object, &wide("\\Device\\HarddiskVolume1\\app.exe")]);
    let stack = parts(&[&3010_u64.to_le_bytes(), &n(77), &n(78), &address, &base]);
    w.buffer(1, &[(0x0220, 2, 3010, fault), (0x1820, 2, 3020, stack), (0x0424, 2, 9000, name)]);
    w.buffer(
        0,
        &[
            (0x0301, 4, 1500, process),
            (0x0501, 3, 1600, thread),
            (0x030a, 2, 1700, image),
            (0x010a, 3, 3000, disk),
        ],
    );
    w.finish()
}
