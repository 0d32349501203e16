//! One start of one command: release it, see it get ready, end its tree, know that it is gone.

mod output;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cold_model::Nanos;
use cold_model::bench::Ending;
use cold_sys::supervise::client::{StartSpec, Supervised};
use cold_sys::supervise::protocol::{SupervisorEvent, Usage};
use cold_sys::time::{monotonic, process_cpu};

use crate::config::{CommandSpec, Config, Launcher};
use crate::lingering::Lingering;
use crate::ready::{LOOK_EVERY, Ready};
use crate::session::Progress;
use crate::{Error, Result};

pub(crate) use watch::Watch;

/// How often an interrupt or the time limit is looked for while nothing else happens.
const IDLE_LOOK: Duration = Duration::from_millis(50);
/// Grace for the tree after Ctrl-C: the user wants to go.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

/// What one start came to.
#[derive(Debug, Clone)]
pub struct LaunchedStart {
    /// Just before the clone, on `CLOCK_MONOTONIC`.
    pub at: Nanos,
    /// From the clone to the moment when it was ready for a first request; `None` where none was to be made, and when it
    /// never got so far.
    pub serving: Option<Nanos>,
    /// From the clone to ready, or to the whole answer to the first request; `None` when it never got there.
    pub ready: Option<Nanos>,
    /// Process that made it ready, where that is told: who listens on the port, who sent the notice.
    pub reached_by: Option<u32>,
    /// From the clone to the end of the started process itself.
    pub first_gone: Option<Nanos>,
    /// From the clone to the end of the tree.
    pub gone: Nanos,
    /// CPU time that the started process itself, without what it started, had used when it was ready.
    pub own_cpu: Option<Nanos>,
    /// What the tree used.
    pub usage: Usage,
    /// How the command ended.
    pub ending: Ending,
    /// The user interrupted.
    pub interrupted: bool,
}

impl LaunchedStart {
    /// One of which nothing is known yet but when it began.
    fn begun(at: Nanos) -> Self {
        Self {
            at,
            serving: None,
            ready: None,
            reached_by: None,
            first_gone: None,
            gone: Nanos(0),
            own_cpu: None,
            usage: Usage::default(),
            ending: Ending::Ended,
            interrupted: false,
        }
    }
}

/// A start whose supervisor waits for the order to go.
pub(crate) struct Launch<'a> {
    config: &'a Config,
    supervised: Supervised,
    watch: Watch<'a>,
    name: String,
}

impl<'a> Launch<'a> {
    /// Starts the supervisor; the command does not run yet. `cgroups` are the directories the tree
    /// starts in; `iteration` is told to the command as hyperfine does. With `launcher`, that is started
    /// in its place, and becomes it.
    pub(crate) fn prepare(
        config: &'a Config,
        command: &CommandSpec,
        launcher: Option<&Launcher>,
        cgroups: Vec<PathBuf>,
        iteration: Option<u32>,
    ) -> Result<Self> {
        let (watch, mut wiring) = Watch::new(config)?;
        if let Some(i) = iteration {
            wiring.env.push(("HYPERFINE_ITERATION".into(), i.to_string().into()));
        }
        let (program, argv) = match launcher {
            // By its path, as an installed wrapper has it: the others' file was found before the caches were emptied,
            // too, and a walk along PATH takes a read of the disk for each directory.
            Some(l) => {
                let file = std::iter::once(command.program.as_os_str().to_owned());
                let arguments = command.argv.iter().skip(1).cloned();
                (&l.program, l.arguments.iter().cloned().chain(file).chain(arguments).collect())
            }
            None => (&command.program, command.argv.clone()),
        };
        let supervised = Supervised::prepare(StartSpec {
            program: program.clone(),
            argv,
            env: wiring.env,
            cgroups,
            helper: launcher.map(|l| l.helper.clone()),
            pauses: None,
            stdin: wiring.stdin,
            stdout: wiring.stdout,
            stderr: wiring.stderr,
        })
        .map_err(|source| Error::Start { command: command.name.clone(), source })?;
        Ok(Self { config, supervised, watch, name: command.name.clone() })
    }

    /// Pid of the supervisor that waits; whatever descends from it belongs to the start.
    pub(crate) fn supervisor(&self) -> u32 {
        self.supervised.pid()
    }

