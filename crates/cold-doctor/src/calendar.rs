//! When cron and anacron jobs are due. See crontab(5), anacrontab(5).

use cold_sys::clock::LocalTime;

/// The five time fields of a crontab line, as bit sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// The day field begins with `*`.
    any_day: bool,
    /// The weekday field begins with `*`.
    any_weekday: bool,
}

/// A line of a crontab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) schedule: Schedule,
    pub(crate) command: String,
}

/// A crontab: its jobs, and how many lines were not understood (cron would refuse them, or they follow
/// `CRON_TZ`, which this does not follow).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Crontab {
    pub(crate) jobs: Vec<Job>,
    pub(crate) not_understood: usize,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Schedule {
    /// Parses five fields, or one of `@hourly` and its kin.
    fn parse(fields: &[&str]) -> Option<Self> {
        let [minute, hour, day, month, weekday] = fields else { return None };
        let weekdays = field(weekday, 0, 7, WEEKDAYS, 0)?;
        Some(Self {
            minutes: field(minute, 0, 59, &[], 0)?,
            hours: field(hour, 0, 23, &[], 0)?,
            days: field(day, 1, 31, &[], 0)?,
            months: field(month, 1, 12, MONTHS, 1)?,
            // 7 is Sunday too.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
        })
    }

    fn nickname(name: &str) -> Option<Self> {
        let fields = match name {
            "@hourly" => ["0", "*", "*", "*", "*"],
            "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
            "@weekly" => ["0", "0", "*", "*", "0"],
            "@monthly" => ["0", "0", "1", "*", "*"],
            "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
            _ => return None,
        };
        Self::parse(&fields)
    }

    /// Whether the job starts in this minute. With both day fields restricted either suffices; a field
    /// that begins with `*` counts as unrestricted, so then both must match (crontab(5)).
    pub(crate) fn matches(&self, t: LocalTime) -> bool {
        let in_set = |set: u64, n: u32| n < 64 && set >> n & 1 == 1;
        let (day, weekday) = (in_set(self.days, t.day), in_set(self.weekdays, t.weekday));
        let on_day = if self.any_day || self.any_weekday { day && weekday } else { day || weekday };
        in_set(self.minutes, t.minute) && in_set(self.hours, t.hour) && in_set(self.months, t.month) && on_day
    }

    /// Minutes from now (UNIX seconds) to the next start, if it is within `horizon` minutes. Looks at each
    /// minute in local time, so changes of the clock are followed.
    pub(crate) fn due_within(
        &self,
        now: i64,
        horizon: u32,
        local: fn(i64) -> Option<LocalTime>,
    ) -> Option<u32> {
        // cron starts jobs at the beginning of a minute; the current one has begun.
        let this_minute = now.div_euclid(60);
        (1..=horizon).find(|m| local((this_minute + i64::from(*m)) * 60).is_some_and(|t| self.matches(t)))
    }
}

/// One field: a list of `*`, `a`, `a-b`, each with an optional `/step`.
fn field(text: &str, low: u32, high: u32, names: &[&str], first_name: u32) -> Option<u64> {
    let value = |word: &str| {
        let named = names.iter().position(|n| word.eq_ignore_ascii_case(n));
        let n = named.map_or_else(|| word.parse().ok(), |i| Some(i as u32 + first_name))?;
        (low..=high).contains(&n).then_some(n)
    };
    let mut set = 0u64;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<usize>().ok().filter(|s| *s > 0)?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (low, high),
            Some((a, b)) => (value(a)?, value(b)?),
            // `5/10` means from 5 on, to those crons that accept it.
            None => (value(range)?, if step.is_some() { high } else { value(range)? }),
        };
        if from > to {
            return None;
        }
        for n in (from..=to).step_by(step.unwrap_or(1)) {
            set |= 1 << n;
        }
    }
    Some(set)
}

/// Parses a crontab; system tables have a user before the command.
pub(crate) fn parse_crontab(text: &str, with_user: bool) -> Crontab {
    let mut table = Crontab::default();
    let mut other_zone = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if is_setting(line) {
            other_zone |= line.starts_with("CRON_TZ");
            continue;
        }
        if line.starts_with("@reboot") {
            continue; // not due before the next boot
        }
        match parse_line(line, with_user) {
            Some(job) if !other_zone => table.jobs.push(job),
            _ => table.not_understood += 1,
        }
    }
    table
}

/// A line of a crontab that sets a variable of the environment: `NAME = value`.
fn is_setting(line: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim();
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn parse_line(line: &str, with_user: bool) -> Option<Job> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let nickname = words.first()?.starts_with('@');
    let fields = if nickname { 1 } else { 5 };
    let command = words.get(fields + usize::from(with_user)..)?.join(" ");
    if command.is_empty() {
        return None;
    }
    let schedule = match words.first()? {
        name if nickname => Schedule::nickname(name)?,
        _ => Schedule::parse(words.get(..5)?)?,
    };
    Some(Job { schedule, command })
}

/// Days since 1970-01-01 of a civil date (proleptic Gregorian).
pub(crate) fn days_from_civil(year: i32, month: u32, day: u32) -> i64 {
    // Years begin in March, so that the leap day is the last of its year.
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests;
