// SPDX-License-Identifier: BSD-3-Clause
//! Checks whether a location can be opened, because DPDK's own errors say less.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::{Copying, Driver, Location, Role, Vdevs, VhostEnd, full_address, vdev};

/// How long creating a device may wait for its peer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a location cannot be opened now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// There is no such interface.
    #[error("there is no network interface {0:?} (see `ip link`)")]
    NoInterface(String),
    /// The interface only supports generic XDP, which DPDK does not attach.
    #[error(
        "af_xdp: the driver of {0} runs no XDP programs, as the kernel says; use af_packet:{0}"
    )]
    NoXdp(String),
    /// Its driver always copies, or the kernel does not report it.
    #[error(
        "af_xdp: {0} cannot do without copying, as far as the kernel says; leave out mode=zero-copy"
    )]
    NoZeroCopy(String),
    /// A second XDP program needs a mounted BPF file system.
    #[error(
        "af_xdp: {0} already has an XDP program, and a second one needs /sys/fs/bpf: mount it (`mount -t bpf bpf /sys/fs/bpf`), or remove the program (`ip link set {0} xdp off`)"
    )]
    HasXdp(String),
    /// A tap port would create an interface of that name.
    #[error(
        "there is a network interface {0:?} already: a tap port makes its own; choose another name, or af_packet:{0} to use it"
    )]
    InterfaceTaken(String),
    /// A client's tap port must name the interface that it creates.
    #[error("device {0:?}: give the interface that it is to make, by tap:NAME or ,iface=NAME")]
    NoTapName(String),
    /// A client names a device that was not created at the start, of a driver with a socket.
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
    /// A file exists at the socket's path.
    #[error(
        "socket {0:?} exists: end the program that serves it, remove the file, or choose another path"
    )]
    SocketTaken(String),
    /// Nothing listens on the socket to which we would connect.
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
    /// Checks whether the location, for which DPDK has no port yet, can be opened; `ours` are the
    /// sockets on which we already listen. Removes a socket that no process has open if it is where
    /// we want to listen.
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
            // These connect once, when they are created or started; vhost keeps trying.
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
    /// Creates the device with `attach`. A virtio_user device that listens would wait for ever for
    /// a client; after 3 s it gets an empty connection, with which it gives up.
    ///
    /// # Errors
    /// That of `attach`, with what to do if no client connected.
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
                // The driver neither removes nor closes it.
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

/// Checks that a socket can be made there; removes one that no process serves.
fn can_listen(socket: &str) -> Result<(), Unavailable> {
    let path = Path::new(socket);
    // In a device's arguments it may be relative.
    let has_directory =
        path.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir());
    if host::is_stale_socket(path) {
        // If this fails, the next line reports it.
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

/// Checks that the interface's driver supports XDP programs. DPDK would find that out only after
/// creating a port that it cannot remove.
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
