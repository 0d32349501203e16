//! Paths outside of system directories, hidden.

use std::path::Path;

use cold_model::hash::hexadecimal;
use cold_model::path_text;
use sha2::{Digest, Sha256};

/// Directories whose files come from packages: their names say nothing about anybody.
const SYSTEM: [&str; 9] =
    ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt", "/nix/store", "/snap"];
/// Below these, names are somebody's again.
const LOCAL: [&str; 2] = ["/usr/local", "/usr/src"];
/// What a hidden path begins with. No path of a file does: those are absolute.
pub const PREFIX: &str = "redacted/";

/// What a hidden name begins with that is no path: of a program, of a scenario.
pub const WORD_PREFIX: &str = "redacted-";

/// How paths are written into a dataset.
#[derive(Debug, Clone, Default)]
pub enum Paths {
    /// As they are.
    #[default]
    Plain,
    /// Those outside of system directories as a digest with this salt. With the same salt the same path has the same
    /// digest; whoever knows the salt can try whether a digest is that of a path which he guesses.
    Redacted {
        /// The secret that all machines of a fleet share; empty: none.
        salt: Vec<u8>,
    },
}

impl Paths {
    /// The path as the dataset has it ([`path_text`]), or its digest.
    pub fn text(&self, path: &Path) -> String {
        let digest = self.salt_for(path).map(|salt| digest(salt, path.as_os_str().as_encoded_bytes()));
        digest.map_or_else(|| path_text::encode(path), |digest| format!("{PREFIX}{digest}"))
    }

    /// The name of the program at this path, or a digest of the path.
    pub fn name(&self, path: &Path) -> Option<String> {
        if let Some(salt) = self.salt_for(path) {
            return Some(format!("{WORD_PREFIX}{}", digest(salt, path.as_os_str().as_encoded_bytes())));
        }
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    }

    /// A word that was made of somebody's arguments, or its digest.
    pub fn word(&self, word: &str) -> String {
        match self {
            Self::Plain => word.to_owned(),
            Self::Redacted { salt } => format!("{WORD_PREFIX}{}", digest(salt, word.as_bytes())),
        }
    }

    fn salt_for(&self, path: &Path) -> Option<&[u8]> {
        match self {
            Self::Redacted { salt } if !is_system(path) => Some(salt),
            _ => None,
        }
    }
}

/// 128 bits are enough: nobody meets the same twice.
fn digest(salt: &[u8], bytes: &[u8]) -> String {
    let mut digest = Sha256::new();
    // The length first: no salt and bytes are those of another salt and other bytes.
    digest.update((salt.len() as u64).to_le_bytes());
    digest.update(salt);
    digest.update(bytes);
    short(&digest.finalize())
}

fn is_system(path: &Path) -> bool {
    let below = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    below(&SYSTEM) && !below(&LOCAL)
}

/// The first 16 bytes of a digest in hexadecimal digits.
pub(crate) fn short(digest: &[u8]) -> String {
    hexadecimal(digest.first_chunk::<16>().map_or(digest, |first| first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_packages_stay_and_equal_paths_stay_equal() {
        let hidden = |salt: &[u8]| Paths::Redacted { salt: salt.to_vec() };
        let (a, b) = (hidden(b"a"), hidden(b"b"));
        for open in ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/bin/sh", "/opt/app/app", "/nix/store/x/bin/y"] {
            assert_eq!(a.text(Path::new(open)), open);
        }
        for own in ["/home/ada/notes", "/usr/local/bin/ours", "/srv/db", "/usrx/y", "/root/.config"] {
            let path = Path::new(own);
            let text = a.text(path);
            assert!(text.starts_with(PREFIX) && text.len() == PREFIX.len() + 32, "{text}");
            assert_eq!(text, a.text(path));
            assert_ne!(text, b.text(path));
            assert_eq!(Paths::Plain.text(path), own);
        }
        assert_ne!(a.text(Path::new("/home/a")), a.text(Path::new("/home/b")));
        assert_eq!(a.name(Path::new("/usr/bin/git")).as_deref(), Some("git"));
        let (named, plain) =
            (a.name(Path::new("/home/ada/secret")), Paths::Plain.name(Path::new("/home/ada/secret")));
        assert!(named.is_some_and(|n| n.starts_with(WORD_PREFIX)) && plain.as_deref() == Some("secret"));
        assert!(a.word("-psecret").starts_with(WORD_PREFIX) && a.word("x") == a.word("x"));
        assert_eq!(Paths::Plain.word("-psecret"), "-psecret");
    }
}
