//! A wrapper where one's own programs lie, found without asking for the place: by it shells start a program of PATH
//! through the launcher.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_sys::search;
use rustix::fs::{Access, AtFlags, CWD};

use super::{CONTROL_EVERY, Ready, Result, call, wrapper};
use crate::commands::prefetch::plans::StorePlace;
use crate::exit::Failure;

/// Directories for programs of one's own, below the home directory. Others in PATH belong to somebody: to packages, to
/// a version manager, to a virtual environment.
const BELOW_HOME: [&str; 2] = ["bin", ".local/bin"];
/// The one of the machine.
const OF_THE_MACHINE: &str = "/usr/local/bin";

/// How a program of PATH comes to be started through the launcher by its name.
pub(crate) enum ByName {
    /// By a wrapper that can be written at this path.
    New(PathBuf, Ready),
    /// It is: this wrapper is what the name means.
    Already(PathBuf),
}

/// What can be done for `program`, the first word of a command line, with the plans of `place`. The error says why
/// nothing.
pub(crate) fn by_name(program: &OsStr, place: &StorePlace) -> Result<ByName> {
    let (path, home) = (std::env::var_os("PATH"), std::env::var_os("HOME").map(PathBuf::from));
    match look(program, path.as_deref(), home.as_deref())? {
        Found::Wrapper(path) => Ok(ByName::Already(path)),
        Found::Room(at) => {
            let call = call(place, CONTROL_EVERY)?;
            let ready = Ready::of(wrapper::make(&at, None, &call)?, &call)?;
            Ok(ByName::New(at, ready))
        }
    }
}

/// What the name of a program leads to.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// This wrapper.
    Wrapper(PathBuf),
    /// The program; this place is searched before it.
    Room(PathBuf),
}

fn look(program: &OsStr, path: Option<&OsStr>, home: Option<&Path>) -> Result<Found> {
    if program.as_encoded_bytes().contains(&b'/') {
        let what = "a wrapper only serves starts by name, and this one is by a path";
        return Err(Failure::usage(what).hint("start it by its name, or see cold prefetch install --help"));
    }
    let all: Vec<PathBuf> = search::candidates(program, path).collect();
    let first = all.iter().position(|file| search::may_execute(file));
    let (before, found) = first
        .and_then(|n| Some((all.get(..n)?, all.get(n)?)))
        .ok_or_else(|| Failure::usage(format!("{} is not found in PATH", program.shown())))?;
    if wrapper::is_one(found) {
        return Ok(Found::Wrapper(found.clone()));
    }
    let own = own_directories(home);
    let is_own = |file: &&PathBuf| file.parent().is_some_and(|dir| own.iter().any(|o| o == dir));
    let room = before.iter().filter(is_own).find(|file| may_be_made(file)).ok_or_else(|| {
        let names: Vec<String> = own.iter().map(|dir| dir.shown().to_string()).collect();
        let (names, found) = (names.join(", "), found.shown());
        let what = format!("none of {names} comes before {found} in PATH and can be written to");
        Failure::usage(what).hint("cold prefetch install --wrapper, at a place that does")
    })?;
    Ok(Found::Room(room.clone()))
}

impl ByName {
    /// The command that removes the wrapper at this path.
    pub(crate) fn undo(path: &Path) -> String {
        format!("cold prefetch uninstall {}", wrapper::named_by(path))
    }
}

fn own_directories(home: Option<&Path>) -> Vec<PathBuf> {
    let home = home.filter(|home| home.is_absolute());
    let below = home.iter().flat_map(|home| BELOW_HOME.map(|dir| home.join(dir)));
    below.chain([OF_THE_MACHINE.into()]).collect()
}

/// Whether this user may make a file there, its directory as well where that is missing.
fn may_be_made(file: &Path) -> bool {
    let there = file.ancestors().skip(1).find(|dir| dir.exists());
    let right = Access::WRITE_OK | Access::EXEC_OK;
    there.is_some_and(|dir| rustix::fs::accessat(CWD, dir, right, AtFlags::EACCESS).is_ok())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::commands::prefetch::launcher::Call;

    struct World(tempfile::TempDir);

    impl World {
        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }
        fn look(&self, dirs: &[&str]) -> Result<Found> {
            let path: Vec<OsString> = dirs.iter().map(|dir| self.path(dir).into()).collect();
            let path = path.join(OsStr::new(":"));
            look(OsStr::new("app"), Some(&path), Some(&self.path("home")))
        }
        /// Why there is no place for a wrapper.
        fn refused(&self, dirs: &[&str]) -> String {
            self.look(dirs).expect_err("no place").error.to_string()
        }
    }

    #[test]
    fn a_wrapper_has_its_place_among_own_programs_before_the_program() {
        let w = World(tempfile::tempdir().expect("a directory"));
        for dir in ["home", "env", "programs", "home/.local/bin"] {
            std::fs::create_dir_all(w.path(dir)).expect("made");
        }
        cold_testbed::executable(&w.path("programs/app"), "#!/bin/sh\n");
        // A directory that is not there yet will be made; that of a virtual environment belongs to it.
        let room = |dirs: &[&str]| match w.look(dirs) {
            Ok(Found::Room(path)) => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(room(&["env", "home/bin", "programs"]), w.path("home/bin/app"));
        assert_eq!(room(&["home/.local/bin", "home/bin", "programs"]), w.path("home/.local/bin/app"));
        assert!(w.refused(&["env", "programs", "home/bin"]).starts_with("none of "), "it comes behind");
        assert!(w.refused(&["env", "home/bin"]).contains("not found in PATH"));
        let by_path = look(OsStr::new("./app"), None, None).expect_err("no name");
        assert!(by_path.error.to_string().contains("by a path"));
        // A wrapper that is there already is what the name means.
        let (there, program) = (w.path("home/bin/app"), w.path("programs/app"));
        let made = wrapper::make(&there, Some(&program), &Call::to("/usr/bin/cold-launch")).expect("made");
        crate::commands::prefetch::install::files::write(&made.pieces[0], None).expect("written");
        assert_eq!(w.look(&["home/bin", "programs"]).expect("found"), Found::Wrapper(there));
    }
}
