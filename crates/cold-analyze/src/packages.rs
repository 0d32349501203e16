//! What a start of Python, Node, Java or Ruby loads, package by package.

use std::collections::{BTreeMap, HashMap, HashSet};

use cold_model::recording::{FileIdx, FileKind};
use cold_model::{Bytes, Nanos, path_text};

use crate::context::{Context, is_miss};
use crate::in_front::program_process;
use crate::model::{FileUse, Language, PackageUse, Reached};
use crate::steps::{Step, steps};

/// A package: its language and its name; no name: the language's own library.
type Key = (Language, Option<String>);

/// The packages, the longest first. None where the tier sees no lookups.
pub(crate) fn packages(cx: &Context<'_>, files: &[FileUse]) -> Vec<PackageUse> {
    if cx.recording.lookups.is_none() {
        return Vec::new();
    }
    let mut out: BTreeMap<Key, PackageUse> = BTreeMap::new();
    let empty = |(language, name): &Key| PackageUse {
        language: *language,
        name: name.clone(),
        files: 0,
        read: Bytes(0),
        waited: Nanos(0),
        misses: 0,
        elapsed: Nanos(0),
    };
    for f in files.iter().filter(|f| f.reached != Reached::ByOthers && f.reached != Reached::LookedUp) {
        let Some(key) = package(&f.path) else { continue };
        let package = out.entry(key.clone()).or_insert_with(|| empty(&key));
        package.files += 1;
        package.read += f.read;
        package.waited += f.stall;
    }
    // A name that was only looked for in vain is no package.
    for (_, l) in cx.lookups().filter(|(_, l)| is_miss(l)) {
        if let Some(package) = l.path.as_deref().and_then(package).and_then(|key| out.get_mut(&key)) {
            package.misses += 1;
        }
    }
    for (key, time) in elapsed(cx, &out.keys().cloned().collect()) {
        if let Some(package) = out.get_mut(&key) {
            package.elapsed = time;
        }
    }
    let mut out: Vec<PackageUse> = out.into_values().collect();
    out.sort_by(|a, b| (b.elapsed, b.files).cmp(&(a.elapsed, a.files)).then_with(|| a.name.cmp(&b.name)));
    out
}

/// How the program's threads' steps bear on what is being loaded.
enum Bearing {
    /// It is of this package.
    Of(Key),
    /// Part of loading one: a library it needs, a directory, a name that is not there.
    Along,
    /// Something else begins.
    Else,
}

/// Time per package in the program's first thread: from each look at its files to the next look at another's. When a
/// package loads another and then goes on, the rest counts for the other: only its interpreter knows better.
fn elapsed(cx: &Context<'_>, known: &HashSet<Key>) -> HashMap<Key, Nanos> {
    let mut out = HashMap::new();
    let Some(thread) = program_process(cx) else { return out };
    let mut keys: HashMap<FileIdx, Option<Key>> = HashMap::new();
    let mut at: Option<(Key, Nanos)> = None;
    for step in steps(cx).filter(|s| s.tid() == thread) {
        if let Some((key, since)) = at.take() {
            *out.entry(key.clone()).or_insert(Nanos(0)) += step.began().saturating_sub(since);
            at = Some((key, step.began()));
        }
        match bearing(cx, &step, known, &mut keys) {
            Bearing::Of(key) => at = Some((key, step.began())),
            Bearing::Along => {}
            Bearing::Else => at = None,
        }
    }
    out
}

fn bearing(
    cx: &Context<'_>,
    step: &Step<'_>,
    known: &HashSet<Key>,
    keys: &mut HashMap<FileIdx, Option<Key>>,
) -> Bearing {
    let (file, key) = match step {
        Step::Looked(l) => (l.file, l.path.as_deref().and_then(package)),
        Step::Read(t) => {
            (Some(t.file), keys.entry(t.file).or_insert_with(|| package(&cx.path(t.file))).clone())
        }
    };
    if let Some(key) = key.filter(|k| known.contains(k)) {
        return Bearing::Of(key);
    }
    let contents = |f: FileIdx| {
        let regular = cx.recording.files.get(f as usize).is_some_and(|f| f.kind == FileKind::Regular);
        regular && !path_text::is_library(&cx.path(f)) && !cx.executable(f)
    };
    if file.is_some_and(contents) { Bearing::Else } else { Bearing::Along }
}

/// The package that a path belongs to, by where languages keep them.
fn package(path: &str) -> Option<Key> {
    node(path).or_else(|| python(path)).or_else(|| ruby(path)).or_else(|| java(path))
}

fn some(language: Language, name: &str) -> Option<Key> {
    (!name.is_empty()).then(|| (language, Some(name.to_owned())))
}

/// `node_modules/NAME/…` and `node_modules/@SCOPE/NAME/…`, the innermost.
fn node(path: &str) -> Option<Key> {
    let (_, below) = path.rsplit_once("/node_modules/")?;
    let mut parts = below.split('/');
    let first = parts.next()?;
    match parts.next().filter(|_| first.starts_with('@')) {
        Some(second) => some(Language::Node, &format!("{first}/{second}")),
        None => some(Language::Node, first),
    }
}

/// `site-packages/NAME/…`, `dist-packages/NAME.py`, `…/__pycache__/NAME.cpython-311.pyc`; what else lies in
/// `lib/python3.N` is Python's own.
fn python(path: &str) -> Option<Key> {
    for root in ["/site-packages/", "/dist-packages/"] {
        let Some((_, below)) = path.rsplit_once(root) else { continue };
        let below = below.strip_prefix("__pycache__/").unwrap_or(below);
        let first = below.split('/').next()?;
        let name = first.split_once('.').map_or(first, |(name, _)| name);
        // `NAME-1.2.dist-info` names the distribution, `NAME.libs` holds its libraries.
        let name = name.split_once('-').map_or(name, |(name, _)| name);
        return some(Language::Python, name);
    }
    let (_, below) = path.split_once("/lib/python3")?;
    let inside =
        below.split_once('/').filter(|(version, _)| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    inside.filter(|(_, rest)| !rest.is_empty()).map(|_| (Language::Python, None))
}

/// `gems/NAME-1.2.3/…`; what else lies in `lib/ruby` is Ruby's own.
fn ruby(path: &str) -> Option<Key> {
    if let Some((_, below)) = path.rsplit_once("/gems/") {
        let directory = below.split('/').next()?;
        let (name, version) = directory.rsplit_once('-')?;
        return some(Language::Ruby, name).filter(|_| version.starts_with(|c: char| c.is_ascii_digit()));
    }
    (path.contains("/lib/ruby/") && ends(path, "rb")).then_some((Language::Ruby, None))
}

/// `NAME.jar`; `lib/modules` and the shared archive are the JDK's own.
fn java(path: &str) -> Option<Key> {
    let name = path_text::base(path);
    if let Some(jar) = name.strip_suffix(".jar") {
        return some(Language::Java, jar);
    }
    let own = path.ends_with("/lib/modules") || (name.starts_with("classes") && ends(name, "jsa"));
    own.then_some((Language::Java, None))
}

fn ends(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, e)| e == extension)
}

#[cfg(test)]
mod tests;
