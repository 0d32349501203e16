//! Programs that are in the kernel and run nowhere: to attach them takes a millisecond or two, to load them 250.

use std::os::fd::AsFd;
use std::thread;

use cold_model::Bytes;
use cold_model::recording::manifest::Tier;
use cold_sys::procfs::ProcFs;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Map, MapCore, MapFlags, MapType, Object, Program, num_possible_cpus};

use super::support::{available, choose};
use super::{BpfOptions, Error, load, telling};
use crate::waiting::{KernelFunction, kernel_functions};

/// Bounds of the buffer: what the kernel takes, and below one look's worth it would lose always.
const LEAST_BUFFER: u64 = 256 << 10;
const MOST_BUFFER: u64 = 1 << 30;
/// Places of a map that are emptied at a time.
const BATCH: u32 = 1024;

/// The programs and their maps, as a recording wants them at its beginning.
pub struct Loaded {
    object: Object,
    functions: Vec<KernelFunction>,
    tier: Tier,
    tells_areas: bool,
    buffer: u64,
    options: BpfOptions,
    /// See [`Self::missed`]: before this recording. The kernel counts as long as a program is loaded.
    missed_before: u64,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Loads them; none runs yet.
    pub(super) fn new(options: &BpfOptions) -> Result<Self, Error> {
        let support = available()?;
        let tier = choose(&support, options.tier)?;
        let buffer = options.buffer.0.clamp(LEAST_BUFFER, MOST_BUFFER).next_power_of_two();
        let (object, functions) = thread::scope(|scope| {
            // Each takes the kernel 0.1 to 0.3 s of computing.
            let read = || kernel_functions(&ProcFs::default().read("kallsyms").unwrap_or_default());
            let reader = thread::Builder::new().spawn_scoped(scope, read);
            let object = load::load(&support, tier, options, u32::try_from(buffer).unwrap_or(u32::MAX));
            (object, reader.map_or_else(|_| read(), |reader| reader.join().unwrap_or_default()))
        });
        let tells_areas = support.shapes.walks_areas;
        let loaded = Self {
            object: object?,
            functions,
            tier,
            tells_areas,
            buffer,
            options: *options,
            missed_before: 0,
        };
        loaded.tell_functions()?;
        Ok(loaded)
    }

    /// What they were loaded for.
    pub fn options(&self) -> &BpfOptions {
        &self.options
    }

    /// The tier that they record.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    pub(super) fn functions(&self) -> &[KernelFunction] {
        &self.functions
    }

    pub(super) fn tells_areas(&self) -> bool {
        self.tells_areas
    }

    pub(super) fn buffer(&self) -> Bytes {
        Bytes(self.buffer)
    }

    pub(super) fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        load::map(&self.object, name)
    }

    /// From now on the kernel's stack is looked at only where one of these functions may be on it; where none is known,
    /// at every wait without a page.
    fn tell_functions(&self) -> Result<(), Error> {
        self.map("telling")?
            .update(&0_u32.to_le_bytes(), &telling::bytes(&self.functions), MapFlags::ANY)
            .map_err(|source| Error::Map { action: "set the functions that tell of waits", source })
    }

    /// How often the kernel did not run one of the programs because it already ran on that CPU, in this recording.
    pub(super) fn missed(&self) -> u64 {
        self.missed_ever().saturating_sub(self.missed_before)
    }

    fn missed_ever(&self) -> u64 {
        let ids: Vec<_> = self
            .object
            .progs()
            .filter(libbpf_rs::ProgramImpl::autoload)
            .filter_map(|program| Program::id_from_fd(program.as_fd()).ok())
            .collect();
        ProgInfoIter::default().filter(|info| ids.contains(&info.id)).map(|info| info.recursion_misses).sum()
    }

    /// Forgets all of the last recording. No program may run, and the buffer of events must have been read to its end.
    ///
    /// # Errors
    /// [`Error::Map`]: then nothing that it records would be true.
    pub(super) fn emptied(mut self) -> Result<Self, Error> {
        for map in self.object.maps() {
            empty(&map).map_err(|source| Error::Map { action: "empty a map of the programs", source })?;
        }
        self.missed_before = self.missed_ever();
        Ok(self)
    }
}

/// Takes out of a map what a recording put in.
fn empty(map: &Map<'_>) -> libbpf_rs::Result<()> {
    let name = map.name().to_string_lossy();
    // What was set for all recordings, what each user writes before it reads, and what its reader emptied.
    if name.contains(".rodata") || name == "telling" || name == "scratches" {
        return Ok(());
    }
    let (places, value) = (map.max_entries(), map.value_size() as usize);
    match map.map_type() {
        MapType::RingBuf => Ok(()),
        MapType::Hash | MapType::LruHash => {
            let keys: Vec<Vec<u8>> = map.keys().collect();
            keys.iter().try_for_each(|key| map.delete(key))
        }
        MapType::Array => (0..places).step_by(BATCH as usize).try_for_each(|first| {
            let keys: Vec<u8> = (first..places.min(first + BATCH)).flat_map(u32::to_ne_bytes).collect();
            let count = places.min(first + BATCH) - first;
            map.update_batch(&keys, &vec![0; value * count as usize], count, MapFlags::ANY, MapFlags::ANY)
        }),
        MapType::PercpuArray => {
            let zeros = vec![vec![0; value]; num_possible_cpus()?];
            (0..places).try_for_each(|place| map.update_percpu(&place.to_ne_bytes(), &zeros, MapFlags::ANY))
        }
        // A new kind wants a rule of its own.
        _ => Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into()),
    }
}
