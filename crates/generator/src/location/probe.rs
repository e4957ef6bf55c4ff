// SPDX-License-Identifier: BSD-3-Clause
//! Looks whether a location can be opened, before DPDK says no in fewer words.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::{Copying, Driver, Location, Role, Vdevs, VhostEnd, full_address, vdev};

/// How long a device may wait for its other end while it is made.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a location cannot be opened now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// There is no such interface.
    #[error("there is no network interface {0:?} (see `ip link`)")]
    NoInterface(String),
    /// XDP programs run behind its driver only, where DPDK attaches none.
    #[error(
        "af_xdp: the driver of {0} runs no XDP programs, as the kernel says; use af_packet:{0}"
    )]
    NoXdp(String),
    /// Its driver always copies, or the kernel does not say.
    #[error(
        "af_xdp: {0} cannot do without copying, as far as the kernel says; leave out mode=zero-copy"
    )]
    NoZeroCopy(String),
    /// A second XDP program needs a file system for BPF.
    #[error(
        "af_xdp: {0} has an XDP program already, and beside it ours needs /sys/fs/bpf: `mount -t bpf bpf /sys/fs/bpf`, or `ip link set {0} xdp off`"
    )]
    HasXdp(String),
    /// A tap port would make an interface of that name.
    #[error(
        "there is a network interface {0:?} already: a tap port makes its own; choose another name, or af_packet:{0} to use it"
    )]
    InterfaceTaken(String),
    /// A tap port of a client's has to say which interface it makes.
    #[error("device {0:?}: give the interface that it is to make, by tap:NAME or ,iface=NAME")]
    NoTapName(String),
    /// A client names a device that the starter has not made, of a driver with a socket.
    #[error(
        "there is no device {name:?}, and a configuration cannot make one of this driver: use {location}, or start the generator with EAL options that make it (--vdev {name},... before a --); a port that has been closed is gone"
    )]
    NoDevice {
        /// Its name.
        name: String,
        /// The location to use.
        location: &'static str,
    },
    /// The kernel has no tap interfaces.
    #[error("tap {0:?}: there is no /dev/net/tun; as root: modprobe tun")]
    NoTun(String),
    /// Something is at the socket's path.
    #[error(
        "socket {0:?} exists: end the program that serves it, remove the file, or choose another path"
    )]
    SocketTaken(String),
    /// Nothing listens on the socket that we would connect to.
    #[error(
        "nobody listens on socket {0:?}: start the other end first, or listen here by ,role=server"
    )]
    NotServed(String),
    /// The directory of the socket is missing.
    #[error("socket {0:?}: its directory does not exist")]
    NoDirectory(String),
    /// There is no such device on the bus.
    #[error("there is no PCI device {0:?} (see `lspci -D`)")]
    NoPciDevice(String),
}

impl Location {
    /// Looks whether the location can be opened, for which DPDK has no port yet; `ours` are the sockets that we listen on already.
    /// A socket that no process has open any more is removed from where we want to listen.
    ///
    /// # Errors
    /// [`Unavailable`], with what to do.
    pub fn probe(&self, ours: &[&str]) -> Result<(), Unavailable> {
        if let Some(socket) = self.listens_on().filter(|socket| !ours.contains(socket)) {
            return can_listen(socket);
        }
        match self {
            Location::Interface { name, .. } if !host::has_interface(name) => {
                Err(Unavailable::NoInterface(name.clone()))
            }
            Location::Interface { name, driver: Driver::AfXdp(copying), .. } => {
                can_af_xdp(name, *copying)
            }
            Location::Tap(name) if host::has_interface(name) => {
                Err(Unavailable::InterfaceTaken(name.clone()))
            }
            Location::Tap(name) if !Path::new("/dev/net/tun").exists() => {
                Err(Unavailable::NoTun(name.clone()))
            }
            // These connect once, when they are made or started; vhost goes on trying.
            Location::VhostUser {
                end: VhostEnd::VirtioUser, socket, role: Role::Client, ..
            }
            | Location::Memif { socket, role: Role::Client, .. }
                if !host::is_served(Path::new(socket)) =>
            {
                Err(Unavailable::NotServed(socket.clone()))
            }
            Location::Vdev { arguments, allowed: Vdevs::Pathless } => vdev::can_make(arguments),
            Location::Pci(address) => {
                match Path::new("/sys/bus/pci/devices").join(full_address(address)).exists() {
                    true => Ok(()),
                    false => Err(Unavailable::NoPciDevice(address.clone())),
                }
            }
            _ => Ok(()),
        }
    }
}

