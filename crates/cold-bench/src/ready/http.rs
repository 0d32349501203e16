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
mod tests {
    use super::*;

    #[test]
    fn targets_of_both_families() {
        let t = HttpTarget::parse("http://[::1]:8080/a?b").expect("parses");
        assert_eq!(t.address, "[::1]:8080".parse().expect("address"));
        assert_eq!(t.to_string(), "http://[::1]:8080/a?b");
        assert_eq!(HttpTarget::parse("http://localhost").expect("parses").path, "/");
    }

    #[test]
    fn the_status_is_read_from_the_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let url = format!("http://{}/x", listener.local_addr().expect("address"));
        let server = std::thread::spawn(move || {
            for answer in ["HTTP/1.1 503 busy\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"] {
                let (mut s, _) = listener.accept().expect("accept");
                let (mut request, mut byte) = (Vec::new(), [0_u8]);
                while !request.ends_with(b"\r\n\r\n") {
                    s.read_exact(&mut byte).expect("read");
                    request.extend(byte);
                }
                s.write_all(answer.as_bytes()).expect("write");
            }
        });
        let t = HttpTarget::parse(&url).expect("parses");
        assert_eq!(t.status().expect("an answer"), 503);
        assert!(t.status().is_ok_and(|s| s == 200));
        server.join().expect("server");
    }

    #[test]
    fn what_cannot_be_asked_says_why() {
        for (url, why) in [
            ("https://127.0.0.1/", "no TLS"),
            ("http://127.0.0.1:http/", "port"),
            ("http://127.0.0.1:65536/", "port"),
            ("http://127.0.0.1:-1/", "port"),
            ("http://", "IP address or localhost"),
            ("http://:80/", "IP address or localhost"),
            ("http://user@127.0.0.1/", "IP address or localhost"),
            ("http://127.0.0.1.example.org/", "IP address or localhost"),
            ("http://127.0.0.1/a b", "blanks"),
            // It would end the line of the request and begin a header.
            ("http://127.0.0.1/a\r\nX: y", "blanks or control"),
        ] {
            let found = HttpTarget::parse(url).expect_err(url);
            assert!(found.contains(why), "{url}: {found}");
        }
    }

    #[test]
    fn a_port_is_told_from_the_colons_of_an_address() {
        for (url, address) in [
            ("http://[::1]/", "[::1]:80"),
            ("http://[::1]:81/", "[::1]:81"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("http://localhost:8080/a:9", "127.0.0.1:8080"),
        ] {
            assert_eq!(
                HttpTarget::parse(url).expect(url).address,
                address.parse().expect("address"),
                "{url}"
            );
        }
    }

    /// The answer to a GET of a server that says this and closes.
    fn answered(answer: &'static [u8]) -> std::io::Result<u16> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let url = format!("http://{}/", listener.local_addr().expect("address"));
        let server = std::thread::spawn(move || {
            let (mut s, _) = listener.accept().expect("accept");
            let mut request = [0_u8; 512];
            let _ = s.read(&mut request).expect("read");
            s.write_all(answer).expect("write");
        });
        let status = HttpTarget::parse(&url).expect("parses").status();
        server.join().expect("server");
        status
    }

    #[test]
    fn only_a_status_line_is_an_answer() {
        assert_eq!(answered(b"HTTP/1.0 204 No Content\r\n\r\n").expect("an answer"), 204);
        for other in
            [&b""[..], b"HTTP/1.1 20", b"SSH-2.0-OpenSSH_9", b"HTTP/1.1  200 OK", b"HTTP/1.1 OK 200 "]
        {
            assert!(answered(other).is_err(), "{:?}", String::from_utf8_lossy(other));
        }
    }
}
