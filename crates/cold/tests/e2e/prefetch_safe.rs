//! Plans beside other people's things: what `cold` did not make stays, and what runs at once does not collide.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cold_plan::{Store, history};

use crate::support::*;

/// Names in a directory, sorted; none where it is not there.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn trials(place: &Sandbox) -> Vec<PathBuf> {
    let of = |dir: PathBuf| names(&dir).into_iter().map(move |n| dir.join(n));
    let all = of(place.path("")).chain(of(place.path("plans")));
    all.filter(|p| p.file_name().unwrap().as_bytes().starts_with(b"trial-") && p.is_dir()).collect()
}

/// One start of `command`, learnt in the store `plans` without emptying any cache.
fn learn(place: &Sandbox, more: &[&str], command: &[&str]) -> Cold {
    let store = place.text("plans");
    let words = ["prefetch", "learn", "--starts", "1", "--state", "as-is", "--store", &store];
    place.cold([&words[..], more, &["--"], command].concat())
}

fn starts(place: &Sandbox) -> Vec<u32> {
    Store::at(place.path("plans")).list().unwrap().plans.iter().map(|l| l.plan.learnt.starts).collect()
}

/// A program that ends at once, unless `HOLD` names a file that is there.
fn held(place: &Sandbox) -> String {
    let text = "echo x >> \"${0%/*}/log\"; while test -n \"$HOLD\" && test -e \"$HOLD\"; do sleep 0.02; done";
    place.script("held", text)
}

#[test]
fn a_directory_beside_the_store_that_looks_like_a_trial_stays() {
    let place = Sandbox::new();
    let command = [place.subject(), "sleep".into(), "1".into()];
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    learn(&place, &[], &command).run().expect(0);
    // No process has that number: the kernel's largest is below.
    for dir in [place.path("trial-999999999-results"), place.path("plans/trial-999999999-results")] {
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("thesis"), "years of work").unwrap();
    }
    let before = trials(&place);
    let store = place.text("plans");
    let bench = ["--states", "prefetched", "-r", "1", "--store", &store, "--"];
    place.bench([&bench[..], &command].concat()).run().finished();
    let verify = ["prefetch", "verify", "--replay", "--evict", "files", "--store", &store, "--"];
    place.cold([&verify[..], &command].concat()).run();
    let tune = ["prefetch", "tune", "--trial-only", "--pairs", "1", "--starts", "2", "--store", &store, "--"];
    place.cold([&tune[..], &command].concat()).run();
    assert_eq!(trials(&place), before, "foreign ones stay, own ones go");
    assert_eq!(fs::read_to_string(before[0].join("thesis")).unwrap(), "years of work");
}

#[test]
fn pruning_and_removing_take_only_what_the_store_wrote() {
    let place = Sandbox::new();
    let store = Store::at(place.path("plans"));
    let plan = cold_plan::sample::sample();
    let path = store.save(&plan).unwrap();
    let skipped = history::LaunchKind::Skipped(history::Skip::Warm);
    let record = history::Record {
        when_ns: 1,
        plan: 1,
        kind: skipped,
        mark: None,
        bytes: 0,
        requests: 0,
        late: false,
    };
    history::append(&store.history_of(&plan.key), &record).unwrap();
    let mut foreign = vec![".tmp-thesis", "build.log", "moon.plan", "scene.replay", "x-0123456789abcdef.log"];
    foreign.extend(["x-0123456789abcdef.plan", "x-0123456789abcdef.replay", ".tmp-17"]);
    for name in &foreign {
        fs::write(place.path("plans").join(name), "somebody's words").unwrap();
    }
    // Under a name of the store, but not of this plan.
    fs::copy(&path, place.path("plans/python3.11-0123456789abcdef.plan")).unwrap();
    let cold = |words: &[&str]| place.cold([words, &["--store", &place.text("plans")]].concat()).run();
    let told = cold(&["prefetch", "prune", "--older-than", "0s", "--max-size", "0"]).expect(0).stdout;
    assert!(told.contains("1 plan removed"), "{told}");
    foreign.extend(["lock", "python3.11-0123456789abcdef.plan"]);
    foreign.sort_unstable();
    assert_eq!(names(store.directory()), foreign);
    let replay = store.replay_of(&plan.key);
    store.save(&plan).unwrap();
    fs::write(&replay, "not by us").unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    cold(&["prefetch", "remove", name]).expect(0);
    assert_eq!(names(store.directory()).len(), foreign.len() + 1);
    assert_eq!(fs::read_to_string(replay).unwrap(), "not by us");
}

