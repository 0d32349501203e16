//! One GET request, just enough to see a 200.
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
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
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

    fn status(&self) -> std::io::Result<u16> {
        let mut s = TcpStream::connect_timeout(&self.address, ATTEMPT)?;
        s.set_read_timeout(Some(ATTEMPT))?;
        s.set_write_timeout(Some(ATTEMPT))?;
        // In one piece: a server may answer and close at the first it reads, and what is unread then
        // resets the connection before its answer has arrived.
        let request =
            format!("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.path, self.host);
        s.write_all(request.as_bytes())?;
        // "HTTP/1.1 200"
        let mut head = [0_u8; 12];
        s.read_exact(&mut head)?;
        let text = String::from_utf8_lossy(&head);
        let code = text.strip_prefix("HTTP/").and_then(|t| t.split(' ').nth(1)?.parse().ok());
        code.ok_or_else(|| std::io::Error::other("no HTTP status line"))
    }
}

#[cfg(test)]
mod tests;
