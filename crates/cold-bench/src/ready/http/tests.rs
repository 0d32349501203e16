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
        assert_eq!(HttpTarget::parse(url).expect(url).address, address.parse().expect("address"), "{url}");
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

/// The status of the whole answer of a server that says these pieces 20 ms apart, and how long it took; the server
/// keeps the connection open for a second where it `lingers`.
fn whole(pieces: &'static [&'static [u8]], lingers: bool) -> (std::io::Result<u16>, Duration) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}/", listener.local_addr().expect("address"));
    let server = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().expect("accept");
        let mut request = [0_u8; 512];
        let _ = s.read(&mut request).expect("read");
        for piece in pieces {
            std::thread::sleep(Duration::from_millis(20));
            let _ = s.write_all(piece);
        }
        std::thread::sleep(Duration::from_millis(if lingers { 1000 } else { 0 }));
    });
    let target = HttpTarget::parse(&url).expect("parses");
    let began = std::time::Instant::now();
    let connection = target.connect().expect("connects");
    let status = target.whole_answer(connection, Duration::from_millis(500));
    let took = began.elapsed();
    server.join().expect("server");
    (status, took)
}

#[test]
fn a_whole_answer_ends_where_its_length_says_or_with_the_connection() {
    let (status, took) = whole(&[b"HTTP/1.1 200 OK\r\n", b"A: b\r\n\r\nab", b"cd"], false);
    assert_eq!(status.expect("an answer"), 200);
    assert!(took >= Duration::from_millis(60), "{took:?}");
    let (status, took) = whole(&[b"HTTP/1.1 404 No\r\ncontent-LENGTH: 4\r\n\r\nab", b"cd"], true);
    assert_eq!(status.expect("an answer"), 404);
    assert!((40..450).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn an_answer_that_is_none_or_never_ends_is_an_error() {
    const NONE: [&[&[u8]]; 3] = [&[], &[b"HTTP/1.1 200 OK\r\n"], &[b"SSH-2.0\r\n\r\n"]];
    for pieces in NONE {
        assert!(whole(pieces, false).0.is_err(), "{pieces:?}");
    }
    let (status, took) = whole(&[b"HTTP/1.1 200 OK\r\n\r\n"], true);
    assert!(status.is_err() && took < Duration::from_millis(900), "its end is not waited for forever");
}

#[test]
fn only_a_status_line_is_an_answer() {
    assert_eq!(answered(b"HTTP/1.0 204 No Content\r\n\r\n").expect("an answer"), 204);
    for other in [&b""[..], b"HTTP/1.1 20", b"SSH-2.0-OpenSSH_9", b"HTTP/1.1  200 OK", b"HTTP/1.1 OK 200 "] {
        assert!(answered(other).is_err(), "{:?}", String::from_utf8_lossy(other));
    }
}
