//! What will start within the hour: systemd timers, cron and anacron jobs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cold_model::Shown as _;

use crate::calendar::{self, Crontab};
use crate::context::Context;
use crate::finding::Finding;

/// How far ahead is looked, in minutes.
const HORIZON: u32 = 60;
/// Jobs due within this many minutes fall into a measurement that starts now: `cold bench` of a real
/// program takes minutes, not an hour.
const SOON: u32 = 15;
/// systemctl answers in some 10 ms; a hung D-Bus must not hold up the report.
const SYSTEMCTL_PATIENCE: Duration = Duration::from_millis(1500);
/// Timers that do next to nothing.
const LIGHT: &[&str] = &["sysstat-collect.timer", "systemd-tmpfiles-clean.timer", "motd-news.timer"];

/// Something that will start.
struct Due {
    minutes: u32,
    what: String,
    light: bool,
}

fn findings(id: &'static str, mut due: Vec<Due>, nothing: String) -> Vec<Finding> {
    due.sort_by(|a, b| (a.minutes, &a.what).cmp(&(b.minutes, &b.what)));
    let mut findings: Vec<Finding> = due
        .iter()
        .filter(|d| d.minutes <= SOON && !d.light)
        .map(|d| {
            Finding::disturbs(id, format!("{} starts in {}", d.what, minutes(d.minutes)))
                .about(d.what.clone())
                .so("its reads and writes fall into a measurement that starts now")
                .remedy("measure after it, or stop it for the measurement")
        })
        .collect();
    let later: Vec<String> = due
        .iter()
        .filter(|d| d.minutes > SOON || d.light)
        .map(|d| format!("{} in {}", d.what, minutes(d.minutes)))
        .collect();
    if !later.is_empty() {
        findings.push(
            Finding::note(id, format!("due within the hour: {}", later.join(", ")))
                .so("a long measurement will meet them; its runs are marked where they read"),
        );
    }
    if findings.is_empty() {
        findings.push(Finding::ok(id, nothing).so("a measurement of up to an hour meets none"));
    }
    findings
}

fn minutes(n: u32) -> String {
    if n == 0 { "less than a minute".to_owned() } else { format!("{n} min") }
}

pub(crate) fn timers(c: &Context) -> Vec<Finding> {
    let id = "timers";
    if !c.systemd_runs() {
        return vec![
            Finding::ok(id, "systemd does not run here, so no timers fire").so("no measurement meets one"),
        ];
    }
    let systemctl = ["/usr/bin/systemctl", "/bin/systemctl"].map(|p| c.roots.path(p));
    let Some(systemctl) = systemctl.iter().find(|p| p.is_file()) else {
        return vec![unknown_timers(c, "systemctl is not installed")];
    };
    let text = match ask(systemctl) {
        Ok(text) => text,
        Err(why) => return vec![unknown_timers(c, &why)],
    };
    let Some(due) = parse_timers(&text, c.config.now) else {
        return vec![unknown_timers(c, "systemctl printed something else than a list of timers")];
    };
    findings(id, due, "no systemd timer is due within the hour".to_owned())
}

/// Without systemctl's answer, the stamps of persistent timers at least say which there are.
fn unknown_timers(c: &Context, why: &str) -> Finding {
    let entries = std::fs::read_dir(c.roots.path("/var/lib/systemd/timers")).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|e| Some(e.file_name().to_str()?.strip_prefix("stamp-")?.to_owned())).collect();
    names.sort();
    let known = if names.is_empty() { String::new() } else { format!("; in use: {}", names.join(", ")) };
    Finding::unknown("timers", "timers", format!("{why}{known}"))
        .so("a timer may start in the middle of a measurement")
        .remedy("see: systemctl list-timers")
}

