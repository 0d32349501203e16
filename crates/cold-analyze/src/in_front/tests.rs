use cold_model::layout::Layouts;
use cold_model::recording::tables::Began;
use cold_model::recording::{LookupKind, Recording};
use cold_model::sample::{empty, long, ms, process};

use crate::analyze;

/// An exec image from `began` to `ended` (0: it ran on).
fn image(r: &mut Recording, pid: u32, parent: u32, [began, ended]: [u64; 2], path: &str, arguments: &[&str]) {
    let file = r.file(path, 1 << 20);
    let mut p = process(pid, "x", Some(file));
    (p.how, p.parent, p.began) = (Began::Exec, parent, ms(began));
    p.ended = (ended > 0).then(|| ms(ended));
    p.arguments = Some(arguments.iter().map(|a| (*a).to_owned()).collect());
    r.processes.push(p);
}

#[test]
fn a_shim_that_execs_is_told_with_its_scripts_processes_and_time() {
    let mut r = empty();
    image(&mut r, 10, 1, [2, 5], "/usr/bin/env", &["/usr/bin/env", "bash", "/opt/shims/python3"]);
    image(&mut r, 10, 1, [5, 150], "/usr/bin/bash", &["bash", "/opt/shims/python3", "app.py"]);
    image(&mut r, 11, 10, [20, 30], "/usr/bin/basename", &["basename", "x"]);
    image(&mut r, 12, 10, [40, 50], "/usr/bin/basename", &["basename", "y"]);
    image(&mut r, 10, 1, [150, 0], "/opt/3.11/bin/python3.11", &["/opt/3.11/bin/python3", "app.py"]);
    image(&mut r, 13, 10, [500, 0], "/usr/bin/worker", &["worker"]);
    let a = analyze(&r, &Layouts::default());
    let before = a.in_front.as_ref().expect("is seen");
    assert_eq!(before.program, "/opt/3.11/bin/python3");
    assert_eq!(
        (before.programs.as_slice(), before.processes, before.time),
        (&["shims/python3".to_owned()][..], 2, long(148))
    );
    let advice = a.suggestions.iter().find(|s| s.id.name() == "start_directly").expect("is advised");
    assert_eq!(advice.what, "Start /opt/3.11/bin/python3 directly.");
}

#[test]
fn a_program_in_a_chroot_is_named_as_it_is_seen_from_here_and_needs_what_made_it() {
    let mut r = empty();
    image(&mut r, 10, 1, [2, 150], "/usr/sbin/chroot", &["chroot", "/srv/image", "/usr/bin/app"]);
    image(&mut r, 10, 1, [150, 0], "/srv/image/usr/bin/app", &["/usr/bin/app"]);
    r.lookup(160, LookupKind::Open, "/etc/ld.so.cache", 3).root = Some("/srv/image".into());
    let a = analyze(&r, &Layouts::default());
    let before = a.in_front.as_ref().expect("is seen");
    assert_eq!((before.program.as_str(), before.other_root), ("/srv/image/usr/bin/app", true));
    assert!(a.suggestions.iter().all(|s| s.id.name() != "start_directly"), "{:?}", a.suggestions);
}

#[test]
fn a_script_that_waits_for_its_program_is_in_front_of_it() {
    let mut r = empty();
    image(&mut r, 10, 1, [1, 0], "/usr/bin/dash", &["/bin/sh", "/usr/bin/firefox-esr"]);
    image(&mut r, 11, 10, [10, 20], "/usr/bin/which", &["which", "firefox"]);
    image(&mut r, 12, 10, [101, 0], "/usr/lib/firefox/firefox", &["firefox"]);
    let before = analyze(&r, &Layouts::default()).in_front.expect("is seen");
    assert_eq!((before.program.as_str(), before.processes), ("/usr/lib/firefox/firefox", 2));
    assert_eq!((before.programs, before.time), (vec!["firefox-esr".to_owned()], long(100)));
}

#[test]
fn a_program_that_comes_first_has_nothing_in_front() {
    let mut r = empty();
    image(&mut r, 10, 1, [1, 0], "/usr/bin/make", &["make"]);
    image(&mut r, 11, 10, [10, 900], "/usr/bin/cc", &["cc"]);
    assert_eq!(analyze(&r, &Layouts::default()).in_front, None);
    // A shell script that runs one command after the other is itself the program.
    let mut r = empty();
    image(&mut r, 10, 1, [1, 0], "/usr/bin/dash", &["/bin/sh", "/etc/job"]);
    for (i, pid) in [11, 12, 13, 14].into_iter().enumerate() {
        let from = 10 + i as u64 * 240;
        image(&mut r, pid, 10, [from, from + 200], "/usr/bin/step", &["step"]);
    }
    assert_eq!(analyze(&r, &Layouts::default()).in_front, None);
}
