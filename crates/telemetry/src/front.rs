// SPDX-License-Identifier: BSD-3-Clause
//! A socket in front of DPDK's own, which checks requests before DPDK's handlers get them.
//!
//! DPDK serves its socket on threads of its own, and its handlers do not check their parameters
//! (see `arguments.rs`). They cannot be replaced, because DPDK does not expose them. So [`guard`]
//! connects to DPDK's socket, and replaces it in the file system by a socket of this process, by a
//! single rename: later connections are served here, and there is no other way to DPDK's socket.
//!
//! # Lifecycle and threads
//! One ordinary thread, which lives as long as the process, serves all clients in turn. So DPDK
//! gets one request at a time: 22.11 parses requests with `strtok`, which mixes up those of two
//! threads. Clients that connected to DPDK's socket before [`guard`] keep their connections.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix, connect, recv, send};

use crate::arguments::{self, Conditions, Verdict};
use crate::clients::{self, Answers, Clients, split};
use crate::room::LONGEST_ANSWER;

/// Prefix of a socket's name while it does not accept connections; the process ID follows.
const UNFINISHED: &str = "telemetry.";

/// The interface of the program whose DPDK is guarded.
pub trait Program: Send + 'static {
    /// Returns true if the program has registered this command, and so checks the parameters
    /// itself.
    fn answers(&self, command: &str) -> bool;

    /// Calls `question` once, which queries DPDK's own handlers, while nothing that they read is
    /// changed. Does not call it if that is not possible soon, because all clients wait; nor if
    /// `counted` is a port whose driver must not be asked for statistics.
    fn undisturbed(&self, counted: Option<u16>, question: &mut dyn FnMut());
}

/// Guards the socket at this path, which DPDK of this process serves. The guarding thread runs on
/// `cpus`.
///
/// # Errors
/// The system's, with the path. DPDK's socket is then unchanged.
pub fn guard(socket: &Path, cpus: &[usize], program: impl Program) -> io::Result<()> {
    let failed = |source: io::Error| {
        io::Error::new(source.kind(), format!("{}: {source}", socket.display()))
    };
    let front = Front::connect(socket, program).map_err(failed)?;
    let unfinished = Unfinished::new(socket);
    let listener = clients::bound(&unfinished.0).map_err(|errno| failed(errno.into()))?;
    clients::open(&listener).map_err(|errno| failed(errno.into()))?;
    let cpus = cpus.to_vec();
    let serve = move || {
        // If that is refused, the thread runs on the CPUs that the program started on.
        let _ = host::run_on(&cpus);
        Clients::new(listener, None).serve(&front);
    };
    thread::Builder::new().name("telemetry".to_owned()).spawn(serve).map_err(failed)?;
    fs::rename(&unfinished.0, socket).map_err(failed)
}

/// The name of a socket that is not in its final place yet; removed on drop.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(socket: &Path) -> Self {
        let directory = socket.parent().unwrap_or(Path::new("."));
        // Remove sockets of processes that were killed at this point.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if of_the_dead(&entry.file_name()) && host::is_stale_socket(&entry.path()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Self(directory.join(format!("{UNFINISHED}{}", std::process::id())))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns true for the socket name of a process that has ended.
fn of_the_dead(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(UNFINISHED));
    number.and_then(|number| number.parse().ok()).is_some_and(host::is_gone)
}

struct Front<P> {
    /// The only connection to DPDK.
    dpdk: OwnedFd,
    greeting: Vec<u8>,
    program: P,
}

impl<P: Program> Front<P> {
    fn connect(socket: &Path, program: P) -> io::Result<Self> {
        let dpdk = clients::socket()?;
        connect(&dpdk, &SocketAddrUnix::new(socket)?)?;
        let greeting = received(&dpdk)?;
        Ok(Self { dpdk, greeting, program })
    }

    /// DPDK's answer; none if it has stopped answering.
    fn ask(&self, request: &str) -> Option<Vec<u8>> {
        send(&self.dpdk, request.as_bytes(), SendFlags::NOSIGNAL).ok()?;
        received(&self.dpdk).ok()
    }

