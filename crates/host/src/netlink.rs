// SPDX-License-Identifier: BSD-3-Clause
//! One netlink request to the kernel, and its answer. Layouts are those of `linux/netlink.h`.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Sends a query; returns the type of the answer and the data after its header. `protocol` is none
/// for rtnetlink.
///
/// # Errors
/// The kernel's, which may mean that the object does not exist.
pub fn ask(
    protocol: Option<Protocol>,
    kind: u16,
    head: &[u8],
    attributes: &[(u16, &[u8])],
) -> io::Result<(u16, Vec<u8>)> {
    read(&exchange(protocol, kind, NLM_F_REQUEST, &message(head, attributes))?)
}

/// Sends a change to rtnetlink.
///
/// # Errors
/// The kernel's.
pub fn tell(kind: u16, head: &[u8]) -> io::Result<()> {
    match read(&exchange(None, kind, NLM_F_REQUEST | NLM_F_ACK, head)?)? {
        // Error 0: it is done.
        (NLMSG_ERROR, _) => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Sends a request and returns the answer, with its header.
fn exchange(
    protocol: Option<Protocol>,
    kind: u16,
    flags: u16,
    content: &[u8],
) -> io::Result<Vec<u8>> {
    exchange_on(&open(protocol)?, kind, flags, content)
}

/// A socket to ask by, in the calling thread's network namespace.
///
/// # Errors
/// The kernel's own.
pub fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC, protocol)?)
}

/// As [`ask`], by a socket that stays open.
///
/// # Errors
/// The kernel's own, which may mean that there is no such thing.
pub fn ask_on(socket: &OwnedFd, kind: u16, content: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    read(&exchange_on(socket, kind, NLM_F_REQUEST, content)?)
}

fn exchange_on(socket: &OwnedFd, kind: u16, flags: u16, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut request = vec![0; HEADER];
    request.extend(content);
    let length = request.len() as u32;
    put(&mut request, 0, &length.to_ne_bytes());
    put(&mut request, 4, &kind.to_ne_bytes());
    put(&mut request, 6, &flags.to_ne_bytes());
    sendto(socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    // The answer is there before the send returns. The buffer is longer than any answer here.
    let mut answer = vec![0; 1 << 15];
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    answer.truncate(length);
    Ok(answer)
}

fn read(answer: &[u8]) -> io::Result<(u16, Vec<u8>)> {
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let kind = u16_at(answer, 4).ok_or_else(short)?;
    let content = answer.get(HEADER..).ok_or_else(short)?;
    if kind == NLMSG_ERROR {
        let number = i32_at(content, 0).ok_or_else(short)?;
        if number == 0 {
            return Ok((kind, Vec::new()));
        }
        return Err(Errno::from_raw_os_error(number.wrapping_neg()).into());
    }
    Ok((kind, content.to_vec()))
}

/// A message without its header: `head` and then the attributes.
pub fn message(head: &[u8], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = head.to_vec();
    for (kind, value) in attributes {
        let length = (4 + value.len()) as u16;
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(*value);
        message.resize(message.len().next_multiple_of(4), 0);
    }
    message
}

/// Iterates over attributes: type and value of each, up to one that is truncated.
pub struct Attributes<'bytes>(pub &'bytes [u8]);

impl<'bytes> Iterator for Attributes<'bytes> {
    type Item = (u16, &'bytes [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// Bits of the type that say how to read the value.
        const FLAGS: u16 = 0xc000;
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & !FLAGS;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// Writes `value` at `place`, as far as there is room.
pub fn put(bytes: &mut [u8], place: usize, value: &[u8]) {
    bytes.iter_mut().skip(place).zip(value).for_each(|(to, from)| *to = *from);
}

pub fn u16_at(bytes: &[u8], place: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(place..place + 2)?.try_into().ok()?))
}

pub fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

pub fn i32_at(bytes: &[u8], place: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_back_and_cut_ones_end_the_list() {
        let bytes = message(&[], &[(1, b"abc"), (0x8002, b""), (3, b"defgh")]);
        let all: Vec<_> = Attributes(&bytes).collect();
        assert_eq!(all, [(1, b"abc".as_slice()), (2, b""), (3, b"defgh")]);
        assert_eq!(Attributes(&bytes[..20]).count(), 2);
        assert_eq!(Attributes(&[3, 0, 1, 0]).count(), 0, "shorter than its own head");
    }

    #[test]
    fn the_kernels_error_is_ours() {
        let mut answer = vec![0; HEADER];
        put(&mut answer, 4, &NLMSG_ERROR.to_ne_bytes());
        answer.extend((-19i32).to_ne_bytes());
        assert_eq!(read(&answer).unwrap_err().raw_os_error(), Some(19));
        assert!(read(&answer[..HEADER]).is_err());
        assert!(read(&[]).is_err());
    }
}
