//! Raw records by hand, laid out as `bpf/events.h` says.

pub(super) const SUPERVISOR: u32 = 1;
pub(super) const PID: u32 = 100;
pub(super) const IN_TREE: u32 = crate::raw::IN_TREE;
/// Minor 1 of major 8, as the kernel's `dev_t`.
pub(super) const DEV: u32 = 8 << 20 | 1;

/// `struct cold_id`: inode number and device, of generation 0.
#[derive(Clone, Copy)]
pub(super) struct Id(pub(super) u64, pub(super) u32);

pub(super) fn id(inode: u64) -> Id {
    Id(inode, DEV)
}

/// Bytes of a record, field by field.
#[derive(Clone)]
pub(super) struct Body(Vec<u8>);

impl Body {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }
    pub(super) fn u64(mut self, n: u64) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(super) fn u32(mut self, n: u32) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(super) fn u16(mut self, n: u16) -> Self {
        self.0.extend(n.to_le_bytes());
        self
    }
    pub(super) fn id(self, id: Id) -> Self {
        self.u64(id.0).u32(id.1).u32(0)
    }
    pub(super) fn text(mut self, text: &str, len: usize) -> Self {
        let end = self.0.len() + len;
        self.0.extend(text.as_bytes());
        self.0.resize(end, 0);
        self
    }
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self
    }
    pub(super) fn context(self, c: Context) -> Self {
        self.u64(c.at).id(c.file).u64(c.index).u32(c.syscall.cast_unsigned()).u32(c.kind)
    }
    /// With its header: a task of the tree at `at`.
    pub(super) fn record(self, kind: u16, at: u64) -> Vec<u8> {
        self.by(kind, at, PID, PID, IN_TREE)
    }
    pub(super) fn by(self, kind: u16, at: u64, pid: u32, tid: u32, flags: u32) -> Vec<u8> {
        let bytes = u16::try_from(24 + self.0.len()).expect("short");
        let head = Body::new().u64(at).u32(pid).u32(tid).u16(kind).u16(bytes).u32(flags);
        [head.0, self.0].concat()
    }
}

#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) at: u64,
    pub(super) file: Id,
    pub(super) index: u64,
    pub(super) syscall: i32,
    pub(super) kind: u32,
}

pub(super) const NOWHERE: Id = Id(0, 0);

/// A fault from user mode that began at `at`.
pub(super) fn fault_context(at: u64, file: Id, index: u64) -> Context {
    Context { at, file, index, syscall: -1, kind: 1 }
}

/// A call in progress.
pub(super) fn call_context(at: u64, number: libc::c_long, file: Id, index: u64) -> Context {
    Context { at, file, index, syscall: number as i32, kind: 2 }
}

/// A regular file; `names` from the file up to the root.
pub(super) fn file(id: Id, size: u64, state: u32, names: &[&str]) -> Vec<u8> {
    file_of(id, size, 0o100_644, 0, state, names, NOWHERE)
}

pub(super) fn file_of(
    id: Id,
    size: u64,
    mode: u32,
    bdev: u32,
    state: u32,
    names: &[&str],
    shown: Id,
) -> Vec<u8> {
    let text: Vec<u8> = names.iter().flat_map(|n| [n.as_bytes(), b"\0"].concat()).collect();
    let body = Body::new().id(id).u64(size).u64(1000).u32(0).u32(mode).u32(1).u32(bdev).u32(state);
    let body = body.u16(text.len() as u16).u16(names.len() as u16).text("ext4", 16).id(shown);
    body.bytes(&text).record(1, 1)
}

/// A regular file with an absolute path.
pub(super) fn named(id: Id, pages: u64, name: &str) -> Vec<u8> {
    file(id, pages * 4096, crate::raw::FILE_FULL, &[name])
}

pub(super) fn task(kind: u16, at: u64, head_pid: u32, pid: u32, tid: u32, comm: &str) -> Vec<u8> {
    Body::new().u32(pid).u32(tid).u32(head_pid).u32(0).text(comm, 16).by(kind, at, head_pid, head_pid, 0)
}

/// Kind 7 fault, 8 map, 9 get.
pub(super) fn pages(kind: u16, at: u64, context: Context, file: Id, first: u64, last: u64) -> Vec<u8> {
    pages_at(kind, at, context, file, (first, last), 0)
}

/// By a fault at this address.
pub(super) fn pages_at(
    kind: u16,
    at: u64,
    context: Context,
    file: Id,
    pages: (u64, u64),
    address: u64,
) -> Vec<u8> {
    let body = Body::new().context(context).id(file).u64(pages.0).u64(pages.1);
    body.u64(address).u64(0x40_1000).u32(0).u32(0).record(kind, at)
}

