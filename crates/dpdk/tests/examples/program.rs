// SPDX-License-Identifier: BSD-3-Clause
//! An example as a process: built once, run without root and hugepages, with a time limit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::built;
use crate::files::{self, Frame};

/// Longest time that an example may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between checks while waiting.
const LOOK: Duration = Duration::from_millis(5);

pub struct Program {
    command: Command,
    directory: TempDir,
    example: String,
    prefix: String,
}

/// The result of a run.
pub struct Run {
    pub lines: Vec<String>,
    /// Frames sent on the net_pcap port.
    pub written: PathBuf,
    _directory: TempDir,
}

impl Program {
    /// With a port that reads these frames from a file.
    pub fn new(example: &str, frames: &[Frame]) -> Self {
        let program = Self::without_frames(example);
        let (input, output) = (program.path("in.pcap"), program.path("out.pcap"));
        files::write(&input, frames);
        let (input, output) = (input.display(), output.display());
        program.vdev(&format!("net_pcap0,rx_pcap={input},tx_pcap={output}"))
    }

    pub fn without_frames(example: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let prefix = directory.path().file_name().unwrap().to_string_lossy().into_owned();
        let mut command = Command::new(directory_of_examples().join(example));
        command.args(["--no-pci", "--no-huge", "--no-shconf", "-m", "128", "--log-level", "error"]);
        command.args(["--file-prefix", &prefix]).env("XDG_RUNTIME_DIR", directory.path());
        Self { command, directory, example: example.to_owned(), prefix }
    }

    /// A program that does not start DPDK.
    pub fn tool(example: &str) -> Command {
        Command::new(directory_of_examples().join(example))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn vdev(mut self, device: &str) -> Self {
        self.command.args(["--vdev", device]);
        self
    }

    /// Number of lcores, on CPUs that the test may use; the default is one.
    pub fn lcores(mut self, count: usize) -> Self {
        let cpus = host::allowed_cpus();
        let lcores: Vec<_> =
            (0..count).map(|id| format!("{id}@{}", cpus[id % cpus.len()])).collect();
        self.command.args(["--lcores", &lcores.join(",")]);
        self
    }

    pub fn start(mut self, options: &[&str]) -> Running {
        if !self.command.get_args().any(|argument| argument == "--lcores") {
            self = self.lcores(1);
        }
        self.command.arg("--").args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.command.spawn().unwrap();
        Running { child, program: self }
    }

    /// Runs it until it ends with success.
    pub fn run(self, options: &[&str]) -> Run {
        let (ok, lines, errors, program) = self.start(options).wait();
        assert!(ok, "{}: {errors}", program.example);
        let written = program.path("out.pcap");
        Run { lines, written, _directory: program.directory }
    }

    /// Runs it until it ends with an error, and returns the error.
    pub fn fail(self, options: &[&str]) -> String {
        let (ok, lines, errors, _) = self.start(options).wait();
        assert!(!ok, "{lines:?}");
        errors
    }
}

pub struct Running {
    child: Child,
    program: Program,
}

impl Running {
    /// Whether it succeeded, the lines that it printed, its errors.
    fn wait(mut self) -> (bool, Vec<String>, String, Program) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > PATIENCE {
                self.child.kill().unwrap();
            }
            std::thread::sleep(LOOK);
        };
        let (mut said, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        // EAL and drivers print lines too, with their names at the beginning.
        let own = |line: &&str| !line.starts_with("EAL:") && !line.starts_with("TELEMETRY:");
        (
            status.success(),
            said.lines().filter(own).map(str::to_owned).collect(),
            errors,
            self.program,
        )
    }

    /// Ends it with SIGTERM, and returns the lines that it printed.
    pub fn end(self) -> Vec<String> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let (ok, lines, errors, _) = self.wait();
        assert!(ok, "{errors}");
        lines
    }

    /// Waits until the port has received all ten frames of the file.
    pub fn await_telemetry(&mut self) {
        self.await_that("/ethdev/stats,0", |answer| answer["ipackets"] == 10);
    }

    pub fn await_answer(&mut self, command: &str, expected: &Json) {
        self.await_that(command, |answer| answer == expected);
    }

    fn await_that(&mut self, command: &str, is_so: impl Fn(&Json) -> bool) {
        let begin = Instant::now();
        loop {
            let answer = self.ask(command);
            if answer.as_ref().is_some_and(&is_so) {
                return;
            }
            assert_eq!(self.child.try_wait().unwrap(), None, "it has ended");
            assert!(begin.elapsed() < PATIENCE, "{command}: {answer:?}");
            std::thread::sleep(LOOK);
        }
    }

    /// DPDK's answer; `None` before it listens.
    fn ask(&self, command: &str) -> Option<Json> {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let end = format!("/{}/dpdk_telemetry.v2", self.program.prefix);
        let path = sockets.split_whitespace().find(|word| word.ends_with(&end))?;
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        connect(&socket, &SocketAddrUnix::new(path).unwrap()).ok()?;
        let mut bytes = vec![0; 20_000];
        recv(&socket, &mut bytes[..], RecvFlags::empty()).ok()?;
        send(&socket, command.as_bytes(), SendFlags::empty()).ok()?;
        let (length, _) = recv(&socket, &mut bytes[..], RecvFlags::empty()).ok()?;
        let mut answer: Json = serde_json::from_slice(&bytes[..length]).unwrap();
        let name = command.split(',').next().unwrap();
        Some(answer[name].take())
    }
}

fn directory_of_examples() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| built::examples(&["--examples"]))
}
