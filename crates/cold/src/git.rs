//! The commit that a directory's git repository is at, read without running git.

use std::path::{Path, PathBuf};

/// No file read here is longer: `packed-refs` of a repository with a million references has some 70 MB.
const MOST: u64 = 128 << 20;
/// A reference names a reference names …
const DEPTH: usize = 5;

/// The commit at `HEAD` of the repository that this directory lies in; `None`: there is none, or it has no commit.
pub(crate) fn head(directory: &Path) -> Option<String> {
    let top = directory.ancestors().find(|d| d.join(".git").symlink_metadata().is_ok())?;
    let dot = top.join(".git");
    // Of a linked work tree it is a file that names the directory.
    let own = if dot.is_dir() { dot } else { top.join(read(&dot)?.trim().strip_prefix("gitdir: ")?) };
    let common = read(&own.join("commondir")).map(|name| own.join(name.trim()));
    resolve(&own, &common.unwrap_or_else(|| own.clone()), "HEAD", DEPTH)
}

fn resolve(own: &Path, common: &Path, name: &str, depth: usize) -> Option<String> {
    let loose = |dir: &Path| -> Option<PathBuf> {
        let plain = Path::new(name).components().all(|c| matches!(c, std::path::Component::Normal(_)));
        plain.then(|| dir.join(name))
    };
    let text = read(&loose(own)?).or_else(|| read(&loose(common)?));
    let Some(text) = text else { return packed(common, name) };
    match text.trim().strip_prefix("ref: ") {
        Some(next) if depth > 0 => resolve(own, common, next, depth - 1),
        Some(_) => None,
        None => commit(text.trim()),
    }
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let text = read(&common.join("packed-refs"))?;
    let line = text.lines().find_map(|l| l.strip_suffix(name)?.strip_suffix(' '))?;
    commit(line)
}

/// SHA-1 or SHA-256 in hexadecimal digits.
fn commit(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}

fn read(path: &Path) -> Option<String> {
    cold_sys::open::text(path, MOST).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_found_loose_packed_detached_and_in_a_work_tree() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        let put = |name: &str, text: &str| {
            let path = git.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(head(&dir.path().join("sub")), None);
        put("HEAD", "ref: refs/heads/main\n");
        assert_eq!(head(dir.path()), None, "no commit yet");
        put("packed-refs", &format!("# pack-refs\n{b} refs/heads/xmain\n{a} refs/heads/main\n"));
        assert_eq!(head(&dir.path().join("sub")), Some(a.clone()));
        put("refs/heads/main", &format!("{b}\n"));
        assert_eq!(head(dir.path()), Some(b.clone()));
        put("worktrees/w/HEAD", "ref: refs/heads/main\n");
        put("worktrees/w/commondir", "../..\n");
        let tree = tempfile::tempdir().unwrap();
        let link = format!("gitdir: {}\n", git.join("worktrees/w").display());
        std::fs::write(tree.path().join(".git"), link).unwrap();
        assert_eq!(head(tree.path()), Some(b));
        put("HEAD", &a);
        assert_eq!(head(dir.path()), Some(a));
        put("HEAD", "ref: ../../etc/passwd\n");
        assert_eq!(head(dir.path()), None);
        put("HEAD", "ref: HEAD\n");
        assert_eq!(head(dir.path()), None, "a circle ends");
    }
}
