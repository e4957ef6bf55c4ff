// SPDX-License-Identifier: BSD-3-Clause
//! The server's side of DPDK's telemetry socket: SOCK_SEQPACKET, one datagram a request, one an answer.
//!
//! # Lifecycle and threads
//! One ordinary thread serves all clients, each in its turn, from [`Server::start`] until the server is
//! dropped; handlers run on it and must be quick. A client that does not read its answers is dropped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with,
    bind, listen, recv, send, socket_with,
};

use crate::commands::Commands;
use crate::place::{Place, PlaceError};

/// Clients at a time, as many as DPDK has. More wait until one of them leaves.
const CLIENTS: usize = 10;
/// Longest request in bytes, as in DPDK.
const LONGEST_REQUEST: usize = 1024;

/// Why telemetry is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no place for the socket.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused.
    #[error("{}: {source}", .socket.display())]
    System {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Answers commands until it is dropped.
pub struct Server {
    /// Written to when the thread is to end.
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
    place: Place,
}

impl Server {
    /// Answers `commands` on the socket of a file prefix, from now on.
    ///
    /// # Errors
    /// See [`ServerError`]. Nothing is left behind then.
    pub fn start(prefix: &str, commands: Commands) -> Result<Self, ServerError> {
        Self::start_at(Place::make(prefix)?, commands)
    }

    /// Answers `commands` on the socket of a place.
    ///
    /// # Errors
    /// [`ServerError::System`].
    pub fn start_at(mut place: Place, commands: Commands) -> Result<Self, ServerError> {
        let socket = place.socket();
        let refused = |source: io::Error| ServerError::System { socket: socket.clone(), source };
        let refused_by = |errno: Errno| refused(errno.into());
        let listener = bound(&socket).map_err(refused_by)?;
        place.is_ours();
        listen(&listener, CLIENTS as i32).map_err(refused_by)?;
        let made = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            let end = eventfd(0, EventfdFlags::CLOEXEC)?;
            let seen = rustix::io::fcntl_dupfd_cloexec(&end, 0)?;
            Ok((end, seen))
        };
        let (end, seen) = made().map_err(refused_by)?;
        let thread = thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || Clients { listener, end: seen, all: Vec::new() }.serve(&commands))
            .map_err(refused)?;
        Ok(Self { end, thread: Some(thread), place })
    }

    /// The socket's path.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bound(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&listener, &SocketAddrUnix::new(path)?)?;
    Ok(listener)
}

struct Clients {
    listener: OwnedFd,
    end: OwnedFd,
    all: Vec<OwnedFd>,
}

impl Clients {
    fn serve(mut self, commands: &Commands) {
        while let Some((newcomer, asking)) = self.wait() {
            // From the last, so that the numbers of the others stay true.
            for index in asking.into_iter().rev() {
                if serve_one(&self.all[index], commands).is_none() {
                    drop(self.all.swap_remove(index));
                }
            }
            if newcomer {
                self.welcome(commands);
            }
        }
    }

