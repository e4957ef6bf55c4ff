// SPDX-License-Identifier: BSD-3-Clause
//! The file, and its inputs.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use capture_file::Clock;
use capture_file::pcapng::{self, Packet, Statistics};
use capture_file::ring::Record;

use super::tap::{self, Inlet, Tap, TapConfig};
use super::{Direction, Figures};
use crate::debug::impl_debug;
use crate::port::{PortControl, PortError};
use crate::tsc;

/// Why a capture file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PcapngError {
    /// The file could not be made.
    #[error("capture file {}: {source}; choose a place that can be written to", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file could not be written. Its content up to here is readable.
    #[error("capture file {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The interface was added to another file.
    #[error("capture file {}: the interface was added to another file; add it to this one", .0.display())]
    Interface(PathBuf),
    /// There is too little memory for a tap's ring.
    #[error("capture file {}: no memory for a ring of {bytes} bytes; ask for less (TapConfig::ring)", .path.display())]
    Ring {
        /// The file.
        path: PathBuf,
        /// The requested length.
        bytes: usize,
    },
}

/// The description of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PcapngConfig {
    /// The writing program, such as `my-forwarder 1.0`.
    pub application: String,
    /// A comment.
    pub comment: Option<String>,
}

impl PcapngConfig {
    /// A description with the writing program only.
    #[must_use]
    pub fn named(application: impl Into<String>) -> Self {
        Self { application: application.into(), comment: None }
    }
}

/// The description of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name that Wireshark shows.
    pub name: String,
    /// A description.
    pub description: Option<String>,
    /// Its address.
    pub mac: Option<[u8; 6]>,
    /// Mbit/s.
    pub speed_mbps: Option<u32>,
}

impl Interface {
    /// A name and nothing else.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None, mac: None, speed_mbps: None }
    }

    /// An interface for a port: its device's name, its address, and its speed if the link is up
    /// now.
    ///
    /// # Errors
    /// [`PortError`] when there is no such port any more.
    pub fn of(port: &PortControl<'_>) -> Result<Self, PortError> {
        let id = port.id();
        let link = port.link()?;
        Ok(Self {
            name: id.name().ok_or(PortError::Absent(id))?,
            description: Some(format!("DPDK port {id}")),
            mac: Some(port.mac()?),
            speed_mbps: link.speed_mbps.filter(|_| link.up),
        })
    }
}

/// An interface of a [`Pcapng`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceId {
    file: u64,
    index: usize,
}

/// A capture file being written, with nanoseconds, link type Ethernet.
pub struct Pcapng {
    /// Unique in a process.
    id: u64,
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    clock: Clock,
    /// When it was opened.
    started: u64,
    /// Counts of each interface, including removed taps, and of all captured packets.
    interfaces: Vec<Figures>,
    inlets: Vec<Inlet>,
    /// The block that is being built.
    block: Vec<u8>,
    finished: bool,
}

impl_debug!([] Pcapng, pcapng => path: pcapng.path, interfaces: pcapng.interfaces);

impl Pcapng {
    /// Creates a file, or replaces an existing one. A symbolic link of another user is not
    /// followed.
    ///
    /// # Errors
    /// [`PcapngError::Create`], [`PcapngError::Write`].
    pub fn create(path: impl AsRef<Path>, config: &PcapngConfig) -> Result<Self, PcapngError> {
        let path = path.as_ref();
        let file = host::files::create(path)
            .map_err(|source| PcapngError::Create { path: path.to_owned(), source })?;
        Self::new(file, path, config)
    }

