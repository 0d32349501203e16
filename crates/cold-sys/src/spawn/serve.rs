//! The spawner's side: single-threaded, in its own process.

use std::ffi::OsString;

use super::fresh::Renewal;
use super::methods::{Starter, Subject, ballast};
use super::{Answer, Handover, Setup, SpawnOrder, Timing, guard};
use crate::helper::Channel;
use crate::map::MmapMut;
use crate::{Error, Result};

/// Starts a schedule may hold: timings are kept in memory until its end.
const MOST_STARTS: usize = 1 << 20;

/// Runs the spawner until the socket closes. `args`: the number of the socket's descriptor.
pub fn serve(args: &[OsString]) -> Result<()> {
    let channel = Channel::adopt(args)?;
    guard::prepare();
    let answered = answer_all(channel);
    guard::end_tree();
    answered
}

fn answer_all(mut channel: Channel) -> Result<()> {
    let fail = |e| Error::io("use", "the spawner's socket", e);
    let mut prepared: Option<Prepared> = None;
    while let Some(order) = channel.receive::<SpawnOrder>().map_err(fail)? {
        let answer = match order {
            SpawnOrder::Setup(setup) => match Prepared::new(&setup) {
                Ok(p) => {
                    prepared = Some(p);
                    Answer::Ready
                }
                Err(e) => failed(&e),
            },
            SpawnOrder::Run { schedule } => match &prepared {
                Some(p) => p.run(&schedule).map_or_else(|e| failed(&e), Answer::Timings),
                None => without_setup(),
            },
            SpawnOrder::Trace { schedule } => match &prepared {
                Some(p) => p.trace(&schedule).map_or_else(|e| failed(&e), Answer::Handovers),
                None => without_setup(),
            },
        };
        if guard::is_ending() {
            return Ok(());
        }
        channel.send(&answer).map_err(fail)?;
    }
    Ok(())
}

fn without_setup() -> Answer {
    Answer::Failed { what: "a schedule before the setup".into(), errno: libc::EPROTO }
}

fn failed(e: &Error) -> Answer {
    let errno = match e {
        Error::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EIO,
    };
    let what = match e {
        Error::Io { subject, .. } => subject.clone(),
        other => other.to_string(),
    };
    Answer::Failed { what, errno }
}

struct Prepared {
    subjects: Vec<Subject>,
    starter: Starter,
    renewal: Renewal,
    _ballast: Option<MmapMut>,
}

impl Prepared {
    fn new(setup: &Setup) -> Result<Self> {
        let subjects = setup.programs.iter().map(Subject::new).collect::<Result<_>>()?;
        let starter = Starter::new(setup.method, setup.cgroup.as_deref())?;
        let renewal = Renewal::new(&setup.fresh, setup.programs.iter().map(|p| p.path.as_path()))?;
        Ok(Self { subjects, starter, renewal, _ballast: ballast(setup.ballast, setup.huge_pages)? })
    }

    fn run(&self, schedule: &[usize]) -> Result<Vec<Timing>> {
        self.each(schedule, |subject, program| self.starter.start(subject, program))
    }

    /// Those that ended before their entry are left out.
    fn trace(&self, schedule: &[usize]) -> Result<Vec<Handover>> {
        let all = self.each(schedule, |subject, program| self.starter.trace(subject, program))?;
        Ok(all.into_iter().flatten().collect())
    }

    fn each<T>(&self, schedule: &[usize], one: impl Fn(&Subject, usize) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(schedule.len().min(MOST_STARTS));
        for program in schedule.iter().take(MOST_STARTS) {
            let Some(subject) = self.subjects.get(*program) else {
                let e = std::io::Error::from_raw_os_error(libc::EINVAL);
                return Err(Error::io("start", format!("program {program} of {}", self.subjects.len()), e));
            };
            if *program == 0 {
                self.renewal.renew()?;
            }
            all.push(one(subject, *program)?);
            if guard::is_ending() {
                break;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
