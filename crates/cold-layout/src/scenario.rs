//! What traces say of one program: their scenarios, as functions of the build that is ordered.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cold_model::order::{Linked, Trace, TracedFile};

use crate::merge::{concatenated, entered};
use crate::resolve::{Resolved, Resolver};

/// What a way of starting a program enters, as indices of the functions of the build that is ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// As its traces call it.
    pub name: String,
    /// Each function once, in the order of first entries.
    pub entered: Vec<u32>,
    /// How they were found in that build.
    pub resolved: Resolved,
}

/// The program of a trace: of its files that are no libraries the one of which most functions are entered (a script's
/// interpreter, a wrapper's child).
pub fn program(trace: &Trace) -> Option<&TracedFile> {
    let entries = |n: usize| {
        let all = trace.repeats.iter().flat_map(|r| &r.entries);
        all.filter(|e| e.file as usize == n).count()
    };
    let programs = trace.files.iter().enumerate().filter(|(_, f)| f.linked != Linked::Library);
    programs.max_by_key(|(n, _)| entries(*n)).map(|(_, f)| f)
}

/// The file of a trace that has this path, or this as the last part of it, or as that without the end of its version
/// (`libz.so.1` is a link to `libz.so.1.2.13`).
pub fn named<'a>(trace: &'a Trace, name: &Path) -> Option<&'a TracedFile> {
    let name = name.as_os_str().as_bytes();
    let last = |f: &TracedFile| f.path.file_name().unwrap_or_default().as_bytes().to_vec();
    let is_it = |f: &&TracedFile| f.path.as_os_str().as_bytes() == name || last(f) == name;
    let is_version = |rest: &[u8]| rest.starts_with(b".") && rest.iter().all(|b| b".0123456789".contains(b));
    let is_later = |f: &&TracedFile| last(f).strip_prefix(name).is_some_and(is_version);
    trace.files.iter().find(is_it).or_else(|| trace.files.iter().find(is_later))
}

/// The scenarios of `traces`, in the order in which they come first; traces of one scenario are one after the other.
/// `path` is the file that is ordered, as the traces name it; `target` its build with the functions of `resolver`.
pub fn all(traces: &[Trace], path: &Path, target: &TracedFile, resolver: &Resolver<'_>) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for trace in traces {
        let Scenario { name, entered, resolved } = of(trace, path, target, resolver);
        match scenarios.iter_mut().find(|s| s.name == name) {
            Some(known) => {
                known.entered = concatenated([known.entered.as_slice(), &entered]);
                known.resolved = known.resolved.and(resolved);
            }
            None => scenarios.push(Scenario { name, entered, resolved }),
        }
    }
    scenarios
}

/// What one trace says; repeats one after the other.
fn of(trace: &Trace, path: &Path, target: &TracedFile, resolver: &Resolver<'_>) -> Scenario {
    let mut resolved = Resolved::default();
    let mut lists = Vec::new();
    for (file, n) in trace.files.iter().zip(0_u32..) {
        let same_build = file.build_id.is_some() && file.build_id == target.build_id;
        if file.path != path && !same_build {
            continue;
        }
        let same_functions = same_build || file.functions == target.functions;
        let mut list = Vec::new();
        for function in entered(trace, n) {
            let Some(f) = file.functions.get(function as usize) else { continue };
            match resolver.at(f.address).filter(|_| same_functions) {
                Some(at) => {
                    resolved.by_address = resolved.by_address.saturating_add(1);
                    list.push(at);
                }
                None => list.extend_from_slice(resolver.find(f, &mut resolved)),
            }
        }
        lists.push(list);
    }
    let entered = concatenated(lists.iter().map(Vec::as_slice));
    Scenario { name: trace.scenario.clone(), entered, resolved }
}

#[cfg(test)]
mod tests {
    use cold_model::order::Function;

    use super::*;
    use crate::sample::trace;

    fn file(path: &str, build: Option<&str>, linked: Linked, names: &[&str]) -> TracedFile {
        let function = |(name, n): (&&str, u64)| Function {
            address: 0x1000 + 64 * n,
            bytes: 64,
            names: vec![(*name).to_owned()],
            sources: Vec::new(),
        };
        TracedFile {
            path: path.into(),
            build_id: build.map(str::to_owned),
            linked,
            is_go: false,
            texts: Vec::new(),
            functions: names.iter().zip(0..).map(function).collect(),
        }
    }

    #[test]
    fn the_program_is_what_most_is_entered_of_but_no_library() {
        let files = || {
            vec![
                file("/bin/wrapper", None, Linked::Pie, &["main"]),
                file("/lib/libc.so.6", None, Linked::Library, &["a", "b", "c"]),
                file("/bin/app", None, Linked::Pie, &["main", "run"]),
            ]
        };
        let t = trace("start", files(), &[&[(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]]);
        assert_eq!(program(&t).map(|f| f.path.as_path()), Some(Path::new("/bin/app")));
        assert_eq!(named(&t, Path::new("libc.so.6")), Some(&t.files[1]));
        assert_eq!(named(&t, Path::new("/bin/libc.so.6")), None);
        let t =
            trace("start", vec![file("/lib/libz.so.1.2.13", None, Linked::Library, &["a"])], &[&[(0, 0)]]);
        assert_eq!(named(&t, Path::new("libz.so.1")), Some(&t.files[0]), "what it is loaded as");
        assert_eq!(named(&t, Path::new("libz.so.1.2")), Some(&t.files[0]));
        assert_eq!((named(&t, Path::new("libz.so.2")), named(&t, Path::new("libz"))), (None, None));
    }

    #[test]
    fn traces_of_one_scenario_are_joined_and_another_build_is_found_by_name() {
        let target = file("/bin/app", Some("2"), Linked::Pie, &["x", "main", "run", "stop"]);
        let resolver = Resolver::new(&target.functions);
        let same = trace("start", vec![target.clone()], &[&[(0, 1), (0, 0)], &[(0, 2), (0, 1)]]);
        let older = file("/bin/app", Some("1"), Linked::Pie, &["run", "gone", "stop"]);
        let older = trace("start", vec![older], &[&[(0, 2), (0, 1), (0, 0)]]);
        let other = trace("help", vec![target.clone()], &[&[(0, 3)]]);
        let found = all(&[same, older, other], Path::new("/bin/app"), &target, &resolver);
        let told: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.entered.as_slice())).collect();
        assert_eq!(told, [("start", &[1, 0, 2, 3][..]), ("help", &[3][..])]);
        assert_eq!(found[0].resolved, Resolved { by_address: 3, by_name: 2, without_hash: 0, missing: 1 });
    }
}
