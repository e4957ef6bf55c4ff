// SPDX-License-Identifier: BSD-3-Clause
//! Writes what ports receive into a pcapng file: `capture [EAL options] -- --write FILE [--snap BYTES] [--packets N]`
//!
//! A worker lcore polls; a closure on each queue copies packets into a ring; the main lcore writes
//! them. Neither waits for the other: packets that find the ring full are counted as lost, in the
//! file as well. Wireshark and capinfos read the file.
//!
//! ```text
//! $ capture --no-pci --no-huge -m 128 -l 0,1 --vdev net_null0 -- --packets 1000 --snap 64 --write out.pcapng
//! 1024 received
//! out.pcapng: 1024 packets, 0 lost
//! ```

mod common;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use common::{Options, Result};
use dpdk::pcapng::{Direction, Interface, Pcapng, PcapngConfig, TapConfig};
use dpdk::{Burst, Eal, Port};

fn main() -> ExitCode {
    common::end(run())
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let mut options = Options::new(arguments)?;
    let path = options.get::<String>("--write")?.ok_or("--write FILE is missing")?;
    let snap = options.get("--snap")?.unwrap_or(TapConfig::default().snap);
    let until = options.until()?;
    let worker = *eal.workers().first().ok_or("no lcore beside the main one: give two to -l")?;
    let pool = common::pool(&eal, 1)?;
    let mut file = Pcapng::create(&path, &PcapngConfig::named("linerate capture example"))?;
    let mut ports = common::start(&eal, &pool, 1)?;

    let mut interfaces = Vec::new();
    for port in &ports {
        interfaces.push(file.add_interface(&Interface::of(&port.control())?)?);
    }
    let mut queues: Vec<_> = ports.iter_mut().map(Port::queues).collect();
    for (port, interface) in queues.iter_mut().zip(interfaces) {
        let config = TapConfig { snap, ..TapConfig::default() };
        let mut tap = file.tap(interface, 0, Direction::Received, &config)?;
        port.rx[0].add_callback(move |packets| tap.capture(packets.iter()))?;
    }

    // The taps end with the queues. A thread that this one spawned would share its CPU.
    eal.scope(|scope| -> Result<()> {
        let until = &until;
        scope.launch(worker, move || {
            while until.more() {
                for port in &mut queues {
                    let mut burst = Burst::<32>::new();
                    until.count(port.rx[0].receive(&mut burst));
                }
            }
        })?;
        while until.more() {
            // A full disk ends the capture.
            file.collect().inspect_err(|_| until.end())?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })?;
    let figures = file.finish()?; // takes what has come since

    for port in ports {
        port.stop()?;
    }
    println!("{} received", until.received());
    println!("{}: {} packets, {} lost", path, figures.captured, figures.dropped);
    Ok(())
}
