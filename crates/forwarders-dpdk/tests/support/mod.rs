// SPDX-License-Identifier: BSD-3-Clause
//! Shared by the tests of whole forwarders: an Eal, the C example, child processes.
#![allow(dead_code)] // Each test file uses its part.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dpdk::{Eal, Mempool, Port, PortConfig, PortId, RxConfig, Started, TxConfig};
use forwarders_dpdk::stop::Stop;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// Starts DPDK in this process: no root, no hugepages, only the named devices.
pub fn eal(vdevs: &[&str]) -> Eal {
    let mut arguments = eal_options();
    arguments.extend(["--log-level".to_owned(), "warning".to_owned()]);
    arguments.insert(0, "test".into());
    for vdev in vdevs {
        arguments.extend(["--vdev".to_owned(), (*vdev).to_owned()]);
    }
    for variable in RUNTIME_VARIABLES {
        // SAFETY: called at the start of the only test of the process.
        unsafe { std::env::set_var(variable, runtime_dir()) };
    }
    Eal::init(arguments).unwrap().0
}

/// EAL's socket directory, as root and without root.
const RUNTIME_VARIABLES: [&str; 2] = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];

/// Sets a command's environment so that EAL uses [`runtime_dir`].
pub fn in_runtime_dir(command: &mut Command) {
    command.envs(RUNTIME_VARIABLES.map(|variable| (variable, runtime_dir())));
}

/// A private directory for EAL's sockets and other files of a test; [`Cleanup`] removes it.
pub fn runtime_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| tempfile::tempdir().unwrap().keep())
}

/// Created first by each test: removes the test's files when it ends, also by a panic.
pub struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(runtime_dir());
        let _ = fs::remove_dir_all(build_dir());
        let _ = fs::remove_dir_all(logs_dir());
    }
}

/// Directory for the output of child processes.
fn logs_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("logs-{}", std::process::id()))
}

/// Directory in which this process builds the C example.
fn build_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("l2fwd-{}", std::process::id()))
}

/// Options for a private Eal: no root, no hugepages, no devices, no files except its socket.
fn eal_options() -> Vec<String> {
    static PREFIXES: AtomicUsize = AtomicUsize::new(0);
    let number = PREFIXES.fetch_add(1, Ordering::Relaxed);
    eal_options_of(&format!("lr{}-{number}", std::process::id()))
}

fn eal_options_of(prefix: &str) -> Vec<String> {
    ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--file-prefix", prefix]
        .map(String::from)
        .to_vec()
}

/// The EAL option that makes `n` lcores, all on the highest CPU.
pub fn lcores(n: usize) -> String {
    let cpu = *host::allowed_cpus().last().unwrap();
    let lcores: Vec<String> = (0..n).map(|lcore| format!("{lcore}@{cpu}")).collect();
    format!("--lcores={}", lcores.join(","))
}

/// The distribution's l2fwd, built from its unmodified source by its own Makefile.
pub fn c_l2fwd() -> PathBuf {
    let source = Path::new("/usr/share/dpdk/examples/l2fwd");
    assert!(source.exists(), "{} is missing: install dpdk-doc (make setup)", source.display());
    let build = build_dir();
    fs::create_dir_all(&build).unwrap();
    for file in ["main.c", "Makefile"] {
        fs::copy(source.join(file), build.join(file)).unwrap();
    }
    // If `make` runs the tests, this must not become a part of that make.
    let output = Command::new("make").current_dir(&build).env_remove("MAKELEVEL").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    build.join("build/l2fwd")
}

/// A forwarder in a process, killed when the test ends without stopping it.
pub struct Forwarder {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Forwarder {
    /// `program [EAL options] --vdev .. -- options` with an lcore for each device, on the highest CPU.
    pub fn start(program: &Path, vdevs: &[String], options: &[&str]) -> Self {
        let mut words = vec![lcores(vdevs.len())];
        words.extend(vdevs.iter().map(|vdev| format!("--vdev={vdev}")));
        words.push("--".to_owned());
        words.extend(options.iter().map(|option| (*option).to_owned()));
        Self::spawn(program, &words)
    }

    /// `program [EAL options] words`.
    pub fn spawn(program: &Path, words: &[String]) -> Self {
        Self::spawn_with(program, eal_options(), words)
    }

