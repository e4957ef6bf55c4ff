// SPDX-License-Identifier: BSD-3-Clause
//! `--shared`: a program that shares its interface with others, by libxdp's dispatcher.
//!
//! The dispatcher is one program on the interface that calls the others, each of which replaces one
//! of its functions (BPF_PROG_TYPE_EXT). Such a program stays when its process is killed: the next
//! program of this project on the interface removes it. When a process ends normally, it removes
//! its own.

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

/// Tests whether the kernel accepts such programs at all.
const SLOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slot.bpf.o"));
/// The prefix of the names of this project's XDP programs.
const OURS: &str = "linerate_";

/// Why a program cannot share its interface.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    /// There is no libxdp.
    #[error("--shared: {0}")]
    Missing(#[from] MissingError),
    /// The dispatcher cannot work.
    #[error(
        "--shared: this kernel refuses eBPF programs that replace functions (BPF_PROG_TYPE_EXT), which libxdp's dispatcher needs: {0}. Without --shared this program has the interface for itself"
    )]
    NoExtensions(String),
    /// The test could not be loaded.
    #[error("--shared: {0}")]
    Load(#[from] LoadError),
    /// The BPF file system cannot be used, or what is left there cannot be removed.
    #[error("--shared: the BPF file system at {path}: {source}")]
    Bpffs {
        /// Where libxdp pins programs.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// Another program on the interface does not share it.
    #[error(
        "{device}: {iface} has an XDP program that libxdp's dispatcher did not attach, so it cannot be shared; see ip link show {iface}"
    )]
    Taken {
        /// The port's device.
        device: String,
        /// The interface.
        iface: String,
    },
    /// libxdp would not share the interface either.
    #[error(
        "{device}: --shared: libxdp could not load its dispatcher on this kernel and would not have shared {iface}; a newer libxdp may be able to"
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
        /// The requested mode.
        mode: &'static str,
        /// The reason.
        source: io::Error,
    },
}

/// How all ports of a program share their interfaces.
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
    /// Finds libxdp and the BPF file system; changes nothing.
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

    /// Attaches a program to a port beside others, in the requested mode; by default native, or
    /// generic if that is not possible. Removes what a killed process of this project left there.
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
            // An error here matters less than the one that prevented attaching.
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

    /// Removes this project's programs whose processes have ended, and those on this port that no
    /// process claims.
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

    /// Detaches a program, and if its interface is gone, removes what libxdp has pinned for it.
    fn take_away(&self, locked: &Locked<'_>, interface: u32, id: u32) -> io::Result<()> {
        if host::interface_by_number(interface, None).is_ok_and(|found| found.is_none()) {
            return locked.forget(interface, |pin| self.libxdp.pinned(pin) == Some(id));
        }
        match self.libxdp.detach(interface, id) {
            // Another process removed all programs.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            done => done,
        }
    }

    fn no_place(&self, source: io::Error) -> SharedError {
        SharedError::Bpffs { path: self.bpffs.path().display().to_string(), source }
    }
}

impl Shared {
    /// Describes its mode and the reason for it.
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

/// Loads a program that would replace a function of another.
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