    /// The same for one of DPDK's own commands, if its conditions hold.
    fn ask_own(&self, request: &str, conditions: &Conditions<'_>) -> Option<Vec<u8>> {
        let mut answer = None;
        self.program.undisturbed(conditions.counted, &mut || {
            let is_listed = |(list, number): &(&str, &str)| {
                self.ask(list).is_some_and(|answer| arguments::lists(&answer, number))
            };
            answer = conditions.listed.iter().all(is_listed).then(|| self.ask(request)).flatten();
        });
        answer
    }
}

impl<P: Program> Answers for Front<P> {
    fn greeting(&self) -> Vec<u8> {
        self.greeting.clone()
    }

    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let (command, parameters) = split(request);
        if !arguments::is_command(&command) || parameters.contains('\0') {
            return self.refuse(request);
        }
        // As DPDK parses it: a comma without parameters would be part of the command.
        let request = match parameters.is_empty() {
            true => command.clone(),
            false => format!("{command},{parameters}"),
        };
        let answer = match arguments::examine(&command, &parameters) {
            _ if self.program.answers(&command) => self.ask(&request),
            Verdict::Trusted => self.ask(&request),
            Verdict::Harmless(conditions) => self.ask_own(&request, &conditions),
            Verdict::Refused => None,
        };
        answer.unwrap_or_else(|| self.refuse(request.as_bytes()))
    }

    /// Returns DPDK's answer to bad parameters and unknown commands.
    fn refuse(&self, request: &[u8]) -> Vec<u8> {
        let command = Some(split(request).0).filter(|command| arguments::is_command(command));
        format!("{{\"{}\":null}}", command.as_deref().unwrap_or("none")).into_bytes()
    }
}

