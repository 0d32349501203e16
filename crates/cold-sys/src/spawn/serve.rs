//! The spawner's side: single-threaded, in its own process.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::fresh::Renewal;
use super::methods::{Ballast, Image, Starter};
use super::{Answer, Handover, Order, Setup, Timing, guard};
use crate::{Error, Result};

/// Starts a schedule may hold: timings are kept in memory until its end.
const MOST_STARTS: usize = 1 << 20;

/// Runs the spawner until the socket closes. `args`: the number of the socket's descriptor.
pub fn serve(args: &[OsString]) -> Result<()> {
    let fd = args.first().and_then(|a| a.to_str()).and_then(|a| a.parse::<RawFd>().ok());
    let Some(fd) = fd.filter(|fd| *fd > 2) else {
        return Err(Error::Parse {
            file: PathBuf::from("command line"),
            text: format!("{args:?}"),
            expected: "a descriptor (this argument is for cold's own use)",
        });
    };
    // SAFETY: `cold` passes this descriptor to us and to nobody else in this process.
    let socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let fail = |e| Error::io("use", "the spawner's socket", e);
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).map_err(|e| fail(e.into()))?;
    guard::prepare();
    let answered = answer_all(socket, fail);
    guard::end_tree();
    answered
}

fn answer_all(mut socket: UnixStream, fail: impl Fn(std::io::Error) -> Error) -> Result<()> {
    let fail = &fail;
    let mut reader = BufReader::new(socket.try_clone().map_err(fail)?);
    let mut prepared: Option<Prepared> = None;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(fail)? == 0 {
            return Ok(());
        }
        let order: Order = serde_json::from_str(&line).map_err(|e| fail(e.into()))?;
        let answer = match order {
            Order::Setup(setup) => match Prepared::new(&setup) {
                Ok(p) => {
                    prepared = Some(p);
                    Answer::Ready
                }
                Err(e) => failed(&e),
            },
            Order::Run { schedule } => match &prepared {
                Some(p) => p.run(&schedule).map_or_else(|e| failed(&e), Answer::Timings),
                None => without_setup(),
            },
            Order::Trace { schedule } => match &prepared {
                Some(p) => p.trace(&schedule).map_or_else(|e| failed(&e), Answer::Handovers),
                None => without_setup(),
            },
        };
        if guard::is_ending() {
            return Ok(());
        }
        let mut text = serde_json::to_vec(&answer).map_err(|e| fail(e.into()))?;
        text.push(b'\n');
        socket.write_all(&text).map_err(fail)?;
    }
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
    images: Vec<Image>,
    starter: Starter,
    renewal: Renewal,
    _ballast: Ballast,
}

impl Prepared {
    fn new(setup: &Setup) -> Result<Self> {
        let images = setup.programs.iter().map(Image::new).collect::<Result<_>>()?;
        let starter = Starter::new(setup.method, setup.cgroup.as_deref())?;
        let renewal = Renewal::new(&setup.fresh, setup.programs.iter().map(|p| p.path.as_path()))?;
        Ok(Self { images, starter, renewal, _ballast: Ballast::new(setup.ballast, setup.huge_pages)? })
    }

    fn run(&self, schedule: &[usize]) -> Result<Vec<Timing>> {
        self.each(schedule, |image, program| self.starter.start(image, program))
    }

    /// Those that ended before their entry are left out.
    fn trace(&self, schedule: &[usize]) -> Result<Vec<Handover>> {
        let all = self.each(schedule, |image, program| self.starter.trace(image, program))?;
        Ok(all.into_iter().flatten().collect())
    }

    fn each<T>(&self, schedule: &[usize], one: impl Fn(&Image, usize) -> Result<T>) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(schedule.len().min(MOST_STARTS));
        for program in schedule.iter().take(MOST_STARTS) {
            let Some(image) = self.images.get(*program) else {
                let e = std::io::Error::from_raw_os_error(libc::EINVAL);
                return Err(Error::io("start", format!("program {program} of {}", self.images.len()), e));
            };
            if *program == 0 {
                self.renewal.renew()?;
            }
            all.push(one(image, *program)?);
            if guard::is_ending() {
                break;
            }
        }
        Ok(all)
    }
}
