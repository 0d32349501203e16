//! What is asked of a run with a fault.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use cold_testbed::attempts;
use cold_testbed::faults::{Choice, Fault, Injection, Key, Ran, choose};
use serde_json::Value;

use crate::cases::{Case, Output, Written, parts_of};
use crate::world::{Thing, Things, World};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether every fault is to be tried.
pub(crate) fn is_full() -> bool {
    std::env::var("COLD_FAULTS").as_deref() == Ok("full")
}

/// Runs the case without a fault, then with each of the chosen ones; one line for everything that is wrong.
pub(crate) fn case(world: &World, case: &Case) -> Vec<String> {
    if std::env::var("COLD_FAULTS_ONLY").is_ok_and(|only| only != case.name) {
        return Vec::new();
    }
    let most = number("COLD_FAULTS_MOST").map_or(case.most, |n| n as usize);
    let choice = Choice { most: (!is_full()).then_some(most), seed: number("COLD_FAULTS_SEED").unwrap_or(1) };
    let began = Instant::now();
    let reference = attempts(|| {
        world.reset();
        let ran = world.target(&case.args).run(None).unwrap();
        // A stranger may hold or drop pages or keep the machine busy: then the state is not reached (5) or a
        // benchmark stops early (4), and says more than one that has its runs.
        if [4, 5].contains(&ran.code()) { Err(ran.stderr) } else { Ok(ran) }
    });
    let told = format!("{}: {} {}", case.name, reference.code(), reference.stderr);
    assert_eq!(reference.code(), 0, "without a fault: {told}");
    let after = world.things();
    let whole = outcome(world, case, &reference, &reference, &after);
    assert!(whole.is_ok(), "without a fault: {told}: {whole:?}");
    let ours = |key: &Key| key.about.starts_with("W/") || key.about.starts_with("STATE");
    let injections = choose(&reference.calls, runtime(world, &reference), choice, ours);
    let mut wrong = Vec::new();
    let mut missed = 0;
    for injection in &injections {
        world.reset();
        let mut ran = world.target(&case.args).run(Some(injection)).unwrap();
        missed += usize::from(!ran.hit);
        let mut found = judge(world, case, &reference, injection, &ran);
        // What is cached may be part of the output, and background reclaim takes pages: another output counts only
        // if two more pairs of runs, with and without the fault right behind each other, differ as well.
        for _ in 0..2 {
            if !says_otherwise(case, &ran, &reference.stdout) || found.len() > 1 {
                break;
            }
            ran.end_processes();
            world.reset();
            let beside = world.target(&case.args).run(None).unwrap();
            world.reset();
            ran = world.target(&case.args).run(Some(injection)).unwrap();
            found = judge(world, case, &beside, injection, &ran);
            if !says_otherwise(case, &ran, &beside.stdout) {
                break;
            }
        }
        let args = case.args.join(" ");
        wrong.extend(found.iter().map(|what| format!("{}: {injection}: {what}\n    cold {args}", case.name)));
        ran.end_processes();
    }
    eprintln!(
        "{}: {} calls, {} faults (seed {}), {missed} not reached, {} wrong, {:.1} s",
        case.name,
        reference.calls.len(),
        injections.len(),
        choice.seed,
        wrong.len(),
        began.elapsed().as_secs_f64()
    );
    wrong
}

/// Whether a run that succeeded printed something else than it had to.
fn says_otherwise(case: &Case, ran: &Ran, wanted: &[u8]) -> bool {
    matches!(case.output, Output::Same) && ran.code() == 0 && ran.stdout != wanted
}

/// How many calls the C library and Rust's runtime make before the program begins: those that `cold --version`
/// makes, too.
fn runtime(world: &World, reference: &Ran) -> usize {
    let version = world.cold(&["--version"]);
    version.calls.iter().zip(&reference.calls).take_while(|(a, b)| a == b).count()
}

