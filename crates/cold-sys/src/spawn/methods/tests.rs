use super::*;

const METHODS: [Method; 4] = [Method::Vfork, Method::PosixSpawn, Method::Fork, Method::Clone3];

fn subject(path: &str, argv: &[&str], cwd: Option<&Path>) -> Subject {
    let argv = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    let env = vec![(b"COLD_METHOD_TEST".to_vec(), b"13".to_vec())];
    let program = Program { path: path.into(), argv, env, cwd: cwd.map(Into::into) };
    Subject::new(&program).expect("prepared")
}

#[test]
fn every_method_gives_words_variables_and_directory_and_tells_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = dir.path().canonicalize().expect("is there");
    let script = format!("test \"$PWD\" = '{}' || exit 1; exit $((COLD_METHOD_TEST + $#))", here.display());
    let shell = subject("/bin/sh", &["sh", "-c", &script, "name", "one", "two"], Some(&here));
    let killed = subject("/bin/sh", &["sh", "-c", "kill -9 $$"], None);
    for method in METHODS {
        let starter = Starter::new(method, None).expect("prepared");
        let timing = starter.start(&shell, 3).expect("started");
        assert_eq!((timing.program, timing.status), (3, 15 << 8), "{method:?}");
        assert!(timing.began <= timing.created && timing.created <= timing.ended, "{timing:?}");
        assert!(timing.minor_faults > 0, "{timing:?}");
        assert_eq!(starter.start(&killed, 0).expect("started").status, libc::SIGKILL, "{method:?}");
    }
}

#[test]
fn every_method_says_why_there_is_no_program_and_starts_the_next_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "").expect("written");
    let plain = plain.to_str().expect("text");
    let (none, denied) = (subject("/no/such/program", &["x"], None), subject(plain, &["x"], None));
    let nowhere = subject("/bin/true", &["true"], Some(Path::new("/no/such/directory")));
    for method in METHODS {
        let starter = Starter::new(method, None).expect("prepared");
        for (subject, errno) in [(&none, libc::ENOENT), (&denied, libc::EACCES), (&nowhere, libc::ENOENT)] {
            let error = starter.start(subject, 0).expect_err("refused");
            assert_eq!(error.errno(), Some(errno), "{method:?}: {error}");
            assert!(error.to_string().starts_with(&format!("cannot start {}", subject.name)), "{error}");
        }
        let next = starter.start(&subject("/bin/true", &["true"], None), 0);
        assert_eq!(next.expect("the reason is forgotten").status, 0, "{method:?}");
    }
}

#[test]
fn creation_alone_is_a_child_that_ends_at_once() {
    let nothing = subject("", &[], None);
    for method in METHODS {
        let timing = Starter::new(method, None).expect("prepared").start(&nothing, 0).expect("started");
        assert_eq!((timing.status, timing.major_faults), (0, 0), "{method:?}");
    }
}

#[test]
fn a_zero_byte_or_a_group_that_is_not_there_is_refused_before_any_start() {
    let program = Program { path: "/x\0y".into(), argv: Vec::new(), env: Vec::new(), cwd: None };
    assert_eq!(Subject::new(&program).err().and_then(|e| e.errno()), Some(libc::EINVAL));
    let group = Some(Path::new("/no/such/group"));
    let error = Starter::new(Method::Clone3, group).err().expect("refused");
    assert!(error.to_string().starts_with("cannot open cgroup /no/such/group: "), "{error}");
    assert!(Starter::new(Method::Fork, group).is_ok(), "no other method looks at it");
}

#[test]
fn every_page_of_the_ballast_is_touched() {
    assert!(ballast(0, false).expect("nothing").is_none());
    let page = crate::page::page_size();
    let held = ballast(5 * page + 1, false).expect("held").expect("some");
    assert_eq!(held.len() as u64, 5 * page + 1);
    assert!(held.iter().step_by(page as usize).all(|byte| *byte == 1));
    let error = ballast(1 << 60, false).expect_err("more than there is");
    assert_eq!(error.errno(), Some(libc::ENOMEM), "{error}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_traced_start_tells_whether_there_is_a_loader() {
    let starter = Starter::new(Method::Vfork, None).expect("prepared");
    let dir = tempfile::tempdir().expect("a directory");
    let told = match starter.trace(&subject("/bin/sh", &["sh", "-c", "echo > mark"], Some(dir.path())), 2) {
        Err(e) if e.errno() == Some(libc::EPERM) => {
            eprintln!("SKIPPED (tracing is refused): {e}");
            return;
        }
        told => told.expect("traced").expect("its entry was reached"),
    };
    assert_eq!((told.program, told.has_loader), (2, true));
    assert!(dir.path().join("mark").exists(), "it did what it does without a breakpoint");
    assert!(told.loading.0 > 0 && told.running.0 > 0, "{told:?}");
    let error = starter.trace(&subject("/no/such/program", &["x"], None), 0).expect_err("refused");
    assert_eq!(error.errno(), Some(libc::ENOENT));
}
