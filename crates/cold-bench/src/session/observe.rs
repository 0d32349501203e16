//! One observed start of a command, with the same readiness and streams as the measured ones.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::bench::Ending;
use cold_model::observed::ObservedStart;
use cold_sys::observe::{Client, ObserveSpec, Streams};

use crate::config::{CommandSpec, Config};
use crate::launch::Watch;
use crate::lingering::Lingering;
use crate::ready::{LOOK_EVERY, Ready};
use crate::session::Progress;
use crate::{Error, Result, hooks};

/// Observation slows a start down by some per cent up to a few times; the time limit allows for it.
const SLOWER: u32 = 4;

/// Observes one start. The inner error says why the file set is unknown; the outer one stops the
/// benchmark (the command cannot be started, or fails).
pub(super) fn observe(
    config: &Config,
    spec: &CommandSpec,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
) -> Result<std::result::Result<ObservedStart, String>> {
    if let Some(line) = &spec.prepare {
        hooks::run("prepare", line, None)?;
    }
    let (mut watch, wiring) = Watch::new(config)?;
    let ask = asked(config, spec, wiring.env);
    let streams = Streams { stdin: wiring.stdin, stdout: wiring.stdout, stderr: wiring.stderr };
    let mut client = match Client::start(OsStr::new("/proc/self/exe"), &ask, streams) {
        Ok(client) => client,
        Err(e) => return Ok(Err(e.to_string())),
    };
    let (mut stopped, mut late, mut refused) = (false, false, None);
    let mut lingering = Lingering::watch(&config.ready, &spec.name, client.observer());
    let mut ready = matches!(config.ready, Ready::Exit);
    let until = Instant::now() + config.timeout * SLOWER;
    let observed = loop {
        match client.wait_timeout(if ready { Duration::from_millis(50) } else { LOOK_EVERY }) {
            Ok(Some(observed)) => break observed,
            Ok(None) => {}
            Err(e) => return Ok(Err(e.to_string())),
        }
        if !ready && !stopped {
            match watch.look() {
                Ok(seen) => ready = seen.is_some(),
                Err(why) => refused = Some(why),
            }
        }
        let over = ready && !matches!(config.ready, Ready::Exit);
        if let Some(lingering) = &mut lingering {
            lingering.look(progress);
        }
        if !stopped
            && (over || refused.is_some() || interrupt.load(Ordering::Relaxed) || Instant::now() >= until)
        {
            late = !over && refused.is_none() && Instant::now() >= until;
            client.stop();
            stopped = true;
        }
    };
    if let Some(line) = &spec.conclude {
        hooks::run("conclude", line, None)?;
    }
    if let Some(why) = refused {
        return Err(why);
    }
    ready = ready || watch.last_look().is_some();
    if interrupt.load(Ordering::Relaxed) {
        return Ok(Ok(observed));
    }
    let (command, ending) = (spec.name.clone(), ending_words(observed.ending));
    let by_exit = matches!(config.ready, Ready::Exit);
    if observed.ending == Ending::TimedOut || late && (by_exit || !ready) {
        let limit = (config.timeout * SLOWER).into();
        let port = lingering.and_then(|l| l.port());
        return Err(Error::NotReady { command, limit, port, by_exit });
    }
    if !ready {
        return Err(Error::NeverReady { command, ending });
    }
    match observed.ending {
        Ending::Code(0) | Ending::Ended | Ending::TimedOut => Ok(Ok(observed)),
        Ending::Code(_) | Ending::Signal(_) if config.ignore_failure => Ok(Ok(observed)),
        _ => Err(Error::Command { command, ending, which: "observed" }),
    }
}

/// What the observer is asked to start: the program as it was found, with what its readiness needs in the environment.
fn asked(config: &Config, spec: &CommandSpec, more: Vec<(OsString, OsString)>) -> ObserveSpec {
    let mut env: Vec<_> = std::env::vars_os().collect();
    env.extend(more);
    let mut argv = spec.argv.clone();
    if let Some(first) = argv.first_mut() {
        first.clone_from(&spec.program.clone().into_os_string());
    }
    ObserveSpec {
        argv,
        env: Some(env),
        cwd: None,
        deadline: Some(config.timeout * SLOWER),
        grace: config.grace,
    }
}

fn ending_words(ending: Ending) -> String {
    match ending {
        Ending::Code(c) => format!("exit code {c}"),
        Ending::Signal(s) => format!("signal {s}"),
        Ending::Ended => "ended".into(),
        Ending::TimedOut => "it took longer than --timeout".into(),
    }
}
