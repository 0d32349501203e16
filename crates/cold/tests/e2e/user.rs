//! As an ordinary user.

pub(crate) mod root {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use cold_model::bench::{Run, State};
    use cold_testbed::needs_root;

    use crate::support::*;

    /// A home of its own for nobody, and `cold` where everybody may start it.
    pub(crate) fn home_of_nobody(place: &Sandbox) -> PathBuf {
        let home = place.path("home");
        if !home.exists() {
            fs::create_dir(&home).unwrap();
            fs::set_permissions(&home, PermissionsExt::from_mode(0o777)).unwrap();
            fs::copy(env!("CARGO_BIN_EXE_cold"), place.path("cold")).unwrap();
        }
        home
    }

    /// `cold` as nobody.
    pub(crate) fn as_nobody(place: &Sandbox, args: &[&str]) -> Cold {
        let home = home_of_nobody(place);
        let mut found = place.cold(args).env("HOME", &home).env("XDG_STATE_HOME", home.join("state"));
        found.use_program(&place.path("cold"));
        found.by_nobody()
    }

    #[test]
    fn an_ordinary_user_measures_file_by_file_and_is_told_what_is_not_proved() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::for_all();
        fs::create_dir(place.path("lib")).unwrap();
        let args = ["bench", "--states", "cold,warm", "-r", "2", "--idle-gap", "20"];
        let python = ["--", "/usr/bin/python3", "-S", "-c", "pass"];
        attempts(|| {
            let json = [&args[..], &["--json"], &python].concat();
            let report = as_nobody(&place, &json).run().finished().report();
            assert!(report.machine.eviction.starts_with("per file"), "{}", report.machine.eviction);
            let is_cold = |r: &&Run| report.series[r.series].state == State::Cold;
            let cold: Vec<&Run> = report.runs.iter().filter(is_cold).collect();
            // Root's files are nobody's to inspect: unknown, not 0.
            for run in &cold {
                let residual = run.residual.value().unwrap();
                assert!(residual.unknown_bytes.0 > 1 << 20, "{residual:?}");
            }
            let read = cold.iter().filter_map(|r| r.read_bytes.value()).map(|b| b.0).max().unwrap();
            check(read > 1 << 20, || format!("only {read} bytes were read: others hold the files"))?;
            let text = as_nobody(&place, &[&args[..], &python].concat()).run();
            let said = text.finished().stdout;
            assert!(said.contains("unknown") || said.contains("prove"), "{said}");
            Ok(())
        });
        let ran = as_nobody(&place, &[&args[..], &["--require-cold"], &python].concat()).run().expect(5);
        assert!(ran.error().contains("cannot be checked"), "{}", ran.stderr);
        let ran = as_nobody(&place, &[&args[..], &["--evict", "all"], &python].concat()).run().expect(5);
        assert!(ran.error().contains("drop_caches"), "{}", ran.stderr);
        assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0]);
    }

    #[test]
    fn an_ordinary_user_may_show_and_evict_but_is_told_what_the_kernel_hides() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::for_all();
        let file = place.file("data", MIB);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let path = file.to_str().unwrap();
        let document = as_nobody(&place, &["cache", "show", "--json", path]).run().expect(0).json();
        assert_eq!(document["totals"]["unknown_bytes"], MIB);
        // It may ask them to leave, but nobody tells it whether they did.
        let document = as_nobody(&place, &["cache", "evict", "--json", path]).run().expect(5).json();
        assert_eq!((&document["proved"], &document["unknown_bytes"]), (&false.into(), &MIB.into()));
        assert_eq!(resident(&file).len(), 0);
        let ran = as_nobody(&place, &["cache", "evict", "--all"]).run();
        assert_ne!(ran.code(), 0);
        assert!(ran.error().contains("root") || ran.stderr.contains("try: run it as root"), "{}", ran.stderr);
        as_nobody(&place, &["doctor", "--json"]).run().expect(0).json();
    }

    #[test]
    fn a_home_that_may_not_be_written_is_told_with_what_to_do() {
        needs_root!();
        let place = Sandbox::for_all();
        for command in
            [&["spawn", "-n", "200", "--", "/bin/true"][..], &["prefetch", "learn", "--", "/bin/true"]]
        {
            let homeless = as_nobody(&place, command).env("HOME", "/nonexistent").env("XDG_STATE_HOME", "");
            let ran = homeless.run().expect(1);
            assert!(
                ran.error().contains("set XDG_STATE_HOME to a directory that you may write"),
                "{}",
                ran.stderr
            );
        }
    }
}
