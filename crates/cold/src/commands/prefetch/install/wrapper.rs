//! A script that starts a program through the launcher.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Override, Result, head};
use crate::exit::Failure;

/// The script at `path` for `program`, or for the next program of its name in PATH.
pub(super) fn make(path: &Path, program: Option<&Path>, launch: &[String]) -> Result<Override> {
    let name = path.file_name().ok_or_else(|| Failure::usage(format!("{}: no file", path.display())))?;
    let program = match program {
        Some(program) => std::path::absolute(program)?,
        None => next_in_path(Path::new(name), path)?,
    };
    if same(&program, path) {
        return Err(Failure::usage(format!("{} would start itself", path.display())));
    }
    let words: Vec<String> = launch.iter().cloned().chain([program.to_string_lossy().into_owned()]).collect();
    let words: Vec<_> = words.into_iter().map(Into::into).collect();
    let how = format!("--wrapper {}", cold_bench::command::line_of(&[path.into()]));
    let line = cold_bench::command::line_of(&words);
    let text = format!("#!/bin/sh\n{}exec {line} \"$@\"\n", head(&how, None));
    Ok(Override { path: path.to_owned(), text, executable: true, next: None })
}

/// The first program of that name in PATH which is not the script itself.
fn next_in_path(name: &Path, script: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let executable = |p: &PathBuf| {
        p.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0) && !same(p, script)
    };
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(executable).ok_or_else(|| {
        Failure::usage(format!("there is no other {} in PATH", name.display())).hint("name it with --program")
    })
}

fn same(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_the_program_and_never_itself() {
        let launch = ["/usr/bin/cold-launch".to_owned(), "--".to_owned()];
        let made = make(Path::new("/opt/my bin/sh"), None, &launch).expect("made");
        let last = made.text.lines().last().expect("a line");
        assert!(last.starts_with("exec /usr/bin/cold-launch -- ") && last.ends_with("/sh \"$@\""), "{last}");
        assert!(made.executable && made.text.starts_with("#!/bin/sh\n# Written by"));
        assert!(make(Path::new("/bin/sh"), Some(Path::new("/bin/sh")), &launch).is_err());
    }
}
