//! What ran in front of the program: scripts, shims and wrappers that end in an exec or wait for a child.

use std::collections::BTreeMap;

use cold_model::recording::tables::Began;
use cold_model::recording::{Lookup, Process, Recording};
use cold_model::{Nanos, path_text};

use crate::context::Context;
use crate::model::InFront;
use crate::story::short_name;
use crate::waits::{first_process, union};

/// Programs that run others: alone they are not what somebody wants to start.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"];
/// A shell's child that lives for so much of the start is the program.
const MOST: f64 = 0.5;
/// Wrappers within wrappers that are followed.
const DEPTH: usize = 8;

/// The process that the start is about: the first one, or below a shell the child for which it waits.
pub(crate) fn program_process(cx: &Context<'_>) -> Option<u32> {
    let mut pid = first_process(cx.recording)?;
    for _ in 0..DEPTH {
        let shell = images(cx, pid).last().is_some_and(|p| is_shell(&base_name(cx, p)));
        match lasting_child(cx, pid).filter(|_| shell) {
            Some(child) => pid = child,
            None => break,
        }
    }
    Some(pid)
}

/// The programs before the one that the start is about; `None`: it came first, or no command was started.
pub(crate) fn in_front(cx: &Context<'_>) -> Option<InFront> {
    if !cx.recording.processes.iter().any(|p| p.in_tree && p.how == Began::Exec) {
        return None;
    }
    let root = first_process(cx.recording)?;
    let pid = program_process(cx)?;
    let program = *images(cx, pid).last()?;
    let until = program.began.max(cx.window.start);
    let mut before: Vec<&Process> = chain(cx, root, pid).filter(|p| p.began < program.began).collect();
    before.sort_by_key(|p| p.began);
    // `env` only hands over to what its arguments name.
    let mut names: Vec<String> =
        before.iter().filter(|p| base_name(cx, p) != "env").map(|p| name(cx, p)).collect();
    names.dedup();
    let first = before.first()?.began.max(cx.window.start);
    if names.is_empty() {
        names.push("env".to_owned());
    }
    let mut pids: Vec<u32> =
        tree(cx.recording).filter(|p| p.began < until && p.pid != pid).map(|p| p.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let waits = cx.waits.iter().filter(|w| w.to > first && w.from < until);
    let waits = waits.map(|w| (w.from.max(first), w.to.min(until)));
    let own = |l: &Lookup| l.pid == program.pid && l.at >= program.began;
    let other_root = cx.lookups().any(|(_, l)| l.root.is_some() && own(l));
    let path =
        program.arguments.as_ref().and_then(|a| a.first()).filter(|a| a.starts_with('/') && !other_root);
    Some(InFront {
        program: path.cloned().or_else(|| program.executable.map(|f| cx.path(f))).unwrap_or_default(),
        other_root,
        programs: names,
        processes: pids.len() as u64,
        time: until.saturating_sub(first),
        waited: union(waits),
    })
}

/// Exec images of a process that began in the window, in order.
fn images<'a>(cx: &Context<'a>, pid: u32) -> Vec<&'a Process> {
    let exec = |p: &&Process| p.pid == pid && p.how == Began::Exec && p.began <= cx.window.until;
    let mut out: Vec<&Process> = tree(cx.recording).filter(exec).collect();
    out.sort_by_key(|p| p.began);
    out
}

fn tree(recording: &Recording) -> impl Iterator<Item = &Process> {
    recording.processes.iter().filter(|p| p.in_tree)
}

/// Exec images of the process and of those above it, up to the first one.
fn chain<'a>(cx: &Context<'a>, root: u32, pid: u32) -> impl Iterator<Item = &'a Process> {
    let mut pids = vec![pid];
    while let Some(above) = pids.last().filter(|p| **p != root && pids.len() <= DEPTH) {
        let Some(parent) = tree(cx.recording).find(|p| p.pid == *above).map(|p| p.parent) else { break };
        pids.push(parent);
    }
    pids.into_iter().flat_map(|pid| images(cx, pid)).collect::<Vec<_>>().into_iter()
}

/// The child program that lives for most of the start.
fn lasting_child(cx: &Context<'_>, pid: u32) -> Option<u32> {
    // Per child: its first program and its end.
    let mut lives: BTreeMap<u32, (Option<Nanos>, Nanos)> = BTreeMap::new();
    for p in tree(cx.recording).filter(|p| p.parent == pid && p.pid != pid) {
        let (first, end) = lives.entry(p.pid).or_default();
        if p.how == Began::Exec {
            *first = Some(first.map_or(p.began, |t| t.min(p.began)));
        }
        *end = p.ended.unwrap_or(cx.window.until).min(cx.window.until).max(*end);
    }
    let most = MOST * cx.window.since_start(cx.window.until).0 as f64;
    let lasting = |(first, end): &(Option<Nanos>, Nanos)| {
        first.is_some_and(|first| end.saturating_sub(first).0 as f64 > most)
    };
    let mut children = lives.iter().filter(|(_, life)| lasting(life)).map(|(pid, _)| *pid);
    children.next().filter(|_| children.next().is_none())
}

/// Name of the executed file.
fn base_name(cx: &Context<'_>, p: &Process) -> String {
    let path = p.executable.map_or_else(|| p.name.clone(), |f| cx.path(f));
    path_text::base(&path).to_owned()
}

fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// What ran: of a shell the script.
fn name(cx: &Context<'_>, p: &Process) -> String {
    let program = base_name(cx, p);
    let script = p.arguments.as_ref().and_then(|a| a.get(1)).filter(|a| !a.starts_with('-'));
    match script.filter(|_| is_shell(&program)) {
        Some(script) => short_name(script),
        None => program,
    }
}

#[cfg(test)]
mod tests;
