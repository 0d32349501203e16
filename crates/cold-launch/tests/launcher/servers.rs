//! Programs that go on after they are ready: what their starts leave in the history, and when.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cold_model::Nanos;
use cold_plan::history::{self, LaunchKind, Record};
use cold_plan::plan::Learnt;
use cold_sys::time::{monotonic, process_cpu};
use cold_testbed::{attempts, until};

use crate::misfit::stored;
use crate::world::{LAUNCHER, MIB, add_whole, directory, evict, file, gone, plan, save};

/// Works for some 50 ms, says so, and does nothing until its input ends.
const SERVER: [&str; 3] = ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo done; cat"];

struct Scene {
    dir: tempfile::TempDir,
    store: cold_plan::Store,
    history: PathBuf,
    data: PathBuf,
}

impl Scene {
    fn new(learnt: impl FnOnce(&mut Learnt)) -> Self {
        let dir = directory();
        let argv: Vec<OsString> = SERVER.iter().map(OsString::from).collect();
        let (store, key) = stored(dir.path(), &argv, None);
        let data = file(&dir.path().join("data"), MIB);
        let mut p = plan();
        add_whole(&mut p, &data, false);
        learnt(&mut p.learnt);
        let history = store.history_of(&key);
        p.key = key;
        save(&p, &store.path_of(&p.key));
        Self { dir, store, history, data }
    }

    /// A cold start through the launcher, up to the server's word.
    fn start(&self) -> Child {
        evict(&self.data);
        let mut launcher = Command::new(LAUNCHER);
        launcher.arg("--store").arg(self.store.directory()).arg("--").args(SERVER);
        serving(&mut launcher)
    }

    /// The history's last record once it is as wanted.
    fn entered(&self, what: &str, wanted: impl Fn(&Record) -> bool) -> Record {
        let last = || history::read(&self.history).ok()?.pop().filter(|r| wanted(r));
        until(what, last)
    }

    fn end(&self, mut server: Child) {
        drop(server.stdin.take());
        server.wait().expect("ended");
        gone(self.path());
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn serving(command: &mut Command) -> Child {
    let mut server =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
    let mut said = String::new();
    let out = server.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut said).expect("it speaks");
    assert_eq!(said, "done\n");
    server
}

#[test]
fn a_start_is_entered_when_its_reading_has_ended_and_gets_its_mark_later() {
    // It will not have used that, and is watched for two minutes.
    let scene = Scene::new(|l| (l.own_cpu_ns, l.cold_ready_ns) = (3_600_000_000_000, 30_000_000_000));
    attempts(|| {
        let server = scene.start();
        let record = scene.entered("the start is entered while the server serves", |r| r.mark.is_none());
        scene.end(server);
        if record.kind != LaunchKind::Prefetched || record.bytes != MIB {
            return Err(format!("a stranger kept it from reading: {record:?}"));
        }
        let ended = scene.entered("its end is entered", |r| r.mark.is_some_and(|m| m.exited));
        assert_eq!((ended.when_ns, ended.bytes, ended.requests), (record.when_ns, MIB, record.requests));
        // Of each start one record.
        let whens: Vec<u64> = history::read(&scene.history).unwrap().iter().map(|r| r.when_ns).collect();
        assert!(whens.windows(2).all(|w| w[0] < w[1]), "{whens:?}");
        Ok(())
    });
}

/// What the server computes until it serves, without a launcher. The least of three: beside other tests the same
/// work takes up to 1.6 times its CPU time (93 ms instead of 57), beside busy loops alone 1.15 times.
fn cpu_of_a_start() -> Nanos {
    let one = || {
        let mut server = serving(Command::new(SERVER[0]).args(&SERVER[1..]));
        let cpu = process_cpu(server.id().cast_signed()).expect("it lives");
        drop(server.stdin.take());
        server.wait().expect("ended");
        cpu
    };
    (0..3).map(|_| one()).min().expect("three")
}

#[test]
fn a_server_is_at_its_mark_when_it_comes_to_rest_not_when_it_is_ended() {
    attempts(|| {
        let cpu = cpu_of_a_start();
        // As a recorded start: more than the server needs when nobody records it.
        let scene = Scene::new(|l| (l.own_cpu_ns, l.goes_on) = (cpu.0 * 7 / 5, true));
        let began = monotonic();
        let server = scene.start();
        let served = monotonic().saturating_sub(began);
        // A start of less than half of the plan's CPU time (0.7 of this) never gets a mark, and what the launcher
        // used before it is in this figure: some milliseconds, more on a busy machine.
        let now = process_cpu(server.id().cast_signed()).expect("it lives");
        if now.0 * 10 < cpu.0 * 9 {
            scene.end(server);
            return Err(format!("it computed {cpu} before, and {now} now"));
        }
        let what = format!("it came to rest, after {now}, where it took {cpu} before");
        let rested = scene.entered(&what, |r| r.mark.is_some());
        let lived = monotonic().saturating_sub(began);
        scene.end(server);
        let mark = rested.mark.expect("has one");
        if !mark.rested {
            return Err(format!("it computed {cpu} before, and more now: {mark:?}"));
        }
        // Half a second of rest lies behind the mark, and its word about at it.
        assert!(mark.wall_ns + 500_000_000 <= lived.0, "{mark:?} in {lived}");
        assert!(!mark.exited && Nanos(mark.wall_ns) >= served.saturating_sub(Nanos(100_000_000)), "{mark:?}");
        assert_eq!(history::read(&scene.history).unwrap().last(), Some(&rested), "its end says nothing");
        Ok(())
    });
}

#[test]
fn a_server_that_is_ended_before_it_rests_has_no_mark() {
    let scene = Scene::new(|l| (l.own_cpu_ns, l.goes_on) = (3_600_000_000_000, true));
    let server = scene.start();
    scene.end(server);
    let records = history::read(&scene.history).unwrap();
    assert!(!records.is_empty() && records.iter().all(|r| r.mark.is_none()), "{records:?}");
}
