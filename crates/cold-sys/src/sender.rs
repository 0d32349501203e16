//! Who sent a message to a Unix socket: the kernel tells, not the sender (`SO_PASSCRED`, unix(7)).

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};

/// Asks for the senders of the messages that arrive from now on.
pub fn tell(socket: &impl AsFd) -> std::io::Result<()> {
    Ok(sockopt::set_socket_passcred(socket, true)?)
}

/// Takes one message that has arrived; its length, and the process that sent it where the kernel tells.
pub fn receive(socket: &impl AsFd, message: &mut [u8]) -> std::io::Result<(usize, Option<u32>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
    let mut told = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(socket, &mut [IoSliceMut::new(message)], &mut told, RecvFlags::DONTWAIT)?;
    let sender = told.drain().find_map(|m| match m {
        RecvAncillaryMessage::ScmCredentials(who) => Some(who.pid.as_raw_nonzero().get().cast_unsigned()),
        _ => None,
    });
    Ok((got.bytes, sender))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn the_process_that_sent_a_message_is_told_by_the_kernel() {
        let (here, there) = UnixDatagram::pair().unwrap();
        tell(&here).unwrap();
        there.send(b"hello").unwrap();
        let mut message = [0; 16];
        let (bytes, sender) = receive(&here, &mut message).unwrap();
        assert_eq!((&message[..bytes], sender), (&b"hello"[..], Some(std::process::id())));
        assert!(receive(&here, &mut message).is_err(), "there is no other, and nobody waits for one");
    }
}
