//! What a command starts: its file, its interpreters, the libraries they need.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cold_symbols::Needs;
use cold_sys::{open, search};

use crate::context::{Config, Roots};
use crate::{Error, loader_cache};

/// Scripts that name scripts are followed this deep; the kernel stops at 5.
const MAX_SCRIPTS: usize = 4;

/// Directories that many programs share, so that "a process maps a file from there" says nothing about
/// one of them.
const SHARED_DIRECTORIES: &[&str] = &[
    "/",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/games",
    "/opt",
    "/tmp",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/nix/store",
    "/snap/bin",
];

/// A command, resolved. All paths are absolute, without symbolic links, as a process sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its first word, as typed.
    pub(crate) given: String,
    /// The file that exec is given.
    pub(crate) path: PathBuf,
    /// For a script: the interpreters, outermost first.
    pub(crate) interpreters: Vec<PathBuf>,
    /// Loader and libraries, as the dynamic loader will find them.
    pub(crate) libraries: BTreeSet<PathBuf>,
    /// Needed names that could not be found.
    pub(crate) unresolved: Vec<String>,
    /// The directory that holds this program and its own files, unless it is a shared one.
    pub(crate) directory: Option<PathBuf>,
}

impl Program {
    /// Whether the command is a script.
    pub(crate) fn is_script(&self) -> bool {
        !self.interpreters.is_empty()
    }
}

/// Finds the command of `config`, if there is one, and what it needs.
pub(crate) fn resolve(roots: &Roots, config: &Config) -> Result<Option<Program>, Error> {
    let Some(given) = config.command.first() else { return Ok(None) };
    let path = find(roots, given, &config.search_path)?;
    let mut program = Program { given: given.clone(), path: path.clone(), ..Program::default() };
    let mut elf_file = path.clone();
    while program.interpreters.len() < MAX_SCRIPTS {
        let Some(interpreter) = interpreter(roots, &elf_file, &config.search_path) else { break };
        program.interpreters.push(interpreter.clone());
        elf_file = interpreter;
    }
    Resolver::new(roots, &mut program).follow(&elf_file);
    let directory = path.parent().map(Path::to_owned);
    program.directory = directory.filter(|d| !SHARED_DIRECTORIES.iter().any(|s| d == Path::new(s)));
    Ok(Some(program))
}

/// `path` below the root without symbolic links, as seen from inside the root.
pub(crate) fn canonical(roots: &Roots, path: &Path) -> Option<PathBuf> {
    let inside = roots.path(path).canonicalize().ok()?;
    let root = roots.path("/").canonicalize().ok()?;
    Some(Path::new("/").join(inside.strip_prefix(root).ok()?))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn find(roots: &Roots, name: &str, search_path: &str) -> Result<PathBuf, Error> {
    let missing = |searched: String| Error::NoSuchCommand { name: name.to_owned(), searched };
    if name.contains('/') {
        // Relative to the current directory, which only makes sense in the real root.
        let absolute = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
        let path = canonical(roots, &absolute).ok_or_else(|| missing("there".to_owned()))?;
        return if is_executable(&roots.path(&path)) { Ok(path) } else { Err(Error::NotExecutable { path }) };
    }
    search_path
        .split(':')
        .filter(|d| d.starts_with('/'))
        .map(|d| Path::new(d).join(name))
        .find(|p| is_executable(&roots.path(p)))
        .and_then(|p| canonical(roots, &p))
        .ok_or_else(|| missing("in PATH".to_owned()))
}

/// The program named after `#!`; for `env` the one that env will find.
fn interpreter(roots: &Roots, path: &Path, search_path: &str) -> Option<PathBuf> {
    let (file, _) = open::regular(&roots.path(path), true).ok()?;
    let mut head = [0; search::SHEBANG_BYTES];
    let len = std::os::unix::fs::FileExt::read_at(&file, &mut head, 0).ok()?;
    let (named, argument) = search::shebang(head.get(..len)?)?;
    let named = canonical(roots, Path::new(named))?;
    if named.file_name()? == "env" {
        let words: Vec<String> = search::words(argument).filter_map(|word| word.into_string().ok()).collect();
        let target = words.iter().find(|w| !w.starts_with('-') && !w.contains('='))?;
        return find(roots, target, search_path).ok();
    }
    Some(named)
}

/// Follows `DT_NEEDED` as ld.so(8) does: RUNPATH, ld.so.cache, default directories. `LD_LIBRARY_PATH` is
/// left out: it belongs to the shell that starts the program.
struct Resolver<'a> {
    roots: &'a Roots,
    program: &'a mut Program,
    cache: Vec<u8>,
    seen: BTreeSet<String>,
}

