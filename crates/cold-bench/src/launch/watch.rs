//! The streams of one start and the watch for its readiness.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use cold_model::Nanos;
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;
use regex::bytes::Regex;

use super::output::{Sink, follow};
use crate::config::{Config, Stream};
use crate::ready::{HttpTarget, Ready};
use crate::{Error, Result};

/// The reading thread sees the end of a stream within this time of the tree's end.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What to connect and to put into the environment of the command.
pub(crate) struct Wiring {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// Sees when one start is ready, and when it has answered a first request.
pub(crate) struct Watch<'a> {
    condition: Condition<'a>,
    first: Option<FirstRequest<'a>>,
}

/// What ready means, and what tells of it.
struct Condition<'a> {
    ready: &'a Ready,
    found: Receiver<Nanos>,
    notify: Option<NotifySocket>,
}

impl<'a> Watch<'a> {
    /// Sets up the streams. Fails when the condition holds already.
    pub(crate) fn new(config: &'a Config) -> Result<(Self, Wiring)> {
        let ready = &config.ready;
        ready.check_not_yet(&ProcFs::default())?;
        let first = config.first_request.as_ref().map(|page| FirstRequest::new(page, config)).transpose()?;
        let (found, watch) = std::sync::mpsc::channel();
        let sink = Sink::open(&config.output)?;
        let (on_stdout, on_stderr) = match ready {
            Ready::Stdout(r) => (Some(r), None),
            Ready::Stderr(r) => (None, Some(r)),
            _ => (None, None),
        };
        let stdout = stream(&sink, on_stdout, &std::io::stdout(), &found)?;
        let stderr = stream(&sink, on_stderr, &std::io::stderr(), &found)?;
        let notify = matches!(ready, Ready::Notify).then(NotifySocket::bind).transpose()?;
        let env = notify.iter().map(|n| ("NOTIFY_SOCKET".into(), format!("@{}", n.name).into())).collect();
        let wiring = Wiring { stdin: input(&config.input)?, stdout, stderr, env };
        Ok((Self { condition: Condition { ready, found: watch, notify }, first }, wiring))
    }

    /// Whether the start is over, and since when on `CLOCK_MONOTONIC`: the command is ready, and has answered where it
    /// is asked something. An error: the answer is none.
    pub(crate) fn look(&mut self) -> Result<Option<Nanos>> {
        let Some(first) = &mut self.first else { return Ok(self.condition.since()) };
        if first.serving.is_none() {
            first.serving = self.condition.since();
        }
        first.answered()
    }

    /// Since when the command was ready for the first request; `None`: none is made, or it is not.
    pub(crate) fn serving(&self) -> Option<Nanos> {
        self.first.as_ref()?.serving
    }

    /// Process below `root` that made it ready, where that can be told: it answers the first request, listens on the port,
    /// or sent the notice.
    pub(crate) fn reached_by(&self, root: i32) -> Option<u32> {
        let condition = &self.condition;
        let port = self.first.as_ref().map(|f| f.page.port()).or_else(|| condition.ready.port());
        match port {
            Some(port) => {
                let sockets = cold_sys::listening::sockets(port)?;
                cold_sys::tree::holder(&ProcFs::default(), root, &sockets).map(i32::cast_unsigned)
            }
            None => condition.notify.as_ref()?.sender.get(),
        }
    }

    /// After the tree's end: the marker may have been the program's last words. Nobody is left to be asked.
    pub(crate) fn last_look(&self) -> Option<Nanos> {
        if self.first.is_some() { None } else { self.condition.last() }
    }
}

impl Condition<'_> {
    /// Since when it holds, if it does.
    fn since(&self) -> Option<Nanos> {
        if let Ok(t) = self.found.try_recv() {
            return Some(t);
        }
        // The time after looking: it may have become ready during the look.
        let told = self.notify.as_ref().is_some_and(NotifySocket::is_ready);
        (told || self.ready.is_polled() && self.ready.holds(&ProcFs::default())).then(monotonic)
    }

    /// The same after the tree's end.
    fn last(&self) -> Option<Nanos> {
        match self.ready {
            Ready::Stdout(_) | Ready::Stderr(_) => self.found.recv_timeout(LAST_WORDS).ok(),
            Ready::Notify => self.since(),
            _ => None,
        }
    }
}

/// A page that is asked for once the command is ready.
struct FirstRequest<'a> {
    page: &'a HttpTarget,
    /// Longest wait for a piece of the answer.
    patience: Duration,
    /// Since when the command was ready.
    serving: Option<Nanos>,
    /// When the whole answer was there, and its status; from the thread that asks.
    answer: Option<Receiver<(Nanos, std::io::Result<u16>)>>,
}

impl<'a> FirstRequest<'a> {
    fn new(page: &'a HttpTarget, config: &Config) -> Result<Self> {
        // Somebody else would answer.
        if page.is_local() {
            Ready::Port(page.port()).check_not_yet(&ProcFs::default())?;
        }
        Ok(Self { page, patience: config.timeout, serving: None, answer: None })
    }

