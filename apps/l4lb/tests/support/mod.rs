// SPDX-License-Identifier: BSD-3-Clause
//! Starts load balancers, each behind a port of memif, and passes frames through them.
#![allow(dead_code)] // No test uses all of it.

pub mod compare;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use dpdk::{
    Burst, Eal, Mempool, PoolConfig, Port, PortConfig, RxConfig, RxQueue, Started, TxConfig,
    TxQueue,
};

pub const PATIENCE: Duration = Duration::from_secs(30);
const OWN: &str = "02:00:00:00:00:aa";

/// The last frame of a group, which is never dropped. The group's number is its source port.
pub fn last_frame(group: usize) -> Vec<u8> {
    let mut frame = vec![
        2, 0, 0, 0, 0, 0xaa, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0,
    ];
    frame.extend([10, 2, 0, 0, 198, 51, 100, 10]);
    frame.extend((group as u16).to_be_bytes());
    frame.extend([0, 80]);
    frame.resize(60, 0);
    frame[46] = 0x50;
    frame
}

/// Returns true for what becomes of it: the inner packet's addresses and ports are the same in every tunnel.
pub fn is_last(frame: &[u8], group: usize) -> bool {
    let mut inner = vec![10, 2, 0, 0, 198, 51, 100, 10];
    inner.extend((group as u16).to_be_bytes());
    inner.extend([0, 80]);
    frame.windows(inner.len()).any(|part| part == inner)
}

/// A program that runs, and ends with the test.
pub struct Program {
    pub child: Child,
    pub output: BufReader<ChildStdout>,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running load balancer, behind a port.
pub struct Balancer<'p> {
    pub name: &'static str,
    pub program: Program,
    pub rx: RxQueue<'p>,
    pub tx: TxQueue<'p>,
}

/// The file prefix of EAL of a program.
pub fn prefix(number: usize) -> String {
    format!("l4lb-test-{}-{number}", std::process::id())
}

/// Starts a program that serves a socket of memif in a directory; returns it when it forwards. `eal`: further options of EAL; `more`:
/// of the program. Standard error goes to a file, `NUMBER.err`.
pub fn start(
    program: &Path,
    name: &str,
    number: usize,
    eal: &[&str],
    more: &[&str],
    directory: &Path,
) -> Program {
    let cpus = host::allowed_cpus();
    let cpu = cpus[number % cpus.len()];
    let memif = format!(
        "net_memif0,role=server,socket={},socket-abstract=no,mac={OWN}",
        directory.join(format!("{number}.sock")).display()
    );
    // It does not outlive a test that is killed.
    let mut child = Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(program)
        .args(["--lcores", &format!("0@{cpu}"), "--no-pci", "--no-huge", "-m", "512"])
        .args(["--log-level=error", "--file-prefix", &prefix(number), "--vdev", &memif])
        .args(eal)
        .arg("--")
        .args(["--config", directory.join("l4lb.conf").to_str().unwrap()])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(File::create(directory.join(format!("{number}.err"))).unwrap())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut program = Program { child, output };
    wait_for(&mut program.output, "ports on", name);
    program
}

/// Reads lines until one has these words.
pub fn wait_for(output: &mut impl BufRead, words: &str, name: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "{name} ended before it said {words:?}");
    }
}

impl Balancer<'_> {
    pub fn reload(&mut self) {
        let hung_up =
            Command::new("kill").args(["-HUP", &self.program.child.id().to_string()]).status();
        assert!(hung_up.unwrap().success());
        wait_for(&mut self.program.output, "reloaded", self.name);
    }

    /// Sends a group of frames; returns what comes back, up to its last frame's.
    pub fn pass(&mut self, pool: &Mempool<'_>, frames: &[Vec<u8>], group: usize) -> Vec<Vec<u8>> {
        let until = Instant::now() + PATIENCE;
        let mut waiting = frames.iter();
        let mut burst = Burst::<32>::new();
        let mut back = Vec::new();
        loop {
            while !burst.is_full() {
                let Some(frame) = waiting.next() else { break };
                let mut packet = pool.alloc().unwrap();
                packet.append(frame.len()).unwrap().copy_from_slice(frame);
                burst.push(packet).unwrap();
            }
            self.tx.send(&mut burst);
            let mut received = Burst::<32>::new();
            if self.rx.receive(&mut received) == 0 {
                assert!(
                    Instant::now() < until,
                    "{}: {} frames came back in {PATIENCE:?}",
                    self.name,
                    back.len()
                );
                std::thread::yield_now();
            }
            for packet in received.iter() {
                back.push(packet.data().to_vec());
            }
            if back.last().is_some_and(|frame| is_last(frame, group)) {
                return back;
            }
        }
    }
}

/// EAL for this test, with a port for each of so many programs.
pub fn eal(directory: &Path, programs: usize) -> Eal {
    let cpu = host::allowed_cpus()[0];
    let mut arguments: Vec<String> =
        ["test", "--no-pci", "--no-huge", "--no-telemetry", "--log-level=error", "-m", "256"]
            .map(str::to_owned)
            .into();
    arguments.extend(["--lcores".into(), format!("0@{cpu}")]);
    arguments.extend(["--file-prefix".into(), format!("l4lb-test-{}", std::process::id())]);
    for number in 0..programs {
        let socket = directory.join(format!("{number}.sock"));
        arguments.push("--vdev".into());
        arguments.push(format!(
            "net_memif{number},role=client,id=0,socket={},socket-abstract=no",
            socket.display()
        ));
    }
    Eal::init(arguments).unwrap().0
}

/// A pool for the frames of this test.
pub fn pool(eal: &Eal) -> Mempool<'_> {
    let config = PoolConfig { count: 16383, ..PoolConfig::named("packets") };
    Mempool::packet_pool(eal, &config).unwrap()
}

/// The ports of so many programs, whose links are up.
pub fn ports<'e>(eal: &'e Eal, pool: &Mempool<'e>, programs: usize) -> Vec<Port<'e, Started>> {
    let started = |number| {
        let config = PortConfig {
            rx: vec![RxConfig::new(pool)],
            tx: vec![TxConfig::default()],
            ..PortConfig::default()
        };
        let id = eal.port_named(&format!("net_memif{number}")).unwrap();
        let port = eal.take_port(id).unwrap().configure(&config).unwrap().start().unwrap();
        assert!(port.control().wait_link(PATIENCE).unwrap().up);
        port
    };
    (0..programs).map(started).collect()
}

impl<'p> Balancer<'p> {
    /// A program behind a port.
    pub fn new(name: &'static str, program: Program, port: &'p mut Port<'_, Started>) -> Self {
        let (rx, tx) = port.queues().pairs().remove(0);
        Self { name, program, rx, tx }
    }
}
