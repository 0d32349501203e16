//! Where the launcher lies, and how something else calls it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::plans::StorePlace;
use crate::exit::Failure;

/// Name of the static program.
const NAME: &str = "cold-launch";

/// The launcher beside this program, else the one in PATH.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe().ok().and_then(|me| Some(me.parent()?.join(NAME)));
    if let Some(path) = beside.filter(|p| p.is_file()) {
        return Ok(path);
    }
    cold_bench::command::from_argv(vec![NAME.into()]).map(|(path, _)| path).map_err(|_| {
        Failure::from(anyhow::anyhow!("{NAME} is neither beside cold nor in PATH"))
            .hint("`make install` puts it beside cold; in a source tree `cargo build -p cold-launch`")
    })
}

/// How something else calls the launcher so that it finds the plans of this place.
#[derive(Debug)]
pub(super) struct Call {
    /// The launcher, links resolved: nobody who owns a link on the way decides later what is run.
    pub(super) program: PathBuf,
    /// The directory of plans that is passed on, links resolved as far as it exists.
    pub(super) store: Option<PathBuf>,
    /// What [`Call::flag`] has added, each name followed by its value.
    flags: Vec<OsString>,
}

impl Call {
    /// Looks for the launcher.
    pub(super) fn new(place: &StorePlace) -> Result<Self, Failure> {
        let program = find()?;
        let program = program.canonicalize().unwrap_or(program);
        Ok(Self { program, store: place.named()?.map(resolved), flags: Vec::new() })
    }

    /// One of this launcher, without flags.
    #[cfg(test)]
    pub(super) fn to(program: &str) -> Self {
        Self { program: program.into(), store: None, flags: Vec::new() }
    }

    /// Adds a flag with its value.
    pub(super) fn flag(&mut self, name: &str, value: &str) {
        self.flags.extend([name.into(), value.into()]);
    }

    /// The words before the program's, the last one is `--`.
    pub(super) fn words(&self) -> Vec<OsString> {
        let store = self.store.iter().flat_map(|dir| ["--store".into(), dir.into()]);
        let own = std::iter::once(self.program.clone().into()).chain(store);
        own.chain(self.flags.iter().cloned()).chain(["--".into()]).collect()
    }

    /// The launcher's own path, quoted for a shell.
    pub(super) fn quoted_program(&self) -> Vec<u8> {
        quoted(&[self.program.clone().into()])
    }

    /// Two commands for a POSIX shell: the program through the launcher, and as it is where there is no launcher
    /// any more. `program` are words that are quoted already and take the arguments with them.
    pub(super) fn shell_lines(&self, program: &[u8], between: &[u8]) -> Vec<u8> {
        let launch = quoted(&self.words());
        [
            b"[ -x ",
            &self.quoted_program()[..],
            b" ] && exec ",
            &launch,
            b" ",
            program,
            between,
            b"exec ",
            program,
        ]
        .concat()
    }
}

/// Words as a POSIX shell reads them back, byte for byte.
pub(super) fn quoted(words: &[OsString]) -> Vec<u8> {
    // Only a zero byte cannot be quoted, and no path or argument has one.
    shlex::bytes::try_join(words.iter().map(|w| w.as_bytes())).unwrap_or_default()
}

/// The path with its existing part free of links.
fn resolved(path: PathBuf) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => path,
        },
        None => path,
    }
}

/// The words of a shell's command line, as [`quoted`] wrote them.
pub(super) fn unquoted(text: &[u8]) -> Option<Vec<OsString>> {
    Some(shlex::bytes::split(text)?.into_iter().map(OsString::from_vec).collect())
}
