//! A drop-in that resets `ExecStart=` and gives it again through the launcher.
//!
//! systemd knows no second choice for a program that is gone. So a shell looks for the launcher and becomes it, or
//! becomes the program; the service keeps its main process, whose id is the same all the way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use super::files::{self, Piece};
use super::{Override, Result, desktop, plain_name, user_directory};
use crate::commands::prefetch::launcher::Call;
use crate::exit::Failure;

/// Name of the drop-in.
const FILE: &str = "90-coldstart.conf";
/// Where units of the system lie, the strongest first.
const SYSTEM: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Those of users, after the user's own.
const USER: [&str; 4] =
    ["/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

/// What the user does after a change.
pub(super) const RELOAD: &str = "systemctl daemon-reload (for your own services with --user)";

/// Where the drop-in lies.
pub(super) fn place(unit: &str) -> Result<PathBuf> {
    Ok(directories()?.remove(0).join(format!("{}.d", full_name(unit)?)).join(FILE))
}

/// Whether this is a drop-in of ours.
pub(super) fn is_dropin(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FILE)
}

/// The drop-in that makes a unit start its program through the launcher.
pub(super) fn make(unit: &str, call: &Call) -> Result<Override> {
    let name = full_name(unit)?;
    let path = place(unit)?;
    desktop::plain(&call.program)?;
    call.store.as_deref().map(desktop::plain).transpose()?;
    let (source, texts) = unit_files(&name, &directories()?, &path)?;
    let commands = settings(texts.iter().map(String::as_str), "ExecStart");
    if commands.is_empty() {
        return Err(Failure::usage(format!("{name} has no ExecStart= that could be overridden")));
    }
    for key in ["RootDirectory", "RootImage", "NoExecPaths"] {
        if let Some(value) = settings(texts.iter().map(String::as_str), key).last() {
            let what =
                format!("{name} has {key}={value}: neither a shell nor the launcher could be executed there");
            return Err(Failure::usage(what));
        }
    }
    let mut body = String::from("[Service]\nExecStart=\n");
    for command in &commands {
        body.extend(["ExecStart=", &through(command, call)?, "\n"]);
    }
    let text = files::sealed("", &format!("--systemd {name}"), Some(&source), body.as_bytes());
    Ok(Override { pieces: vec![Piece { path, text, mode: files::TEXT }], next: Some(RELOAD.to_owned()) })
}

/// `cups` is `cups.service`.
fn full_name(unit: &str) -> Result<String> {
    let unit = plain_name("unit", unit)?;
    match unit.rsplit_once('.') {
        Some((_, "service")) => Ok(unit.to_owned()),
        Some((_, "socket" | "timer" | "path" | "target" | "mount" | "device" | "slice" | "scope")) => {
            Err(Failure::usage(format!("{unit} starts no program itself: name its service")))
        }
        _ => Ok(format!("{unit}.service")),
    }
}

fn directories() -> Result<Vec<PathBuf>> {
    if cold_sys::caps::is_root() {
        return Ok(SYSTEM.map(PathBuf::from).to_vec());
    }
    let mut dirs = vec![user_directory("XDG_CONFIG_HOME", ".config")?.join("systemd/user")];
    dirs.extend(USER.map(PathBuf::from));
    Ok(dirs)
}

/// The unit's own file, and the texts of it and its drop-ins (without ours) in the order they are read.
fn unit_files(name: &str, dirs: &[PathBuf], ours: &Path) -> Result<(PathBuf, Vec<String>)> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.shown()))
    };
    // An instance (`app@1.service`) has its template's file.
    let template = name.split_once('@').map(|(base, _)| format!("{base}@.service"));
    let names: Vec<&str> = std::iter::once(name).chain(template.as_deref()).collect();
    let found = names.iter().flat_map(|n| dirs.iter().map(move |d| d.join(n))).find(|p| p.is_file());
    let source = found.ok_or_else(|| Failure::usage(format!("there is no unit {name}")))?;
    let mut texts = vec![read(&source)?];
    // Drop-ins are ordered by file name; of equal names the stronger directory's counts.
    let mut dropins: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for dir in names.iter().rev().flat_map(|n| dirs.iter().rev().map(move |d| d.join(format!("{n}.d")))) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|e| e == "conf") && entry.path() != ours {
                dropins.insert(entry.file_name(), entry.path());
            }
        }
    }
    for path in dropins.values() {
        texts.push(read(path)?);
    }
    Ok((source, texts))
}

