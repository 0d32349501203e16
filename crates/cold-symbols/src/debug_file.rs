//! Finding a program's separate debug file on this machine, as gdb does.
//!
//! See gdb's manual, "Debugging Information in Separate Files": first by build-id, then by the name in
//! `.gnu_debuglink` beside the program, in `.debug` there, and below the debug directories.

use std::io::Read;
use std::path::{Path, PathBuf};

use cold_model::hash::hexadecimal;
use object::Object as _;

use crate::elf::{Image, Object, build_id_of};
use crate::{Error, Options};

/// What the search for the separate debug file of a program came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugSearch {
    /// The program's build-id. Without one only the name and the checksum in `.gnu_debuglink` lead to a debug file.
    pub build_id: Option<String>,
    /// The debug file of this build.
    pub found: Option<PathBuf>,
    /// Where it was looked for before, and why what is there is not it.
    pub passed: Vec<(PathBuf, Unfit)>,
}

/// Why a file is not the debug file that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// There is none.
    Absent,
    /// It is of another build, with this build-id; `None`: it has none.
    OtherBuild(Option<String>),
    /// Its checksum is another than the program names.
    OtherContent,
    /// It cannot be read as an ELF file; why.
    Unreadable(String),
}

/// A place where a debug file may lie.
struct Candidate {
    path: PathBuf,
    /// What its bytes must come to, where no build-id tells.
    checksum: Option<u32>,
}

/// Where the debug file of the program at `path` is looked for, and what is there.
pub fn debug_search(path: &Path, options: &Options) -> Result<DebugSearch, Error> {
    let image = Image::open(path)?;
    let object = image.parse()?;
    let build_id = build_id_of(&object);
    let mut passed = Vec::new();
    for candidate in candidates(&object, build_id.as_deref(), path, &options.debug_directories) {
        match candidate.open(build_id.as_deref()) {
            Ok(image) => return Ok(DebugSearch { build_id, found: Some(image.path), passed }),
            Err(why) => passed.push((candidate.path, why)),
        }
    }
    Ok(DebugSearch { build_id, found: None, passed })
}

/// The separate debug file of `object`, which was read from `path`.
pub(crate) fn find(object: &Object<'_>, path: &Path, directories: &[PathBuf]) -> Option<Image> {
    let id = build_id_of(object);
    let all = candidates(object, id.as_deref(), path, directories);
    all.into_iter().find_map(|candidate| candidate.open(id.as_deref()).ok())
}

/// The file that several debug files share (dwz), which `debug` names by path and build-id.
pub(crate) fn shared(debug: &Object<'_>, path: &Path, directories: &[PathBuf]) -> Option<Image> {
    let (name, id) = debug.gnu_debugaltlink().ok().flatten()?;
    let id = hexadecimal(id);
    let named = path.parent()?.join(cold_model::path_text::decode(std::str::from_utf8(name).ok()?));
    let all = by_build_id(Some(&id), directories).chain([Candidate { path: named, checksum: None }]);
    all.into_iter().find_map(|candidate| candidate.open(Some(&id)).ok())
}

/// In the order in which they are tried.
fn candidates(object: &Object<'_>, id: Option<&str>, path: &Path, directories: &[PathBuf]) -> Vec<Candidate> {
    let by_link = by_link(object, id, path, directories).unwrap_or_default();
    by_build_id(id, directories).chain(by_link).collect()
}

fn by_build_id(id: Option<&str>, directories: &[PathBuf]) -> impl Iterator<Item = Candidate> {
    let below = id.filter(|id| id.len() > 4).and_then(|id| id.split_at_checked(2));
    let below = below.map(|(head, tail)| format!(".build-id/{head}/{tail}.debug"));
    let candidate = |(below, dir): (String, &PathBuf)| Candidate { path: dir.join(below), checksum: None };
    below
        .into_iter()
        .flat_map(move |below| directories.iter().map(move |dir| candidate((below.clone(), dir))))
}

fn by_link(
    object: &Object<'_>,
    id: Option<&str>,
    path: &Path,
    directories: &[PathBuf],
) -> Option<Vec<Candidate>> {
    let (name, crc) = object.gnu_debuglink().ok().flatten()?;
    let name = std::str::from_utf8(name).ok().filter(|n| !n.is_empty() && !n.contains('/'))?;
    let home = path.parent()?;
    let below = home.strip_prefix("/").unwrap_or(home);
    let beside = [home.join(name), home.join(".debug").join(name)];
    let elsewhere = directories.iter().map(|dir| dir.join(below).join(name));
    let all = beside.into_iter().chain(elsewhere).filter(|candidate| candidate != path);
    // The checksum costs reading the whole file; a build-id says the same.
    let checksum = id.is_none().then_some(crc);
    Some(all.map(|path| Candidate { path, checksum }).collect())
}

impl Candidate {
    /// Opens it where it is an ELF file with this build-id, or with its checksum.
    fn open(&self, id: Option<&str>) -> Result<Image, Unfit> {
        let unreadable = |e: Error| match self.path.symlink_metadata() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Unfit::Absent,
            _ => Unfit::Unreadable(e.to_string()),
        };
        let image = Image::open(&self.path).map_err(unreadable)?;
        let found = build_id_of(&image.parse().map_err(unreadable)?);
        match self.checksum {
            _ if id.is_some() && found.as_deref() != id => Err(Unfit::OtherBuild(found)),
            Some(crc) if checksum(&self.path) != Some(crc) => Err(Unfit::OtherContent),
            _ => Ok(image),
        }
    }
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
