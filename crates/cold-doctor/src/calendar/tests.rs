use super::*;

/// UTC, so that tests need no time zone files.
#[expect(clippy::unnecessary_wraps)] // the signature of the real clock
fn utc(unix: i64) -> Option<LocalTime> {
    let days = unix.div_euclid(86_400);
    let second = unix.rem_euclid(86_400);
    let (mut year, mut month) = (1970, 1);
    while days_from_civil(year + 1, 1, 1) <= days {
        year += 1;
    }
    while month < 12 && days_from_civil(year, month + 1, 1) <= days {
        month += 1;
    }
    let day = (days - days_from_civil(year, month, 1) + 1) as u32;
    let (hour, minute) = ((second / 3600) as u32, (second / 60 % 60) as u32);
    Some(LocalTime { year, month, day, hour, minute, weekday: (days + 4).rem_euclid(7) as u32 })
}

fn at(year: i32, month: u32, day: u32, hour: i64, minute: i64) -> i64 {
    days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60
}

fn due(line: &str, now: i64) -> Option<u32> {
    let table = parse_crontab(&format!("{line} root job\n"), true);
    assert_eq!(table.not_understood, 0, "{line}");
    table.jobs[0].schedule.due_within(now, 60, utc)
}

#[test]
fn days_since_the_epoch() {
    for (date, days) in
        [((1970, 1, 1), 0), ((2000, 3, 1), 11_017), ((2024, 2, 29), 19_782), ((2026, 11, 20), 20_777)]
    {
        assert_eq!(days_from_civil(date.0, date.1, date.2), days);
    }
}

#[test]
fn minutes_until_the_next_start() {
    let friday = at(2026, 11, 20, 6, 20); // a Friday
    assert_eq!(utc(friday).map(|t| t.weekday), Some(5));
    for (line, minutes) in [
        ("25 6 * * *", Some(5)),
        ("20 6 * * *", None), // this minute has begun; the next is tomorrow
        ("17 * * * *", Some(57)),
        ("*/10 * * * *", Some(10)),
        ("5-55/10 * * * *", Some(5)),
        ("21,22 * * * *", Some(1)),
        ("30 6 * * 6", None),
        ("30 6 * * 5", Some(10)),
        ("30 6 * * Mon-Fri", Some(10)),
        ("30 6 * NOV *", Some(10)),
        ("30 6 * 10 *", None),
        ("30 6 1 * 5", Some(10)), // either day field suffices …
        ("30 6 20 * 1", Some(10)),
        ("30 6 1 * 1", None),
        ("30 6 */2 * 5", None), // … but not when one begins with a star: the 20th is even
        ("30 6 * * */5", Some(10)),
        ("@hourly", Some(40)),
        ("@daily", None),
    ] {
        assert_eq!(due(line, friday), minutes, "{line}");
    }
    assert_eq!(due("@daily", at(2026, 12, 31, 23, 30)), Some(30));
    assert_eq!(due("@yearly", at(2026, 12, 31, 23, 30)), Some(30));
    assert_eq!(due("0 0 29 2 *", at(2028, 2, 28, 23, 59)), Some(1));
    assert_eq!(due("0 0 * * 7", at(2026, 11, 21, 23, 59)), Some(1), "7 is Sunday");
}

#[test]
fn what_cron_would_refuse_is_counted_and_settings_are_not() {
    let text = "# a comment\nSHELL=/bin/sh\nMAILTO = root\n60 * * * * root x\n* * * * 8 root x\n*/0 * * * * root x\n\
                5-2 * * * * root x\n* * * * root\n@reboot root x\n@sometimes root x\n1 2 3 4 5 root a = b\n";
    let table = parse_crontab(text, true);
    assert_eq!(table.not_understood, 6);
    assert_eq!(table.jobs.len(), 1);
    assert_eq!(table.jobs[0].command, "a = b");
}

#[test]
fn jobs_in_another_time_zone_are_said_to_be_not_understood() {
    let table = parse_crontab("0 1 * * * x\nCRON_TZ=Asia/Tokyo\n0 2 * * * y\n", false);
    assert_eq!((table.jobs.len(), table.not_understood), (1, 1));
}
