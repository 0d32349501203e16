//! `events.h` against what is read of it: the C compiler says where each field lies and what each name means.
//!
//! One field at a time is set in an otherwise empty record, where C has it, and has to come out of the decoder under
//! its name in Rust. Fields that are not read are named too, so that each byte of a structure has an owner and a field
//! that is added shows.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use cold_model::Dev;

use crate::raw::{self, Doing, Event, Part, RawRecord, Request, records};

/// Behind the structure, for fields that say how much follows.
const TAIL: usize = 512;
/// Each byte of it.
const BEHIND: u8 = b'a';

/// What a field that lies in these bytes is decoded to.
trait Agrees {
    fn agrees(&self, bytes: &[u8]) -> bool;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Agrees for $number {
            fn agrees(&self, bytes: &[u8]) -> bool {
                bytes == self.to_le_bytes()
            }
        }
    )*};
}
numbers!(u16 u32 u64 i32 i64);

impl Agrees for bool {
    fn agrees(&self, bytes: &[u8]) -> bool {
        *self == bytes.iter().any(|b| *b != 0)
    }
}

impl Agrees for Dev {
    fn agrees(&self, bytes: &[u8]) -> bool {
        (self.major << 20 | self.minor).agrees(bytes)
    }
}

impl Agrees for Doing {
    fn agrees(&self, bytes: &[u8]) -> bool {
        matches!(self, Self::Other(number) if number.agrees(bytes))
    }
}

impl Agrees for Option<u64> {
    fn agrees(&self, bytes: &[u8]) -> bool {
        self.is_some_and(|number| number.agrees(bytes))
    }
}

/// Text of the record itself, or as much of what follows as a number says.
impl Agrees for &[u8] {
    fn agrees(&self, bytes: &[u8]) -> bool {
        *self == bytes || self.len() == usize::from(bytes[0]) && self.iter().all(|b| *b == BEHIND)
    }
}

impl Agrees for Option<&[u8]> {
    fn agrees(&self, bytes: &[u8]) -> bool {
        self.is_some_and(|text| text.agrees(bytes))
    }
}

