//! What systemd wants to hear (`sd_notify(3)`): one datagram per message to the socket that `NOTIFY_SOCKET` names.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

/// Whoever started this service, if that wants to hear.
#[derive(Debug)]
pub(crate) struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// Between two signs of life.
    pub(crate) every: Option<Duration>,
}

impl Manager {
    /// By the environment.
    pub(crate) fn of_environment() -> Self {
        let to = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
                _ => SocketAddr::from_pathname(Path::new(&name)),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        });
        // Half of what is allowed, as `sd_watchdog_enabled(3)` advises.
        let every = std::env::var("WATCHDOG_USEC").ok().and_then(|us| us.parse().ok());
        Self { to, every: every.map(|us: u64| Duration::from_micros(us / 2)) }
    }

    /// Tells it. One that does not listen any more is not waited for.
    pub(crate) fn tell(&self, message: &str) {
        if let Some((socket, address)) = &self.to {
            // Nobody is left to be told.
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}
