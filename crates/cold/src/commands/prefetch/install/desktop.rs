//! A desktop entry whose `Exec=` lines go through the launcher.

use std::path::PathBuf;

use super::{Override, Result, head, plain_name, user_directory};
use crate::exit::Failure;

/// Where the user's own copy lies.
pub(super) fn place(name: &str) -> Result<PathBuf> {
    let name = plain_name("desktop entry", name.strip_suffix(".desktop").unwrap_or(name))?;
    let home = user_directory("XDG_DATA_HOME", ".local/share")?;
    Ok(home.join("applications").join(format!("{name}.desktop")))
}

/// The user's own copy of the system's entry.
pub(super) fn make(name: &str, launch: &[String]) -> Result<Override> {
    let path = place(name)?;
    let file = path.file_name().unwrap_or_default().to_owned();
    let dirs = std::env::var_os("XDG_DATA_DIRS").filter(|v| !v.is_empty());
    let dirs = dirs.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let found =
        std::env::split_paths(&dirs).map(|d| d.join("applications").join(&file)).find(|p| p.is_file());
    let Some(source) = found else {
        return Err(Failure::usage(format!(
            "there is no {} in the applications of {}",
            file.to_string_lossy(),
            dirs.to_string_lossy()
        )));
    };
    let text = std::fs::read_to_string(&source)
        .map_err(|e| anyhow::anyhow!("cannot read {}: {e}", source.display()))?;
    let name = file.to_string_lossy();
    let how = format!("--desktop {}", name.strip_suffix(".desktop").unwrap_or(&name));
    let text = format!("{}{}", head(&how, Some(&source)), through(&text, launch));
    Ok(Override { path, text, executable: false, next: None })
}

/// Every `Exec=` with the launcher before its program; activation over D-Bus, which would go past it, off.
fn through(entry: &str, launch: &[String]) -> String {
    let launch: Vec<String> = launch.iter().map(|w| quoted(w)).collect();
    let mut out = String::new();
    for line in entry.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        match key.trim() {
            "Exec" => {
                let at = program(value);
                out.extend(["Exec=", &value[..at], &launch.join(" "), " ", &value[at..]]);
            }
            "DBusActivatable" => out += "DBusActivatable=false",
            _ => out += line,
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
        let launch = ["/usr/bin/cold-launch".to_owned(), "--".to_owned()];
        let expected = "[Desktop Entry]\nName=App\nTryExec=/usr/bin/app\n\
                        Exec=/usr/bin/cold-launch -- /usr/bin/app %u\nDBusActivatable=false\n\
                        [Desktop Action new]\nExec=env A=1 B=2 /usr/bin/cold-launch -- app --new\n";
        assert_eq!(through(entry, &launch), expected);
        assert_eq!(program("env -u A app"), 0, "an option of env");
        assert_eq!(program("environment A=1"), 0);
    }

    #[test]
    fn words_are_quoted_as_the_specification_says() {
        assert_eq!(quoted("/usr/bin/x"), "/usr/bin/x");
        assert_eq!(quoted("/opt/my app/50%"), "\"/opt/my app/50%%\"");
        assert_eq!(quoted("a$\\"), "\"a\\\\$\\\\\\\\\"");
    }
}
