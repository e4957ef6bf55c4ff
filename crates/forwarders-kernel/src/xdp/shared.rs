// SPDX-License-Identifier: BSD-3-Clause
//! `--shared`: a program beside others on its interface, by libxdp's dispatcher.
//!
//! The dispatcher is one program on the interface that calls the others, each in the place of one of its functions
//! (BPF_PROG_TYPE_EXT). Such a program stays when its process is killed: the next one of ours that comes to
//! the interface takes it away, and so does this one when it ends in order.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use forwarders_common::complain;
use libbpf_rs::{Map, MapCore as _, Object};

use super::Mode;
use super::attach::is_unsupported;
use super::bpffs::{Bpffs, Claim, Locked};
use super::libxdp::{self, Libxdp, MissingError, Wanted};
use super::object::{LoadError, load, opened, program};
use crate::interface::Port;

/// Asks whether the kernel takes such programs at all.
const SLOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slot.bpf.o"));
/// What all of our programs' names begin with.
const OURS: &str = "linerate_";

/// Why a program is not beside others.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// There is no library to do it.
    #[error("--shared: {0}")]
    Missing(#[from] MissingError),
    /// The dispatcher cannot work.
    #[error(
        "--shared: this kernel refuses eBPF programs that take the place of functions (BPF_PROG_TYPE_EXT): {0}. libxdp's dispatcher calls every program by them; without --shared the interface is this program's alone"
    )]
    NoExtensions(String),
    /// Nor can anything be asked.
    #[error("--shared: {0}")]
    Load(#[from] LoadError),
    /// There is no place for what is attached, or what is left there cannot be taken away.
    #[error("--shared: the BPF file system at {path}: {source}")]
    Bpffs {
        /// Where libxdp keeps what is attached.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// Somebody's program does not share.
    #[error(
        "{device}: {iface} has an XDP program that no dispatcher of libxdp calls, and so it cannot be shared; see ip link show {iface}"
    )]
    Taken {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// libxdp would not share either.
    #[error(
        "{device}: --shared: libxdp could not load its dispatcher on this kernel and would have had {iface} for this program alone; a newer libxdp may be able to"
    )]
    Alone {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// libxdp refused.
    #[error("{device}: --shared: libxdp on {iface} ({mode}): {source}")]
    System {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
        /// Where it was to run.
        mode: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// What all ports of a program share their interfaces by.
#[derive(Clone)]
pub(super) struct Sharing {
    libxdp: Libxdp,
    bpffs: Bpffs,
}

/// A program that a dispatcher calls until this is dropped.
pub(super) struct Shared {
    sharing: Sharing,
    claim: Option<Claim>,
    interface: u32,
    id: u32,
    pub(super) mode: Mode,
    refused: Option<io::Error>,
}

/// The program for a port, before it is loaded.
pub(super) struct Own<'o> {
    pub(super) object: &'static [u8],
    pub(super) program: &'static str,
    pub(super) constants: Vec<u8>,
    pub(super) maps: &'o Object,
}

impl Sharing {
    /// Finds what it takes; changes nothing.
    ///
    /// # Errors
    /// See [`SharedError`].
    pub(super) fn find() -> Result<Self, SharedError> {
        let libxdp = Libxdp::find()?;
        try_extension()?;
        let bpffs = Bpffs::find().map_err(|source| SharedError::Bpffs {
            path: "its network namespace".to_owned(),
            source,
        })?;
        Ok(Self { libxdp, bpffs })
    }

    /// Has a program run on a port beside others, where it is wanted; without a wish in the driver, or generic
    /// where that cannot be. What a killed process of ours left there is taken away.
    ///
    /// # Errors
    /// See [`SharedError`]; nothing is left then.
    pub(super) fn attach(
        &self,
        own: &Own<'_>,
        port: &Port,
        wanted: Option<Mode>,
    ) -> Result<Shared, SharedError> {
        let locked = self.bpffs.lock().map_err(|source| self.no_place(source))?;
        let done = match locked.enter() {
            Err(source) => Err(self.no_place(source)),
            Ok(()) => self.attach_in(&locked, own, port, wanted),
        };
        if done.is_err() {
            // What keeps it from leaving is less than what kept it from coming.
            let _ = locked.leave();
        }
        done
    }

    fn attach_in(
        &self,
        locked: &Locked<'_>,
        own: &Own<'_>,
        port: &Port,
        wanted: Option<Mode>,
    ) -> Result<Shared, SharedError> {
        self.remove_leftovers(locked, port).map_err(|source| self.no_place(source))?;
        let maps: Vec<Map<'_>> = own.maps.maps().collect();
        let name = |map: &Map<'_>| map.name().to_string_lossy().into_owned();
        let maps: Vec<_> = maps.iter().map(|map| (name(map), map.as_fd())).collect();
        let asked = Wanted {
            object: own.object,
            program: own.program,
            constants: &own.constants,
            maps: &maps,
            interface: port.index,
        };
        let first = wanted.unwrap_or(Mode::Native);
        let (attached, mode, refused) = match self.libxdp.attach(&asked, first) {
            Err(error) if wanted.is_none() && is_unsupported(&error) => {
                let generic = self.libxdp.attach(&asked, Mode::Generic);
                (generic, Mode::Generic, Some(error))
            }
            done => (done, first, None),
        };
        let (device, iface) = (port.device.clone(), port.iface.clone());
        let id = match attached {
            Ok(libxdp::Attached::Shared(id)) => id,
            Ok(libxdp::Attached::Alone) => return Err(SharedError::Alone { device, iface }),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => {
                return Err(SharedError::Taken { device, iface });
            }
            Err(source) => return Err(failed(port, mode, source)),
        };
        match locked.claim(port.index, id) {
            Ok(claim) => {
                let (sharing, claim) = (self.clone(), Some(claim));
                Ok(Shared { sharing, claim, interface: port.index, id, mode, refused })
            }
            Err(source) => {
                let _ = self.libxdp.detach(port.index, id);
                Err(self.no_place(source))
            }
        }
    }

    /// Takes away programs of ours whose processes are gone, and those on this port that none claims.
    fn remove_leftovers(&self, locked: &Locked<'_>, port: &Port) -> io::Result<()> {
        for (interface, id) in locked.orphans()? {
            self.take_away(locked, interface, id)?;
        }
        for called in self.libxdp.called(port.index) {
            if called.name.starts_with(OURS) && !locked.is_claimed(port.index, called.id) {
                self.libxdp.detach(port.index, called.id)?;
            }
        }
        Ok(())
    }

    /// Takes a program away, and if its interface is gone, what libxdp keeps of it.
    fn take_away(&self, locked: &Locked<'_>, interface: u32, id: u32) -> io::Result<()> {
        if host::interface_by_number(interface, None).is_ok_and(|found| found.is_none()) {
            return locked.forget(interface, |pin| self.libxdp.pinned(pin) == Some(id));
        }
        match self.libxdp.detach(interface, id) {
            // Somebody else took all programs away.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            done => done,
        }
    }

    fn no_place(&self, source: io::Error) -> SharedError {
        SharedError::Bpffs { path: self.bpffs.path().display().to_string(), source }
    }
}

impl Shared {
    /// Where it runs, and why, in words.
    pub(super) fn told(&self) -> String {
        match &self.refused {
            None => format!("XDP {}, shared", self.mode.name()),
            Some(error) => format!("XDP {} (native: {error}), shared", self.mode.name()),
        }
    }

    fn leave(&mut self) -> io::Result<()> {
        let locked = self.sharing.bpffs.lock()?;
        let taken = self.sharing.take_away(&locked, self.interface, self.id);
        if let Some(claim) = self.claim.take() {
            locked.give_up(&claim)?;
        }
        locked.leave()?;
        taken
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.leave() {
            complain!("warning: a program of libxdp's dispatcher (id {}) stays: {error}", self.id);
        }
    }
}

fn failed(port: &Port, mode: Mode, source: io::Error) -> SharedError {
    let (device, iface, mode) = (port.device.clone(), port.iface.clone(), mode.name());
    SharedError::System { device, iface, mode, source }
}

/// Loads a program that would take the place of a function of another.
fn try_extension() -> Result<(), SharedError> {
    let base = load(opened(SLOT, Some("dispatch"))?)?;
    let base = program(&base, "dispatch")?;
    let mut extension = opened(SLOT, Some("replacement"))?;
    let mut programs = extension.progs_mut();
    let Some(mut replacement) = programs.find(|program| program.name() == "replacement") else {
        return Err(LoadError::Lacks("replacement").into());
    };
    let refused = |error: libbpf_rs::Error| SharedError::NoExtensions(error.to_string());
    replacement.set_attach_target(base.as_raw_fd(), Some("slot".to_owned())).map_err(refused)?;
    drop(programs);
    extension.load().map(drop).map_err(refused)
}
