//! A desktop entry whose `Exec=` lines go through the launcher.
//!
//! They start a script, not the launcher: the script falls back to the program when the launcher is gone. It is a
//! file, because quoted words in `Exec=` are split wrongly by what opens files without a desktop (`xdg-open`).

use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use super::files::{self, Piece};
use super::{Override, Result, dbus, plain_name, user_directory};
use crate::commands::prefetch::launcher::Call;
use crate::exit::Failure;

/// Below the user's data directory: scripts that entries and D-Bus services start.
const SCRIPTS: &str = "coldstart/launchers";
/// Runs them, also from a home directory that is mounted without the right to execute.
const SHELL: &str = "/bin/sh";

/// Where files of this name lie, those that need others first.
pub(super) fn places(name: &str) -> Result<Vec<PathBuf>> {
    let name = bare(name)?;
    let data = user_directory("XDG_DATA_HOME", ".local/share")?;
    Ok(vec![
        data.join("applications").join(format!("{name}.desktop")),
        data.join(dbus::SERVICES).join(format!("{name}.service")),
        data.join(SCRIPTS).join(name),
    ])
}

/// The directories that exist for this file alone, the inner one first.
pub(super) fn made_for(path: &Path) -> Option<[&Path; 2]> {
    let scripts = path.parent().filter(|dir| dir.ends_with(SCRIPTS))?;
    Some([scripts, scripts.parent()?])
}

/// Whether an entry or a service still starts this script.
pub(super) fn is_needed(script: &Path) -> bool {
    let Some([_, own]) = made_for(script) else { return false };
    let (data, name) =
        (own.parent().unwrap_or(own), script.file_name().unwrap_or_default().to_string_lossy());
    let named = script.as_os_str().as_encoded_bytes();
    let starts_it = |path: PathBuf| {
        std::fs::read(path).is_ok_and(|text| text.windows(named.len()).any(|part| part == named))
    };
    starts_it(data.join("applications").join(format!("{name}.desktop")))
        || starts_it(data.join(dbus::SERVICES).join(format!("{name}.service")))
}

/// The user's own copy of the system's entry, or of the D-Bus service that an entry without `Exec=` is started by.
pub(super) fn make(name: &str, call: &Call) -> Result<Override> {
    let name = bare(name)?;
    let places = places(name)?;
    let [entry, service, script] = places.as_slice() else { return Err(Failure::usage("no place")) };
    let (source, text) = found("applications", entry)?.ok_or_else(|| {
        let dirs = data_directories();
        let dirs: Vec<String> = dirs.iter().map(|d| d.shown().to_string()).collect();
        Failure::usage(format!("there is no {name}.desktop in the applications of {}", dirs.join(":")))
    })?;
    let how = format!("--desktop {}", cold_bench::command::line_of(&[name.into()]));
    let (path, body) = match Started::of(&text) {
        Started::Exec => (entry, through(&text, &[SHELL, plain(script)?].map(quoted).join(" "))),
        Started::DBus => (service, dbus::make(name, service, &[SHELL, plain(script)?])?),
        Started::Nothing => {
            let what = format!("{} has no Exec= that could be started", source.shown());
            return Err(Failure::usage(what));
        }
    };
    let lines = [&call.shell_lines(b"\"$@\"", b"\n")[..], b"\n"].concat();
    let piece = |path: &Path, text, mode| Piece { path: path.to_owned(), text, mode };
    Ok(Override {
        pieces: vec![
            piece(script, files::sealed("#!/bin/sh\n", &how, Some(&source), &lines), files::SCRIPT),
            piece(path, files::sealed("", &how, Some(&source), body.as_bytes()), files::TEXT),
        ],
        next: (path == service).then(|| dbus::RELOAD.to_owned()),
    })
}

/// The name without its ending.
fn bare(name: &str) -> Result<&str> {
    plain_name("desktop entry", name.strip_suffix(".desktop").unwrap_or(name))
}

fn data_directories() -> Vec<PathBuf> {
    let dirs = std::env::var_os("XDG_DATA_DIRS").filter(|v| !v.is_empty());
    let dirs = dirs.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    std::env::split_paths(&dirs).filter(|dir| dir.is_absolute()).collect()
}

/// The system's file that the user's `own` one stands before, and what is in it.
pub(super) fn found(kind: &str, own: &Path) -> Result<Option<(PathBuf, String)>> {
    let name = own.file_name().unwrap_or_default();
    let paths = data_directories().into_iter().map(|d| d.join(kind).join(name));
    let Some(path) = paths.into_iter().find(|p| p.is_file() && p != own) else { return Ok(None) };
    let text =
        std::fs::read_to_string(&path).map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.shown()))?;
    Ok(Some((path, text)))
}

/// A path as entries and services can hold it: text of one line.
pub(super) fn plain(path: &Path) -> Result<&str> {
    path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        Failure::usage(format!("{} cannot stand in this kind of file", path.shown()))
            .hint("use a path of plain text, without line feeds")
    })
}

/// What a desktop does to start an entry.
#[derive(Debug, PartialEq, Eq)]
enum Started {
    /// It executes the line; activation over D-Bus, if there is any, can be switched off.
    Exec,
    /// It asks the message bus, and could do nothing else: the entry or one of its actions has no `Exec=`, which
    /// the specification allows where `DBusActivatable=true`.
    DBus,
    Nothing,
}