    /// When it had answered, if it has. The request is sent as soon as the command is ready and listens.
    fn answered(&mut self) -> Result<Option<Nanos>> {
        if self.serving.is_none() {
            return Ok(None);
        }
        let Some(answer) = &self.answer else {
            // A line of output may tell of it before it listens.
            if let Ok(connection) = self.page.connect() {
                let (told, answer) = std::sync::mpsc::channel();
                let (page, patience) = (self.page.clone(), self.patience);
                std::thread::spawn(move || {
                    let status = page.whole_answer(connection, patience);
                    let _ = told.send((monotonic(), status));
                });
                self.answer = Some(answer);
            }
            return Ok(None);
        };
        let Ok((at, status)) = answer.try_recv() else { return Ok(None) };
        let refused = |why| Err(Error::FirstRequest { page: self.page.to_string(), why });
        match status {
            Ok(status) if status < 400 => Ok(Some(at)),
            Ok(status) => refused(format!("its status is {status}")),
            Err(e) => refused(e.to_string()),
        }
    }
}

/// Connects one output stream: straight to its sink, or through a pipe that is watched or emptied.
fn stream(
    sink: &Sink<'_>,
    marker: Option<&Regex>,
    own: &impl std::os::fd::AsFd,
    found: &Sender<Nanos>,
) -> Result<Stdio> {
    if marker.is_none() && !sink.wants_pipe() {
        return Ok(sink.copy(own)?.map_or_else(Stdio::null, Into::into));
    }
    let (read, write) =
        std::io::pipe().map_err(|source| Error::File { action: "create", path: "a pipe".into(), source })?;
    follow(read, marker.cloned(), sink.copy(own)?, found.clone())?;
    Ok(write.into())
}

fn input(stream: &Stream) -> Result<Stdio> {
    match stream {
        Stream::Null | Stream::Pipe => Ok(Stdio::null()),
        Stream::Inherit => Ok(Stdio::inherit()),
        Stream::File(p) => File::open(p).map(Into::into).map_err(|source| Error::File {
            action: "open",
            path: p.clone(),
            source,
        }),
    }
}

/// The socket of `sd_notify(3)`, in the abstract namespace: no file that could be left behind.
struct NotifySocket {
    socket: UnixDatagram,
    name: String,
    /// Process that said it was ready, once one did.
    sender: Cell<Option<u32>>,
}

impl NotifySocket {
    fn bind() -> Result<Self> {
        let name = format!("cold-notify-{}-{}", std::process::id(), monotonic().0);
        let bind = || {
            let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
            socket.set_nonblocking(true)?;
            cold_sys::sender::tell(&socket)?;
            Ok(socket)
        };
        let socket = bind().map_err(|source| Error::File {
            action: "create the socket",
            path: format!("@{name}").into(),
            source,
        })?;
        Ok(Self { socket, name, sender: Cell::new(None) })
    }

    fn is_ready(&self) -> bool {
        let mut buf = [0_u8; 4096];
        while let Ok((n, sender)) = cold_sys::sender::receive(&self.socket, &mut buf) {
            if buf[..n].split(|b| *b == b'\n').any(|line| line == b"READY=1") {
                self.sender.set(sender);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a socket that was sent these is ready.
    fn told(messages: &[&[u8]]) -> bool {
        let notify = NotifySocket::bind().unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        let to = SocketAddr::from_abstract_name(&notify.name).unwrap();
        for m in messages {
            sender.send_to_addr(m, &to).unwrap();
        }
        let ready = notify.is_ready();
        assert_eq!(notify.sender.get(), ready.then(std::process::id), "who said so");
        ready
    }

    #[test]
    fn ready_is_a_line_of_a_message_as_sd_notify_sends_it() {
        let cases: [(&[&[u8]], bool); 8] = [
            (&[], false),
            (&[b"READY=1"], true),
            (&[b"READY=1\n"], true),
            (&[b"STATUS=up\nREADY=1\nMAINPID=4"], true),
            (&[b"STATUS=warming up", b"WATCHDOG=1", b"READY=1"], true),
            (&[b"READY=0"], false),
            (&[b"STATUS=not READY=1 yet"], false),
            (&[b"READY=11\nXREADY=1"], false),
        ];
        for (messages, ready) in cases {
            assert_eq!(told(messages), ready, "{messages:?}");
        }
    }

    #[test]
    fn two_starts_do_not_hear_of_each_other() {
        let (a, b) = (NotifySocket::bind().unwrap(), NotifySocket::bind().unwrap());
        let to = SocketAddr::from_abstract_name(&a.name).unwrap();
        UnixDatagram::unbound().unwrap().send_to_addr(b"READY=1", &to).unwrap();
        assert_eq!((b.is_ready(), a.is_ready()), (false, true));
    }

    #[test]
    fn input_from_a_file_that_is_not_there_names_it() {
        let why = input(&Stream::File("/nowhere/in".into())).unwrap_err().to_string();
        assert!(why.starts_with("cannot open /nowhere/in: "), "{why}");
    }
}
