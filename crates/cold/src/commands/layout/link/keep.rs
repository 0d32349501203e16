//! The line to keep of a build whose compilers found a linker of ours: where its flags go, so that it needs none.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use cold_bench::command::line_of;

/// Where `CMake` keeps what it was configured with.
const CACHE: &str = "CMakeCache.txt";
/// Entries of that file which every compilation of a language, and every link of a program, is given.
const COMPILERS: [&str; 2] = ["CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS"];
const LINKER: &str = "CMAKE_EXE_LINKER_FLAGS";

/// The line for the build `argv`, whose compilers are given `compiler` and whose links are given `linker`.
pub(super) fn line(argv: &[OsString], compiler: &str, linker: &[OsString]) -> String {
    let linker = plain(linker);
    let directory = directory(argv);
    if let Ok(cache) = std::fs::read(directory.join(CACHE)) {
        let configure = configure(&directory, &cache, compiler, &linker);
        return format!("{} && {}", line_of(&configure), line_of(argv));
    }
    format!(
        "CFLAGS=\"$CFLAGS {compiler}\" CXXFLAGS=\"$CXXFLAGS {compiler}\" LDFLAGS=\"$LDFLAGS {linker}\" {}",
        line_of(argv)
    )
}

/// Words of a line that is quoted as a whole; quoted each only where they need it.
fn plain(words: &[OsString]) -> String {
    let is_plain =
        |w: &OsString| w.as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || b"_./=,:+-".contains(b));
    if words.iter().all(is_plain) {
        return words.join(OsStr::new(" ")).to_string_lossy().into_owned();
    }
    line_of(words)
}

/// The directory that a build is made in: by `cmake --build`, or by `-C` of make and ninja.
fn directory(argv: &[OsString]) -> PathBuf {
    let named = |flag: &str| argv.iter().skip_while(|a| *a != flag).nth(1);
    named("--build").or_else(|| named("-C")).map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// `CMake` reads flags of the environment only when it first configures: later they are entries of its cache, which these
/// arguments replace by what they are and ours.
fn configure(directory: &Path, cache: &[u8], compiler: &str, linker: &str) -> Vec<OsString> {
    let entry = |name: &str| {
        let of = |line: &[u8]| {
            let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
            let at = rest.iter().position(|b| *b == b'=')?;
            rest.get(at + 1..).map(<[u8]>::to_vec)
        };
        cache.split(|b| *b == b'\n').find_map(of)
    };
    let with = |name: &str, more: &str| {
        // A language that the project does not use has no entry.
        let mut value = entry(name)?;
        if !value.is_empty() {
            value.push(b' ');
        }
        value.extend_from_slice(more.as_bytes());
        let mut word = format!("-D{name}=").into_bytes();
        word.extend(value);
        Some(OsString::from_vec(word))
    };
    let mut words = vec![OsString::from("cmake")];
    words.extend(COMPILERS.iter().filter_map(|name| with(name, compiler)));
    words.extend(with(LINKER, linker));
    words.push(directory.into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_configured_cmake_is_configured_anew_and_keeps_its_own_flags() {
        let dir = tempfile::tempdir().expect("a directory");
        let build = dir.path().to_str().expect("text");
        let line_for =
            |build: &str| line(&words(build), "-ffunction-sections", &words("-fuse-ld=lld -Wl,-x"));
        let unconfigured = line_for(&format!("make -B -C {build}"));
        assert_eq!(
            unconfigured,
            format!(
                "CFLAGS=\"$CFLAGS -ffunction-sections\" CXXFLAGS=\"$CXXFLAGS -ffunction-sections\" \
                 LDFLAGS=\"$LDFLAGS -fuse-ld=lld -Wl,-x\" make -B -C {build}"
            )
        );
        let cache = "# flags\nCMAKE_C_FLAGS:STRING=-O2 -g\nCMAKE_C_FLAGS_DEBUG:STRING=-g\n\
                     CMAKE_EXE_LINKER_FLAGS:STRING=\n";
        std::fs::write(dir.path().join(CACHE), cache).expect("written");
        let configured = format!(
            "cmake '-DCMAKE_C_FLAGS=-O2 -g -ffunction-sections' \
             '-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -Wl,-x' {build} && "
        );
        for command in [format!("cmake --build {build} -j2"), format!("ninja -C {build}")] {
            assert_eq!(line_for(&command), format!("{configured}{command}"));
        }
    }
}
