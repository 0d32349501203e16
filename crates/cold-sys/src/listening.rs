//! Listening TCP sockets, asked of the kernel by netlink (`sock_diag(7)`).
//!
//! `/proc/net/tcp` walks the table of all connections, which is as large as the memory: 3.5 ms of CPU per look on a machine
//! of 24 GiB with no connection at all. Looked at every millisecond that took most of a CPU from the start it waited for.

use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, `NLMSG_ERROR`, `NLMSG_DONE` (`linux/sock_diag.h`, `linux/netlink.h`).
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x1 | 0x300;
/// `1 << TCP_LISTEN` (`net/tcp_states.h`).
const LISTENING: u32 = 1 << 10;
/// `struct nlmsghdr`, and `struct inet_diag_req_v2` behind it.
const HEAD: usize = 16;
const REQUEST: usize = HEAD + 56;
/// Where `struct inet_diag_msg` has the own port, in network order, and the socket's inode.
const PORT: usize = HEAD + 4;
const INODE: usize = HEAD + 68;
/// More than the kernel puts into one answer.
const ANSWER: usize = 32 << 10;

/// Whether somebody in this network namespace listens on TCP `port`, on any address. `None`: the kernel does not tell.
pub fn listens(port: u16) -> Option<bool> {
    Some(!sockets(port)?.is_empty())
}

/// Inodes of the sockets that listen on this port, by which `/proc/PID/fd` names them. `None`: the kernel does not tell.
pub fn sockets(port: u16) -> Option<Vec<u32>> {
    let mut found = ports(libc::AF_INET as u8, port).ok()?;
    // Refused where IPv6 is off: then nobody listens there.
    found.extend(ports(libc::AF_INET6 as u8, port).unwrap_or_default());
    Some(found)
}

fn ports(family: u8, port: u16) -> rustix::io::Result<Vec<u32>> {
    let socket: OwnedFd =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    send(&socket, &request(family), SendFlags::empty())?;
    let mut answer = vec![0u8; ANSWER];
    let mut found = Vec::new();
    loop {
        let (bytes, _) = recv(socket.as_fd(), answer.as_mut_slice(), RecvFlags::empty())?;
        match part(answer.get(..bytes).unwrap_or_default(), port) {
            Part::More(here) => found.extend(here),
            Part::Last(here) => {
                found.extend(here);
                return Ok(found);
            }
            Part::Refused => return Err(rustix::io::Errno::OPNOTSUPP),
        }
    }
}

fn request(family: u8) -> [u8; REQUEST] {
    let mut out = [0; REQUEST];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(place) = out.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    };
    put(0, &(REQUEST as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &DUMP.to_ne_bytes());
    put(HEAD, &[family, libc::IPPROTO_TCP as u8]);
    put(HEAD + 4, &LISTENING.to_ne_bytes());
    out
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Sockets of the port among these; more come.
    More(Vec<u32>),
    /// The same, and these were all.
    Last(Vec<u32>),
    Refused,
}

/// Reads one datagram of answers.
fn part(mut rest: &[u8], port: u16) -> Part {
    let mut found = Vec::new();
    while let Some(head) = rest.get(..HEAD) {
        let field = |at: usize| head.get(at..at + 2).map_or(0, |b| u16::from_ne_bytes([b[0], b[1]]));
        let length = head.get(..4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])) as usize;
        match field(4) {
            DONE => return Part::Last(found),
            ERROR => return Part::Refused,
            _ => {}
        }
        let own = rest.get(PORT..PORT + 2).filter(|_| length >= PORT + 2);
        if own.is_some_and(|b| u16::from_be_bytes([b[0], b[1]]) == port) {
            let inode = rest.get(INODE..INODE + 4).filter(|_| length >= INODE + 4);
            found.push(inode.map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])));
        }
        // Each begins at a multiple of four bytes; one shorter than its head is damaged.
        match rest.get(length.next_multiple_of(4)..).filter(|_| length >= HEAD) {
            Some(next) => rest = next,
            None => break,
        }
    }
    Part::More(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_listens_from_its_listen_to_its_end_on_either_family() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // The kernel gives a port that is free again to whoever asks next, so to others on this machine, too.
            let ended = || {
                let socket = std::net::TcpListener::bind(address).ok()?;
                let port = socket.local_addr().unwrap().port();
                assert_eq!(listens(port), Some(true), "{address}");
                // One that is connected and not listening is none, unless somebody else listens with its number
                // at another address.
                let client = std::net::TcpStream::connect(socket.local_addr().unwrap()).unwrap();
                let connected = listens(client.local_addr().unwrap().port());
                drop((client, socket));
                Some((connected, listens(port)))
            };
            let free = Some((Some(false), Some(false)));
            assert!((0..20).map(|_| ended()).any(|seen| seen.is_none() || seen == free), "{address}");
        }
    }

    #[test]
    fn answers_are_read_to_their_end_and_damaged_ones_too() {
        let message = |kind: u16, port: u16, length: u32| {
            let mut m = vec![0u8; 88];
            m[INODE..].copy_from_slice(&(u32::from(port) + 7).to_ne_bytes());
            m[..4].copy_from_slice(&length.to_ne_bytes());
            m[4..6].copy_from_slice(&kind.to_ne_bytes());
            m[PORT..PORT + 2].copy_from_slice(&port.to_be_bytes());
            m
        };
        let two = [message(20, 80, 88), message(20, 8080, 88)].concat();
        assert_eq!((part(&two, 8080), part(&two, 22)), (Part::More(vec![8087]), Part::More(vec![])));
        let done = [message(20, 80, 88), message(DONE, 0, 20)].concat();
        assert_eq!(part(&done, 80), Part::Last(vec![87]));
        assert_eq!(part(&message(ERROR, 0, 36), 80), Part::Refused);
        for damaged in [message(20, 80, 0), message(20, 80, u32::MAX), vec![1; 7], Vec::new()] {
            assert!(matches!(part(&damaged, 81), Part::More(found) if found.is_empty()));
        }
    }
}