pub(super) fn add(at: u64, context: Context, file: Id, index: u64, order: u32) -> Vec<u8> {
    add_run(at, context, file, index, order, 0)
}

/// A folio and `more` behind it.
pub(super) fn add_run(at: u64, context: Context, file: Id, index: u64, order: u32, more: u32) -> Vec<u8> {
    Body::new().context(context).id(file).u64(index).u32(order).u32(more).record(10, at)
}

pub(super) fn delete(at: u64, file: Id, index: u64, order: u32) -> Vec<u8> {
    Body::new().id(file).u64(index).u32(order).u32(0).by(11, at, 3, 3, 0)
}

/// `state`: 1 iowait, 2 woken.
pub(super) fn stall(at: u64, context: Context, began: u64, woken: u64, state: u32) -> Vec<u8> {
    let body = Body::new().context(context).u64(began).u64(woken).u64(0).u64(0);
    body.u32(2).u32(state).u32(0).u32(0).record(15, at)
}

/// From `began` to `at`, woken in between.
pub(super) fn off(
    at: u64,
    (began, woken): (u64, u64),
    call: libc::c_long,
    state: u32,
    waker: u32,
) -> Vec<u8> {
    let body = Body::new().u64(began).u64(woken).u32((call as i32).cast_unsigned());
    body.u32(state).u32(waker).u32(0).record(21, at)
}

pub(super) struct Call {
    pub(super) number: libc::c_long,
    pub(super) began: u64,
    pub(super) at: u64,
    pub(super) result: i64,
    pub(super) args: [u64; 6],
    pub(super) file: Id,
    pub(super) base: Id,
    pub(super) position: u64,
    pub(super) path: Option<&'static str>,
}

impl Call {
    pub(super) fn new(number: libc::c_long, began: u64, at: u64) -> Self {
        let (file, base) = (NOWHERE, NOWHERE);
        Self { number, began, at, result: 0, args: [0; 6], file, base, position: u64::MAX, path: None }
    }
    pub(super) fn record(&self) -> Vec<u8> {
        let mut body = Body::new().u64(self.began).u64(self.result.cast_unsigned());
        for arg in self.args {
            body = body.u64(arg);
        }
        let path: Vec<u8> = self.path.map(|p| [p.as_bytes(), b"\0"].concat()).unwrap_or_default();
        let body =
            body.id(self.file).id(self.base).u64(self.position).u32(self.number as u32).u32(0o2_000_000);
        body.u16(path.len() as u16).u16(0).u32(0).bytes(&path).record(16, self.at)
    }
}

pub(super) fn stack(at: u64, context: u64, frames: &[u64]) -> Vec<u8> {
    let body = Body::new().u64(context).u32(frames.len() as u32).u32(0);
    frames.iter().fold(body, |b, f| b.u64(*f)).record(18, at)
}

/// The kernel's own stack of the stall that began at `began`.
pub(super) fn kernel_stack(at: u64, began: u64, frames: &[u64]) -> Vec<u8> {
    let body = Body::new().u64(began).u32(frames.len() as u32).u32(0);
    frames.iter().fold(body, |b, f| b.u64(*f)).record(20, at)
}

/// Parts: file, first page, bytes.
pub(super) fn request(at: u64, rq: u64, started: u64, sector: u64, parts: &[(Id, u64, u32)]) -> Vec<u8> {
    request_in(0, at, rq, (started, sector), parts)
}

/// In the fault or call that began at `context`; started when, at which sector.
pub(super) fn request_in(
    context: u64,
    at: u64,
    rq: u64,
    (started, sector): (u64, u64),
    parts: &[(Id, u64, u32)],
) -> Vec<u8> {
    let bytes = parts.iter().map(|p| p.2).sum();
    let body = Body::new().u64(rq).u64(started).u64(0).u64(context).u64(sector).u32(DEV).u32(bytes).u32(0);
    let n = parts.len() as u16;
    let body = body.u16(n).u16(n).u32(0).u32(1);
    parts.iter().fold(body, |b, p| b.id(p.0).u64(p.1).u32(p.2).u32(0)).record(13, at)
}

pub(super) fn done(at: u64, rq: u64, left: u32) -> Vec<u8> {
    Body::new().u64(rq).u32(4096).u32(left).u32(0).u32(0).by(14, at, 0, 0, 4)
}
