// SPDX-License-Identifier: BSD-3-Clause
//! From ports to lanes: memory, sockets and the programs that fill them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use forwarders_common::complain;
use forwarders_common::ethernet::addresses_of_l2fwd;

use super::lane::{Noting, Receiving, Sending, XdpLane};
use super::program::PortProgram;
use super::socket::{Binding, Copying, ENTRIES, Rings, XdpSocket};
use super::umem::{Chunks, LONGEST, Umem, chunk_for};
use crate::interface::{Port, Promiscuous};
use crate::lane::{Lane, Place};
use crate::memory::{self, TooLittle};
use crate::spans::{self, SpanBook, Timer};
use crate::stats::{LaneEntry, LaneStats, Missed, PortStats};
use crate::way::Opened;
use crate::xdp::{AttachError, LoadError, Mode};

/// Chunks of a lane: as many as fit into its rings, and those in the program.
const CHUNKS: u32 = 2 * ENTRIES;

/// How long to wait for a queue that has a socket: the kernel releases a queue some time after its
/// socket was closed, and a restarted program is often faster.
const LET_GO: Duration = Duration::from_secs(2);
/// Time between two attempts.
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// The settings of sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The first queue used of each port.
    pub first_queue: u16,
    /// The number of queues used.
    pub queues: u16,
    /// How frames are copied.
    pub copying: Copying,
    /// The mode of the XDP program; none: native if possible.
    pub mode: Option<Mode>,
    /// The most frames that the kernel processes in one of the program's calls, if it polls only in
    /// these; none: it polls by itself.
    pub busy_budget: Option<u16>,
    /// True if ports are promiscuous.
    pub promiscuous: bool,
    /// True if MAC addresses are rewritten.
    pub mac_updating: bool,
    /// The time of frames inside is measured for one burst in this many; 0: for none.
    pub spans: u32,
}

