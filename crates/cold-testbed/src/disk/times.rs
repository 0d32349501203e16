//! When the kernel gave a read to the disk, and when it had the answer.

use std::io;

/// The kernel's times of one disk's reads, `CLOCK_MONOTONIC` in nanoseconds. Each is told once.
pub(super) trait Times: std::fmt::Debug + Send + Sync {
    /// When the read that begins at byte `offset` was issued; `None` where that is not known.
    fn issued(&self, offset: u64) -> Option<u64>;
    /// When it was complete; `None` as long as it is not.
    fn completed(&self, offset: u64) -> Option<u64>;
}

/// Those of `/dev/loopN`, from BPF programs that end with this process.
#[cfg(feature = "bpf")]
pub(super) fn of_loop_device(number: u32) -> io::Result<Box<dyn Times>> {
    Ok(Box::new(bpf::Maps::load(number).map_err(io::Error::other)?))
}

/// This build cannot ask the kernel.
#[cfg(not(feature = "bpf"))]
pub(super) fn of_loop_device(_number: u32) -> io::Result<Box<dyn Times>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this cold-testdisk was built without BPF"))
}

#[cfg(feature = "bpf")]
mod bpf {
    use libbpf_rs::{Error, MapCore, MapHandle, ObjectBuilder};

    /// `LOOP_MAJOR` of the kernel's `linux/major.h`.
    const LOOP_MAJOR: u32 = 7;
    const SECTOR: u64 = 512;

    static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/times.bpf.o"));

    #[derive(Debug)]
    pub(super) struct Maps {
        issued: MapHandle,
        completed: MapHandle,
    }

    impl Maps {
        pub(super) fn load(number: u32) -> Result<Self, Error> {
            // A copy of its own: the ELF reader wants it aligned.
            let bytes = PROGRAMS.to_vec();
            let mut open = ObjectBuilder::default().open_memory(&bytes)?;
            for mut map in open.maps_mut() {
                if map.name().to_string_lossy().ends_with(".rodata") {
                    let device = [LOOP_MAJOR.to_ne_bytes(), number.to_ne_bytes()].concat();
                    map.set_initial_value(&device)?;
                }
            }
            let object = open.load()?;
            let named = |name: &str| {
                let map = object.maps().find(|map| map.name() == name);
                let map =
                    map.ok_or_else(|| Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)))?;
                MapHandle::try_from(&map)
            };
            let maps = Self { issued: named("issued")?, completed: named("completed")? };
            for program in object.progs_mut() {
                // The server ends with its disk, and they with the server.
                std::mem::forget(program.attach_trace()?);
            }
            Ok(maps)
        }
    }

    impl super::Times for Maps {
        fn issued(&self, offset: u64) -> Option<u64> {
            take(&self.issued, offset)
        }
        fn completed(&self, offset: u64) -> Option<u64> {
            take(&self.completed, offset)
        }
    }

    fn take(map: &MapHandle, offset: u64) -> Option<u64> {
        let time = map.lookup_and_delete(&(offset / SECTOR).to_ne_bytes()).ok()??;
        Some(u64::from_ne_bytes(time.try_into().ok()?))
    }
}
