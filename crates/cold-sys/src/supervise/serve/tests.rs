use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;

use super::*;

fn supervisor(phase: Phase) -> Supervisor {
    let (_, theirs) = UnixStream::pair().unwrap();
    let channel = Channel::adopt(&[theirs.into_raw_fd().to_string().into()]).unwrap();
    Supervisor {
        channel,
        usage: Usage::default(),
        phase,
        main: 0,
        pacer: None,
        gone: false,
        helper: None,
        last: None,
    }
}

fn deadline(supervisor: &Supervisor) -> Option<u64> {
    match supervisor.phase {
        Phase::Asked { deadline } => Some(deadline.0),
        _ => None,
    }
}

#[test]
fn a_second_order_to_end_shortens_the_time_and_never_lengthens_it() {
    let mut asked = supervisor(Phase::Asked { deadline: Nanos(3_600_000_000_000) });
    // As when `cold` dies while it waits for a program that has an hour.
    asked.end(Nanos(5), ORPHAN_GRACE);
    assert_eq!(deadline(&asked), Some(ORPHAN_GRACE.0 + 5));
    asked.end(Nanos(6), Nanos(u64::MAX));
    assert_eq!(deadline(&asked), Some(ORPHAN_GRACE.0 + 5));
    asked.end(Nanos(7), Nanos(0));
    assert_eq!(deadline(&asked), Some(7));
    assert!(asked.usage.ended);
}

#[test]
fn an_end_by_force_is_due_at_once_and_stays_so() {
    let mut running = supervisor(Phase::Running);
    running.end(Nanos(9), Nanos(0));
    assert_eq!(deadline(&running), Some(9));
    let mut forced = supervisor(Phase::Forced { since: Nanos(1) });
    forced.end(Nanos(2), Nanos(100));
    assert!(matches!(forced.phase, Phase::Forced { since: Nanos(1) }));
}

#[test]
fn use_is_summed_in_the_units_of_the_manual_and_the_peak_is_the_largest() {
    let mut supervisor = supervisor(Phase::Running);
    // SAFETY: plain integers.
    let mut ru: libc::rusage = unsafe { std::mem::zeroed() };
    ru.ru_utime = libc::timeval { tv_sec: 1, tv_usec: 250_000 };
    ru.ru_stime = libc::timeval { tv_sec: 0, tv_usec: 7 };
    (ru.ru_minflt, ru.ru_majflt, ru.ru_inblock, ru.ru_maxrss) = (10, 3, 8, 2048);
    supervisor.add(&ru);
    ru.ru_maxrss = 1024;
    supervisor.add(&ru);
    let expected = Usage {
        user: Nanos(2_500_000_000),
        system: Nanos(14_000),
        minor_faults: 20,
        major_faults: 6,
        read_bytes: 8192,
        peak_memory: 2 << 20,
        reaped: 2,
        ..Usage::default()
    };
    assert_eq!(supervisor.usage, expected);
}

#[test]
fn a_helper_is_known_by_its_whole_name_and_nobody_is_one_without_a_name() {
    let own = std::process::id().cast_signed();
    let name = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
    let mut supervisor = supervisor(Phase::Running);
    assert!(!supervisor.is_helper(own));
    supervisor.helper = Some(name.get(1..).unwrap().to_owned());
    assert!(!supervisor.is_helper(own));
    supervisor.helper = Some(name);
    assert!(supervisor.is_helper(own) && supervisor.may_leave_its_word(own));
    assert!(!supervisor.is_helper(i32::MAX), "one that is gone");
    supervisor.main = own;
    assert!(!supervisor.may_leave_its_word(own), "the program itself, whatever it calls itself");
}