/// The output of `systemctl list-timers`, or why there is none.
fn ask(systemctl: &Path) -> Result<String, String> {
    let mut child = Command::new(systemctl)
        .args(["list-timers", "--all", "--no-pager", "--output=json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("cannot run {}: {e}", systemctl.shown()))?;
    let Some(mut stdout) = child.stdout.take() else { return Err("no output of systemctl".to_owned()) };
    // Read beside the wait: more than a pipe's 64 KiB would block it.
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let reader = match reader {
        Ok(reader) => reader,
        Err(e) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("cannot read from systemctl: {e}"));
        }
    };
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < SYSTEMCTL_PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("systemctl gave no answer within {SYSTEMCTL_PATIENCE:?}"));
            }
        }
    };
    let text = reader.join().map_err(|_| "reading from systemctl failed")?;
    if !status.success() {
        return Err(format!("systemctl list-timers failed ({status})"));
    }
    text.map_err(|e| format!("reading from systemctl: {e}"))
}

/// Timers due within the horizon. `next` is in microseconds since the epoch, 0 or null when unset.
fn parse_timers(text: &str, now: Duration) -> Option<Vec<Due>> {
    let list: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
    let now_us = u64::try_from(now.as_micros()).ok()?;
    let due = |timer: &serde_json::Value| {
        let next = timer.get("next")?.as_u64().filter(|n| *n > 0 && *n != u64::MAX)?;
        let unit = timer.get("unit")?.as_str()?;
        let minutes =
            u32::try_from(next.saturating_sub(now_us) / 60_000_000).ok().filter(|m| *m <= HORIZON)?;
        Some(Due { minutes, what: unit.to_owned(), light: LIGHT.contains(&unit) })
    };
    Some(list.iter().filter_map(due).collect())
}

/// Daemons that read crontabs.
const CRON_DAEMONS: &[&str] = &["cron", "crond", "cronie", "fcron", "dcron", "busybox-crond"];

pub(crate) fn cron(c: &Context) -> Vec<Finding> {
    let id = "cron";
    let mut due = Vec::new();
    let (mut jobs, mut not_understood) = (0, 0);
    let mut closed: Vec<String> = Vec::new();
    for (path, with_user) in tables(c, &mut closed) {
        let text = match std::fs::read(c.roots.path(&path)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => {
                closed.push(path.shown().to_string());
                continue;
            }
        };
        let Crontab { jobs: found, not_understood: bad } = calendar::parse_crontab(&text, with_user);
        jobs += found.len();
        not_understood += bad;
        let now = i64::try_from(c.config.now.as_secs()).unwrap_or(0);
        due.extend(found.iter().filter_map(|job| {
            let minutes = job.schedule.due_within(now, HORIZON, c.probes.local_time)?;
            let what = format!("{} ({})", shorten(&job.command), path.shown());
            Some(Due { minutes, what, light: false })
        }));
    }
    if c.called(CRON_DAEMONS).next().is_none() {
        return vec![
            Finding::ok(id, format!("no cron daemon runs, so none of {jobs} cron jobs starts"))
                .so("no measurement meets one"),
        ];
    }
    let mut all = findings(id, due, format!("none of {jobs} cron jobs is due within the hour"));
    if !closed.is_empty() {
        all.retain(|f| f.status != crate::Status::Ok);
        all.push(
            Finding::unknown("cron.closed", "some cron jobs", format!("cannot read {}", closed.join(", ")))
                .so("a job may start in the middle of a measurement")
                .remedy("run as root: sudo cold doctor"),
        );
    }
    if not_understood > 0 {
        all.push(
            Finding::unknown(
                "cron.lines",
                "some cron jobs",
                format!("{not_understood} lines of crontabs not understood"),
            )
            .so("when they start, if cron accepts them, is not known"),
        );
    }
    all
}