#[test]
fn a_directory_that_is_no_store_is_refused_and_left_as_it_is() {
    let place = Sandbox::new();
    let home = place.path("home");
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(home.join("notes.log"), "mine").unwrap();
    let export = place.path("export.json");
    let mut plan = cold_plan::sample::sample();
    plan.key.executable = place.subject().into();
    fs::write(
        &export,
        cold_plan::portable::export(&plan, &|_| cold_plan::portable::Parts::default()).unwrap(),
    )
    .unwrap();
    let home_text = home.to_str().unwrap();
    let subject = place.subject();
    let store = ["--store", home_text];
    let command = ["--", &subject, "sleep", "1"];
    for words in [
        [&["prefetch", "prune", "--older-than", "0s"], &store[..]].concat(),
        [&["prefetch", "learn", "--starts", "1", "--state", "as-is"], &store[..], &command].concat(),
        [&["prefetch", "import", export.to_str().unwrap()], &store[..]].concat(),
    ] {
        let ran = place.cold(&words).run();
        assert_ne!(ran.code(), 0, "{words:?}: {ran:?}");
        let error = ran.error();
        assert!(error.contains("is no store of plans") && error.contains("notes.log"), "{words:?}: {error}");
        assert_eq!(names(&home), ["notes.log"], "{words:?}");
        assert_eq!(home.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    }
}

#[test]
fn two_lessons_at_once_lose_no_start_and_no_kept_recording() {
    let place = Sandbox::new();
    let program = held(&place);
    attempts(|| {
        for made in ["log", "plans", "kept"].map(|name| place.path(name)) {
            if made.is_dir() { fs::remove_dir_all(made) } else { fs::remove_file(made) }.ok();
        }
        let (hold, kept) = (place.path("hold"), place.text("kept"));
        fs::write(&hold, "").unwrap();
        let both =
            [(), ()].map(|()| learn(&place, &["--keep", &kept], &[&program]).env("HOLD", &hold).start());
        // Each has one start that is observed, and one that is recorded.
        until("both have begun", || (place.lines("log").len() >= 2).then_some(()));
        fs::remove_file(&hold).unwrap();
        let both = both.map(|one| one.end().expect(0));
        // One more was made, and kept, if a stranger's doings disturbed it.
        let again = both.iter().find(|ran| ran.stderr.contains("was disturbed"));
        check(again.is_none(), || again.map_or_else(String::new, |ran| ran.stderr.clone()))?;
        assert_eq!(starts(&place), [2]);
        assert_eq!(names(Path::new(&kept)), ["start-1.cold", "start-2.cold"]);
        Ok(())
    });
}

#[test]
fn what_is_learnt_while_a_plan_is_tuned_is_kept() {
    let place = Sandbox::new();
    let program = held(&place);
    learn(&place, &[], &[&program]).run().expect(0);
    let learnt = place.lines("log").len();
    let (hold, store) = (place.path("hold"), place.text("plans"));
    fs::write(&hold, "").unwrap();
    let words = ["prefetch", "tune", "--trial-only", "--pairs", "1", "--starts", "2", "--json", "--store"];
    let tune = place.cold([&words[..], &[&store, "--", &program]].concat()).env("HOLD", &hold).start();
    until("it tunes", || (place.lines("log").len() > learnt).then_some(()));
    learn(&place, &[], &[&program]).run().expect(0);
    fs::remove_file(&hold).unwrap();
    let tuned = tune.end().expect(4);
    assert!(tuned.stderr.contains("was learnt again meanwhile"), "{}", tuned.stderr);
    assert_eq!(tuned.json()["saved"], false);
    assert_eq!(starts(&place), [2]);
}

#[test]
fn two_recordings_started_together_get_two_names() {
    let place = Sandbox::new();
    let program = held(&place);
    let hold = place.path("hold");
    fs::write(&hold, "").unwrap();
    let trace = || place.cold(["trace", "--state", "as-is", "--", &program]).env("HOLD", &hold).start();
    let both = [trace(), trace()];
    until("both have begun", || (place.lines("log").len() >= 2).then_some(()));
    fs::remove_file(&hold).unwrap();
    for one in both {
        one.end().expect(0);
    }
    for name in ["held.cold", "held-2.cold"] {
        place.cold(["report", name]).run().expect(0);
    }
}

#[test]
fn an_export_that_cannot_be_written_leaves_the_old_one() {
    let place = Sandbox::new();
    let store = Store::at(place.path("plans"));
    let mut plan = cold_plan::sample::sample();
    plan.files[0].path = Path::new(OsStr::from_bytes(b"/usr/lib/\xff\xfe")).to_owned();
    let path = store.save(&plan).unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    // A name that is not UTF-8.
    let out = place.path("").join(OsStr::from_bytes(b"out-\xff.json"));
    for (flag, verb) in [("-o", "export"), ("--svg", "show"), ("--html", "show")] {
        fs::write(&out, "the old one").unwrap();
        let script = "ulimit -f 1; exec \"$@\"";
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", script, "sh", env!("CARGO_BIN_EXE_cold"), "prefetch", verb, flag]).arg(&out);
        let ran = limited.arg("--store").arg(store.directory()).arg(name).output().unwrap();
        assert!(!ran.status.success(), "{verb}: {ran:?}");
        assert_eq!(fs::read_to_string(&out).unwrap(), "the old one", "{verb}");
        let words = ["prefetch", verb, "--store", store.directory().to_str().unwrap(), name, flag];
        let words = words.map(OsStr::new).into_iter().chain([out.as_os_str()]);
        place.cold(words).run().expect(0);
        assert!(fs::read(&out).unwrap().len() > 1024, "{verb}");
    }
    let left = names(&place.path(""));
    assert!(!left.iter().any(|n| n.starts_with('.')), "{left:?}");
}

mod root {
    use std::os::unix::fs::MetadataExt;

    use cold_testbed::needs_root;
    use rustix::process::Signal;

    use super::*;
    use crate::user::root::as_nobody;

    /// A directory for temporary files that only this user can write.
    fn private(place: &Sandbox) -> PathBuf {
        let dir = place.path("private");
        fs::create_dir(&dir).unwrap();
        dir
    }

    #[test]
    fn names_that_another_user_took_in_the_temporary_directory_have_no_effect() {
        needs_root!();
        let place = Sandbox::for_all();
        let shared = place.path("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
        let victim = place.path("victim");
        fs::create_dir(&victim).unwrap();
        let store = place.text("plans");
        let program = place.subject();
        let learn = ["learn", "--starts", "1", "--state", "as-is"];
        let replay = ["verify", "--replay", "--evict", "files"];
        for (words, plant) in [
            (&learn[..], "mkdir -m 777 $TMPDIR/cold-learn-$$-0"),
            (&learn[..], "ln -s $VICTIM $TMPDIR/cold-learn-$$-0"),
            (&replay[..], "mkdir -m 777 $TMPDIR/cold-replay-$$"),
            (&replay[..], "ln -s $VICTIM $TMPDIR/cold-replay-$$"),
        ] {
            // The number stays with the exec.
            let script = format!(
                "setpriv --reuid=65534 --regid=65534 --clear-groups -- /bin/sh -c \"{plant}\" || exit 77; exec \"$@\""
            );
            let mut cold = std::process::Command::new("sh");
            cold.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_cold"), "prefetch"]).args(words);
            cold.args(["--store", &store, "--", &program, "sleep", "1"]);
            cold.env("TMPDIR", &shared).env("VICTIM", &victim).current_dir(place.path(""));
            let ran = cold.output().unwrap();
            assert!(ran.status.success(), "{plant}: {ran:?}");
            let planted = names(&shared);
            assert_eq!(planted.len(), 1, "{plant}: {planted:?}");
            let planted = shared.join(&planted[0]);
            assert_eq!(names(&planted), [] as [&str; 0], "{plant}");
            assert_eq!(planted.symlink_metadata().unwrap().uid(), 65534);
            let gone = fs::remove_dir(&planted).or_else(|_| fs::remove_file(&planted));
            gone.unwrap();
        }
        assert_eq!(names(&victim), [] as [&str; 0]);
    }

    #[test]
    fn a_lesson_and_a_trial_that_were_killed_leave_nothing_once_the_next_command_ran() {
        needs_root!();
        let place = Sandbox::new();
        let (program, private, hold) = (held(&place), private(&place), place.path("hold"));
        let after_kill = |command: Cold, began: usize| {
            fs::write(&hold, "").unwrap();
            let started = command.env("HOLD", &hold).env("TMPDIR", &private).start();
            until("it has begun", || (place.lines("log").len() > began).then_some(()));
            fs::remove_file(&hold).unwrap();
            fs::write(&hold, "").unwrap();
            let there =
                || [names(&private).into_iter().map(PathBuf::from).collect(), trials(&place)].concat();
            assert_eq!(there().len(), 1, "{:?}", there());
            started.kill(Signal::KILL);
            started.end().expect(128 + 9);
            fs::remove_file(&hold).unwrap();
            until("the tree ends", || place.processes().is_empty().then_some(()));
            place.cold(["doctor", "--repair"]).run();
            assert_eq!(there(), [] as [PathBuf; 0]);
        };
        after_kill(learn(&place, &[], &[&program]), 0);
        learn(&place, &[], &[&program]).run().expect(0);
        let store = place.text("plans");
        let words = ["--states", "prefetched", "-r", "1", "--store", &store, "--", &program];
        after_kill(place.bench(words), place.lines("log").len());
    }

    #[test]
    fn a_users_temporary_directory_is_never_used_by_root() {
        needs_root!();
        let place = Sandbox::new();
        let theirs = private(&place);
        std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
        let before = theirs.metadata().unwrap();
        let (store, program) = (place.text("plans"), place.subject());
        learn(&place, &[], &[&program, "sleep", "1"]).env("TMPDIR", &theirs).run().expect(0);
        let words = ["prefetch", "verify", "--replay", "--evict", "files", "--store", &store, "--"];
        place.cold([&words[..], &[&program, "sleep", "1"]].concat()).env("TMPDIR", &theirs).run().expect(0);
        // Whatever is made in a directory, and goes again, changes its time.
        let after = theirs.metadata().unwrap();
        assert_eq!((before.mtime(), before.mtime_nsec()), (after.mtime(), after.mtime_nsec()));
    }

    #[test]
    fn a_trial_that_is_under_way_survives_cold_in_another_pid_namespace() {
        needs_root!();
        let place = Sandbox::new();
        let (program, hold, store) = (held(&place), place.path("hold"), place.text("plans"));
        learn(&place, &[], &[&program]).run().expect(0);
        let began = place.lines("log").len();
        fs::write(&hold, "").unwrap();
        let words = ["--states", "prefetched", "-r", "1", "--store", &store, "--", &program];
        let bench = place.bench(words).env("HOLD", &hold).start();
        until("it has begun", || (place.lines("log").len() > began).then_some(()));
        let live = trials(&place);
        assert_eq!(live.len(), 1, "{live:?}");
        for arguments in [&["-pf", "--mount-proc"][..], &["-pf"]] {
            let mut other = std::process::Command::new("unshare");
            other.args(arguments).arg(env!("CARGO_BIN_EXE_cold")).args(["bench", "--evict", "files"]);
            let ran = other.args(words).current_dir(place.path("")).output().unwrap();
            assert_eq!(trials(&place), live, "{arguments:?}: {ran:?}");
        }
        fs::remove_file(&hold).unwrap();
        bench.end().finished();
        assert_eq!(trials(&place), [] as [PathBuf; 0]);
    }

    #[test]
    fn roots_plan_in_a_named_store_is_everybodys_where_the_directory_is() {
        needs_root!();
        let place = Sandbox::for_all();
        fs::create_dir(place.path("plans")).unwrap();
        fs::set_permissions(place.path("plans"), PermissionsExt::from_mode(0o755)).unwrap();
        let command = [&place.subject(), "sleep", "1"];
        learn(&place, &[], &command).run().expect(0);
        let store = place.text("plans");
        let launch = ["launch", "--explain", "--store", &store, "--", command[0], "sleep", "1"];
        let said = as_nobody(&place, &launch).run().expect(0).stdout;
        assert!(said.contains("plan /") && !said.contains("belongs to"), "{said}");
        let launch = ["launch", "--store", &store, "--", command[0], "sleep", "1"];
        assert_eq!(as_nobody(&place, &launch).run().expect(0).stderr, "");
        // In one that only root enters there is none for others.
        fs::set_permissions(place.path("plans"), PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(as_nobody(&place, &launch).run().expect(0).status.code(), Some(0));
    }

    /// Removes the system's plan of a program with its value.
    struct OfSystem<'a>(&'a Sandbox, String);

    impl Drop for OfSystem<'_> {
        fn drop(&mut self) {
            self.0.cold(["prefetch", "remove", "--", &self.1, "sleep", "1"]).run();
        }
    }

    #[test]
    fn where_the_own_store_is_somebody_elses_the_systems_is_asked_without_a_word() {
        needs_root!();
        let place = Sandbox::for_all();
        let program = place.subject();
        let command = ["--", &program, "sleep", "1"];
        let _gone = OfSystem(&place, program.clone());
        let words = ["prefetch", "learn", "--starts", "1", "--state", "as-is"];
        place.cold([&words[..], &command].concat()).run().expect(0);
        // Root's home, kept by `su`; and one that can be entered, with a plan of root's in it.
        let (closed, open) = (place.path("closed"), place.path("open"));
        let plan = fs::read_dir("/var/lib/coldstart/plans").unwrap().flatten().map(|e| e.path());
        let plan = plan.filter(|p| p.extension() == Some(OsStr::new("plan")));
        let own = Store::system().list().unwrap().plans;
        let own = own.iter().find(|l| l.plan.key.executable == Path::new(&program)).unwrap();
        let plan = plan.into_iter().find(|p| *p == own.path).unwrap();
        for (home, mode) in [(&closed, 0o700), (&open, 0o755)] {
            let plans = home.join("coldstart/plans");
            fs::create_dir_all(&plans).unwrap();
            fs::copy(&plan, plans.join(plan.file_name().unwrap())).unwrap();
            fs::set_permissions(home, PermissionsExt::from_mode(mode)).unwrap();
            let explain = [&["launch", "--explain"], &command[..]].concat();
            let said = as_nobody(&place, &explain).env("XDG_STATE_HOME", home).run().expect(0).stdout;
            assert!(said.contains("plan /var/lib/coldstart/plans/"), "{home:?}: {said}");
            let launch = [&["launch"], &command[..]].concat();
            let said = as_nobody(&place, &launch).env("XDG_STATE_HOME", home).run().expect(0).stderr;
            assert_eq!(said, "", "{home:?}");
            // A program without a plan anywhere is not worth a word either.
            let launch = ["launch", "--", "/bin/true", "a", "b", "c", "--never-learnt"];
            let said = as_nobody(&place, &launch).env("XDG_STATE_HOME", home).run().expect(0).stderr;
            assert_eq!(said, "", "{home:?}");
        }
    }
}
