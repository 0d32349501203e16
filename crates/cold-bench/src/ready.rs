//! What "ready" means, and looking for it without disturbing the program.

mod http;

use std::path::PathBuf;
use std::time::Duration;

use cold_model::Shown as _;
use cold_sys::listening;
use cold_sys::procfs::ProcFs;
use regex::bytes::{Regex, RegexBuilder};

pub use http::HttpTarget;

/// How often a port, socket, file or page is looked at. The measured time is late by half of this on
/// average; looking costs about 50 µs.
pub const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The condition that ends a start.
#[derive(Debug, Clone)]
pub enum Ready {
    /// The whole tree has exited.
    Exit,
    /// Standard output matches.
    Stdout(Regex),
    /// Standard error matches.
    Stderr(Regex),
    /// Somebody listens on this TCP port.
    Port(u16),
    /// Somebody listens on this Unix socket.
    Unix(PathBuf),
    /// This path exists.
    File(PathBuf),
    /// `READY=1` arrives on the socket named by `NOTIFY_SOCKET` (`sd_notify(3)`).
    Notify,
    /// A GET of this page answers 200.
    Http(HttpTarget),
}

/// Why a `--ready` text is not understood, or cannot be used now.
#[derive(Debug, thiserror::Error)]
pub enum ReadyError {
    /// Not one of the forms.
    #[error(
        "cannot understand --ready {text:?}: use exit, stdout:REGEX, stderr:REGEX, port:N, unix:PATH, file:PATH, notify or http://HOST:PORT/PATH"
    )]
    Form {
        /// What was given.
        text: String,
    },
    /// The regular expression is wrong.
    #[error("bad regular expression in --ready {text:?}: {}", last_line(source))]
    Regex {
        /// What was given.
        text: String,
        /// What is wrong.
        source: Box<regex::Error>,
    },
    /// The port number is wrong.
    #[error("bad port in --ready {text:?}: a number from 1 to 65535 is needed")]
    Port {
        /// What was given.
        text: String,
    },
    /// The URL cannot be used.
    #[error("bad URL in --ready {text:?}: {reason}")]
    Url {
        /// What was given.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The condition already holds before the start, so it would prove nothing.
    #[error("{what} before the start, so it cannot tell when the command is ready")]
    AlreadyTrue {
        /// What holds: "port 80 is already open".
        what: String,
    },
}

/// What is wrong, without the drawing of the place that comes before it.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

impl Ready {
    /// Parses `exit|stdout:REGEX|stderr:REGEX|port:N|unix:PATH|file:PATH|notify|http:URL`.
    pub fn parse(text: &str) -> Result<Self, ReadyError> {
        let form = || ReadyError::Form { text: text.to_owned() };
        match text {
            "exit" => return Ok(Self::Exit),
            "notify" => return Ok(Self::Notify),
            _ => {}
        }
        let (kind, rest) = text.split_once(':').ok_or_else(form)?;
        if rest.is_empty() {
            return Err(form());
        }
        let regex = || {
            // `^` and `$` mean lines: who writes `ready$` does not think of the newline behind it.
            RegexBuilder::new(rest)
                .multi_line(true)
                .build()
                .map_err(|source| ReadyError::Regex { text: text.to_owned(), source: Box::new(source) })
        };
        match kind {
            "stdout" => Ok(Self::Stdout(regex()?)),
            "stderr" => Ok(Self::Stderr(regex()?)),
            "port" => match rest.parse() {
                Ok(port) if port > 0 => Ok(Self::Port(port)),
                _ => Err(ReadyError::Port { text: text.to_owned() }),
            },
            "unix" => Ok(Self::Unix(rest.into())),
            "file" => Ok(Self::File(rest.into())),
            "http" => {
                // Both `http:http://host/` and the plain URL `http://host/` are meant alike.
                let url = if rest.starts_with("//") { text } else { rest };
                HttpTarget::parse(url)
                    .map(Self::Http)
                    .map_err(|reason| ReadyError::Url { text: text.to_owned(), reason })
            }
            _ => Err(form()),
        }
    }

    /// Whether the condition is looked for from outside (rather than told by a stream or an exit).
    pub(crate) fn is_polled(&self) -> bool {
        matches!(self, Self::Port(_) | Self::Unix(_) | Self::File(_) | Self::Http(_))
    }

