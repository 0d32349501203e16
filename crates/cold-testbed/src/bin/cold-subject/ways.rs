//! Every way to read a file, each on a file of its own, page by page as `cold_testbed::ways` says.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cold_testbed::ways::{Access, PAGE, WAYS, Way};
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::Failure;
use crate::memory::{FileMap, pipe, splice};

/// Use each file `DIR/NAME` as the way of that name does; files that are not there are left out.
#[derive(clap::Args)]
pub(crate) struct Ways {
    dir: PathBuf,
}

pub(crate) fn run(order: &Ways) -> Result<(), Failure> {
    for way in WAYS {
        let path = order.dir.join(way.name);
        if path.exists() {
            used(way, &path).map_err(|e| format!("{}: {e}", way.name))?;
        }
    }
    Ok(())
}

fn used(way: &Way, path: &Path) -> Result<(), Failure> {
    match way.kind {
        Access::Mapped | Access::Asked => mapped(way, path),
        Access::Read | Access::Uring | Access::Direct => read(way, path),
        Access::Written => written(way, path),
    }
}

fn unknown(way: &Way) -> Failure {
    format!("nobody knows how to do {}", way.name).into()
}

fn mapped(way: &Way, path: &Path) -> Result<(), Failure> {
    let file = || File::open(path);
    let pages = way.touched();
    let touch = |map: &FileMap| pages.iter().try_for_each(|page| map.touch(*page as usize));
    let advised = |advice| {
        let map = FileMap::new(&file()?, false)?;
        map.advise(advice)?;
        touch(&map)
    };
    match way.name {
        "mapped-in-order" | "mapped-every-64th" => touch(&FileMap::new(&file()?, false)?)?,
        "mapped-backwards" => {
            let map = FileMap::new(&file()?, false)?;
            pages.iter().rev().try_for_each(|page| map.touch(*page as usize))?;
        }
        "mapped-random" => advised(Advice::Random)?,
        "mapped-sequential" => advised(Advice::Sequential)?,
        "mapped-usual-again" => {
            let map = FileMap::new(&file()?, false)?;
            map.advise(Advice::Random)?;
            let (random, usual) = pages.split_at(pages.len() / 2);
            random.iter().try_for_each(|page| map.touch(*page as usize))?;
            map.advise(Advice::Normal)?;
            usual.iter().try_for_each(|page| map.touch(*page as usize))?;
        }
        "mapped-partly-random" => {
            let map = FileMap::new(&file()?, false)?;
            map.advise_part(Advice::Random, 200, 250)?;
            touch(&map)?;
        }
        "mapped-again" => {
            let file = file()?;
            let map = FileMap::new(&file, false)?;
            touch(&map)?;
            map.forget()?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
            touch(&map)?;
        }
        "mapped-willneed" => advised(Advice::WillNeed)?,
        // Kernels without huge pages refuse it, which changes nothing here.
        "mapped-huge" => advised(Advice::LinuxHugepage).or_else(|_| advised(Advice::Normal))?,
        "mapped-by-threads" => {
            let map = FileMap::new(&file()?, false)?;
            std::thread::scope(|scope| {
                let part = |n: usize| pages.iter().skip(n).step_by(4);
                let threads: Vec<_> = (0..4)
                    .map(|n| {
                        scope.spawn({
                            let map = &map;
                            move || part(n).try_for_each(|page| map.touch(*page as usize))
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .try_for_each(|t| t.join().map_err(|_| io::Error::other("a thread died"))?)
            })?;
        }
        "mapped-private-written" | "mapped-shared-written" => {
            let shared = way.name == "mapped-shared-written";
            let flags = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
            let file = OpenOptions::new().read(true).write(shared).open(path)?;
            let map = FileMap::with(&file, ProtFlags::READ | ProtFlags::WRITE, flags)?;
            pages.iter().try_for_each(|page| map.write(*page as usize))?;
        }
        "populated" => touch(&FileMap::populated(&file()?)?)?,
        "populated-by-advice" => advised(Advice::LinuxPopulateRead)?,
        "locked" => {
            let map = FileMap::new(&file()?, false)?;
            map.lock()?;
            touch(&map)?;
        }
        _ => return Err(unknown(way)),
    }
    Ok(())
}

fn read(way: &Way, path: &Path) -> Result<(), Failure> {
    let file = || File::open(path);
    let pages = way.touched();
    match way.name {
        "read" => drop(file()?.read_to_end(&mut Vec::new())?),
        "pread" => pages.iter().try_for_each(|page| file()?.read_exact_at(&mut [0; 10], page * PAGE + 50))?,
        "pread-random" | "pread-sequential" => {
            let random = way.name == "pread-random";
            let advice = if random { rustix::fs::Advice::Random } else { rustix::fs::Advice::Sequential };
            let file = file()?;
            rustix::fs::fadvise(&file, 0, None, advice)?;
            pages.iter().try_for_each(|page| file.read_exact_at(&mut [0; 10], page * PAGE + 50))?;
        }
        // By one open file: kernels remember in which page the last read ended.
        "pread-ends-early" => {
            let file = file()?;
            pages.iter().try_for_each(|page| file.read_exact_at(&mut [0; 10], page * PAGE + 50))?;
        }
        // The second time without advice, by an open file of its own.
        "pread-again" => {
            let first = file()?;
            rustix::fs::fadvise(&first, 0, None, rustix::fs::Advice::Random)?;
            let mut whole = vec![0; PAGE as usize];
            pages.iter().try_for_each(|page| first.read_exact_at(&mut whole, page * PAGE))?;
            rustix::fs::fadvise(&first, 0, None, rustix::fs::Advice::DontNeed)?;
            let second = file()?;
            pages.iter().try_for_each(|page| second.read_exact_at(&mut whole, page * PAGE))?;
        }
        "readv" => {
            let (mut one, mut two) = (vec![0; PAGE as usize], vec![0; 3 * PAGE as usize]);
            let n = file()?.read_vectored(&mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)])?;
            whole(n, 4)?;
        }
        "preadv" => {
            let (mut one, mut two) = (vec![0; PAGE as usize], vec![0; 3 * PAGE as usize]);
            let mut pieces = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            whole(rustix::io::preadv(file()?, &mut pieces, pages[0] * PAGE)?, 4)?;
        }
        "sendfile" => {
            let null = OpenOptions::new().write(true).open("/dev/null")?;
            let (from, mut at) = (file()?, pages[0] * PAGE);
            let bytes = pages.len() * PAGE as usize;
            whole(rustix::fs::sendfile(null, from, Some(&mut at), bytes)?, pages.len())?;
        }
        // From within a page, into a pipe with room for 16: the 17th part of a page is looked for and not taken.
        "sendfile-into-pipe" => {
            let (_out, into) = pipe()?;
            let mut at = pages[0] * PAGE + 3000;
            let bytes = rustix::fs::sendfile(into, file()?, Some(&mut at), 40 * PAGE as usize)?;
            whole(bytes + 3000, pages.len())?;
        }
        "spliced" => {
            let (mut out, into) = pipe()?;
            let (from, mut at) = (file()?, (pages[0] * PAGE).cast_signed());
            for _ in &pages {
                whole(splice(&from, &mut at, &into, PAGE as usize)?, 1)?;
                out.read_exact(&mut vec![0; PAGE as usize])?;
            }
        }
        "io_uring" => {
            let bytes = pages.len() as u64 * PAGE;
            cold_sys::uring::read_through(&file()?, pages[0] * PAGE, bytes, PAGE as u32, 2)?;
        }
        "direct" => {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
            // Aligned as the strictest device wants it.
            let bytes = way.direct.len() * PAGE as usize;
            let mut memory = vec![0; bytes + PAGE as usize];
            let at = memory.as_ptr().align_offset(PAGE as usize);
            let part = memory.get_mut(at..at + bytes).ok_or("no memory")?;
            file.read_exact_at(part, way.direct[0] * PAGE)?;
        }
        _ => return Err(unknown(way)),
    }
    Ok(())
}

fn written(way: &Way, path: &Path) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).open(path)?;
    match way.name {
        "written-in-part" => {
            way.touched().iter().try_for_each(|page| file.write_all_at(&[7; 100], page * PAGE + 50))?;
        }
        "written" => file.write_all_at(&vec![7; 64 * PAGE as usize], 0)?,
        _ => return Err(unknown(way)),
    }
    Ok(())
}

fn whole(bytes: usize, pages: usize) -> io::Result<()> {
    if bytes == pages * PAGE as usize { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