impl Location {
    /// Makes the device by `attach`. One that would wait for ever until somebody connects, as
    /// virtio_user does when it listens, gets a connection after 3 s that says nothing: then it gives up.
    ///
    /// # Errors
    /// That of `attach`, with what to do if nobody came.
    pub fn attach<T>(&self, attach: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let Location::VhostUser { end: VhostEnd::VirtioUser, socket, role: Role::Server, .. } =
            self
        else {
            return attach();
        };
        std::thread::scope(|scope| {
            let (done, waiting) = channel::<()>();
            let watch = move || {
                let late = waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
                late && UnixStream::connect(socket).is_ok()
            };
            let watch = std::thread::Builder::new().spawn_scoped(scope, watch);
            let watch = watch.map_err(|error| format!("no thread to watch the wait: {error}"))?;
            let attached = attach();
            drop(done);
            let gave_up = watch.join().unwrap_or(false);
            let is_socket = |path: &str| {
                Path::new(path).symlink_metadata().is_ok_and(|found| found.file_type().is_socket())
            };
            if gave_up && is_socket(socket) {
                // The driver forgets to, and never closes it.
                let _ = std::fs::remove_file(socket);
            }
            attached.map_err(|error| match gave_up {
                true => format!(
                    "nobody connected to {socket:?} within {} s: start the other end, as client, first",
                    PATIENCE.as_secs()
                ),
                false => error,
            })
        })
    }
}

/// Whether a socket can be made there; one that nobody serves is removed.
fn can_listen(socket: &str) -> Result<(), Unavailable> {
    let path = Path::new(socket);
    // Of a device's arguments it may be relative.
    let has_directory =
        path.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir());
    if host::is_stale_socket(path) {
        // If it stays, the next line tells.
        let _ = std::fs::remove_file(path);
    }
    if path.symlink_metadata().is_ok() {
        Err(Unavailable::SocketTaken(socket.to_owned()))
    } else if !has_directory {
        Err(Unavailable::NoDirectory(socket.to_owned()))
    } else {
        Ok(())
    }
}

/// Whether the interface's driver runs XDP programs. DPDK would only find that out after it has made a
/// port, which it cannot remove then.
pub(super) fn can_run_xdp(name: &str) -> Result<(), Unavailable> {
    let Ok(Some(interface)) = host::interface(name) else { return Ok(()) };
    match interface.has_native_xdp() {
        Ok(Some(false)) => Err(Unavailable::NoXdp(name.to_owned())),
        _ => Ok(()),
    }
}

fn can_af_xdp(name: &str, copying: Copying) -> Result<(), Unavailable> {
    can_run_xdp(name)?;
    let Ok(Some(interface)) = host::interface(name) else { return Ok(()) };
    let zero_copy = || matches!(interface.has_zero_copy(), Ok(Some(true)));
    if copying == Copying::ZeroCopy && !zero_copy() {
        return Err(Unavailable::NoZeroCopy(name.to_owned()));
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    match interface.has_xdp && !mounts.lines().any(|line| line.contains(" /sys/fs/bpf bpf ")) {
        true => Err(Unavailable::HasXdp(name.to_owned())),
        false => Ok(()),
    }
}