/// Why a port's sockets could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program is not on the interface.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The kernel refused the program.
    #[error("{0}")]
    Load(String),
    /// There is not enough memory for the frames.
    #[error(transparent)]
    Memory(#[from] TooLittle),
    /// The process lacks a capability.
    #[error("{device}: AF_XDP sockets need the capability CAP_NET_RAW; run as root")]
    NotAllowed {
        /// The port's device.
        device: String,
    },
    /// The interface lacks a queue.
    #[error(
        "{device}: {iface} has no queue {queue} to receive from and send by (start_queue, queue_count); see ethtool -l {iface}"
    )]
    NoQueue {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The requested queue.
        queue: u32,
    },
    /// A queue has another socket.
    #[error("{device}: queue {queue} of {iface} has an AF_XDP socket already")]
    Taken {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// The queue.
        queue: u32,
    },
    /// The driver supports no zero-copy.
    #[error("{device}: the driver of {iface} does not support zero-copy; leave out --copy zero")]
    NoZeroCopy {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// Frames are longer than a chunk.
    #[error(
        "{device}: {iface} has frames of up to {longest} bytes; AF_XDP takes {LONGEST} at most"
    )]
    TooLong {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// Its longest frame in bytes.
        longest: usize,
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

impl From<LoadError> for OpenError {
    fn from(error: LoadError) -> Self {
        Self::Load(error.to_string())
    }
}

/// What counts the frames of a port that do not reach its lanes.
#[derive(Default)]
struct Counting {
    sockets: Vec<Arc<XdpSocket>>,
    program: Option<Arc<PortProgram>>,
}

/// Frames that the kernel dropped because there was no chunk or no room in a ring, and those of
/// other queues; by port.
struct Dropped(BTreeMap<u16, Counting>);

impl Missed for Dropped {
    fn missed(&self, port: u16) -> u64 {
        let sockets = self.0.get(&port).into_iter().flat_map(|port| &port.sockets);
        sockets.filter_map(|socket| socket.statistics().ok()).map(|told| missed(&told)).sum()
    }

    fn unpolled(&self, port: u16) -> Option<u64> {
        self.0.get(&port)?.program.as_ref()?.unpolled()
    }
}

/// `rx_fill_ring_empty_descs` counts attempts with an empty ring; the frames lost by that are in
/// `rx_dropped`.
fn missed(told: &libc::xdp_statistics) -> u64 {
    told.rx_dropped + told.rx_ring_full + told.rx_invalid_descs
}

/// A port's queue with its socket, before its two halves are given to lanes.
struct Queue {
    socket: Arc<XdpSocket>,
    receiving: Option<Receiving>,
    sending: Option<Sending>,
}

/// Makes sockets for every queue of every place, attaches programs to the ports and gives them the
/// sockets.
///
/// # Errors
/// See [`OpenError`].
pub(super) fn open(
    ports: &[Port],
    places: &[Place],
    settings: &Settings,
) -> Result<Opened, OpenError> {
    let umem = umem(ports, places.len() as u32)?;
    let mut queues = match sockets(ports, settings, settings.copying, &umem) {
        // Sockets that share memory copy as the first one does. If the drivers differ, all can
        // copy.
        Err(OpenError::NoZeroCopy { .. }) if settings.copying == Copying::Either => {
            sockets(ports, settings, Copying::Copy, &umem)?
        }
        made => made?,
    };

    let mut programs = BTreeMap::new();
    let mut negotiated = Vec::new();
    for port in ports {
        let program = Arc::new(PortProgram::start(port, settings.mode)?);
        let zero = queues
            .get(&(port.id, 0))
            .is_some_and(|queue| queue.socket.is_zero_copy().unwrap_or(false));
        let copy = if zero { "zero-copy" } else { "copy" };
        let poll = if settings.busy_budget.is_some() { ", busy poll" } else { "" };
        negotiated.push((port.id, format!("AF_XDP {copy}, {}{poll}", program.told())));
        tell_unpolled(port, settings);
        programs.insert(port.id, program);
    }

    let (mut lanes, mut entries): (Vec<Box<dyn Lane>>, _) = (Vec::new(), Vec::new());
    let mut dropped = Dropped(BTreeMap::new());
    let mut books = Vec::new();
    for (number, place) in (0u32..).zip(places) {
        let rx = queues.get_mut(&(place.rx_port, place.queue)).and_then(|q| q.receiving.take());
        let tx = queues.get_mut(&(place.tx_port, place.queue)).and_then(|q| q.sending.take());
        let (Some(rx), Some(tx), Some(program)) = (rx, tx, programs.get(&place.rx_port)) else {
            continue;
        };
        let addresses = addresses_of_l2fwd(tx.port.id, tx.port.mac);
        let stats = Arc::<LaneStats>::default();
        let chunks = Chunks::new(&umem, number * CHUNKS, (number + 1) * CHUNKS);
        let counting = dropped.0.entry(place.rx_port).or_default();
        counting.sockets.push(Arc::clone(&rx.socket));
        counting.program = Some(Arc::clone(program));
        let queue = u32::from(settings.first_queue + place.queue);
        let socket = Arc::clone(&rx.socket);
        let book = SpanBook::of(settings.spans, place);
        lanes.push(Box::new(XdpLane::new(
            rx,
            tx,
            chunks,
            settings.mac_updating.then_some(addresses),
            settings.busy_budget.is_some(),
            Noting { stats: Arc::clone(&stats), timer: Timer::new(book.clone()) },
            Arc::clone(program),
        )));
        books.extend(book);
        // Only now, because there are chunks to receive into.
        program.give(queue, &socket)?;
        let Place { rx_port, tx_port, queue, .. } = *place;
        entries.push(LaneEntry { rx_port, tx_port, queue, stats });
    }
    let stats = Arc::new(PortStats::new(entries, Box::new(dropped)));
    Ok(Opened { lanes, stats, negotiated, commands: vec![spans::command(books)] })
}

/// Reports that an interface has queues that are not polled: frames that arrive on them are not
/// forwarded.
fn tell_unpolled(port: &Port, Settings { first_queue, queues, .. }: &Settings) {
    let Some(all) = host::receive_queues(&port.iface) else { return };
    let unpolled = all.saturating_sub((*queues).into());
    if unpolled > 0 {
        let Port { device, iface, .. } = port;
        let polled = match queues {
            1 => format!("only queue {first_queue} is"),
            _ => format!("only queues {first_queue} to {} are", first_queue + queues - 1),
        };
        complain!(
            "af-xdp-fwd: warning: {device}: {iface} receives by {all} queues, of which {polled} polled. Frames of the other \
             {unpolled} go to the kernel's stack (rx_unpolled): set queue_count={all}, or ethtool -L {iface} rx {queues}"
        );
    }
}

/// Memory for this many lanes, in chunks that hold every port's frames.
fn umem(ports: &[Port], lanes: u32) -> Result<Arc<Umem>, OpenError> {
    let mut chunk = 0;
    for port in ports {
        let longest = port.longest_frame();
        chunk = chunk_for(longest).map(|own| own.max(chunk)).ok_or_else(|| OpenError::TooLong {
            device: port.device.clone(),
            iface: port.iface.clone(),
            longest,
        })?;
    }
    let bytes = u64::from(lanes * CHUNKS) * u64::from(chunk);
    memory::enough_for(bytes, "queue_count")?;
    let first = ports.first();
    Umem::new(lanes * CHUNKS, chunk).map_err(|source| OpenError::System {
        device: first.map_or_else(String::new, |port| port.device.clone()),
        iface: first.map_or_else(String::new, |port| port.iface.clone()),
        what: "memory for frames",
        source,
    })
}

/// Sockets that are bound to every queue, by port and queue from 0. All share the memory: the first
/// one registers it.
fn sockets(
    ports: &[Port],
    settings: &Settings,
    copying: Copying,
    umem: &Arc<Umem>,
) -> Result<BTreeMap<(u16, u16), Queue>, OpenError> {
    let mut queues = BTreeMap::new();
    let mut first: Option<Arc<XdpSocket>> = None;
    for port in ports {
        let refused = |what| move |error| refused(port, what, error);
        let promiscuous = match settings.promiscuous {
            true => Some(Arc::new(Promiscuous::on(port).map_err(refused("promiscuous mode"))?)),
            false => None,
        };
        for number in 0..settings.queues {
            let queue = u32::from(settings.first_queue + number);
            let (socket, rings) =
                XdpSocket::new(umem, first.is_none()).map_err(|error| match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        OpenError::NotAllowed { device: port.device.clone() }
                    }
                    _ => refused("an AF_XDP socket")(error),
                })?;
            let how = match &first {
                None => Binding::First(copying),
                Some(first) => Binding::With(first),
            };
            bind(&socket, port, queue, how)?;
            if let Some(budget) = settings.busy_budget {
                socket.busy_poll(budget.into()).map_err(refused("busy polling"))?;
            }
            let socket = Arc::new(socket);
            first.get_or_insert_with(|| Arc::clone(&socket));
            let Rings { fill, completion, rx, tx } = rings;
            let receiving = Receiving {
                socket: Arc::clone(&socket),
                port: port.clone(),
                fill,
                rx,
                _promiscuous: promiscuous.clone(),
            };
            let sending =
                Sending { socket: Arc::clone(&socket), port: port.clone(), completion, tx };
            let queue = Queue { socket, receiving: Some(receiving), sending: Some(sending) };
            queues.insert((port.id, number), queue);
        }
    }
    Ok(queues)
}

/// Binds a socket to a queue, as soon as no other socket has it.
fn bind(socket: &XdpSocket, port: &Port, queue: u32, how: Binding<'_>) -> Result<(), OpenError> {
    let end = Instant::now() + LET_GO;
    loop {
        match socket.bind(port.index, queue, how) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                thread::sleep(TRY_AGAIN);
            }
            bound => return bound.map_err(|error| not_bound(port, queue, error)),
        }
    }
}

fn not_bound(port: &Port, queue: u32, error: io::Error) -> OpenError {
    let (device, iface) = (port.device.clone(), port.iface.clone());
    match error.raw_os_error() {
        Some(libc::EINVAL) => OpenError::NoQueue { device, iface, queue },
        Some(libc::EBUSY) => OpenError::Taken { device, iface, queue },
        Some(libc::EOPNOTSUPP) => OpenError::NoZeroCopy { device, iface },
        _ => refused(port, "bind an AF_XDP socket", error),
    }
}

fn refused(port: &Port, what: &'static str, source: io::Error) -> OpenError {
    let (device, iface) = (port.device.clone(), port.iface.clone());
    OpenError::System { device, iface, what, source }
}
