//! One GET request: just enough to see a 200, or to wait for the whole of a first answer.
//!
//! No HTTP library: a client would bring a runtime and TLS for one line. Names are not resolved,
//! because glibc's resolver loads shared libraries at run time, which `cold` (linked statically) must
//! not do: it would keep them warm.

use std::fmt;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// One attempt may take this long; a server that accepts but does not answer is asked again.
const ATTEMPT: Duration = Duration::from_secs(2);
/// A head beyond this is no answer of a server that anybody starts.
const MOST_HEAD: usize = 64 << 10;

/// A page on this machine or at a numeric address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTarget {
    address: SocketAddr,
    host: String,
    path: String,
}

impl fmt::Display for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.host, self.path)
    }
}

impl HttpTarget {
    /// Parses `http://HOST[:PORT][/PATH]`, where HOST is `localhost` or an address.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let rest = url.strip_prefix("http://").ok_or("only http:// can be asked (no TLS)")?;
        let slash = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at(slash);
        let (name, port) = match host.rsplit_once(':') {
            // The last colon of [::1] is inside the brackets.
            Some((n, p)) if !p.ends_with(']') => (n, p.parse().map_err(|_| "the port is not a number")?),
            _ => (host, 80),
        };
        if port == 0 {
            return Err("port 0 is nobody's");
        }
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let ip = if name == "localhost" {
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        } else {
            name.parse().map_err(|_| "the host must be an IP address or localhost")?
        };
        if path.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err("the path must not contain blanks or control characters");
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { address: SocketAddr::new(ip, port), host: host.to_owned(), path: path.to_owned() })
    }

    /// Whether a GET answers 200 now.
    pub(super) fn answers_ok(&self) -> bool {
        self.status().is_ok_and(|s| s == 200)
    }

    /// The port that is asked.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The port is one of this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.address.ip().is_loopback() || self.address.ip().is_unspecified()
    }

    /// Connects; somebody has to listen.
    pub(crate) fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect_timeout(&self.address, ATTEMPT)
    }

    /// Asks over this connection and waits for the whole answer, for so long from piece to piece; its status.
    pub(crate) fn whole_answer(&self, mut s: TcpStream, patience: Duration) -> std::io::Result<u16> {
        self.ask(&mut s, patience)?;
        let mut head = Vec::new();
        let mut piece = [0_u8; 16 << 10];
        let body = loop {
            if let Some(end) = head.windows(4).position(|w| w == b"\r\n\r\n") {
                break end + 4;
            }
            match s.read(&mut piece)? {
                0 => return Err(std::io::Error::other("it ended the connection before it answered")),
                n => head.extend(piece.iter().take(n)),
            }
            if head.len() > MOST_HEAD {
                return Err(std::io::Error::other("its answer has no end of headers"));
            }
        };
        let (head, begun) = head.split_at(body);
        let status = status(head)?;
        // It was asked to close the connection behind the answer; some name the length and do not.
        let mut left = length(head).map(|n| n.saturating_sub(begun.len() as u64));
        while left != Some(0) {
            match s.read(&mut piece)? {
                0 => break,
                n => left = left.map(|left| left.saturating_sub(n as u64)),
            }
        }
        Ok(status)
    }

    fn ask(&self, s: &mut TcpStream, patience: Duration) -> std::io::Result<()> {
        s.set_read_timeout(Some(patience))?;
        s.set_write_timeout(Some(patience))?;
        // In one piece: a server may answer and close at the first it reads, and what is unread then
        // resets the connection before its answer has arrived.
        let request =
            format!("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.path, self.host);
        s.write_all(request.as_bytes())
    }

    fn status(&self) -> std::io::Result<u16> {
        let mut s = self.connect()?;
        self.ask(&mut s, ATTEMPT)?;
        // "HTTP/1.1 200"
        let mut head = [0_u8; 12];
        s.read_exact(&mut head)?;
        status(&head)
    }
}

/// The status that the head of an answer tells: `HTTP/1.1 200`.
fn status(head: &[u8]) -> std::io::Result<u16> {
    let text = String::from_utf8_lossy(head);
    let line = text.lines().next().unwrap_or_default();
    let code = line.strip_prefix("HTTP/").and_then(|t| t.split(' ').nth(1)?.parse().ok());
    code.ok_or_else(|| std::io::Error::other("no HTTP status line"))
}

/// Bytes of the body, where the head tells them.
fn length(head: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(head);
    let mut fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests;