fn judge(world: &World, case: &Case, reference: &Ran, injection: &Injection, ran: &Ran) -> Vec<String> {
    let mut wrong = Vec::new();
    if ran.late {
        wrong.push(format!("it does not end; it says {:?}", ran.stderr));
    }
    // A thread without memory for its signal stack: Rust's runtime ends the program before any of ours runs in it.
    let is_runtime =
        injection.fault == Fault::Errno(12) && ran.stderr.contains("std/src/sys/pal/unix/stack_overflow.rs");
    if ran.stderr.contains("panicked at") && !is_runtime {
        wrong.push(format!("a panic: {}", ran.stderr.trim()));
    }
    wrong.extend(ending(case, injection, ran).err());
    settle(ran, &mut wrong);
    let after = world.things();
    // 2 promises that nothing was done.
    let changes = |(path, thing): (&PathBuf, &Thing)| {
        world.kept().get(path) != Some(thing) && !is_state(path, Some(thing))
    };
    if ran.code() == 2 && after.iter().any(changes) {
        wrong.push("exit code 2, and something was done".to_owned());
    }
    if ran.code() == 0 {
        wrong.extend(outcome(world, case, reference, ran, &after).err());
    }
    let left = left_behind(world, case, ran, &after);
    if !left.is_empty() {
        let args = ["doctor", "--repair", "--json"].map(str::to_owned);
        let repaired = world.target(&args).run(None).unwrap();
        if repaired.code() != 0 {
            wrong.push(format!("doctor --repair: {} {}", repaired.code(), repaired.stderr));
        }
        let stays = left_behind(world, case, ran, &world.things());
        // What could not be removed or undone is left to the next command, by the journal.
        let leaves = left.iter().any(|l| l.contains("coldstart/journal/"));
        let was_killed = injection.fault == Fault::Kill || ran.status.signal().is_some();
        if !stays.is_empty() {
            wrong.push(stays.join(", "));
        } else if !was_killed && !leaves {
            wrong.push(format!("until repair, {}; it says {:?}", left.join(", "), ran.stderr));
        }
    }
    wrong
}

/// The exit code is one that the command has, and a failure is told.
fn ending(case: &Case, injection: &Injection, ran: &Ran) -> Result<(), String> {
    let said = || format!("exit code {}, said {:?}", ran.code(), ran.stderr);
    if let Some(signal) = ran.status.signal() {
        let says = ["memory allocation of", "std/src/sys/pal/unix/stack_overflow.rs"];
        let memory = injection.fault == Fault::Errno(12) && says.iter().any(|text| ran.stderr.contains(text));
        let injected = match injection.fault {
            Fault::Kill => signal == 9,
            Fault::Signal(injected) => signal == injected,
            // Rust's runtime ends a program that gets no memory.
            Fault::Errno(_) => signal == 6 && memory,
        };
        return if injected {
            Ok(())
        } else {
            Err(format!("killed by signal {signal}, said {:?}", ran.stderr))
        };
    }
    let interrupted = matches!(injection.fault, Fault::Signal(_)) && ran.code() == 130;
    let told =
        ran.stderr.lines().any(|l| l.len() > 20 && (l.starts_with("error: ") || l.starts_with("warning: ")));
    // What cannot be looked at may be refused as an argument, if that is said.
    let says_errno = matches!(injection.fault, Fault::Errno(errno)
        if ran.stderr.contains(&std::io::Error::from_raw_os_error(errno).to_string()));
    let silent = injection.key.about == "stderr";
    match ran.code() {
        0 => Ok(()),
        2 if told && says_errno => Ok(()),
        _ if interrupted => Ok(()),
        1 if told || silent => Ok(()),
        code if case.codes.contains(&code) && (told || silent || code != 1) => Ok(()),
        _ => Err(said()),
    }
}

