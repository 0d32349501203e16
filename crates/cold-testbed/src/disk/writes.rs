//! What a disk would hold if its power had failed after any of its writes: the bytes of before, and every write since.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Names in the directory.
const IMAGE: &str = "image";
const WRITES: &str = "writes";
/// Largest write that is read back: FUSE's requests have 1 MiB.
const MOST: u64 = 16 << 20;

/// The server's side: a copy of the disk, and its writes.
pub(super) struct Kept {
    writes: BufWriter<File>,
}

impl Kept {
    /// Copies what is on the disk into `dir`. Nothing may write to it meanwhile.
    pub(super) fn begin(backing: &File, bytes: u64, dir: &Path) -> io::Result<Self> {
        let image = File::options().write(true).create_new(true).open(dir.join(IMAGE))?;
        image.set_len(bytes)?;
        let mut room = vec![0; 1 << 20];
        for at in (0..bytes).step_by(room.len()) {
            let part = &mut room[..(bytes - at).min(1 << 20) as usize];
            backing.read_exact_at(part, at)?;
            if part.iter().any(|b| *b != 0) {
                image.write_all_at(part, at)?;
            }
        }
        let writes = File::options().write(true).create_new(true).open(dir.join(WRITES))?;
        Ok(Self { writes: BufWriter::new(writes) })
    }

    pub(super) fn add(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.writes.write_all(&offset.to_le_bytes())?;
        self.writes.write_all(&(data.len() as u64).to_le_bytes())?;
        self.writes.write_all(data)
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.writes.flush()
    }
}

/// The disk as it was after some of its writes; see [`super::SlowDisk::keep_writes`].
#[derive(Debug)]
pub struct Writes {
    path: PathBuf,
    image: File,
    kept: BufReader<File>,
}

impl Writes {
    /// How many writes were kept in `dir`.
    pub fn count(dir: &Path) -> io::Result<usize> {
        let mut writes = BufReader::new(File::open(dir.join(WRITES))?);
        let mut n = 0;
        while next(&mut writes)?.is_some() {
            n += 1;
        }
        Ok(n)
    }

    /// The disk in `dir` as it was before the first one.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let path = dir.join(IMAGE);
        let image = File::options().write(true).open(&path)?;
        Ok(Self { path, image, kept: BufReader::new(File::open(dir.join(WRITES))?) })
    }

    /// Makes the next `n` writes, as far as there are so many.
    pub fn go_on(&mut self, n: usize) -> io::Result<()> {
        for _ in 0..n {
            let Some((offset, data)) = next(&mut self.kept)? else { break };
            self.image.write_all_at(&data, offset)?;
        }
        Ok(())
    }

    /// The file that holds the disk. Whoever changes it takes a copy: later writes go there.
    pub fn image(&self) -> &Path {
        &self.path
    }
}

fn next(from: &mut impl Read) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut number = [0; 8];
    match from.read_exact(&mut number) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let offset = u64::from_le_bytes(number);
    from.read_exact(&mut number)?;
    let bytes = u64::from_le_bytes(number);
    if bytes > MOST {
        return Err(io::Error::other(format!("a write of {bytes} bytes")));
    }
    let mut data = vec![0; bytes as usize];
    from.read_exact(&mut data)?;
    Ok(Some((offset, data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_as_it_was_after_each_of_its_writes() {
        let dir = tempfile::tempdir().unwrap();
        let backing = tempfile::tempfile().unwrap();
        backing.write_all_at(&[1; 9000], 0).unwrap();
        let mut kept = Kept::begin(&backing, 9000, dir.path()).unwrap();
        for (offset, byte) in [(0, 2_u8), (8000, 3), (0, 4)] {
            kept.add(offset, &[byte; 1000]).unwrap();
        }
        kept.end().unwrap();
        assert_eq!(Writes::count(dir.path()).unwrap(), 3);
        let mut disk = Writes::open(dir.path()).unwrap();
        let told = |disk: &Writes| {
            let bytes = std::fs::read(disk.image()).unwrap();
            (bytes.len(), bytes[0], bytes[1000], bytes[8000])
        };
        assert_eq!(told(&disk), (9000, 1, 1, 1));
        disk.go_on(2).unwrap();
        assert_eq!(told(&disk), (9000, 2, 1, 3));
        disk.go_on(7).unwrap();
        assert_eq!(told(&disk), (9000, 4, 1, 3));
    }
}