fn received(dpdk: &OwnedFd) -> io::Result<Vec<u8>> {
    // More than DPDK's documented maximum.
    let mut bytes = vec![0; 2 * LONGEST_ANSWER];
    loop {
        match recv(dpdk, &mut bytes[..], RecvFlags::empty()) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((length, _)) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(all(test, feature = "server"))]
#[allow(clippy::unwrap_used)] // A test may.
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    use crate::{Commands, Place, Server, Value};

    /// Returns a server in DPDK's place, and the list of its requests.
    fn dpdk(directory: &Path) -> (Server, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut commands = Commands::new("DPDK");
        for name in ["/ethdev/info", "/ethdev/stats", "/eal/heap_info", "/cnxk/ethdev/info", "/own"]
        {
            let asked = Arc::clone(&asked);
            commands = commands.with(name, "", move |text| {
                asked.lock().unwrap().push(format!("{name},{text}"));
                Some(text.into())
            });
        }
        commands = commands.with("/eal/heap_list", "", |_| Some(Value::Numbers(vec![0, 3])));
        let server = Server::start_at(Place::make_in(directory, "p").unwrap(), commands).unwrap();
        (server, asked)
    }

    struct Owner(Arc<Mutex<usize>>);

    impl Program for Owner {
        fn answers(&self, command: &str) -> bool {
            command == "/own"
        }

        fn undisturbed(&self, counted: Option<u16>, question: &mut dyn FnMut()) {
            *self.0.lock().unwrap() += 1;
            if counted != Some(9) {
                question();
            }
        }
    }

    struct Client(OwnedFd);

    impl Client {
        fn new(socket: &Path) -> Self {
            let made = clients::socket().unwrap();
            connect(&made, &SocketAddrUnix::new(socket).unwrap()).unwrap();
            let greeting = received(&made).unwrap();
            assert!(String::from_utf8_lossy(&greeting).contains(r#""version":"DPDK""#));
            Self(made)
        }

        fn ask(&self, request: impl AsRef<[u8]>) -> String {
            send(&self.0, request.as_ref(), SendFlags::empty()).unwrap();
            String::from_utf8(received(&self.0).unwrap()).unwrap()
        }
    }

    #[test]
    fn requests_are_examined_and_nothing_else_is_left_to_connect_to() {
        let directory = tempfile::tempdir().unwrap();
        let (server, asked) = dpdk(directory.path());
        let socket = server.socket();
        // A process with this number was killed while it began, and no process has it.
        let left = socket.with_file_name(format!("{UNFINISHED}{}", u32::MAX));
        drop(clients::bound(&left).unwrap());
        let alone = Arc::new(Mutex::new(0));
        guard(&socket, &host::allowed_cpus(), Owner(Arc::clone(&alone))).unwrap();
        let there: Vec<_> = fs::read_dir(socket.parent().unwrap()).unwrap().flatten().collect();
        let there: Vec<_> = there.iter().map(|entry| entry.path()).collect();
        assert_eq!(there, std::slice::from_ref(&socket));

        let client = Client::new(&socket);
        for (request, answer) in [
            ("/ethdev/info,7", r#"{"/ethdev/info":"7"}"#),
            ("/ethdev/info,7\n", r#"{"/ethdev/info":"7"}"#),
            ("/ethdev/info,65536", r#"{"/ethdev/info":null}"#),
            ("/ethdev/info", r#"{"/ethdev/info":null}"#),
            (",/ethdev/info,65536", r#"{"none":null}"#),
            ("/ethdev/stats,8", r#"{"/ethdev/stats":"8"}"#),
            ("/ethdev/stats,9", r#"{"/ethdev/stats":null}"#),
            ("/eal/heap_info,3", r#"{"/eal/heap_info":"3"}"#),
            ("/eal/heap_info,1", r#"{"/eal/heap_info":null}"#),
            ("/eal/heap_info,-1", r#"{"/eal/heap_info":null}"#),
            ("/eal/heap_list", r#"{"/eal/heap_list":[0,3]}"#),
            ("/cnxk/ethdev/info", r#"{"/cnxk/ethdev/info":null}"#),
            ("/own", r#"{"/own":""}"#),
            ("/own,", r#"{"/own":""}"#),
            ("/own,a b,-1", r#"{"/own":"a b,-1"}"#),
            ("/own,a\0b", r#"{"/own":null}"#),
            ("/\"", r#"{"none":null}"#),
            ("\0", r#"{"none":null}"#),
        ] {
            assert_eq!(client.ask(request), answer, "{request:?}");
        }
        // DPDK would take the first 1023 bytes for all.
        let long = format!("/own,{}", "x".repeat(1018));
        assert_eq!(long.len(), 1023);
        assert_eq!(client.ask(&long), format!(r#"{{"/own":"{}"}}"#, &long[5..]));
        assert_eq!(client.ask(format!("{long}x")), r#"{"/own":null}"#);
        assert_eq!(client.ask([0xff, b'"', 0]), r#"{"none":null}"#);

        let mut expected = vec!["/ethdev/info,7"; 2];
        expected.extend([
            "/ethdev/stats,8",
            "/eal/heap_info,3",
            "/own,",
            "/own,",
            "/own,a b,-1",
            &long,
        ]);
        assert_eq!(*asked.lock().unwrap(), expected);
        // The requests that DPDK got, or might have got: without those refused immediately, and the
        // program's own.
        assert_eq!(*alone.lock().unwrap(), 7);
    }

    #[test]
    fn a_socket_that_cannot_be_guarded_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (server, _) = dpdk(directory.path());
        let none = directory.path().join("none");
        let error = guard(&none, &[], Owner(Arc::default())).unwrap_err().to_string();
        assert!(error.contains("none: "), "{error}");
        // Something that cannot be removed is in the way.
        let taken = Unfinished::new(&server.socket());
        fs::create_dir(&taken.0).unwrap();
        assert!(guard(&server.socket(), &[], Owner(Arc::default())).is_err());
        fs::remove_dir(&taken.0).unwrap();
        assert_eq!(
            Client::new(&server.socket()).ask("/cnxk/ethdev/info,x"),
            r#"{"/cnxk/ethdev/info":"x"}"#
        );
    }

    #[test]
    fn null_is_answered_where_dpdk_answers_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let (server, _) = dpdk(directory.path());
        let socket = server.socket();
        guard(&socket, &[], Owner(Arc::default())).unwrap();
        let client = Client::new(&socket);
        drop(server);
        assert_eq!(client.ask("/own"), r#"{"/own":null}"#);
    }
}