    /// The TCP port on which who is ready listens, where ready is that.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Port(port) => Some(*port),
            Self::Http(page) => Some(page.port()),
            _ => None,
        }
    }

    /// Looks now. Always false for conditions that are not polled.
    pub(crate) fn holds(&self, proc: &ProcFs) -> bool {
        match self {
            Self::Port(p) => listening::listens(*p).unwrap_or_else(|| proc.tcp_listens(*p).unwrap_or(false)),
            Self::Unix(p) => proc.unix_listens(p).unwrap_or(false),
            // lstat: a dangling link counts as there, as for `test -e || test -L`.
            Self::File(p) => p.symlink_metadata().is_ok(),
            Self::Http(t) => t.answers_ok(),
            Self::Exit | Self::Stdout(_) | Self::Stderr(_) | Self::Notify => false,
        }
    }

    /// Fails when the condition already holds.
    pub(crate) fn check_not_yet(&self, proc: &ProcFs) -> Result<(), ReadyError> {
        if !self.is_polled() || !self.holds(proc) {
            return Ok(());
        }
        let what = match self {
            Self::Port(p) => format!("port {p} is already open"),
            Self::Unix(p) => format!("somebody already listens on {}", p.shown()),
            Self::File(p) => format!("{} already exists", p.shown()),
            Self::Http(t) => format!("{t} already answers"),
            _ => return Ok(()),
        };
        Err(ReadyError::AlreadyTrue { what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_parse_and_wrong_ones_say_why() {
        for ok in [
            "exit",
            "notify",
            "stdout:ready in [0-9]+",
            "stderr:x",
            "port:8080",
            "unix:/run/x.sock",
            "file:/tmp/a:b",
            "http://127.0.0.1:80/",
            "http:http://localhost/x",
        ] {
            assert!(Ready::parse(ok).is_ok(), "{ok}");
        }
        for (bad, part) in [
            ("later", "use exit"),
            ("stdout:(", "bad regular expression"),
            ("stdout:", "use exit"),
            ("port:0", "1 to 65535"),
            ("port:99999", "1 to 65535"),
            ("http:ftp://x/", "http://"),
            ("http://example.org/", "IP address or localhost"),
            ("http://127.0.0.1:0/", "port 0"),
        ] {
            let e = Ready::parse(bad).expect_err(bad).to_string();
            assert!(e.contains(part), "{bad}: {e}");
        }
    }

    #[test]
    fn what_holds_before_the_start_cannot_tell_when_it_is_ready() {
        let dir = tempfile::tempdir().unwrap();
        let proc = ProcFs::default();
        let check =
            |text: String| Ready::parse(&text).unwrap().check_not_yet(&proc).map_err(|e| e.to_string());
        let path = dir.path().join("made");
        assert_eq!(check(format!("file:{}", path.display())), Ok(()));
        // A link to nothing is there, too: the command could only replace it.
        std::os::unix::fs::symlink("/nowhere", &path).unwrap();
        let why = check(format!("file:{}", path.display())).unwrap_err();
        assert!(why.contains("made already exists before the start"), "{why}");
        let socket = dir.path().join("socket");
        assert_eq!(check(format!("unix:{}", socket.display())), Ok(()));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let why = check(format!("unix:{}", socket.display())).unwrap_err();
        assert!(why.starts_with("somebody already listens on "), "{why}");
        drop(listener);
        assert_eq!(check(format!("unix:{}", socket.display())), Ok(()), "the name is there, nobody listens");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        assert_eq!(
            check(format!("port:{port}")).unwrap_err(),
            format!(
                "port {port} is already open before the start, so it cannot tell when the command is ready"
            )
        );
    }

    #[test]
    fn line_ends_are_those_of_lines_and_a_bad_expression_is_told_in_one() {
        let Ok(Ready::Stdout(marker)) = Ready::parse("stdout:^ready$") else { panic!("parses") };
        assert!(marker.is_match(b"starting\nready\nserving\n") && !marker.is_match(b"not ready\n"));
        let why = Ready::parse("stderr:a(b").unwrap_err().to_string();
        assert_eq!(why, "bad regular expression in --ready \"stderr:a(b\": unclosed group");
    }
}
