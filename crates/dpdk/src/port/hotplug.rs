// SPDX-License-Identifier: BSD-3-Clause
//! Attaching and removing devices while the program runs.

use std::ffi::CString;

use dpdk_sys::layout;

use super::arguments::Vdev;
use super::control::configuration;
use super::device;
use super::error::{PortError, check, refused};
use super::id::{PortId, valid_ports};
use super::info;
use super::interrupts::apart;
use super::leftover;
use super::lock::lock;
use super::promiscuity;
use super::state::{Port, Unconfigured};
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mutex::locked;

impl Eal {
    /// Attaches a device by its arguments, such as `net_null0,size=64` or a PCI address, and
    /// returns its ports (`rte_dev_probe`).
    ///
    /// Allowed are PCI addresses without arguments, and virtual devices whose name begins with
    /// net_ring (without arguments), net_null (`size` up to 64, `no-rx` and `copy=0`), net_memif
    /// (without `zero-copy`, and with no more memory than its driver can count), net_af_packet,
    /// net_af_xdp (without `shared_umem`), net_tap, net_pcap, net_vhost (also as eth_vhost, without
    /// `legacy-ol-flags`) or net_virtio_user (without `vectorized`). Each argument is `key=value`,
    /// with one `=`. The user can give all other devices to [`Eal::init`], with `--vdev` or `-a`.
    ///
    /// All other operations on ports wait until the driver has attached the device. With `server=1`
    /// net_virtio_user waits for its peer to connect, without a time limit.
    ///
    /// # Errors
    /// [`PortError::Unsafe`] for all other devices: some drivers take over other ports or write
    /// past the end of buffers, and some arguments are pointers. [`PortError::Attach`] if the
    /// driver refuses, [`PortError::NoPort`] if the device has no port (it is not a network
    /// interface; it stays attached).
    pub fn attach(&self, arguments: &str) -> Result<Vec<PortId>, PortError> {
        device::check(arguments).map_err(|why| PortError::Unsafe(arguments.to_owned(), why))?;
        let string = CString::new(arguments).map_err(|_| PortError::Nul(arguments.to_owned()))?;
        // Allows one attachment at a time: new ports are found by comparing the list before and
        // after.
        let _one_at_a_time = locked(&self.taken);
        let _alone = lock();
        let before = valid_ports();
        // SAFETY: a C string that DPDK copies.
        let code = unsafe { dpdk_sys::rte_dev_probe(string.as_ptr()) };
        Errno::check(code)
            .map_err(|errno| PortError::Attach { arguments: arguments.to_owned(), errno })?;
        let mut after = valid_ports();
        after.retain(|port| !before.contains(port));
        if after.is_empty() {
            return Err(PortError::NoPort(arguments.to_owned()));
        }
        for id in after.iter().copied() {
            configuration::begin(id);
        }
        Ok(after)
    }

    /// Attaches a virtual device and returns its port (`rte_vdev_init`).
    ///
    /// # Errors
    /// [`PortError::Vdev`] for a name or value that EAL would misread; otherwise as
    /// [`Eal::attach`].
    ///
    /// ```standalone_crate
    /// use dpdk::vdev::{Memif, Role};
    /// # let (eal, _) = dpdk::Eal::init("doc --no-huge --no-pci --no-shconf --no-telemetry -m 64".split(' '))?;
    ///
    /// let device = Memif::new("net_memif0").role(Role::Client).abstract_socket("router");
    /// println!("--vdev {device}");
    /// let port = eal.take_port(eal.attach_vdev(&device)?)?;
    /// // ... configured, started, used and stopped; then it can go again.
    /// eal.detach(port)?;
    /// assert!(eal.ports().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach_vdev<V: Vdev>(&self, device: &V) -> Result<PortId, PortError> {
        let arguments = device.arguments();
        arguments.check(V::DRIVER)?;
        device.check()?;
        let text = device.to_string();
        let ports = self.attach(&text)?;
        ports.first().copied().ok_or(PortError::NoPort(text))
    }

    /// Closes a port and removes its device (`rte_dev_remove`).
    ///
    /// # Errors
    /// [`PortError::Unsafe`] if the device has, or may have, other ports, or if it is one of
    /// net_af_xdp or net_pcap whose receive queues could not be set up; [`PortError::Call`],
    /// [`PortError::Remains`].
    pub fn detach(&self, port: Port<'_, Unconfigured>) -> Result<(), PortError> {
        let id = port.id();
        // Held until the device is gone, so that the port cannot be taken meanwhile. Released after
        // the lock, which it may need.
        let _claim = port.into_claim();
        let _alone = lock();
        if !configuration::may_be_closed(id) {
            let why = match configuration::is_held(id) {
                true => {
                    "its driver would free memory twice, because queues could not be set up: it stays until the process ends"
                }
                false => {
                    "its driver would free memory twice, because a queue could not be set up: configure the port successfully first"
                }
            };
            return Err(refused(id, why));
        }
        let device = info::query(id)?.device;
        // A port that does not answer may belong to any device.
        let siblings = (0..layout::MAX_ETHPORTS as u16)
            .map(PortId)
            .filter(|other| *other != id && other.exists())
            .any(|other| info::query(other).map_or(true, |info| info.device == device));
        if siblings {
            return Err(refused(id, "its device has other ports, which would be removed too"));
        }
        configuration::end(id);
        let _apart = apart(id);
        // SAFETY: the claim makes this the only user, the port is not started, so no queue is alive.
        let closed = unsafe { dpdk_sys::rte_eth_dev_close(id.0) };
        if id.exists() {
            check(id, "rte_eth_dev_close", closed)?;
        }
        // SAFETY: as above; `device` is the one that the driver named, and no other port is on it.
        check(id, "rte_dev_remove", unsafe { dpdk_sys::rte_dev_remove(device) })?;
        leftover::close(id);
        promiscuity::release(id);
        match id.exists() {
            true => Err(PortError::Remains(id)),
            false => Ok(()),
        }
    }
}
