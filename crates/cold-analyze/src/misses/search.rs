//! Recognises the search that a failed lookup belongs to, from the environment's search paths, the
//! program that looked, the run paths of its libraries, and the names themselves.

use std::collections::{BTreeMap, HashMap, HashSet};

use cold_model::recording::{Lookup, LookupKind};
use cold_model::{Nanos, path_text};

use crate::context::{Context, is_miss};

/// Directories that ld.so searches without being told (glibc's trusted ones, multi-arch included).
const LOADER_DEFAULTS: [&str; 5] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];

/// Parts of a path that tell the search by themselves; the first that matches counts.
const BY_PATH: [(&str, &str); 15] = [
    ("/node_modules", "node_modules"),
    ("/locale-archive", "locale"),
    ("/LC_MESSAGES/", "locale"),
    ("/lib/locale/", "locale"),
    ("/share/locale", "locale"),
    ("/gconv", "gconv"),
    ("/share/icons", "icon themes"),
    ("/.icons", "icon themes"),
    ("/share/pixmaps", "icon themes"),
    ("/fontconfig", "fonts"),
    ("/fonts", "fonts"),
    ("/.fonts", "fonts"),
    ("/terminfo", "terminfo"),
    ("/etc/xdg", "XDG configuration directories"),
    ("/.config/", "XDG configuration directories"),
];

pub(super) struct Searches<'a> {
    /// Environment variable and its directories.
    variables: BTreeMap<&'a str, Vec<&'a str>>,
    /// Directory and the file whose run path names it.
    run_paths: HashMap<String, String>,
    /// Program by pid: when it began and its name.
    programs: HashMap<u32, Vec<(Nanos, String)>>,
    /// Threads that looked for one program in several directories: (pid, name).
    searched: HashSet<(u32, &'a str)>,
}

impl<'a> Searches<'a> {
    pub(super) fn of(cx: &Context<'a>) -> Self {
        let m = &cx.recording.manifest;
        let variables = m
            .search_paths
            .iter()
            .map(|(name, value)| {
                let parts = value.split(':').map(trim).filter(|d| !d.is_empty());
                (name.as_str(), parts.collect())
            })
            .collect();
        Self { variables, run_paths: run_paths(cx), programs: programs(cx), searched: searched(cx) }
    }

    /// What searched for `path`, which the process looked for below its own root; `place`: its directory as the recorder
    /// sees it.
    pub(super) fn recognise(&self, l: &Lookup, path: &str, place: &str) -> Option<String> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let program = self.program(l);
        if l.kind == LookupKind::Exec {
            let several = self.searched.contains(&(l.pid, name));
            return (self.lists("PATH", directory) || several).then(|| "PATH".to_string());
        }
        if matches!(path, "/etc/ld.so.preload" | "/etc/ld.so.cache" | "/etc/ld-nix.so.preload") {
            return Some("loader configuration".to_string());
        }
        by_language(program, directory, name)
            .or_else(|| self.by_variable(directory, name))
            .or_else(|| self.loader(directory, place, name))
            .or_else(|| git(program, path, name))
            .or_else(|| {
                let found = BY_PATH.iter().find(|(part, _)| format!("{path}/").contains(part))?;
                Some(found.1.to_string())
            })
            .or_else(|| self.xdg_data(path))
    }

    /// Name of the program that looked.
    fn program(&self, l: &Lookup) -> &str {
        let images = self.programs.get(&l.pid).map_or(&[][..], Vec::as_slice);
        images.iter().rev().find(|(began, _)| *began <= l.at).map_or("", |(_, name)| name)
    }

    fn lists(&self, variable: &str, directory: &str) -> bool {
        self.variables.get(variable).is_some_and(|d| d.contains(&trim(directory)))
    }

    /// A directory that only one of the environment's lists names; libraries only for the loader's.
    fn by_variable(&self, directory: &str, name: &str) -> Option<String> {
        let base = without_capabilities(directory);
        if path_text::is_library(name) || base != directory {
            return self.lists("LD_LIBRARY_PATH", base).then(|| "LD_LIBRARY_PATH".to_string());
        }
        let data = ["LD_LIBRARY_PATH", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"];
        let lists = self.variables.keys().filter(|v| !data.contains(v));
        lists.copied().find(|v| self.lists(v, directory)).map(str::to_string)
    }

    fn loader(&self, directory: &str, place: &str, name: &str) -> Option<String> {
        let base = without_capabilities(directory);
        if !path_text::is_library(name) && base == directory {
            return None;
        }
        // `$ORIGIN` is where the recorder sees the file.
        let run_path = [base, without_capabilities(place)].iter().find_map(|dir| self.run_paths.get(*dir));
        if let Some(file) = run_path {
            return Some(format!("RPATH of {file}"));
        }
        let default = |d: &str| {
            let rest = base.strip_prefix(d)?;
            // The directory itself or a multi-arch one right below (`x86_64-linux-gnu`).
            let below = rest.strip_prefix('/').is_some_and(|r| r.contains("-linux-") && !r.contains('/'));
            (rest.is_empty() || below).then(|| "loader default path".to_string())
        };
        LOADER_DEFAULTS.into_iter().find_map(default)
    }

    fn xdg_data(&self, path: &str) -> Option<String> {
        let given = self.variables.get("XDG_DATA_DIRS").map_or(&[][..], Vec::as_slice);
        let standard = ["/usr/share", "/usr/local/share"];
        let subjects =
            ["applications", "mime", "glib-2.0", "themes", "dconf", "sounds", "gtk-3.0", "gtk-4.0"];
        let below = |d: &str| path.strip_prefix(d).is_some_and(|r| r.starts_with('/'));
        let subject = |d: &str| {
            let rest = path.strip_prefix(d)?.strip_prefix('/')?;
            subjects.contains(&rest.split('/').next().unwrap_or(rest)).then_some(())
        };
        let standard =
            standard.into_iter().find_map(subject).is_some() || path.split_once("/.local/share/").is_some();
        let given = given.iter().any(|d| !matches!(*d, "/usr/share" | "/usr/local/share") && below(d));
        (standard || given).then(|| "XDG data directories".to_string())
    }
}

