// SPDX-License-Identifier: BSD-3-Clause
//! The server's side of DPDK's telemetry socket, for programs without DPDK.
//!
//! # Lifecycle and threads
//! One ordinary thread serves all clients in turn, from [`Server::start`] until the server is
//! dropped; handlers run on it and must be quick. A client that does not read its answers is
//! disconnected.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::clients::{self, Clients};
use crate::commands::Commands;
use crate::place::{Place, PlaceError};

/// Why telemetry is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no path for the socket.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused.
    #[error("{}: {source}", .socket.display())]
    System {
        /// The socket.
        socket: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Serves commands until it is dropped.
pub struct Server {
    /// Written to when the thread is to end.
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
    place: Place,
}

impl Server {
    /// Starts to serve `commands` on the socket of a file prefix.
    ///
    /// # Errors
    /// See [`ServerError`]. Nothing is left behind then.
    pub fn start(prefix: &str, commands: Commands) -> Result<Self, ServerError> {
        Self::start_at(Place::make(prefix)?, commands)
    }

    /// Serves `commands` on the socket of a place.
    ///
    /// # Errors
    /// [`ServerError::System`].
    pub fn start_at(mut place: Place, commands: Commands) -> Result<Self, ServerError> {
        let socket = place.socket();
        let refused = |source: io::Error| ServerError::System { socket: socket.clone(), source };
        let refused_by = |errno: Errno| refused(errno.into());
        let listener = clients::bound(&socket).map_err(refused_by)?;
        place.is_ours();
        clients::open(&listener).map_err(refused_by)?;
        let made = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            let end = eventfd(0, EventfdFlags::CLOEXEC)?;
            let seen = rustix::io::fcntl_dupfd_cloexec(&end, 0)?;
            Ok((end, seen))
        };
        let (end, seen) = made().map_err(refused_by)?;
        let thread = thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || Clients::new(listener, Some(seen)).serve(&commands))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::value::Value;
    use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix, connect, recv, send};
    use serde_json::{Value as Json, json};

    struct Client(OwnedFd);

    impl Client {
        fn new(socket: &Path) -> (Self, Json) {
            let made = clients::socket().unwrap();
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
        assert!(!directory.path().join("p").exists());
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
        let mut clients: Vec<Client> = (0..10).map(|_| Client::new(&server.socket()).0).collect();
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
        // Until its answers fill the socket and it is disconnected.
        let asked = (0..100_000).find(|_| {
            send(&silent.0, b"/", SendFlags::NOSIGNAL).is_err_and(|errno| errno != Errno::INTR)
        });
        assert!(asked.is_some());
        let (other, _) = Client::new(&server.socket());
        assert_eq!(other.ask("/echo,z"), json!({"/echo": {"text": "z"}}));
    }
}
