//! Paths outside of system directories, hidden.

use std::fmt::Write as _;
use std::path::Path;

use cold_model::path_text;
use sha2::{Digest, Sha256};

/// Directories whose files come from packages: their names say nothing about anybody.
const SYSTEM: [&str; 9] =
    ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt", "/nix/store", "/snap"];
/// Below these, names are somebody's again.
const LOCAL: [&str; 2] = ["/usr/local", "/usr/src"];
/// What a hidden path begins with. No path of a file does: those are absolute.
pub const PREFIX: &str = "redacted/";

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
        match self {
            Self::Redacted { salt } if !is_system(path) => {
                let mut digest = Sha256::new();
                // The length first: no salt and path make the bytes of another salt and path.
                digest.update((salt.len() as u64).to_le_bytes());
                digest.update(salt);
                digest.update(path.as_os_str().as_encoded_bytes());
                format!("{PREFIX}{}", hexadecimal(&digest.finalize(), 16))
            }
            _ => path_text::encode(path),
        }
    }
}

fn is_system(path: &Path) -> bool {
    let below = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    below(&SYSTEM) && !below(&LOCAL)
}

/// The first so many bytes in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8], most: usize) -> String {
    bytes.iter().take(most).fold(String::new(), |mut digits, b| {
        let _ = write!(digits, "{b:02x}");
        digits
    })
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
    }
}
