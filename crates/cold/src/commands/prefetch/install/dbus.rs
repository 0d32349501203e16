//! A D-Bus service whose `Exec=` goes through the launcher, for desktop entries that are started in no other way.

use std::path::Path;

use cold_model::Shown as _;

use super::{Result, desktop};
use crate::exit::Failure;

/// Below a data directory: services of the session's bus.
pub(super) const SERVICES: &str = "dbus-1/services";
/// What the user does after a change: the bus does not watch a directory that is new.
pub(super) const RELOAD: &str = "log in again, or: busctl --user call org.freedesktop.DBus /org/freedesktop/DBus \
                                 org.freedesktop.DBus ReloadConfig";

/// The user's own copy `own` of the service `name`, `launch` before its program.
pub(super) fn make(name: &str, own: &Path, launch: &[&str]) -> Result<String> {
    let why = format!("{name}.desktop is started over D-Bus and has no Exec= of its own");
    let Some((source, text)) = desktop::found(SERVICES, own)? else {
        return Err(Failure::usage(format!("{why}, and there is no service {name} in {SERVICES}")));
    };
    let value = |key: &str| {
        let found = text.lines().filter_map(|line| line.split_once('='));
        found.filter(|(k, _)| k.trim() == key).map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    };
    if let Some(unit) = value("SystemdService") {
        return Err(Failure::usage(format!("{why}: {} lets systemd start {unit}", source.shown()))
            .hint(format!("cold prefetch install --systemd {unit}")));
    }
    if value("Exec").is_none() {
        return Err(Failure::usage(format!("{why}, and {} has none either", source.shown())));
    }
    Ok(through(&text, launch))
}

fn through(service: &str, launch: &[&str]) -> String {
    // The bus splits the line as a shell does.
    let launch = cold_bench::command::line_of(&launch.iter().map(Into::into).collect::<Vec<_>>());
    let mut out = String::new();
    for line in service.lines() {
        match line.split_once('=') {
            Some((key, value)) if key.trim() == "Exec" => {
                out.extend(["Exec=", &launch, " ", value.trim_start()]);
            }
            _ => out += line,
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_starts_the_program_through_the_script() {
        let service = "[D-BUS Service]\nName=org.x\nExec=/usr/bin/x --gapplication-service\n";
        let made = through(service, &["/bin/sh", "/home/a b/x"]);
        let exec = "Exec=/bin/sh '/home/a b/x' /usr/bin/x --gapplication-service\n";
        assert_eq!(made, format!("[D-BUS Service]\nName=org.x\n{exec}"));
    }
}