    /// As [`spawn`](Self::spawn), with EAL's files in `runtime_dir()/dpdk/prefix`.
    pub fn spawn_as(prefix: &str, program: &Path, words: &[String]) -> Self {
        Self::spawn_with(program, eal_options_of(prefix), words)
    }

    /// `program words`.
    pub fn spawn_bare(program: &Path, words: &[String]) -> Self {
        Self::spawn_with(program, Vec::new(), words)
    }

    fn spawn_with(program: &Path, eal_options: Vec<String>, words: &[String]) -> Self {
        static LOGS: AtomicUsize = AtomicUsize::new(0);
        let logs = logs_dir();
        fs::create_dir_all(&logs).unwrap();
        let number = LOGS.fetch_add(1, Ordering::Relaxed);
        let [out, err] = ["out", "err"].map(|stream| logs.join(format!("{number}.{stream}")));
        let mut command = Command::new(program);
        command
            .args(eal_options)
            .args(words)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out).unwrap())
            .stderr(fs::File::create(&err).unwrap());
        in_runtime_dir(&mut command);
        // SAFETY: between fork and exec there is only a system call.
        unsafe {
            command.pre_exec(|| {
                // If a test is killed, its forwarder is killed too.
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
            });
        }
        Self { child: command.spawn().unwrap(), out, err }
    }

    /// Waits until it forwards or has ended.
    pub fn wait_until_it_forwards(&mut self) {
        // Both programs log this after starting every port and checking the links.
        wait_until("start or end", || {
            self.ended().is_some() || self.err().contains("entering main loop")
        });
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it with SIGTERM.
    pub fn stop(&mut self) -> ExitStatus {
        self.end(Signal::TERM)
    }

    /// Ends it with SIGINT.
    pub fn interrupt(&mut self) -> ExitStatus {
        self.end(Signal::INT)
    }

    fn end(&mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(Instant::now() < deadline, "{signal:?} did not end it in 10 s: {}", self.err());
            sleep(Duration::from_millis(2));
        }
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its standard output so far.
    pub fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// Its standard error so far.
    pub fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // No effect on a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Device arguments for one end of a memif link.
pub fn memif(port: usize, role: &str) -> String {
    let socket = runtime_dir().join("memif");
    format!(
        "net_memif{port},role={role},id={port},socket={},socket-abstract=no,mac=02:00:00:00:aa:0{port}",
        socket.display()
    )
}

/// The started port at the end to which the forwarder's port connects.
pub fn serve<'eal>(eal: &'eal Eal, pool: &Mempool<'eal>, port: usize) -> Port<'eal, Started> {
    start(eal, eal.attach(&memif(port, "server")).unwrap()[0], pool)
}

/// A started port with one queue in each direction.
pub fn start<'eal>(eal: &'eal Eal, id: PortId, pool: &Mempool<'eal>) -> Port<'eal, Started> {
    let config = PortConfig {
        rx: vec![RxConfig::new(pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    eal.take_port(id).unwrap().configure(&config).unwrap().start().unwrap()
}

/// Sets the flag when a test's thread ends, also by a panic: otherwise the forwarder would never
/// end.
pub struct RaiseAtEnd<'s>(pub &'s Stop);

impl Drop for RaiseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// Waits for a condition, for at most 20 seconds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "no {what} in 20 s");
        sleep(Duration::from_millis(1));
    }
}

/// Waits until `count` reaches `goal`; gives up when it has not grown for 20 seconds.
pub fn wait_while_growing(what: &str, goal: u64, count: impl Fn() -> u64) {
    let (mut last, mut grown) = (count(), Instant::now());
    while last < goal {
        sleep(Duration::from_millis(1));
        let now = count();
        if now > last {
            (last, grown) = (now, Instant::now());
        }
        assert!(grown.elapsed() < Duration::from_secs(20), "{last} {what}, and no more for 20 s");
    }
}

/// Frames of all kinds: runts, every small size, the largest; all different. Some bursts of them
/// contain a runt, others contain none.
pub fn frames() -> Vec<Vec<u8>> {
    let sizes = [1, 5, 6, 7, 11, 12, 13, 14]
        .into_iter()
        .chain(59..70)
        .chain([127, 128, 512, 1024, 1500, 1513, 1514])
        .chain(12..108);
    // xorshift64: any bytes are fine, if they are the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    sizes
        .cycle()
        .take(500)
        .map(|size| std::iter::repeat_with(&mut next).take(size).collect())
        .collect()
}