    /// Starts the command and stays until its tree is gone. `progress` hears of one that goes on running.
    pub(crate) fn go(
        mut self,
        interrupt: &AtomicBool,
        mut progress: Option<&mut dyn Progress>,
    ) -> Result<LaunchedStart> {
        let name = std::mem::take(&mut self.name);
        let fail = |source| Error::Start { command: name.clone(), source };
        let (pid, at) = self.supervised.go().map_err(fail)?;
        let limit = Nanos(at.0.saturating_add(Nanos::from(self.config.timeout).0));
        let mut start = LaunchedStart::begun(at);
        let root = self.supervised.pid().cast_signed();
        let mut lingering = Lingering::watch(&self.config.ready, &name, root);
        let mut status = None;
        let mut timed_out = false;
        let mut ending = false; // the end has been asked for
        let mut refused = None; // why the first request got no answer
        let look = match self.config.ready {
            Ready::Exit => IDLE_LOOK,
            _ => LOOK_EVERY,
        };
        loop {
            let wait = if ending { IDLE_LOOK } else { look };
            match self.supervised.event(Some(wait)).map_err(fail)? {
                Some(SupervisorEvent::MainEnded { at: ended, status: s, cpu }) => {
                    status = Some(s);
                    start.first_gone = Some(ended.saturating_sub(at));
                    start.own_cpu = start.own_cpu.or(cpu);
                }
                Some(SupervisorEvent::TreeGone { at: gone, usage }) => {
                    start.gone = gone.saturating_sub(at);
                    start.usage = usage;
                    break;
                }
                Some(_) | None => {}
            }
            if start.ready.is_none() && !ending {
                refused = self.look(&mut start, pid).err();
            }
            if ending {
                continue;
            }
            if let (Some(lingering), Some(progress)) = (&mut lingering, &mut progress) {
                lingering.look(*progress);
            }
            let grace = if interrupt.load(Ordering::Relaxed) {
                start.interrupted = true;
                Some(INTERRUPT_GRACE.min(self.config.grace))
            } else if start.ready.is_some() || refused.is_some() {
                Some(self.config.grace)
            } else if monotonic() >= limit {
                timed_out = true;
                Some(self.config.grace)
            } else {
                None
            };
            if let Some(grace) = grace {
                self.supervised.end(grace).map_err(fail)?;
                ending = true;
            }
        }
        if matches!(self.config.ready, Ready::Exit) {
            start.ready = (!ending).then_some(start.gone);
        } else if start.ready.is_none() && !timed_out {
            // The marker may have been the program's last words.
            start.ready = self.watch.last_look().map(|t| t.saturating_sub(at));
        }
        start.serving = self.watch.serving().map(|t| t.saturating_sub(at));
        if let Some(why) = refused {
            return Err(why);
        }
        start.ending = ending_of(status, start.usage.ended, timed_out);
        Ok(start)
    }

    /// Notes when the command got ready, and what CPU time it had used by then. An error: its first answer is none.
    fn look(&mut self, start: &mut LaunchedStart, pid: i32) -> Result<()> {
        start.ready = self.watch.look()?.map(|t| t.saturating_sub(start.at));
        if start.ready.is_some() {
            start.own_cpu = process_cpu(pid).or(start.own_cpu);
            start.reached_by = self.watch.reached_by(self.supervised.pid().cast_signed());
        }
        Ok(())
    }
}

fn ending_of(status: Option<i32>, ended: bool, timed_out: bool) -> Ending {
    if timed_out {
        return Ending::TimedOut;
    }
    if ended {
        return Ending::Ended;
    }
    status.map_or(Ending::Ended, Ending::of_wait_status)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    /// The status that wait(2) tells of a shell line.
    fn waited(line: &str) -> i32 {
        Command::new("/bin/sh").arg("-c").arg(line).status().unwrap().into_raw()
    }

    #[test]
    fn an_ending_is_read_from_the_status_as_the_kernel_packs_it() {
        for (line, ending) in [
            ("exit 0", Ending::Code(0)),
            ("exit 1", Ending::Code(1)),
            ("exit 255", Ending::Code(255)),
            ("kill -KILL $$", Ending::Signal(9)),
            ("kill -TERM $$", Ending::Signal(15)),
        ] {
            assert_eq!(ending_of(Some(waited(line)), false, false), ending, "{line}");
        }
        // With a core dumped bit 7 is set: no part of the signal's number.
        assert_eq!(ending_of(Some(0x80 | 0xb), false, false), Ending::Signal(11));
    }

    #[test]
    fn what_we_ended_is_no_signal_of_its_own_and_the_time_limit_comes_first() {
        let killed = waited("kill -TERM $$");
        assert_eq!(ending_of(Some(killed), true, false), Ending::Ended);
        assert_eq!(ending_of(Some(killed), true, true), Ending::TimedOut);
        assert_eq!(ending_of(None, false, false), Ending::Ended, "nobody saw it end");
    }
}
