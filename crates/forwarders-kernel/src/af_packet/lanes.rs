// SPDX-License-Identifier: BSD-3-Clause
//! From ports to lanes: sockets, rings and fanout groups.

use std::collections::BTreeMap;
use std::io;
use std::os::raw::c_int;
use std::sync::Arc;

use forwarders_common::ethernet::{Addresses, addresses_of_l2fwd};

use super::inbox::Inbox;
use super::mmap::Mmap;
use super::mmsg::Mmsg;
use super::outbox::Outbox;
use super::read_write::ReadWrite;
use super::rx_ring::{self, Blocks, RxRing};
use super::socket::{Fanout, PacketSocket};
use super::tx_ring::{self, TxRing};
use crate::interface::Port;
use crate::lane::{Lane, Place};
use crate::memory::{self, TooLittle};
use crate::spans::{self, SpanBook, Timer};
use crate::stats::{LaneEntry, LaneStats, Missed, PortStats};
use crate::way::Opened;

/// Bytes of a socket's buffers, without those of its rings.
const BUFFER: c_int = 4 << 20;
/// Slots of a TX ring, as in DPDK's driver.
const SLOTS: u32 = 512;

/// How frames are received and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Io {
    /// One call for each frame.
    ReadWrite,
    /// One call for up to 32 frames.
    Mmsg,
    /// Through rings that are shared with the kernel.
    Mmap,
}

/// The settings of sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How frames are received and sent.
    pub io: Io,
    /// How a port's frames are distributed to its queues.
    pub fanout: Fanout,
    /// Queues of each port.
    pub queues: u16,
    /// True if frames bypass the kernel's queueing discipline.
    pub qdisc_bypass: bool,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
    /// True if MAC addresses are rewritten.
    pub mac_updating: bool,
    /// Bytes of an RX ring's block; only for [`Io::Mmap`].
    pub block_bytes: u32,
    /// Blocks of an RX ring.
    pub blocks: u32,
    /// The time of frames inside is measured for one burst in this many; 0: for none.
    pub spans: u32,
}

/// Why a port's sockets could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The process lacks a capability.
    #[error(
        "{device}: packet sockets need the capability CAP_NET_RAW; run as root, or: setcap cap_net_raw+ep PROGRAM"
    )]
    NotAllowed {
        /// The port's device.
        device: String,
    },
    /// There is not enough memory for the rings.
    #[error(transparent)]
    Memory(#[from] TooLittle),
    /// The longest frame would be truncated.
    #[error(
        "{device}: blocksz={size}: {iface} receives frames of {longest} bytes, for which a block needs {least} bytes or more"
    )]
    SmallBlock {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// Bytes of a block.
        size: u32,
        /// Bytes of the longest frame.
        longest: usize,
        /// Bytes of the smallest block, a power of 2.
        least: usize,
    },
    /// The kernel refused.
    #[error("{device}: {iface}: {what}: {source}")]
    System {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The failed operation.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

/// The receiving sockets of each port, for which the kernel counts frames without room.
struct Sockets(BTreeMap<u16, Vec<Arc<PacketSocket>>>);

impl Missed for Sockets {
    fn missed(&self, port: u16) -> u64 {
        self.0.get(&port).into_iter().flatten().map(|socket| socket.dropped()).sum()
    }
}

/// Makes the sockets of every place, and then lets the kernel deliver frames to them. Not before:
/// until a port's fanout group is complete, sockets outside of it would also receive the frames of
/// the others.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn open(
    ports: &[Port],
    places: &[Place],
    settings: &Settings,
) -> Result<Opened, OpenError> {
    if settings.io == Io::Mmap {
        memory::enough_for(rings(ports, places, settings), "framecnt, blocksz and qpairs")?;
    }
    let (mut lanes, mut entries, mut books) = (Vec::new(), Vec::new(), Vec::new());
    let mut sockets = Sockets(BTreeMap::new());
    let mut groups = BTreeMap::new();
    for place in places {
        let find = |id: u16| ports.iter().find(|port| port.id == id);
        let (Some(rx_port), Some(tx_port)) = (find(place.rx_port), find(place.tx_port)) else {
            continue;
        };
        let stats = Arc::<LaneStats>::default();
        let book = SpanBook::of(settings.spans, place);
        let making = Making { rx_port, tx_port, settings, stats: Arc::clone(&stats) };
        let socket = Arc::new(making.receiving_socket()?);
        lanes.push(making.lane(&socket, Timer::new(book.clone()))?);
        books.extend(book);
        making.bind(&socket, groups.entry(place.rx_port).or_default())?;
        sockets.0.entry(place.rx_port).or_default().push(socket);
        let Place { rx_port, tx_port, queue, .. } = *place;
        entries.push(LaneEntry { rx_port, tx_port, queue, stats });
    }
    for port in ports {
        for socket in sockets.0.get(&port.id).into_iter().flatten() {
            let refused = |error| refused(port, "options of a packet socket", error);
            socket.refuse_nothing().map_err(refused)?;
        }
    }
    let stats = Arc::new(PortStats::new(entries, Box::new(sockets)));
    Ok(Opened { lanes, stats, negotiated: Vec::new(), commands: vec![spans::command(books)] })
}

