//! Finding a program's separate debug file on this machine, as gdb does.
//!
//! See gdb's manual, "Debugging Information in Separate Files": first by build-id, then by the name in
//! `.gnu_debuglink` beside the program, in `.debug` there, and below the debug directories.

use std::io::Read;
use std::path::{Path, PathBuf};

use cold_model::hash::hexadecimal;
use object::Object as _;

use crate::elf::{Image, Object, build_id_of};

/// The separate debug file of `object`, which was read from `path`.
pub(crate) fn find(object: &Object<'_>, path: &Path, directories: &[PathBuf]) -> Option<Image> {
    let id = build_id_of(object);
    by_build_id(id.as_deref(), directories).or_else(|| by_link(object, id.as_deref(), path, directories))
}

/// The file that several debug files share (dwz), which `debug` names by path and build-id.
pub(crate) fn shared(debug: &Object<'_>, path: &Path, directories: &[PathBuf]) -> Option<Image> {
    let (name, id) = debug.gnu_debugaltlink().ok().flatten()?;
    let id = hexadecimal(id);
    let named = path.parent()?.join(cold_model::path_text::decode(std::str::from_utf8(name).ok()?));
    by_build_id(Some(&id), directories).or_else(|| open_with(&named, Some(&id)))
}

fn by_build_id(id: Option<&str>, directories: &[PathBuf]) -> Option<Image> {
    let id = id.filter(|id| id.len() > 4)?;
    let (head, tail) = id.split_at_checked(2)?;
    let below = format!(".build-id/{head}/{tail}.debug");
    directories.iter().find_map(|dir| open_with(&dir.join(&below), Some(id)))
}

fn by_link(object: &Object<'_>, id: Option<&str>, path: &Path, directories: &[PathBuf]) -> Option<Image> {
    let (name, crc) = object.gnu_debuglink().ok().flatten()?;
    let name = std::str::from_utf8(name).ok().filter(|n| !n.is_empty() && !n.contains('/'))?;
    let home = path.parent()?;
    let below = home.strip_prefix("/").unwrap_or(home);
    let beside = [home.join(name), home.join(".debug").join(name)];
    let elsewhere = directories.iter().map(|dir| dir.join(below).join(name));
    beside.into_iter().chain(elsewhere).filter(|candidate| candidate != path).find_map(|candidate| {
        let image = open_with(&candidate, id)?;
        // The checksum costs reading the whole file; a build-id says the same.
        (id.is_some() || checksum(&candidate) == Some(crc)).then_some(image)
    })
}

/// Opens an ELF file that must have this build-id, where one is given.
fn open_with(path: &Path, id: Option<&str>) -> Option<Image> {
    let image = Image::open(path).ok()?;
    let found = build_id_of(&image.parse().ok()?);
    (id.is_none() || found.as_deref() == id).then_some(image)
}

fn checksum(path: &Path) -> Option<u32> {
    let (mut file, _) = cold_sys::open::regular(path, true).ok()?;
    let mut hash = crc32fast::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hash.finalize()),
            n => hash.update(buffer.get(..n)?),
        }
    }
}