impl Started {
    fn of(entry: &str) -> Self {
        let (mut groups, mut with_exec, mut main_exec, mut activatable) = (0, 0, false, false);
        for line in lines(entry) {
            match line {
                DesktopLine::Group => groups += 1,
                DesktopLine::Exec(value) if !value.trim().is_empty() => {
                    with_exec += 1;
                    main_exec |= groups == 1;
                }
                DesktopLine::Activatable(value) => activatable |= value.trim() == "true",
                DesktopLine::Exec(_) | DesktopLine::Other => {}
            }
        }
        match (activatable, with_exec == groups, main_exec) {
            (true, false, _) => Self::DBus,
            (_, _, true) => Self::Exec,
            (_, _, false) => Self::Nothing,
        }
    }
}

/// A line of an entry. Only groups that start something count: the entry itself, which comes first, and its actions.
enum DesktopLine<'a> {
    Group,
    Exec(&'a str),
    Activatable(&'a str),
    Other,
}

fn lines(entry: &str) -> impl Iterator<Item = DesktopLine<'_>> {
    let mut starts = false;
    entry.lines().map(move |line| {
        if line.starts_with('[') {
            let group = line.trim_end();
            starts = group == "[Desktop Entry]" || group.starts_with("[Desktop Action ");
            return if starts { DesktopLine::Group } else { DesktopLine::Other };
        }
        match line.split_once('=').map(|(key, value)| (key.trim(), value)) {
            Some(("Exec", value)) if starts => DesktopLine::Exec(value),
            Some(("DBusActivatable", value)) if starts => DesktopLine::Activatable(value),
            _ => DesktopLine::Other,
        }
    })
}

/// Every `Exec=` with `launch` before its program; activation over D-Bus, which would go past it, off.
fn through(entry: &str, launch: &str) -> String {
    let mut out = String::new();
    for (text, line) in entry.lines().zip(lines(entry)) {
        match line {
            DesktopLine::Exec(value) if !value.trim().is_empty() => {
                let at = program(value);
                out.extend(["Exec=", &value[..at], launch, " ", &value[at..]]);
            }
            DesktopLine::Activatable(_) => out += "DBusActivatable=false",
            DesktopLine::Exec(_) | DesktopLine::Group | DesktopLine::Other => out += text,
        }
        out.push('\n');
    }
    out
}

/// Where the program begins: after `env` and its assignments.
fn program(exec: &str) -> usize {
    let start = exec.len() - exec.trim_start().len();
    let word = |from: usize| exec[from..].split([' ', '\t']).next().unwrap_or_default();
    if !matches!(word(start), "env" | "/usr/bin/env" | "/bin/env") {
        return start;
    }
    let mut at = start + word(start).len();
    loop {
        at = exec.len() - exec[at..].trim_start().len();
        let next = word(at);
        // Quoted assignments and options are the env's own business: all of it is left behind the launcher.
        if next.is_empty() || next.starts_with(['-', '"']) {
            return start;
        }
        if !next.contains('=') {
            return at;
        }
        at += next.len();
    }
}

/// A word as the desktop entry specification quotes it.
fn quoted(word: &str) -> String {
    const RESERVED: &str = " \t\n\"'\\><~|&;$*?#()`";
    let word = word.replace('%', "%%");
    if !word.contains(|c| RESERVED.contains(c)) {
        return word;
    }
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            // Backslashes are escaped once for the argument and once for the value.
            '\\' => out += "\\\\\\\\",
            '"' | '`' | '$' => out.extend(["\\\\", c.encode_utf8(&mut [0; 4])]),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_start_it_goes_through_the_launcher() {
        let entry = "[Desktop Entry]\nName=App\nTryExec=/usr/bin/app\nExec=/usr/bin/app %u\n\
                     DBusActivatable=true\n[Desktop Action new]\nExec=env A=1 B=2 app --new\n";
        let expected = "[Desktop Entry]\nName=App\nTryExec=/usr/bin/app\n\
                        Exec=/bin/sh /x /usr/bin/app %u\nDBusActivatable=false\n\
                        [Desktop Action new]\nExec=env A=1 B=2 /bin/sh /x app --new\n";
        assert_eq!(through(entry, "/bin/sh /x"), expected);
        assert_eq!(program("env -u A app"), 0, "an option of env");
        assert_eq!(program("environment A=1"), 0);
    }

    #[test]
    fn an_entry_without_exec_is_started_over_dbus_or_not_at_all() {
        let entry = |lines: &str| Started::of(&format!("[Desktop Entry]\n{lines}"));
        assert_eq!(entry("Exec=a\n"), Started::Exec);
        assert_eq!(entry("Exec=a\nDBusActivatable=true\n"), Started::Exec);
        assert_eq!(entry("DBusActivatable=true\n"), Started::DBus);
        assert_eq!(entry("Exec=\nDBusActivatable=true\n"), Started::DBus);
        let action = "Exec=a\nDBusActivatable=true\n[Desktop Action new]\nName=New\n";
        assert_eq!(entry(action), Started::DBus, "switched off, the action would start nothing");
        assert_eq!(entry("Type=Link\n[X-Other]\nExec=a\n"), Started::Nothing);
        assert_eq!(entry("DBusActivatable=false\n"), Started::Nothing);
    }

    #[test]
    fn words_are_quoted_as_the_specification_says() {
        assert_eq!(quoted("/usr/bin/x"), "/usr/bin/x");
        assert_eq!(quoted("/opt/my app/50%"), "\"/opt/my app/50%%\"");
        assert_eq!(quoted("a$\\"), "\"a\\\\$\\\\\\\\\"");
    }
}
