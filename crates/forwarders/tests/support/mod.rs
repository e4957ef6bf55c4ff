// SPDX-License-Identifier: BSD-3-Clause
//! What the tests of whole forwarders share: an Eal of their own, the C example, child processes.
#![allow(dead_code)] // Each test file uses its part.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dpdk::Eal;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// Starts DPDK in this process: no root, no hugepages, no devices but those named.
pub fn eal(vdevs: &[&str]) -> Eal {
    let mut arguments = eal_options(None);
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

/// Where EAL puts its sockets, as root and without.
const RUNTIME_VARIABLES: [&str; 2] = ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"];

/// A private directory for EAL's sockets and for logs; [`Cleanup`] removes it.
pub fn runtime_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| tempfile::tempdir().unwrap().keep())
}

/// Held by each test, first of all: removes what the test made when it ends, also by a panic.
pub struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(runtime_dir());
        let _ = fs::remove_dir_all(build_dir());
    }
}

/// Where this process builds the C example.
fn build_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("l2fwd-{}", std::process::id()))
}

fn eal_options(lcore: Option<usize>) -> Vec<String> {
    static PREFIXES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let number = PREFIXES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut options: Vec<String> =
        ["--no-pci", "--no-huge", "--no-shconf", "-m", "256", "--log-level", "warning"]
            .map(String::from)
            .to_vec();
    options.extend(["--file-prefix".into(), format!("lr{}-{number}", std::process::id())]);
    if let Some(lcore) = lcore {
        options.extend(["-l".into(), lcore.to_string()]);
    }
    options
}

/// The distribution's l2fwd, built from its unmodified source by its own Makefile.
pub fn c_l2fwd() -> PathBuf {
    let source = Path::new("/usr/share/dpdk/examples/l2fwd");
    assert!(source.exists(), "{} is missing: install dpdk-doc (make setup)", source.display());
    let build =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("l2fwd-{}", std::process::id()));
    fs::create_dir_all(&build).unwrap();
    for file in ["main.c", "Makefile"] {
        fs::copy(source.join(file), build.join(file)).unwrap();
    }
    let output = Command::new("make").current_dir(&build).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    build.join("build/l2fwd")
}

/// A forwarder in a process of its own, killed when the test ends without stopping it.
pub struct Forwarder {
    child: Child,
    pub log: PathBuf,
}

impl Forwarder {
    /// `program [EAL options] --vdev .. -- options` on the highest CPU.
    pub fn start(program: &Path, vdevs: &[String], options: &[&str]) -> Self {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let mut command = Command::new(program);
        command.args(eal_options(Some(cpus - 1)));
        for vdev in vdevs {
            command.args(["--vdev", vdev]);
        }
        let log = runtime_dir().join(format!("log-{}", command.get_args().count()));
        let output = fs::File::create(&log).unwrap();
        command
            .arg("--")
            .args(options)
            .envs(RUNTIME_VARIABLES.map(|variable| (variable, runtime_dir())))
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        // SAFETY: a system call and no more between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // A test that is killed takes its forwarder along.
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
            });
        }
        Self { child: command.spawn().unwrap(), log }
    }

    /// Ends it by SIGTERM.
    pub fn stop(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(Instant::now() < deadline, "SIGTERM did not end it in 10 s: {}", self.text());
            sleep(Duration::from_millis(2));
        }
    }

    /// Its exit status, once it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// What it has printed.
    pub fn text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition, 20 seconds at most.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "no {what} in 20 s");
        sleep(Duration::from_millis(1));
    }
}

/// Frames of all kinds: runts, every small size, the largest; each one different.
pub fn frames() -> Vec<Vec<u8>> {
    let sizes = [1, 5, 6, 7, 11, 12, 13, 14]
        .into_iter()
        .chain(59..70)
        .chain([127, 128, 512, 1024, 1500, 1513, 1514]);
    // xorshift64: any bytes do, as long as they are the same each time.
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
