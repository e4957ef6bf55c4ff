// SPDX-License-Identifier: BSD-3-Clause
//! `af-packet-fwd`.

use std::ffi::OsString;

use forwarders_common::l2fwd;
use forwarders_common::options::CommandLine as _;
use forwarders_common::say_on;

use super::lanes::{Io, Settings, open};
use super::options::Options;
use crate::eal::{Device, EalError, agreed};
use crate::interface::Port;
use crate::lane::Place;
use crate::program::ProgramError;
use crate::way::{Opened, Way};

/// Defaults for the bytes of a block and the frames of an RX ring.
const BLOCK_BYTES: u32 = 1 << 20;
const FRAMES: u32 = 8192;
/// Bytes that a frame counts for, as in DPDK's driver.
const FRAME_BYTES: u32 = 2048;

pub(crate) struct AfPacket {
    options: Options,
    settings: Settings,
}

impl Way for AfPacket {
    const NAME: &'static str = "af-packet-fwd";
    const DRIVER: &'static str = "net_af_packet";

    fn read(devices: &[Device], words: Vec<OsString>) -> Result<Self, ProgramError> {
        let options = Options::parse(words).inspect_err(|_| say_on!("{}", Options::USAGE))?;
        let settings = agreed(devices, Self::DRIVER, |device| settings(device, &options))?;
        Ok(Self { options, settings })
    }

    fn l2fwd(&self) -> &l2fwd::Options {
        &self.options.l2fwd
    }

    fn queues(&self) -> u16 {
        self.settings.queues
    }

    fn spins(&self) -> bool {
        self.options.spin
    }

    fn driver(&self) -> String {
        let io = match self.options.io {
            Io::ReadWrite => "read-write",
            Io::Mmsg => "mmsg",
            Io::Mmap => "mmap",
        };
        format!("af_packet {io}")
    }

    fn open(&self, ports: &[Port], places: &[Place]) -> Result<Opened, ProgramError> {
        Ok(open(ports, places, &self.settings)?)
    }
}

fn settings(device: &Device, options: &Options) -> Result<Settings, EalError> {
    device.only(&["qpairs", "blocksz", "framesz", "framecnt", "qdisc_bypass"])?;
    let block_bytes = device.number("blocksz", BLOCK_BYTES, 4096..=1 << 26)?;
    if !block_bytes.is_power_of_two() {
        return Err(device.wrong("blocksz", "not a power of 2"));
    }
    // Frames of TPACKET_V3 have variable sizes.
    device.number("framesz", FRAME_BYTES, 64..=1 << 16)?;
    let frames = device.number("framecnt", FRAMES, 1..=1 << 20)?;
    let per_block = (block_bytes / FRAME_BYTES).max(1);
    Ok(Settings {
        io: options.io,
        fanout: options.fanout,
        queues: device.number("qpairs", 1, 1..=16)? as u16,
        qdisc_bypass: device.number("qdisc_bypass", 1, 0..=1)? == 1,
        promiscuous: options.l2fwd.promiscuous,
        mac_updating: options.l2fwd.mac_updating,
        block_bytes,
        blocks: frames.div_ceil(per_block).max(2),
        spans: options.spans,
    })
}