/// The values of a key of `[Service]` that count after all files: an empty assignment forgets those before it.
fn settings<'a>(texts: impl Iterator<Item = &'a str>, wanted: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for text in texts {
        let mut section = String::new();
        for line in joined(text) {
            let line = line.trim();
            if line.starts_with('[') {
                line.clone_into(&mut section);
            } else if section == "[Service]"
                && let Some((key, value)) = line.split_once('=')
                && key.trim() == wanted
            {
                match value.trim() {
                    "" => commands.clear(),
                    command => commands.push(command.to_owned()),
                }
            }
        }
    }
    commands
}

/// Lines without comments; a backslash at the end joins the next one.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines().filter(|l| !l.trim_start().starts_with(['#', ';'])) {
        match line.strip_suffix('\\') {
            Some(part) => open.extend([part, " "]),
            None => lines.push(std::mem::take(&mut open) + line),
        }
    }
    lines.extend(Some(open).filter(|o| !o.is_empty()));
    lines
}

/// A command with the shell and its two ways before the program, and its special prefixes before that.
fn through(command: &str, call: &Call) -> Result<String> {
    let at = command.find(|c| !"@-:+!|".contains(c)).unwrap_or(command.len());
    let (prefixes, rest) = command.split_at(at);
    if prefixes.contains('@') {
        return Err(Failure::usage(format!(
            "ExecStart={command} gives the program another name (@), which no launcher can pass on"
        )));
    }
    let script = String::from_utf8_lossy(&call.shell_lines(b"\"$@\"", b"; ")).into_owned();
    // With a colon systemd replaces no variables, and doubled dollars would stay doubled.
    let script = quoted(&script, !prefixes.contains(':'));
    Ok(format!("{prefixes}/bin/sh -c {script} sh {}", rest.trim_start()))
}

/// A word in systemd's quotes, its specifiers escaped, and its dollars where variables are replaced.
fn quoted(word: &str, variables: bool) -> String {
    let word = word.replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", if variables { word.replace('$', "$$") } else { word })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reset_counts_and_sections_matter() {
        let unit = "[Unit]\nExecStart=/no\n[Service]\n# ExecStart=/no\nExecStart=/usr/sbin/a \\\n  -x\n";
        let dropin = "[Service]\nExecStart=\nExecStart=-/usr/sbin/b\nExecStart = /usr/sbin/c\n";
        assert_eq!(settings([unit].into_iter(), "ExecStart"), ["/usr/sbin/a    -x"]);
        assert_eq!(settings([unit, dropin].into_iter(), "ExecStart"), ["-/usr/sbin/b", "/usr/sbin/c"]);
    }

    #[test]
    fn prefixes_stay_in_front_and_the_program_is_the_second_choice() {
        let call = Call::to("/opt/a b$/cold-launch");
        let through = |c: &str| through(c, &call).map_err(|f| f.error.to_string());
        let script = |d: &str| {
            let own = format!("'/opt/a b{d}/cold-launch'");
            let all = format!("\\\"{d}@\\\"");
            format!("/bin/sh -c \"[ -x {own} ] && exec {own} -- {all}; exec {all}\" sh /bin/x -y")
        };
        assert_eq!(through("-!/bin/x -y").expect("made"), format!("-!{}", script("$$")));
        assert_eq!(through(":/bin/x -y").expect("made"), format!(":{}", script("$")));
        assert!(through("@/bin/x name").is_err());
    }

    #[test]
    fn names_of_units() {
        assert_eq!(full_name("cups").expect("a service"), "cups.service");
        assert_eq!(full_name("a@b.service").expect("a service"), "a@b.service");
        assert!(full_name("cups.socket").is_err() && full_name("../x").is_err());
    }

    #[test]
    fn files_of_a_unit_without_our_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let (etc, usr) = (dir.path().join("etc"), dir.path().join("usr"));
        let put = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        put(usr.join("a@.service"), "unit");
        put(usr.join("a@.service.d/50-x.conf"), "weak");
        put(etc.join("a@1.service.d/50-x.conf"), "strong");
        let ours = etc.join("a@1.service.d").join(FILE);
        put(ours.clone(), "ours");
        let (source, texts) = unit_files("a@1.service", &[etc, usr.clone()], &ours).expect("found");
        assert_eq!((source, texts), (usr.join("a@.service"), vec!["unit".to_owned(), "strong".to_owned()]));
    }
}