/// Bytes of the rings of all places.
fn rings(ports: &[Port], places: &[Place], settings: &Settings) -> u64 {
    let receiving = u64::from(settings.block_bytes) * u64::from(settings.blocks);
    let sending = |place: &Place| {
        let port = ports.iter().find(|port| port.id == place.tx_port);
        port.map_or(0, |port| tx_ring::bytes(SLOTS, port.longest_frame()) as u64)
    };
    places.iter().map(|place| receiving + sending(place)).sum()
}

struct Making<'m> {
    rx_port: &'m Port,
    tx_port: &'m Port,
    settings: &'m Settings,
    stats: Arc<LaneStats>,
}

impl Making<'_> {
    fn receiving_socket(&self) -> Result<PacketSocket, OpenError> {
        let socket = PacketSocket::new().map_err(|error| not_open(self.rx_port, error))?;
        let set = || {
            socket.set_buffers(BUFFER)?;
            socket.set(libc::PACKET_IGNORE_OUTGOING, &1 as &c_int)?;
            socket.set(libc::PACKET_AUXDATA, &1 as &c_int)?;
            socket.refuse_all()
        };
        set().map_err(|error| refused(self.rx_port, "options of a packet socket", error))?;
        Ok(socket)
    }

    fn sending_socket(&self) -> Result<PacketSocket, OpenError> {
        let socket = PacketSocket::new().map_err(|error| not_open(self.tx_port, error))?;
        let set = || {
            socket.set_buffers(BUFFER)?;
            match self.settings.qdisc_bypass {
                true => socket.set(libc::PACKET_QDISC_BYPASS, &1 as &c_int),
                false => Ok(()),
            }
        };
        set().map_err(|error| refused(self.tx_port, "options of a packet socket", error))?;
        Ok(socket)
    }

    fn addresses(&self) -> Option<Addresses> {
        let both = addresses_of_l2fwd(self.tx_port.id, self.tx_port.mac);
        self.settings.mac_updating.then_some(both)
    }

    /// Blocks that can hold any frame of the interface.
    fn blocks(&self) -> Result<Blocks, OpenError> {
        let Settings { block_bytes: size, blocks: count, .. } = *self.settings;
        let Port { device, iface, .. } = self.rx_port;
        let longest = self.rx_port.longest_frame();
        let least = rx_ring::least_block(longest);
        if size as usize >= least {
            return Ok(Blocks { size, count });
        }
        let (device, iface) = (device.clone(), iface.clone());
        Err(OpenError::SmallBlock { device, iface, size, longest, least })
    }

    /// The lane of a receiving socket that is not bound yet.
    fn lane(
        &self,
        receiving: &Arc<PacketSocket>,
        timer: Timer,
    ) -> Result<Box<dyn Lane>, OpenError> {
        let sending = self.sending_socket()?;
        let bound = |socket: &PacketSocket| {
            socket
                .send_to(self.tx_port.index)
                .map_err(|error| refused(self.tx_port, "bind a packet socket", error))
        };
        if self.settings.io == Io::Mmap {
            let blocks = self.blocks()?;
            let rx = RxRing::new(Arc::clone(receiving), blocks)
                .map_err(|error| refused(self.rx_port, "a TPACKET_V3 ring", error))?;
            let tx = TxRing::new(sending, SLOTS, self.tx_port.longest_frame())
                .map_err(|error| refused(self.tx_port, "a sending ring", error))?;
            bound(&tx.socket)?;
            let ports = [self.rx_port.clone(), self.tx_port.clone()];
            return Ok(Box::new(Mmap::new(
                rx,
                tx,
                ports,
                self.addresses(),
                Arc::clone(&self.stats),
                timer,
            )));
        }
        bound(&sending)?;
        let inbox = Inbox { socket: Arc::clone(receiving), port: self.rx_port.clone() };
        let outbox = Outbox {
            socket: sending,
            port: self.tx_port.clone(),
            addresses: self.addresses(),
            stats: Arc::clone(&self.stats),
            timer,
        };
        Ok(match self.settings.io {
            Io::ReadWrite => Box::new(ReadWrite::new(inbox, outbox)),
            _ => Box::new(Mmsg::new(inbox, outbox)),
        })
    }

    /// Binds a socket to the interface that frames arrive on. `group` is the port's fanout group,
    /// once it has one.
    fn bind(&self, socket: &PacketSocket, group: &mut Option<u16>) -> Result<(), OpenError> {
        let refused = |what| move |error| refused(self.rx_port, what, error);
        socket.receive_from(self.rx_port.index).map_err(refused("bind a packet socket"))?;
        if self.settings.promiscuous {
            socket.promiscuous(self.rx_port.index).map_err(refused("promiscuous mode"))?;
        }
        if self.settings.queues > 1 {
            let fanout = self.settings.fanout;
            match *group {
                Some(number) => socket.join(number, fanout).map_err(refused("a fanout group"))?,
                None => *group = Some(socket.found(fanout).map_err(refused("a fanout group"))?),
            }
        }
        Ok(())
    }
}

