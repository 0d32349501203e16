//! Listening sockets: `/proc/net/tcp`, `tcp6`, `unix`.

use std::path::Path;

use super::ProcFs;
use crate::Result;

/// `TCP_LISTEN` in the `st` column (`include/net/tcp_states.h`).
const TCP_LISTEN: &str = "0A";
/// `__SO_ACCEPTCON` in the `Flags` column of `/proc/net/unix`.
const SO_ACCEPTCON: u32 = 0x0001_0000;

impl ProcFs {
    /// Whether somebody in this network namespace listens on TCP `port`, on any address: for where
    /// [`crate::listening`] is not told. Looking does not connect, so the program never sees a stranger's connection.
    pub fn tcp_listens(&self, port: u16) -> Result<bool> {
        let hex = format!(":{port:04X}");
        let listens = |text: &str| {
            text.lines().skip(1).any(|l| {
                let mut words = l.split_ascii_whitespace().skip(1);
                words.next().is_some_and(|local| local.ends_with(&hex)) && words.nth(1) == Some(TCP_LISTEN)
            })
        };
        // tcp6 is absent where IPv6 is off.
        Ok(listens(&self.read("net/tcp")?) || self.read("net/tcp6").is_ok_and(|t| listens(&t)))
    }

    /// The TCP ports on which one of these processes listens, ascending. Without those that may not be looked at:
    /// of other users' processes nobody but root sees the sockets.
    pub fn tcp_ports_of(&self, pids: &[i32]) -> Vec<u16> {
        let fds = pids.iter().flat_map(|pid| self.fds(*pid).unwrap_or_default());
        let own: Vec<String> = fds
            .filter_map(|fd| {
                let inode = fd.target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
                Some(inode.to_owned())
            })
            .collect();
        let listening = |text: &str| -> Vec<u16> {
            let port = |line: &str| {
                let words: Vec<&str> = line.split_ascii_whitespace().collect();
                let own = own.iter().any(|inode| words.get(9) == Some(&inode.as_str()));
                let (_, port) = words.get(1)?.rsplit_once(':')?;
                let listens = words.get(3) == Some(&TCP_LISTEN);
                (own && listens).then(|| u16::from_str_radix(port, 16).ok()).flatten()
            };
            text.lines().skip(1).filter_map(port).collect()
        };
        let mut ports: Vec<u16> = ["net/tcp", "net/tcp6"]
            .iter()
            .flat_map(|name| listening(&self.read(name).unwrap_or_default()))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Whether somebody listens on the Unix socket at `path`.
    pub fn unix_listens(&self, path: &Path) -> Result<bool> {
        let text = self.read("net/unix")?;
        Ok(text.lines().skip(1).any(|l| {
            let mut words = l.splitn(8, ' ').filter(|w| !w.is_empty());
            // Num RefCount Protocol Flags Type St Inode Path; the path may contain blanks.
            let flags = words.nth(3).and_then(|f| u32::from_str_radix(f, 16).ok()).unwrap_or(0);
            flags & SO_ACCEPTCON != 0
                && l.split_once('/').is_some_and(|(_, rest)| Path::new(&format!("/{rest}")) == path)
        }))
    }
}

#[cfg(test)]
mod tests {
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
}
