//! From bytes to [`super::Event`]: every field through one bounded cursor.

use cold_model::Dev;

use super::{
    Add, Area, Call, Context, Delete, Doing, Done, Error, Event, Exec, Exit, FileEvent, HEADER_BYTES, Header,
    Id, Off, PageFault, Pages, Part, RUN, RawRecord, ReadaheadEvent, Request, StackCopy, StackEvent, Stall,
    Task,
};

const PART_BYTES: usize = 32;

/// The record at the beginning of `bytes`, which is at byte `at` of its stream.
pub(super) fn record(bytes: &[u8], at: usize) -> Result<RawRecord<'_>, Error> {
    let mut cursor = Cursor(bytes);
    let head = cursor.header().ok_or(Error::Truncated { at })?;
    let len = usize::from(head.bytes);
    let damaged = Error::Damaged { at, kind: head.kind, bytes: head.bytes };
    if len < HEADER_BYTES || len % 8 != 0 {
        return Err(damaged);
    }
    let body = bytes.get(HEADER_BYTES..len).ok_or(Error::Truncated { at })?;
    let event = Cursor(body).event(head.kind).ok_or(damaged)?;
    Ok(RawRecord { head, event })
}

/// What is left to read; every read fails with `None` where too little is.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (now, later) = self.0.split_at_checked(n)?;
        self.0 = later;
        Some(now)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, later) = self.0.split_first_chunk::<N>()?;
        self.0 = later;
        Some(*now)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn header(&mut self) -> Option<Header> {
        Some(Header {
            at: self.u64()?,
            pid: self.u32()?,
            tid: self.u32()?,
            kind: self.u16()?,
            bytes: self.u16()?,
            flags: self.u32()?,
        })
    }

    /// The kernel's `dev_t`: 20 bits of minor.
    fn dev(&mut self) -> Option<Dev> {
        self.u32().map(|dev| Dev { major: dev >> 20, minor: dev & 0xf_ffff })
    }

    fn id(&mut self) -> Option<Id> {
        let inode = self.u64()?;
        Some(Id { inode, dev: self.dev()?, generation: self.u32()? })
    }

    /// A fixed array of text, up to its first NUL.
    fn text(&mut self) -> Option<&'a [u8]> {
        let all = self.take(16)?;
        Some(all.split(|b| *b == 0).next().unwrap_or(all))
    }

    fn context(&mut self) -> Option<Context> {
        Some(Context {
            at: self.u64()?,
            file: self.id()?,
            index: self.u64()?,
            syscall: self.i32()?,
            doing: match self.u32()? {
                0 => Doing::Nothing,
                1 => Doing::Fault,
                2 => Doing::Call,
                other => Doing::Other(other),
            },
        })
    }

    fn event(&mut self, kind: u16) -> Option<Event<'a>> {
        Some(match kind {
            1 => Event::File(self.file()?),
            2 => Event::Fork(self.task()?),
            3 => Event::Exec(self.exec()?),
            4 => Event::Exit(Exit { status: self.i32()?, last: self.u32()? != 0 }),
            5 => Event::Comm(self.task()?),
            7 => Event::Fault(self.pages()?),
            8 => Event::Map(self.pages()?),
            9 => Event::Get(self.pages()?),
            10 => Event::Add(Add {
                context: self.context()?,
                file: self.id()?,
                index: self.u64()?,
                order: self.u32()?,
                more: self.u32()?.min(RUN - 1),
            }),
            11 => Event::Delete(Delete { file: self.id()?, index: self.u64()?, order: self.u32()? }),
            12 => Event::Readahead(self.readahead()?),
            13 => Event::Request(self.request()?),
            14 => Event::Done(Done {
                rq: self.u64()?,
                bytes: self.u32()?,
                left: self.u32()?,
                error: self.i32()?,
            }),
            15 => Event::Stall(self.stall()?),
            16 => Event::Call(self.call()?),
            17 => Event::PageFault(PageFault {
                address: self.u64()?,
                ip: self.u64()?,
                error: self.u32()?,
                state: self.u32()?,
            }),
            18 => Event::Stack(self.stack()?),
            19 => Event::StackCopy(self.stack_copy()?),
            20 => Event::Wait(self.stack()?),
            21 => Event::Off(Off {
                began: self.u64()?,
                woken: self.u64()?,
                syscall: self.i32()?,
                state: self.u32()?,
                waker: self.u32()?,
            }),
            22 => Event::Heard,
            23 => Event::Area(Area {
                file: self.id()?,
                address: self.u64()?,
                bytes: self.u64()?,
                offset: self.u64()?,
                prot: self.u32()?,
                state: self.u32()?,
            }),
            _ => Event::Unknown,
        })
    }

    fn file(&mut self) -> Option<FileEvent<'a>> {
        let file = self.id()?;
        let size = self.u64()?;
        let mtime_sec = self.i64()?;
        let mtime_nsec = self.u32()?;
        let mode = self.u32()?;
        let nlink = self.u32()?;
        let bdev = self.dev()?;
        let state = self.u32()?;
        let path_bytes = usize::from(self.u16()?);
        let _names = self.u16()?;
        let fs = self.text()?;
        let shown = self.id()?;
        let names = self.take(path_bytes)?;
        Some(FileEvent { file, size, mtime_sec, mtime_nsec, mode, nlink, bdev, state, names, fs, shown })
    }

    fn task(&mut self) -> Option<Task<'a>> {
        let (pid, tid, parent, _pad) = (self.u32()?, self.u32()?, self.u32()?, self.u32()?);
        Some(Task { pid, tid, parent, comm: self.text()? })
    }

    fn exec(&mut self) -> Option<Exec<'a>> {
        let file = self.id()?;
        let old_tid = self.u32()?;
        let here = self.u32()? as usize;
        let argument_bytes = self.u32()?;
        let _pad = self.u32()?;
        let comm = self.text()?;
        Some(Exec { file, old_tid, arguments: self.take(here)?, argument_bytes, comm })
    }

    fn pages(&mut self) -> Option<Pages> {
        Some(Pages {
            context: self.context()?,
            file: self.id()?,
            first: self.u64()?,
            last: self.u64()?,
            address: self.u64()?,
            ip: self.u64()?,
            state: self.u32()?,
        })
    }

    fn readahead(&mut self) -> Option<ReadaheadEvent> {
        Some(ReadaheadEvent {
            context: self.u64()?,
            file: self.id()?,
            index: self.u64()?,
            start: self.u64()?,
            asked: self.u64()?,
            size: self.u32()?,
            async_size: self.u32()?,
            ra_pages: self.u32()?,
            mmap_miss: self.u32()?,
            order: self.u32()?,
            kind: self.u32()?,
        })
    }

    fn request(&mut self) -> Option<Request<'a>> {
        let rq = self.u64()?;
        let started = self.u64()?;
        let inserted = self.u64()?;
        let context = self.u64()?;
        let sector = self.u64()?;
        let dev = self.dev()?;
        let bytes = self.u32()?;
        let op = self.u32()?;
        let parts = usize::from(self.u16()?);
        let bios = self.u16()?;
        let metadata = self.u32()? != 0;
        let readahead = self.u32()? != 0;
        let parts = self.take(parts * PART_BYTES)?;
        Some(Request {
            rq,
            started,
            inserted,
            context,
            sector,
            dev,
            bytes,
            op,
            bios,
            metadata,
            readahead,
            parts,
        })
    }

    fn stall(&mut self) -> Option<Stall> {
        Some(Stall {
            context: self.context()?,
            began: self.u64()?,
            woken: self.u64()?,
            address: self.u64()?,
            ip: self.u64()?,
            task_state: self.u32()?,
            state: self.u32()?,
            waker: self.u32()?,
        })
    }

    fn call(&mut self) -> Option<Call<'a>> {
        let began = self.u64()?;
        let result = self.i64()?;
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = self.u64()?;
        }
        let file = self.id()?;
        let base = self.id()?;
        let position = Some(self.u64()?).filter(|position| *position != u64::MAX);
        let syscall = self.i32()?;
        let open_flags = self.u32()?;
        let path_bytes = usize::from(self.u16()?);
        let path_cut = self.u16()? != 0;
        let _pad = self.u32()?;
        let path = self.take(path_bytes)?;
        let path = path.split(|b| *b == 0).next().filter(|_| path_bytes > 0);
        Some(Call { began, result, args, file, base, position, syscall, open_flags, path, path_cut })
    }

    fn stack(&mut self) -> Option<StackEvent<'a>> {
        let context = self.u64()?;
        let frames = self.u32()? as usize;
        let full = self.u32()? != 0;
        Some(StackEvent { context, full, frames: self.take(frames.checked_mul(8)?)? })
    }

    fn stack_copy(&mut self) -> Option<StackCopy<'a>> {
        let context = self.u64()?;
        let mut registers = [0; 33];
        for register in &mut registers {
            *register = self.u64()?;
        }
        let valid = self.u32()?.min(33);
        let bytes = self.u32()? as usize;
        Some(StackCopy { context, registers, valid, stack: self.take(bytes)? })
    }
}

impl Request<'_> {
    /// What each bio brings, in the order of the sectors.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts.chunks_exact(PART_BYTES).filter_map(|bytes| {
            let mut cursor = Cursor(bytes);
            Some(Part {
                file: cursor.id()?,
                index: cursor.u64()?,
                bytes: cursor.u32()?,
                state: cursor.u32()?,
            })
        })
    }
}

impl StackEvent<'_> {
    /// Addresses, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = u64> + '_ {
        self.frames.chunks_exact(8).filter_map(|bytes| Cursor(bytes).u64())
    }
}