    /// Waits until somebody connects or asks: whether somebody does, and which clients do. None at the
    /// end.
    fn wait(&self) -> Option<(bool, Vec<usize>)> {
        let mut fds = vec![PollFd::new(&self.end, PollFlags::IN)];
        let full = self.all.len() >= CLIENTS;
        let events = if full { PollFlags::empty() } else { PollFlags::IN };
        fds.push(PollFd::new(&self.listener, events));
        fds.extend(self.all.iter().map(|client| PollFd::new(client, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if !fds[0].revents().is_empty() {
            return None;
        }
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let asking = fds[2..].iter().enumerate().filter(|(_, fd)| ready(fd));
        Some((ready(&fds[1]), asking.map(|(index, _)| index).collect()))
    }

    fn welcome(&mut self, commands: &Commands) {
        let Ok(client) = accept_with(&self.listener, SocketFlags::CLOEXEC) else { return };
        if tell(&client, &commands.greeting()).is_some() {
            self.all.push(client);
        }
    }
}

/// Answers one request; none when the client has gone or does not read.
fn serve_one(client: &OwnedFd, commands: &Commands) -> Option<()> {
    let mut request = [0; LONGEST_REQUEST];
    match recv(client, &mut request[..], RecvFlags::DONTWAIT) {
        Ok((length, _)) if length > 0 => tell(client, &commands.answer(&request[..length])),
        Err(Errno::AGAIN | Errno::INTR) => Some(()),
        Ok(_) | Err(_) => None,
    }
}

fn tell(client: impl AsFd, answer: &[u8]) -> Option<()> {
    let sent = send(client, answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    sent.ok().filter(|length| *length == answer.len()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use rustix::net::connect;
    use serde_json::{Value as Json, json};

    struct Client(OwnedFd);

    impl Client {
        fn new(socket: &Path) -> (Self, Json) {
            let flags = SocketFlags::CLOEXEC;
            let made =
                socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            connect(&made, &SocketAddrUnix::new(socket).unwrap()).unwrap();
            let client = Self(made);
            let greeting = client.read();
            (client, greeting)
        }

        fn read(&self) -> Json {
            let mut answer = vec![0; 20_000];
            let (length, _) = recv(&self.0, &mut answer[..], RecvFlags::empty()).unwrap();
            serde_json::from_slice(&answer[..length]).unwrap()
        }

        fn ask(&self, request: &str) -> Json {
            send(&self.0, request.as_bytes(), SendFlags::empty()).unwrap();
            self.read()
        }
    }

    fn server(directory: &Path) -> Server {
        let commands = Commands::new("test 1").with("/echo", "", |text| {
            Some(Value::dict([("text", Value::String(text.to_owned()))]))
        });
        Server::start_at(Place::make_in(directory, "p").unwrap(), commands).unwrap()
    }

    #[test]
    fn clients_are_answered_each_for_itself() {
        let directory = tempfile::tempdir().unwrap();
        let server = server(directory.path());
        let (one, greeting) = Client::new(&server.socket());
        assert_eq!(greeting["version"], "test 1");
        assert_eq!(greeting["max_output_len"], 16384);
        let (two, _) = Client::new(&server.socket());
        for round in 0..20 {
            assert_eq!(
                one.ask(&format!("/echo,{round}")),
                json!({"/echo": {"text": round.to_string()}})
            );
            assert_eq!(two.ask("/echo"), json!({"/echo": {"text": ""}}));
        }
        drop(one);
        assert_eq!(two.ask("/none"), json!({"/none": null}));
        let socket = server.socket();
        drop(server);
        assert!(!socket.exists());
        assert!(!directory.path().join("dpdk/p").exists());
    }

    #[test]
    fn who_begins_at_the_same_time_leaves_the_faster_ones_socket_alone() {
        let directory = tempfile::tempdir().unwrap();
        let place = || Place::make_in(directory.path(), "p").unwrap();
        let (one, other) = (place(), place());
        let first = Server::start_at(one, Commands::new("test 1")).unwrap();
        assert!(Server::start_at(other, Commands::new("test 2")).is_err());
        let (client, _) = Client::new(&first.socket());
        assert_eq!(client.ask("/none"), json!({"/none": null}));
    }

    #[test]
    fn more_clients_wait_until_one_leaves() {
        let directory = tempfile::tempdir().unwrap();
        let server = server(directory.path());
        let mut clients: Vec<Client> =
            (0..CLIENTS).map(|_| Client::new(&server.socket()).0).collect();
        let socket = server.socket();
        let eleventh = thread::spawn(move || Client::new(&socket).0.ask("/echo,x"));
        assert_eq!(clients[9].ask("/echo,y"), json!({"/echo": {"text": "y"}}));
        assert!(!eleventh.is_finished());
        drop(clients.pop());
        assert_eq!(eleventh.join().unwrap(), json!({"/echo": {"text": "x"}}));
    }

    #[test]
    fn who_does_not_read_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let server = server(directory.path());
        let (silent, _) = Client::new(&server.socket());
        // Until its answers fill the socket and it is dropped.
        let asked = (0..100_000).find(|_| {
            send(&silent.0, b"/", SendFlags::NOSIGNAL).is_err_and(|errno| errno != Errno::INTR)
        });
        assert!(asked.is_some());
        let (other, _) = Client::new(&server.socket());
        assert_eq!(other.ask("/echo,z"), json!({"/echo": {"text": "z"}}));
    }
}
