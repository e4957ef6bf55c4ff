// SPDX-License-Identifier: BSD-3-Clause
//! The clients of a telemetry socket, with DPDK's protocol: SOCK_SEQPACKET, one datagram for each
//! request and answer.
//!
//! One thread serves all clients in turn. A client that does not read its answers is disconnected.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with,
};

/// The most clients at a time, as in DPDK. More wait until one of them leaves.
const CLIENTS: usize = 10;
/// Longest request in bytes: DPDK does not read more.
const LONGEST_REQUEST: usize = 1023;

/// The answers to clients.
pub(crate) trait Answers {
    /// The greeting of a client that connects.
    fn greeting(&self) -> Vec<u8>;
    /// The answer to a request.
    fn answer(&self, request: &[u8]) -> Vec<u8>;
    /// The answer to a request that is too long; `request` is its beginning.
    fn refuse(&self, request: &[u8]) -> Vec<u8>;
}

/// Splits a request into its command and the text after the comma.
pub(crate) fn split(request: &[u8]) -> (String, String) {
    let request = String::from_utf8_lossy(request);
    let request = request.trim_end_matches(['\0', '\n']);
    let (command, parameters) = request.split_once(',').unwrap_or((request, ""));
    (command.to_owned(), parameters.to_owned())
}

/// A socket of this kind.
pub(crate) fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Returns a socket that is bound to this path and does not accept connections yet.
pub(crate) fn bound(path: &Path) -> rustix::io::Result<OwnedFd> {
    let listener = socket()?;
    bind(&listener, &SocketAddrUnix::new(path)?)?;
    Ok(listener)
}

/// Lets clients connect.
pub(crate) fn open(listener: &OwnedFd) -> rustix::io::Result<()> {
    listen(listener, CLIENTS as i32)
}

/// The clients of a socket, and those that connect to it.
pub(crate) struct Clients {
    listener: OwnedFd,
    /// Written to when serving is to end; without it, serving ends with the process.
    end: Option<OwnedFd>,
    all: Vec<OwnedFd>,
}

impl Clients {
    pub(crate) fn new(listener: OwnedFd, end: Option<OwnedFd>) -> Self {
        Self { listener, end, all: Vec::new() }
    }

    pub(crate) fn serve(mut self, answers: &impl Answers) {
        while let Some((newcomer, asking)) = self.wait() {
            // From the last, so that the indexes of the others stay valid.
            for index in asking.into_iter().rev() {
                if serve_one(&self.all[index], answers).is_none() {
                    drop(self.all.swap_remove(index));
                }
            }
            if newcomer {
                self.welcome(answers);
            }
        }
    }

    /// Waits for connections and requests: returns whether there is a connection, and the clients
    /// with requests. `None` when serving is to end.
    fn wait(&self) -> Option<(bool, Vec<usize>)> {
        let full = self.all.len() >= CLIENTS;
        let events = if full { PollFlags::empty() } else { PollFlags::IN };
        let mut fds = vec![PollFd::new(&self.listener, events)];
        fds.extend(self.all.iter().map(|client| PollFd::new(client, PollFlags::IN)));
        fds.extend(self.end.iter().map(|end| PollFd::new(end, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let (clients, end) = fds[1..].split_at(self.all.len());
        if end.iter().any(ready) {
            return None;
        }
        let asking = clients.iter().enumerate().filter(|(_, fd)| ready(fd));
        Some((ready(&fds[0]), asking.map(|(index, _)| index).collect()))
    }

    fn welcome(&mut self, answers: &impl Answers) {
        let Ok(client) = accept_with(&self.listener, SocketFlags::CLOEXEC) else { return };
        if tell(&client, &answers.greeting()).is_some() {
            self.all.push(client);
        }
    }
}

/// Answers one request; none if the client has left or does not read.
fn serve_one(client: &OwnedFd, answers: &impl Answers) -> Option<()> {
    let mut request = [0; LONGEST_REQUEST];
    let (length, whole) =
        match recv(client, &mut request[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((length, whole)) if length > 0 => (length, whole),
            Err(Errno::AGAIN | Errno::INTR) => return Some(()),
            Ok(_) | Err(_) => return None,
        };
    let request = &request[..length];
    let answer = if whole > length { answers.refuse(request) } else { answers.answer(request) };
    tell(client, &answer)
}

fn tell(client: impl AsFd, answer: &[u8]) -> Option<()> {
    let sent = send(client, answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    sent.ok().filter(|length| *length == answer.len()).map(|_| ())
}