fn not_open(port: &Port, error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::NotAllowed { device: port.device.clone() },
        _ => refused(port, "a packet socket", error),
    }
}

fn refused(port: &Port, what: &'static str, source: io::Error) -> OpenError {
    let (device, iface) = (port.device.clone(), port.iface.clone());
    OpenError::System { device, iface, what, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_of_every_queue() {
        let port = |id, mtu| Port {
            id,
            device: String::new(),
            iface: String::new(),
            index: 1,
            mac: [2; 6],
            mtu,
            is_virtual: false,
        };
        let settings = Settings {
            io: Io::Mmap,
            fanout: Fanout::Hash,
            queues: 1,
            qdisc_bypass: true,
            promiscuous: false,
            mac_updating: true,
            block_bytes: 1 << 20,
            blocks: 16,
            spans: 0,
        };
        let ports = [port(0, 1500), port(1, 65_535)];
        let place = |rx_port, tx_port| Place { lcore: 0, rx_port, queue: 0, tx_port };
        // 512 slots of 2 KiB each, and of 128.
        let one = rings(&ports, &[place(0, 0)], &settings);
        assert_eq!(one, (16 << 20) + (1 << 20));
        let all = rings(&ports, &[place(0, 1), place(1, 0), place(0, 1)], &settings);
        assert_eq!(all, one + 2 * ((16 << 20) + (64 << 20)));
    }
}