/// The crontabs, and whether their lines name a user. Directories that cannot be listed go to `closed`.
fn tables(c: &Context, closed: &mut Vec<String>) -> Vec<(PathBuf, bool)> {
    let mut tables = vec![(PathBuf::from("/etc/crontab"), true)];
    let directories =
        [("/etc/cron.d", true), ("/var/spool/cron/crontabs", false), ("/var/spool/cron", false)];
    for (directory, with_user) in directories {
        let entries = match std::fs::read_dir(c.roots.path(directory)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_) => {
                closed.push(directory.to_owned());
                continue;
            }
        };
        let files = entries.flatten().filter(|e| e.path().is_file()).map(|e| e.file_name());
        // cron.d takes run-parts names only: no dots, so that backups of editors and dpkg are left out.
        let allowed = |name: &str| {
            !with_user || name.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_' || ch == '-')
        };
        let files = files.filter(|f| f.to_str().is_some_and(allowed));
        tables.extend(files.map(|f| (Path::new(directory).join(f), with_user)));
    }
    tables.sort();
    tables
}

fn shorten(command: &str) -> String {
    const MOST: usize = 48;
    if command.chars().count() <= MOST {
        return command.to_owned();
    }
    command.chars().take(MOST - 1).chain(['…']).collect()
}

pub(crate) fn anacron(c: &Context) -> Vec<Finding> {
    let id = "anacron";
    // Packages leave the table behind; without the program nothing reads it.
    if !["/usr/sbin/anacron", "/usr/bin/anacron"].iter().any(|p| c.roots.path(p).is_file()) {
        return Vec::new();
    }
    let text = match std::fs::read_to_string(c.roots.path("/etc/anacrontab")) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(e) => return vec![Finding::unknown(id, "anacron's jobs", e)],
    };
    let Some(today) = i64::try_from(c.config.now.as_secs()).ok().and_then(c.probes.local_time) else {
        return vec![Finding::unknown(id, "anacron's jobs", "local time cannot be told")];
    };
    let today = calendar::days_from_civil(today.year, today.month, today.day);
    let mut overdue = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [period, _delay, job, _command, ..] = words.as_slice() else { continue };
        let period = match *period {
            "@daily" => 1,
            "@weekly" => 7,
            // anacron runs it when the month has changed; 31 days are the latest.
            "@monthly" => 31,
            number => match number.parse::<i64>() {
                Ok(n) => n,
                Err(_) => continue, // a setting such as PATH=…
            },
        };
        let stamp = c.roots.path("/var/spool/anacron").join(job);
        match std::fs::read_to_string(stamp) {
            Ok(stamp) if day_of_stamp(&stamp).is_some_and(|day| today - day < period) => {}
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                return vec![
                    Finding::unknown(id, "anacron's jobs", e).remedy("run as root: sudo cold doctor"),
                ];
            }
            _ => overdue.push(*job),
        }
    }
    vec![if overdue.is_empty() {
        Finding::ok(id, "no anacron job is overdue").so("anacron's next start does nothing")
    } else {
        Finding::note(id, format!("overdue with anacron: {}", overdue.join(", ")))
            .so("they run at anacron's next start: after boot, after resume, or hourly")
            .remedy("let them run first: anacron -fn as root")
    }]
}

/// Days since the epoch of a stamp like `20261120`.
fn day_of_stamp(text: &str) -> Option<i64> {
    let text = text.trim();
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    ((1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| calendar::days_from_civil(year.cast_signed(), month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_systemd_252() {
        let text = r#"[{"next":1700000600000000,"left":1,"last":null,"passed":null,"unit":"apt-daily.timer",
            "activates":"apt-daily.service"},{"next":1700009999000000,"unit":"later.timer"},
            {"next":null,"unit":"never.timer"},{"next":1700000060000000,"unit":"sysstat-collect.timer"}]"#;
        let due = parse_timers(text, Duration::from_secs(1_700_000_000)).expect("parses");
        let due: Vec<_> = due.iter().map(|d| (d.what.as_str(), d.minutes, d.light)).collect();
        assert_eq!(due, [("apt-daily.timer", 10, false), ("sysstat-collect.timer", 1, true)]);
        assert!(parse_timers("NEXT LEFT LAST", Duration::ZERO).is_none());
    }

    #[test]
    fn stamps() {
        assert_eq!(day_of_stamp("20261120\n"), Some(20_777));
        for bad in ["", "2026", "20261320", "2026112é", "abcdefgh"] {
            assert_eq!(day_of_stamp(bad), None, "{bad}");
        }
    }
}