impl<'a> Resolver<'a> {
    fn new(roots: &'a Roots, program: &'a mut Program) -> Self {
        let cache = std::fs::read(roots.path("/etc/ld.so.cache")).unwrap_or_default();
        Self { roots, program, cache, seen: BTreeSet::new() }
    }

    fn follow(&mut self, start: &Path) {
        let mut queue = vec![start.to_owned()];
        while let Some(path) = queue.pop() {
            let Ok((file, _)) = open::regular(&self.roots.path(&path), true) else { continue };
            let Some(needs) = cold_symbols::needs(&file) else { continue };
            if let Some(loader) = needs.interpreter.as_deref().map(Path::new) {
                self.program.libraries.extend(canonical(self.roots, loader));
            }
            for name in &needs.needed {
                if !self.seen.insert(name.clone()) {
                    continue;
                }
                match self.locate(name, &path, &needs) {
                    Some(library) if self.program.libraries.insert(library.clone()) => queue.push(library),
                    Some(_) => {}
                    None => self.program.unresolved.push(name.clone()),
                }
            }
        }
    }

    fn locate(&self, name: &str, from: &Path, needs: &Needs) -> Option<PathBuf> {
        let origin = from.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let search = needs.search.iter().map(|d| d.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
        let cached = loader_cache::paths(&self.cache, name).into_iter().map(PathBuf::from);
        let default = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].iter().map(|d| Path::new(d).join(name));
        search.map(|d| Path::new(&d).join(name)).chain(cached).chain(default).find_map(|candidate| {
            let path = canonical(self.roots, &candidate)?;
            // The cache also lists libraries of other word sizes.
            let (file, _) = open::regular(&self.roots.path(&path), true).ok()?;
            (cold_symbols::needs(&file)?.wide == needs.wide).then_some(path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().expect("temporary directory");
        for d in ["usr/bin", "opt/tool"] {
            std::fs::create_dir_all(dir.path().join(d)).expect("makes directories");
        }
        std::os::unix::fs::symlink("usr/bin", dir.path().join("bin")).expect("links");
        let roots = Roots::new(dir.path());
        (dir, roots)
    }

    fn program(dir: &Path, rel: &str, text: &str, mode: u32) {
        let path = dir.join(rel);
        std::fs::write(&path, text).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }

    fn config(command: &str) -> Config {
        let command = vec![command.to_owned()];
        Config { command, search_path: "/nowhere:/bin".to_owned(), ..Config::new() }
    }

    #[test]
    fn a_script_in_its_own_directory_behind_a_link_and_env() {
        let (dir, roots) = tree();
        program(dir.path(), "opt/tool/tool", "#!/bin/env -S FOO=1 snake -x\n", 0o755);
        program(dir.path(), "usr/bin/env", "", 0o755);
        program(dir.path(), "usr/bin/snake", "", 0o755);
        std::os::unix::fs::symlink("../../opt/tool/tool", dir.path().join("usr/bin/tool")).expect("links");
        let found = resolve(&roots, &config("tool")).expect("resolves").expect("is given");
        assert_eq!(found.path, Path::new("/opt/tool/tool"));
        assert_eq!(found.interpreters, [Path::new("/usr/bin/snake")]);
        assert_eq!(found.directory.as_deref(), Some(Path::new("/opt/tool")));
    }

    #[test]
    fn a_command_that_does_not_exist_or_may_not_run() {
        let (dir, roots) = tree();
        program(dir.path(), "usr/bin/plain", "text", 0o644);
        let error = resolve(&roots, &config("plain")).expect_err("is refused").to_string();
        assert_eq!(error, "no such command: plain (not found in PATH)");
        let error = resolve(&roots, &config("/bin/plain")).expect_err("is refused").to_string();
        assert_eq!(error, "/usr/bin/plain is not an executable file");
        assert_eq!(resolve(&roots, &Config::new()).expect("resolves"), None);
    }

    #[test]
    fn the_libraries_of_a_real_program() {
        let found =
            resolve(&Roots::new("/"), &Config { search_path: "/usr/bin:/bin".into(), ..config("cat") });
        let found = found.expect("resolves").expect("is given");
        let names: Vec<_> = found.libraries.iter().filter_map(|p| p.file_name()?.to_str()).collect();
        assert!(names.iter().any(|n| n.starts_with("libc.")), "{names:?}");
        assert!(found.unresolved.is_empty(), "{:?}", found.unresolved);
    }
}
