//! The computing phase: a loop of known cost, as the Response Probe has it.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use cold_model::Shown as _;
use cold_stats::Pcg;
use cold_sys::map::{self, MmapMut};
use cold_sys::mapped::{MapKind, MappedFile};

use crate::spec::Work;
use crate::variate::fold;

/// Turns of the loop per millisecond, without page faults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Turns per millisecond.
    pub loops_per_ms: f64,
}

const PAGE: u64 = 4096;
/// Most pages of either kind: 1 GiB.
const MOST_PAGES: u64 = 1 << 18;

/// Memory that the loop touches.
pub(super) struct Memory {
    data: MmapMut,
    code: MappedFile,
    sink: u64,
}

impl Memory {
    pub(super) fn new(work: &Work) -> Result<Self, cold_sys::Error> {
        let data = map::pages((work.data_pages.clamp(1, MOST_PAGES) * PAGE) as usize)?;
        let path = work.code_file.as_deref().unwrap_or(Path::new("/proc/self/exe"));
        let io = |e| cold_sys::Error::io("open", path.shown().to_string(), e);
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len().min(MOST_PAGES * PAGE);
        // A file system mounted noexec refuses code; its pages are then read as data.
        let kind = MapKind { exec: true, ..MapKind::default() };
        let code = MappedFile::new(&file, bytes, kind)
            .or_else(|_| MappedFile::new(&file, bytes, MapKind::default()))?;
        Ok(Self { data, code, sink: 0 })
    }

    /// One turn: two normal numbers, one data page written, one code page read, one look at the clock.
    pub(super) fn turn(&mut self, work: &Work, rng: &mut Pcg) {
        let pages = (self.data.len() as u64 / PAGE - 1) as f64;
        let data = fold(work.data_page.mean + work.variate.standard(rng) * work.data_page.sd, pages) as usize;
        let pages = (self.code.len() / PAGE).saturating_sub(1) as f64;
        let code = fold(work.code_page.mean + work.variate.standard(rng) * work.code_page.sd, pages) as u64;
        if let Some(first) = self.data.get_mut(data * PAGE as usize) {
            *first = first.wrapping_add(1);
        }
        self.sink += u64::from(self.code.touch(code * PAGE).unwrap_or(0));
        std::hint::black_box((Instant::now(), &self.sink, &self.data));
    }
}

impl Speed {
    /// Measures the loop on one data and one code page: best of five times 2 ms.
    pub fn measure() -> Self {
        let work = Work::reads(
            "/".into(),
            PAGE,
            PAGE,
            crate::spec::Mode::BUFFERED,
            crate::variate::Seek::Sequential,
        );
        let Ok(mut memory) = Memory::new(&work) else { return Self { loops_per_ms: 1.0 } };
        let mut rng = Pcg::new(0, 0);
        let mut best = 1.0_f64;
        for _ in 0..5 {
            let (began, mut turns) = (Instant::now(), 0_u32);
            while began.elapsed().as_micros() < 2000 {
                (0..20).for_each(|_| memory.turn(&work, &mut rng));
                turns += 20;
            }
            best = best.max(f64::from(turns) / began.elapsed().as_secs_f64() / 1e3);
        }
        Self { loops_per_ms: best }
    }
}