    /// Writes into a pipe or a socket; errors call it `name`.
    ///
    /// # Errors
    /// [`PcapngError::Write`].
    pub fn new(
        out: impl Write + Send + 'static,
        name: impl AsRef<Path>,
        config: &PcapngConfig,
    ) -> Result<Self, PcapngError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let clock = clock_now();
        let mut file = Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            path: name.as_ref().to_owned(),
            out: BufWriter::with_capacity(1 << 18, Box::new(out)),
            clock,
            started: clock.nanoseconds(tsc::now()),
            interfaces: Vec::new(),
            inlets: Vec::new(),
            block: Vec::new(),
            finished: false,
        };
        pcapng::section(&mut file.block, Some(&config.application), config.comment.as_deref());
        file.write_block()?;
        Ok(file)
    }

    /// Adds an interface, before its taps are made.
    ///
    /// # Errors
    /// [`PcapngError::Write`].
    pub fn add_interface(&mut self, interface: &Interface) -> Result<InterfaceId, PcapngError> {
        // Packets may be cut, by a length that differs from tap to tap.
        let description = pcapng::Interface {
            snap: 0,
            name: Some(&interface.name),
            description: interface.description.as_deref(),
            mac: interface.mac,
            speed_mbps: interface.speed_mbps,
            fcs_len: Some(0),
        };
        pcapng::interface(&mut self.block, &description);
        self.write_block()?;
        self.interfaces.push(Figures::default());
        Ok(InterfaceId { file: self.id, index: self.interfaces.len() - 1 })
    }

    /// Makes a tap for one queue in one direction. [`collect`](Self::collect) writes its packets
    /// into the file.
    ///
    /// # Errors
    /// [`PcapngError::Interface`] and [`PcapngError::Ring`].
    pub fn tap(
        &mut self,
        interface: InterfaceId,
        queue: u16,
        direction: Direction,
        config: &TapConfig,
    ) -> Result<Tap, PcapngError> {
        if interface.file != self.id {
            return Err(PcapngError::Interface(self.path.clone()));
        }
        if !has_memory(config.ring) {
            return Err(PcapngError::Ring { path: self.path.clone(), bytes: config.ring });
        }
        let (tap, inlet) = tap::pair(interface.index, queue, direction, config);
        self.inlets.push(inlet);
        Ok(tap)
    }

    /// Writes the packets that taps have captured so far, and returns their number. They are sorted
    /// by their time stamps; packets captured meanwhile wait for the next call.
    ///
    /// # Errors
    /// [`PcapngError::Write`]. The packet that could not be written is lost.
    pub fn collect(&mut self) -> Result<u64, PcapngError> {
        // Checked before the rings are read: a tap that is gone by now has written everything into
        // its ring.
        let gone: Vec<bool> = self.inlets.iter().map(|inlet| inlet.ring.is_abandoned()).collect();
        // Only what waits now, because a busy tap could keep this loop running for ever.
        let mut left: Vec<usize> = self.inlets.iter().map(|inlet| inlet.ring.waiting()).collect();
        let mut written = 0;
        while let Some((index, record)) = self.oldest(&left) {
            let Some(inlet) = self.inlets.get_mut(index) else { break };
            let packet = Packet {
                interface: inlet.interface as u32,
                nanoseconds: self.clock.nanoseconds(record.tsc),
                len: record.len,
                missed: record.missed,
                direction: Some(inlet.direction),
                queue: Some(inlet.queue),
                comment: None,
            };
            let interface = inlet.interface;
            let block = &mut self.block;
            inlet.ring.take(&record, |one, two| pcapng::packet(block, &packet, &[one, two]));
            left[index] = left[index].saturating_sub(record.size());
            self.write_block()?;
            if let Some(figures) = self.interfaces.get_mut(interface) {
                figures.captured += 1;
            }
            written += 1;
        }
        let mut gone = gone.into_iter();
        let interfaces = &mut self.interfaces;
        self.inlets.retain(|inlet| {
            let stays = !gone.next().unwrap_or(false);
            if let (false, Some(figures)) = (stays, interfaces.get_mut(inlet.interface)) {
                figures.dropped += inlet.ring.dropped();
            }
            stays
        });
        Ok(written)
    }

    /// The oldest record among those that were there when `left` bytes waited in each ring.
    fn oldest(&mut self, left: &[usize]) -> Option<(usize, Record)> {
        let inlets = self.inlets.iter_mut().enumerate().zip(left);
        inlets
            .filter(|(_, left)| **left > 0)
            .filter_map(|((index, inlet), _)| Some((index, inlet.ring.peek()?)))
            .min_by_key(|(_, record)| record.tsc)
    }

    /// Writes buffered packets to the file, for programs that read it meanwhile.
    ///
    /// # Errors
    /// [`PcapngError::Write`].
    pub fn flush(&mut self) -> Result<(), PcapngError> {
        self.out.flush().map_err(|source| PcapngError::Write { path: self.path.clone(), source })
    }

    /// Counts of the packets up to the last [`collect`](Self::collect), of all interfaces together.
    #[must_use]
    pub fn figures(&self) -> Figures {
        (0..self.interfaces.len()).map(|index| self.figures_of(index)).fold(
            Figures::default(),
            |sum, each| Figures {
                captured: sum.captured + each.captured,
                dropped: sum.dropped + each.dropped,
            },
        )
    }

    fn figures_of(&self, interface: usize) -> Figures {
        let taps = self.inlets.iter().filter(|inlet| inlet.interface == interface);
        let past = self.interfaces.get(interface).copied().unwrap_or_default();
        Figures {
            dropped: past.dropped + taps.map(|inlet| inlet.ring.dropped()).sum::<u64>(),
            ..past
        }
    }

    /// Collects once more, writes the counts into the file, and closes it. Taps that are alive drop
    /// all packets from then on.
    ///
    /// # Errors
    /// [`PcapngError::Write`].
    pub fn finish(mut self) -> Result<Figures, PcapngError> {
        self.end()?;
        Ok(self.figures())
    }

    fn end(&mut self) -> Result<(), PcapngError> {
        // Only once, even if it fails.
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.collect()?;
        let ended = self.clock.nanoseconds(tsc::now());
        for interface in 0..self.interfaces.len() {
            let figures = self.figures_of(interface);
            let statistics = Statistics {
                interface: interface as u32,
                started: self.started,
                ended,
                seen: figures.captured + figures.dropped,
                dropped: figures.dropped,
                accepted: None,
                captured: figures.captured,
            };
            pcapng::statistics(&mut self.block, &statistics);
            self.write_block()?;
        }
        self.flush()
    }

    fn write_block(&mut self) -> Result<(), PcapngError> {
        let written = self.out.write_all(&self.block);
        self.block.clear();
        written.map_err(|source| PcapngError::Write { path: self.path.clone(), source })
    }
}

/// A clock that converts the TSC to the time of day.
fn clock_now() -> Clock {
    let before = tsc::now();
    let wall = SystemTime::now();
    let after = tsc::now();
    Clock::new(before + after.wrapping_sub(before) / 2, wall, tsc::hz())
}

impl Drop for Pcapng {
    fn drop(&mut self) {
        // Call `finish` to see errors.
        let _ = self.end();
    }
}

/// Returns true if so many bytes can be allocated. The ring's own allocation would end the program.
fn has_memory(bytes: usize) -> bool {
    let mut memory = Vec::<u8>::new();
    let there = memory.try_reserve_exact(bytes).is_ok();
    // Without this the compiler leaves the allocation out, which then cannot fail.
    std::hint::black_box(&mut memory);
    there
}
