//! Listening sockets: `/proc/net/tcp`, `tcp6`, `unix`.

use std::os::unix::ffi::OsStrExt;
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
        let table = self.read_bytes("net/unix")?;
        Ok(table
            .split(|b| *b == b'\n')
            .skip(1)
            .filter_map(unix_socket)
            .any(|(flags, name)| flags & SO_ACCEPTCON != 0 && name == path.as_os_str().as_bytes()))
    }
}

/// Flags and name of a line of `/proc/net/unix`: Num `RefCount` Protocol Flags Type St Inode Path. The name is as it
/// was given to bind(2), which may be none below the root directory; that of no file begins with `@`.
fn unix_socket(line: &[u8]) -> Option<(u32, &[u8])> {
    let mut rest = line;
    let words = [(); 7].map(|()| {
        let word = rest.trim_ascii_start();
        let (word, tail) = word.split_at(word.iter().position(|b| *b == b' ').unwrap_or(word.len()));
        rest = tail;
        word
    });
    let flags = u32::from_str_radix(std::str::from_utf8(words[3]).ok()?, 16).ok()?;
    Some((flags, rest.strip_prefix(b" ").unwrap_or_default()))
}

#[cfg(test)]
mod tests;
