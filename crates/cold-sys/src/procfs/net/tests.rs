use super::super::tests::fake;
use super::*;

#[test]
fn the_ports_of_a_process_are_those_of_its_own_sockets() {
    let one = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::TcpListener::bind("[::1]:0").ok();
    let client = std::net::TcpStream::connect(one.local_addr().unwrap()).unwrap();
    let me = i32::try_from(std::process::id()).unwrap();
    let ports = ProcFs::default().tcp_ports_of(&[me]);
    assert!(ports.contains(&one.local_addr().unwrap().port()), "{ports:?}");
    assert!(other.is_none_or(|l| ports.contains(&l.local_addr().unwrap().port())), "{ports:?}");
    assert!(!ports.contains(&client.local_addr().unwrap().port()), "connected, not listening: {ports:?}");
    assert_eq!(ProcFs::default().tcp_ports_of(&[]), [0; 0]);
}

const HEAD: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";

#[test]
fn a_socket_is_known_by_its_whole_name() {
    // As Linux 6.18 prints them: the second is abstract, the third was bound below the working directory.
    let of = |name: &str| {
        let line = format!("0000000063f42245: 00000002 00000000 00010000 0001 01 101 {name}\n");
        fake(&[("net/unix", &format!("{HEAD}{line}"))])
    };
    for (printed, listens) in [
        ("/run/a/x", true),
        ("@/run/a/x", false),
        ("b/run/a/x", false),
        ("run/a/x", false),
        ("/run/a/x/y", false),
        ("/run/a/x y", false),
        ("", false),
    ] {
        let (_dir, proc) = of(printed);
        assert_eq!(proc.unix_listens(Path::new("/run/a/x")).unwrap(), listens, "{printed:?}");
    }
    let (_dir, blanks) = of("/run/a  b ");
    assert!(blanks.unix_listens(Path::new("/run/a  b ")).unwrap());
    assert!(!blanks.unix_listens(Path::new("/run/a b")).unwrap());
}

#[test]
fn the_kernels_own_table_tells_a_socket_in_a_directory_from_an_abstract_one() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(std::ffi::OsStr::from_bytes(b"so\xffcket"));
    let listens = || ProcFs::default().unix_listens(&path).unwrap();
    let name = SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes()).unwrap();
    let hidden = UnixListener::bind_addr(&name).unwrap();
    assert!(!listens(), "abstract");
    let datagrams = UnixDatagram::bind(&path).unwrap();
    assert!(!listens(), "nobody can connect to it");
    drop(datagrams);
    std::fs::remove_file(&path).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    assert!(listens());
    drop((listener, hidden));
}

#[test]
fn a_port_is_told_from_others_that_end_like_it_and_on_either_family() {
    let line =
        |local: &str, state: &str| format!(" 0: {local} 00000000:0000 {state} 0:0 00:0 0 0 0 55 1 0\n");
    let four = format!("head\n{}{}", line("00000000:1F90", "0A"), line("00000000:0050", "06"));
    let six = format!("head\n{}", line("00000000000000000000000001000000:01BB", "0A"));
    let (dir, proc) = fake(&[("net/tcp", &four), ("net/tcp6", &six)]);
    for (port, listens) in [(0x1f90, true), (443, true), (0xf90, false), (80, false), (0, false)] {
        assert_eq!(proc.tcp_listens(port).unwrap(), listens, "{port}");
    }
    std::fs::remove_file(dir.path().join("net/tcp6")).unwrap();
    assert!(!proc.tcp_listens(443).unwrap(), "IPv6 is off");
    std::fs::remove_file(dir.path().join("net/tcp")).unwrap();
    assert!(proc.tcp_listens(443).is_err(), "unknown is not no");
}

#[test]
fn ports_are_told_once_in_order_and_only_those_of_these_processes() {
    let line = |port: &str, state: &str, inode: &str| {
        format!(" 0: 00000000:{port} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0\n")
    };
    let rows = [("1F90", "0A", "12"), ("0050", "0A", "12"), ("0051", "01", "12"), ("0052", "0A", "123")];
    let four: String = rows.iter().map(|(port, state, inode)| line(port, state, inode)).collect();
    let (dir, proc) = fake(&[
        ("net/tcp", &format!("head\n{four}")),
        ("net/tcp6", &format!("head\n{}", line("1F90", "0A", "13"))),
        ("7/fd/0", ""),
    ]);
    for (fd, target) in
        [("3", "socket:[12]"), ("4", "socket:[13]"), ("5", "pipe:[123]"), ("6", "/socket:[123]")]
    {
        std::os::unix::fs::symlink(target, dir.path().join("7/fd").join(fd)).unwrap();
    }
    assert_eq!(proc.tcp_ports_of(&[7]), [80, 8080]);
    assert_eq!(proc.tcp_ports_of(&[8]), [0; 0], "a process that may not be looked at");
}

#[test]
fn listening_is_told_from_connected() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("net")).unwrap();
    std::fs::write(
        dir.path().join("net/tcp"),
        "  sl  local_address rem_address   st\n\
         0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
         1: 0100007F:2000 0100007F:1F90 01 00000000:00000000\n",
    )
    .unwrap();
    std::fs::write(
        dir.path().join("net/unix"),
        "Num       RefCount Protocol Flags    Type St Inode Path\n\
         ffff8881: 00000002 00000000 00010000 0001 01 12345 /tmp/a b.sock\n\
         ffff8882: 00000003 00000000 00000000 0001 03 12346 /tmp/c.sock\n",
    )
    .unwrap();
    let p = ProcFs::new(dir.path());
    assert!(p.tcp_listens(8080).unwrap());
    assert!(!p.tcp_listens(0x2000).unwrap());
    assert!(p.unix_listens(Path::new("/tmp/a b.sock")).unwrap());
    assert!(!p.unix_listens(Path::new("/tmp/c.sock")).unwrap());
}
