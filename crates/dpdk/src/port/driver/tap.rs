// SPDX-License-Identifier: BSD-3-Clause
//! net_tap: a new kernel interface.

use super::Driver;
use crate::port::arguments::{Arguments, vdev};

pub(super) const DRIVER: Driver = Driver { name: "net_tap", ..Driver::PLAIN };

/// The MAC address of a [`Tap`] device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapMac {
    /// `02:64:74:61:70:NN`, which spells "dtap", with a number that counts up. (Some releases begin it with `00`.)
    Fixed,
    /// The given address.
    Address([u8; 6]),
}

/// A new kernel interface; the port is the other end of its wire. Needs `CAP_NET_ADMIN`. The
/// interface is removed with the device.
///
/// ```
/// use dpdk::vdev::{Tap, TapMac};
/// let device = Tap::new("net_tap0").interface("edge0").mac(TapMac::Fixed);
/// assert_eq!(device.to_string(), "net_tap0,iface=edge0,mac=fixed");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tap(Arguments);

vdev!(Tap, |arguments| {
    for key in ["iface", "remote"] {
        match arguments.get(key) {
            Some(interface) if interface.len() > INTERFACE => {
                return Err(arguments.refuse(
                    key,
                    interface,
                    "an interface name has at most 15 bytes",
                ));
            }
            _ => {}
        }
    }
    Ok(())
});

/// Bytes of an interface's name (`IFNAMSIZ` without its NUL).
const INTERFACE: usize = 15;

impl Tap {
    /// A device with that name, which begins with `net_tap`.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arguments::new(name))
    }

    /// The interface's name, 15 bytes at most; `dtap` and a number by default.
    #[must_use]
    pub fn interface(mut self, interface: impl AsRef<str>) -> Self {
        self.0.set("iface", interface.as_ref());
        self
    }

    /// The MAC address; a random one by default.
    #[must_use]
    pub fn mac(mut self, mac: TapMac) -> Self {
        match mac {
            TapMac::Fixed => self.0.set("mac", "fixed"),
            TapMac::Address(mac) => self.0.set_mac("mac", mac),
        }
        self
    }

    /// An existing interface; its frames are mirrored to this port, and the port's frames to it (by
    /// traffic control).
    #[must_use]
    pub fn remote(mut self, interface: impl AsRef<str>) -> Self {
        self.0.set("remote", interface.as_ref());
        self
    }
}