type Check = fn(&RawRecord<'_>, &[u8]) -> bool;

struct Field {
    /// As C names it within its structure.
    name: &'static str,
    /// It says how much follows, or is cut at a limit: no arbitrary number.
    small: bool,
    /// `None`: it is not read.
    check: Option<Check>,
}

struct Layout {
    kind: &'static str,
    structure: &'static str,
    fields: Vec<Field>,
}

/// `KIND structure Variant { field in C => field in Rust, … }`, `->` for small numbers, a name alone for what is not
/// read.
macro_rules! layouts {
    ($($kind:ident $structure:ident $variant:ident {
        $( $($c:ident).+ $([$i:literal])?
            $( => $($rust:ident).+ $([$j:literal])? )?
            $( -> $($few:ident).+ )?
        ),* $(,)?
    })*) => { vec![$(Layout {
        kind: stringify!($kind),
        structure: stringify!($structure),
        fields: vec![$(Field {
            name: stringify!($($c).+ $([$i])?),
            small: only::<&str>(&[$(stringify!($($few).+))?]).is_some(),
            check: only(&[
                $( check!($variant, $($rust).+ $([$j])?), )?
                $( check!($variant, $($few).+), )?
            ]),
        }),*],
    }),*] };
}

fn only<T: Copy>(one_or_none: &[T]) -> Option<T> {
    one_or_none.first().copied()
}

macro_rules! check {
    ($variant:ident, $($path:tt)+) => {{
        let check: Check =
            |record, bytes| matches!(&record.event, Event::$variant(e) if e.$($path)+.agrees(bytes));
        check
    }};
}

#[rustfmt::skip] // a line for each group of neighbours
fn layouts() -> Vec<Layout> {
    layouts! {
        COLD_FILE cold_file_event File {
            head, file.ino => file.inode, file.dev => file.dev, file.gen => file.generation, size => size,
            mtime_sec => mtime_sec, mtime_nsec => mtime_nsec, mode => mode, nlink => nlink, bdev => bdev,
            state => state, path_bytes -> names, names, fs => fs,
            shown.ino => shown.inode, shown.dev => shown.dev, shown.gen => shown.generation,
        }
        COLD_FORK cold_task Fork { head, pid => pid, tid => tid, parent => parent, pad, comm => comm }
        COLD_COMM_SET cold_task Comm { head, pid => pid, tid => tid, parent => parent, pad, comm => comm }
        COLD_EXEC cold_exec Exec {
            head, file.ino => file.inode, file.dev => file.dev, file.gen => file.generation, old_tid => old_tid,
            arg_bytes -> arguments, arg_total => argument_bytes, pad, comm => comm,
        }
        COLD_EXIT cold_exit Exit { head, status => status, last => last }
        COLD_FAULT cold_pages Fault {
            head, context.at => context.at, context.file.ino => context.file.inode,
            context.file.dev => context.file.dev, context.file.gen => context.file.generation,
            context.index => context.index, context.syscall => context.syscall, context.kind => context.doing,
            file.ino => file.inode, file.dev => file.dev, file.gen => file.generation,
            first => first, last => last, address => address, ip => ip, state => state, pad,
        }
        COLD_MAP cold_pages Map { head, context, file, first => first, last => last, address, ip, state, pad }
        COLD_GET cold_pages Get { head, context, file, first => first, last => last, address, ip, state, pad }
        COLD_ADD cold_add Add {
            head, context, context.at => context.at, file, file.ino => file.inode, index => index, order => order,
            more -> more,
        }
        COLD_DELETE cold_delete Delete { head, file, file.ino => file.inode, index => index, order => order, pad }
        COLD_READAHEAD cold_readahead Readahead {
            head, context => context, file, file.ino => file.inode, index => index, start => start, asked => asked,
            size => size, async_size => async_size, ra_pages => ra_pages, mmap_miss => mmap_miss, ra_order => order,
            ra_kind => kind,
        }
        COLD_REQUEST cold_request Request {
            head, rq => rq, started => started, inserted => inserted, context => context, sector => sector,
            dev => dev, bytes => bytes, op => op, parts, bios => bios, meta => metadata, ahead => readahead,
        }
        COLD_DONE cold_done Done { head, rq => rq, bytes => bytes, left => left, error => error, pad }
        COLD_STALL cold_stall Stall {
            head, context, context.at => context.at, began => began, woken => woken, address => address, ip => ip,
            task_state => task_state, state => state, waker => waker, pad,
        }
        COLD_OFF cold_off Off {
            head, began => began, woken => woken, syscall => syscall, state => state, waker => waker, pad,
        }
        COLD_HEARD cold_heard Heard { head }
        COLD_AREA cold_area Area {
            head, file.ino => file.inode, file.dev => file.dev, file.gen => file.generation, address => address,
            bytes => bytes, offset => offset, prot => prot, state => state,
        }
        COLD_CALL cold_call Call {
            head, began => began, result => result, args[0] => args[0], args[1] => args[1], args[2] => args[2],
            args[3] => args[3], args[4] => args[4], args[5] => args[5],
            file.ino => file.inode, file.dev => file.dev, file.gen => file.generation,
            base.ino => base.inode, base.dev => base.dev, base.gen => base.generation,
            position => position, syscall => syscall, open_flags => open_flags, path_bytes -> path,
            path_cut => path_cut, pad,
        }
        COLD_PAGE_FAULT cold_page_fault PageFault {
            head, address => address, ip => ip, error => error, state => state,
        }
        COLD_STACK cold_stack Stack { head, context => context, frames, full => full }
        COLD_WAIT cold_stack Wait { head, context => context, frames, full => full }
        COLD_STACK_COPY cold_stack_copy StackCopy {
            head, context => context, regs, regs[0] => registers[0], regs[32] => registers[32],
            regs_valid -> valid, stack_bytes -> stack,
        }
    }
}

/// Numbers that have a name on both sides.
fn constants() -> Vec<(&'static str, u64)> {
    let mut all: Vec<(&str, u64)> = [
        ("sizeof(struct cold_header)", raw::HEADER_BYTES as u32),
        ("COLD_RUN", raw::RUN),
        ("COLD_IN_TREE", raw::IN_TREE),
        ("COLD_KTHREAD", raw::KTHREAD),
        ("COLD_BORROWED", raw::BORROWED),
        ("COLD_F_FULL", raw::FILE_FULL),
        ("COLD_F_FS_ROOT", raw::FILE_FS_ROOT),
        ("COLD_F_DELETED", raw::FILE_DELETED),
        ("COLD_F_CUT", raw::FILE_CUT),
        ("COLD_F_BDEV", raw::FILE_BDEV),
        ("COLD_F_SHMEM", raw::FILE_SHMEM),
        ("COLD_P_KERNEL", raw::FAULT_IN_KERNEL),
        ("COLD_PART_ANON", raw::PART_ANON),
        ("COLD_S_IOWAIT", raw::STALL_IOWAIT),
        ("COLD_S_WOKEN", raw::STALL_WOKEN),
        ("COLD_S_RUNNABLE", raw::OFF_RUNNABLE),
        ("COLD_RA_SYNC", raw::READAHEAD_SYNC),
        ("COLD_RA_ASYNC", raw::READAHEAD_ASYNC),
        ("COLD_RA_ORDER", raw::READAHEAD_ORDER),
        ("COLD_A_SHARED", raw::AREA_SHARED),
        ("COLD_A_PROTECTED", raw::AREA_PROTECTED),
        ("COLD_A_IMAGE", raw::AREA_IMAGE),
        ("COLD_LOSSES", raw::LOSSES.len() as u32),
    ]
    .map(|(name, value)| (name, u64::from(value)))
    .to_vec();
    let class = |name: &str| raw::LOSSES.iter().position(|n| *n == name).expect("a class") as u64;
    all.extend([
        ("COLD_LOST_FILES", class("files")),
        ("COLD_LOST_PROCESSES", class("processes")),
        ("COLD_LOST_TOUCHES", class("touches")),
        ("COLD_LOST_FILLS", class("fills")),
        ("COLD_LOST_EVICTIONS", class("evictions")),
        ("COLD_LOST_READAHEAD", class("readahead")),
        ("COLD_LOST_REQUESTS", class("device_reads")),
        ("COLD_LOST_STALLS", class("stalls")),
        ("COLD_LOST_CALLS", class("lookups")),
        ("COLD_LOST_STACKS", class("stacks")),
        ("COLD_LOST_TASK_STATE", class("task_state")),
        ("COLD_LOST_REQUEST_STATE", class("request_state")),
        ("COLD_LOST_COMPAT", class("calls_of_32_bit_programs")),
        ("COLD_LOST_MAPPINGS", class("mappings")),
    ]);
    all
}

/// What expressions of C come to, where `events.h` is included.
fn compiled(expressions: &[String]) -> HashMap<String, usize> {
    let bpf = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bpf");
    let lines = expressions.iter().map(|e| format!("printf(\"%llu\\n\", (unsigned long long)({e}));\n"));
    let source = format!(
        "#include <linux/types.h>\n#include <stddef.h>\n#include <stdio.h>\n#include \"events.h\"\n\
         int main(void) {{\n{}return 0;\n}}\n",
        lines.collect::<String>()
    );
    let dir = tempfile::tempdir().unwrap();
    let (text, program) = (dir.path().join("layout.c"), dir.path().join("layout"));
    std::fs::write(&text, source).unwrap();
    let made = Command::new("cc").arg("-I").arg(bpf).arg("-o").args([&program, &text]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let told = String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap();
    let numbers: Vec<usize> = told.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(numbers.len(), expressions.len());
    expressions.iter().cloned().zip(numbers).collect()
}

fn offset(structure: &str, field: &str) -> String {
    format!("offsetof(struct {structure}, {field})")
}

fn size(structure: &str, field: &str) -> String {
    format!("sizeof(((struct {structure} *)0)->{field})")
}

/// A record of this kind and size with nothing in it, and something behind.
fn empty(c: &HashMap<String, usize>, kind: &str, bytes: usize) -> Vec<u8> {
    let mut record = vec![0; bytes];
    record.resize(bytes + TAIL, BEHIND);
    let len = record.len();
    for (field, value) in [("kind", c[kind]), ("bytes", len)] {
        let at = c[&offset("cold_header", field)];
        record[at..at + 2].copy_from_slice(&u16::try_from(value).unwrap().to_le_bytes());
    }
    record
}

const HEADER: [&str; 6] = ["at", "pid", "tid", "kind", "bytes", "flags"];
const PART: [&str; 6] = ["file.ino", "file.dev", "file.gen", "index", "bytes", "state"];

#[test]
fn every_field_lies_where_it_is_read() {
    let layouts = layouts();
    let mut wanted: Vec<String> = Vec::new();
    for layout in &layouts {
        wanted.extend([layout.kind.to_owned(), format!("sizeof(struct {})", layout.structure)]);
        let both = |f: &Field| [offset(layout.structure, f.name), size(layout.structure, f.name)];
        wanted.extend(layout.fields.iter().flat_map(both));
    }
    for (structure, fields) in [("cold_header", HEADER), ("cold_part", PART)] {
        wanted.extend(fields.iter().flat_map(|f| [offset(structure, f), size(structure, f)]));
        wanted.push(format!("sizeof(struct {structure})"));
    }
    wanted.push(offset("cold_request", "parts"));
    wanted.push(offset("cold_stack", "frames"));
    let c = compiled(&wanted);
    for layout in &layouts {
        let bytes = c[&format!("sizeof(struct {})", layout.structure)];
        let mut owned = vec![false; bytes];
        for field in &layout.fields {
            let name = format!("{}.{}", layout.structure, field.name);
            let (at, len) =
                (c[&offset(layout.structure, field.name)], c[&size(layout.structure, field.name)]);
            owned[at..at + len].fill(true);
            let Some(check) = field.check else { continue };
            let mut record = empty(&c, layout.kind, bytes);
            let value = if field.small { [&[8][..], &vec![0; len - 1]].concat() } else { vec![0xa5; len] };
            record[at..at + len].copy_from_slice(&value);
            let read = records(&record).next().unwrap().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(check(&read, &value), "{name} at {at}: {read:?}");
        }
        assert_eq!(owned.iter().position(|o| !o), None, "a byte of {} that is nobody's", layout.structure);
    }
    header(&c);
    parts_and_frames(&c);
}

fn header(c: &HashMap<String, usize>) {
    let mut record = empty(c, "COLD_EXIT", c["sizeof(struct cold_exit)"]);
    let mut put = |field: &str, value: &[u8]| {
        assert_eq!(c[&size("cold_header", field)], value.len(), "{field}");
        let at = c[&offset("cold_header", field)];
        record[at..at + value.len()].copy_from_slice(value);
    };
    put("at", &[0xa5; 8]);
    put("pid", &[0xa6; 4]);
    put("tid", &[0xa7; 4]);
    put("flags", &[0xa8; 4]);
    let head = records(&record).next().unwrap().unwrap().head;
    assert!(head.at.agrees(&[0xa5; 8]) && head.pid.agrees(&[0xa6; 4]));
    assert!(head.tid.agrees(&[0xa7; 4]) && head.flags.agrees(&[0xa8; 4]));
    assert_eq!(usize::from(head.kind), c["COLD_EXIT"]);
}

/// The second one of each.
fn parts_and_frames(c: &HashMap<String, usize>) {
    let check: [fn(&Part, &[u8]) -> bool; 6] = [
        |p, b| p.file.inode.agrees(b),
        |p, b| p.file.dev.agrees(b),
        |p, b| p.file.generation.agrees(b),
        |p, b| p.index.agrees(b),
        |p, b| p.bytes.agrees(b),
        |p, b| p.state.agrees(b),
    ];
    let request = c["sizeof(struct cold_request)"];
    for (field, check) in PART.into_iter().zip(check) {
        let mut record = empty(c, "COLD_REQUEST", request);
        record[request..].fill(0);
        record[c[&offset("cold_request", "parts")]] = 2;
        let at = request + c["sizeof(struct cold_part)"] + c[&offset("cold_part", field)];
        let value = vec![0xa5; c[&size("cold_part", field)]];
        record[at..at + value.len()].copy_from_slice(&value);
        let read = records(&record).next().unwrap().unwrap();
        let Event::Request(read) = read.event else { panic!("{read:?}") };
        let parts: Vec<Part> = Request::parts(&read).collect();
        assert!(parts.len() == 2 && check(&parts[1], &value), "cold_part.{field}: {parts:?}");
    }
    let mut record = empty(c, "COLD_STACK", c["sizeof(struct cold_stack)"]);
    record[c[&offset("cold_stack", "frames")]] = 2;
    let read = records(&record).next().unwrap().unwrap();
    let Event::Stack(read) = read.event else { panic!("{read:?}") };
    assert_eq!(read.frames().collect::<Vec<_>>(), [u64::from_le_bytes([BEHIND; 8]); 2]);
}

#[test]
fn names_mean_the_same_numbers() {
    let constants = constants();
    let c = compiled(&constants.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
    for (name, value) in constants {
        assert_eq!(c[name] as u64, value, "{name}");
    }
    let doing = ["COLD_CTX_NONE", "COLD_CTX_FAULT", "COLD_CTX_CALL"].map(str::to_owned);
    let c = compiled(&doing);
    assert_eq!(doing.map(|name| c[&name]), [0, 1, 2], "what Doing is decoded from");
}