/// Helpers end what they started after the main process is gone; nothing else may be there any more.
fn settle(ran: &Ran, wrong: &mut Vec<String>) {
    let began = Instant::now();
    while !ran.processes().is_empty() {
        if began.elapsed().as_secs() >= 20 {
            let lines = ran.processes().into_iter().map(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).replace('\0', " ")
            });
            wrong.push(format!("processes stay: {:?}", lines.collect::<Vec<_>>()));
            ran.end_processes();
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// After exit code 0: the result is there, and whole.
fn outcome(world: &World, case: &Case, reference: &Ran, ran: &Ran, after: &Things) -> Result<(), String> {
    let text = String::from_utf8_lossy(&ran.stdout);
    match case.output {
        Output::Same if says_otherwise(case, ran, &reference.stdout) => {
            return Err(format!("exit code 0, printed {text:?}"));
        }
        Output::Has(part) if !text.contains(part) => return Err(format!("exit code 0, printed {text:?}")),
        Output::Json => {
            let value = serde_json::from_slice::<Value>(&ran.stdout);
            let value = value.map_err(|e| format!("exit code 0, printed no JSON ({e}): {text:?}"))?;
            let wanted: Value = serde_json::from_slice(&reference.stdout).map_err(|e| e.to_string())?;
            let (have, want) = (fields(&value), fields(&wanted));
            if have != want {
                return Err(format!("exit code 0, fields {have:?} instead of {want:?}"));
            }
        }
        _ => {}
    }
    for Written { path, is_whole, .. } in case.writes.iter().filter(|w| !w.optional) {
        is_whole(world, path).map_err(|e| format!("exit code 0, and {path} is not whole: {e}"))?;
    }
    let stays = case.removes.iter().find(|path| after.contains_key(Path::new(path)));
    stays.map_or(Ok(()), |path| Err(format!("exit code 0, and {path} is still there")))
}

fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flat_map(|o| o.keys().map(String::as_str)).collect()
}

/// What differs from before the run and should not: leftovers, losses, halves.
fn left_behind(world: &World, case: &Case, ran: &Ran, after: &Things) -> Vec<String> {
    let kept = world.kept();
    let paths: BTreeSet<&PathBuf> = kept.keys().chain(after.keys()).collect();
    let mut wrong = Vec::new();
    for path in paths {
        let (old, new) = (kept.get(path), after.get(path));
        // Directories are told by what is in them; those of the state stay for the next run.
        if old == new || is_state(path, new) {
            continue;
        }
        let is_written =
            case.writes.iter().any(|w| path.starts_with(w.path) && (new.is_some() || old.is_none()));
        let is_removed =
            case.removes.iter().chain(case.forgets).any(|r| path.starts_with(r)) && new.is_none();
        let stores = case.writes.iter().any(|w| w.path.starts_with("store") && path.starts_with(w.path));
        if is_written || is_removed || (stores && !is_foreign(path)) {
            if is_foreign(path) {
                wrong.push(format!("a foreign file is changed: {}", path.display()));
            }
            continue;
        }
        let what = match (old, new) {
            (None, _) => "left",
            (_, None) => "lost",
            _ => "changed",
        };
        wrong.push(format!("{what}: {}", path.display()));
    }
    for written in &case.writes {
        let path = Path::new(written.path);
        // Killed between the making of a directory and the first file in it.
        if ran.status.signal() == Some(9)
            && after.keys().filter(|p| p.starts_with(path)).count() == 1
            && matches!(after.get(path), Some(Thing::Directory(_)))
        {
            continue;
        }
        if after.contains_key(path) && after.get(path) != kept.get(path)
            || after.keys().any(|p| p.starts_with(path) && kept.get(p) != after.get(p))
        {
            let is_done = ran.code() == 0 || !written.of_many;
            let killed = ran.status.signal() == Some(9);
            let whole = if is_done {
                (written.is_whole)(world, written.path)
            } else {
                parts_of(world, written.path, killed)
            };
            wrong.extend(whole.err().map(|e| format!("{} is not whole: {e}", written.path)));
        }
    }
    wrong.extend(world.changed_machine());
    if let Some(group) = groups(ran.pid).first() {
        wrong.push(format!("left: {}", group.display()));
    }
    wrong
}

fn is_foreign(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    ["foreign.log", "notes.plan", ".tmp-foreign", "letter", "trial-1-x"].contains(&name)
}

/// What the state keeps between runs.
fn is_state(path: &Path, thing: Option<&Thing>) -> bool {
    let below = |dir: &str| path.starts_with(format!("state/coldstart/{dir}"));
    match thing {
        Some(Thing::Directory(_)) => below(""),
        Some(Thing::File(..)) => below("devices"),
        _ => false,
    }
}

/// Control groups that this process made.
fn groups(pid: i32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                let name = entry.file_name().into_string().unwrap_or_default();
                if name == format!("cold-{pid}") || name.starts_with(&format!("cold-{pid}-")) {
                    found.push(entry.path());
                }
                open.push(entry.path());
            }
        }
    }
    found
}