fn trim(directory: &str) -> &str {
    match directory.trim_end_matches('/') {
        "" if directory.starts_with('/') => "/",
        d => d,
    }
}

/// The directory that was named, without what the loader appends: `glibc-hwcaps/x86-64-v3`, `tls/…`.
fn without_capabilities(directory: &str) -> &str {
    if let Some((base, _)) = directory.split_once("/glibc-hwcaps") {
        return base;
    }
    let mut base = directory;
    while let Some((rest, "tls" | "haswell" | "x86_64" | "avx512_1")) = base.rsplit_once('/') {
        base = rest;
    }
    base
}

fn git(program: &str, path: &str, name: &str) -> Option<String> {
    let configuration = matches!(name, "gitconfig" | ".gitconfig") || path.ends_with("/git/config");
    if configuration {
        return Some("git configuration".to_string());
    }
    let is_git = program == "git" || program.starts_with("git-");
    (is_git && (path.contains("/.git") || name == "HEAD")).then(|| "git repository".to_string())
}

/// Searches of interpreters, told by the program and the kinds of names they try.
fn by_language(program: &str, directory: &str, name: &str) -> Option<String> {
    let ends = |list: &[&str]| list.iter().any(|e| name.ends_with(e));
    let python = program.starts_with("python") || program.starts_with("pypy");
    if matches!(name, "pyvenv.cfg" | "pybuilddir.txt") || name.ends_with("._pth") {
        return Some("Python start-up files".to_string());
    }
    let library = format!("{directory}/");
    let in_python =
        library.contains("/python3") || library.contains("-packages/") || name.starts_with("python3");
    if name.contains(".cpython-")
        || name.contains(".pypy")
        || ends(&[".abi3.so", ".pyc"])
        || (python && (ends(&[".py", ".so", "module.so"]) || in_python))
    {
        return Some("Python sys.path".to_string());
    }
    if library.contains("/node_modules/") || name == "node_modules" {
        return Some("node_modules".to_string());
    }
    if program.starts_with("node") && (name == "package.json" || ends(&[".js", ".mjs", ".cjs", ".node"])) {
        return Some("node module resolution".to_string());
    }
    if program.starts_with("java") && ends(&[".jar", ".class", ".jmod", ".jsa", "/modules"]) {
        return Some("Java class path".to_string());
    }
    if ends(&[".pm", ".pmc"]) {
        return Some("Perl @INC".to_string());
    }
    (program.starts_with("ruby") && ends(&[".rb", ".so"])).then(|| "Ruby $LOAD_PATH".to_string())
}

/// Directories of `DT_RPATH` and `DT_RUNPATH`, `$ORIGIN` resolved.
fn run_paths(cx: &Context<'_>) -> HashMap<String, String> {
    let mut out = HashMap::new();
    for (&file, layout) in &cx.layouts.files {
        let path = cx.path(file);
        let origin = path.rsplit_once('/').map_or("", |(d, _)| d);
        for entry in &layout.run_path {
            let directory = entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin);
            out.entry(normal(&directory)).or_insert_with(|| path.clone());
            out.entry(trim(&directory).to_string()).or_insert_with(|| path.clone());
        }
    }
    out
}

/// Without `.` and `..`, by name only: what the loader prints and what it opens differ by these.
fn normal(directory: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            p => parts.push(p),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Per pid the names of its program images, by time.
fn programs(cx: &Context<'_>) -> HashMap<u32, Vec<(Nanos, String)>> {
    let mut out: HashMap<u32, Vec<(Nanos, String)>> = HashMap::new();
    for p in &cx.recording.processes {
        let path = p.executable.map(|f| cx.path(f));
        let name = path.as_deref().map_or(p.name.as_str(), path_text::base);
        out.entry(p.pid).or_default().push((p.began, name.to_string()));
    }
    for images in out.values_mut() {
        images.sort();
    }
    out
}

/// Names that one process tried to execute in more than one directory, failing in one at least.
fn searched<'a>(cx: &Context<'a>) -> HashSet<(u32, &'a str)> {
    let mut directories: HashMap<(u32, &str), HashSet<&str>> = HashMap::new();
    let mut missed: HashSet<(u32, &str)> = HashSet::new();
    for (_, l) in cx.lookups().filter(|(_, l)| l.kind == LookupKind::Exec) {
        let Some((directory, name)) = l.path.as_deref().and_then(|p| p.rsplit_once('/')) else { continue };
        directories.entry((l.pid, name)).or_default().insert(directory);
        if is_miss(l) {
            missed.insert((l.pid, name));
        }
    }
    missed.retain(|key| directories.get(key).is_some_and(|d| d.len() > 1));
    missed
}
