//! Civil time in the machine's time zone.

/// A point of local civil time, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Year in full: 2026.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, 1 to 31.
    pub day: u32,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute, 0 to 59.
    pub minute: u32,
    /// Day of the week, 0 is Sunday.
    pub weekday: u32,
}

/// Local time at `unix` seconds, by TZ or /etc/localtime; `None` where the C library has no answer.
pub fn local_time(unix: i64) -> Option<LocalTime> {
    // SAFETY: an all-zero tm is a valid value (its pointer field may be null).
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call; localtime_r keeps neither.
    let done = unsafe { libc::localtime_r(&raw const unix, &raw mut tm) };
    if done.is_null() {
        return None;
    }
    let unsigned = |n: i32| u32::try_from(n).ok();
    Some(LocalTime {
        year: tm.tm_year.checked_add(1900)?,
        month: unsigned(tm.tm_mon)? + 1,
        day: unsigned(tm.tm_mday)?,
        hour: unsigned(tm.tm_hour)?,
        minute: unsigned(tm.tm_min)?,
        weekday: unsigned(tm.tm_wday)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn civil_time_is_what_date_says() {
        // The first of all, a leap day, both sides of a year, behind 32 bits.
        for unix in [0, 951_782_400, 1_767_225_599, 1_767_225_600, 4_294_967_296] {
            let mut date = std::process::Command::new("date");
            let date = date.args(["-d", &format!("@{unix}"), "+%Y %-m %-d %-H %-M %w"]);
            let said = date.output().expect("runs").stdout;
            let t = local_time(unix).expect("known");
            let told = format!("{} {} {} {} {} {}", t.year, t.month, t.day, t.hour, t.minute, t.weekday);
            assert_eq!(told, String::from_utf8_lossy(&said).trim(), "{unix}");
        }
        assert_eq!(local_time(i64::MAX), None, "a year that no calendar has");
    }
}
