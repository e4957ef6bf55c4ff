// SPDX-License-Identifier: BSD-3-Clause
//! What this crate knows about DPDK's drivers: one file per driver, with one [`Driver`] value and, for virtual devices,
//! the typed arguments that [`vdev`](super::vdev) exports.
//!
//! A driver's quirk is a field here; no other code compares driver names. To support another
//! driver, read what its arguments do, write its file, and add it to [`DRIVERS`]. Drivers without a
//! file can be used by devices from EAL's command line, and are treated as [`Driver::PLAIN`].

mod af_packet;
mod af_xdp;
mod memif;
mod null;
mod pcap;
mod ring;
mod tap;
mod vhost;
mod virtio_user;

use std::ffi::CStr;

use dpdk_sys::rte_eth_dev_info;

use super::config::PortConfig;
use super::tx_guard::TxGuard;

pub use af_packet::AfPacket;
pub use af_xdp::AfXdp;
pub use memif::{Memif, Role};
pub use null::Null;
pub use pcap::Pcap;
pub use ring::Ring;
pub use tap::{Tap, TapMac};
pub use vhost::Vhost;
pub use virtio_user::VirtioUser;

/// Drivers with quirks whose devices can only be made by EAL's command line.
static OTHERS: [&Driver; 2] = [
    &Driver { name: "net_bonding", sends_on_other_ports: true, ..Driver::PLAIN },
    &Driver { name: "net_failsafe", sends_on_other_ports: true, ..Driver::PLAIN },
];

/// The drivers whose virtual devices safe code may attach.
static DRIVERS: [&Driver; 9] = [
    &af_packet::DRIVER,
    &af_xdp::DRIVER,
    &memif::DRIVER,
    &null::DRIVER,
    &pcap::DRIVER,
    &ring::DRIVER,
    &tap::DRIVER,
    &vhost::DRIVER,
    &virtio_user::DRIVER,
];

/// Properties and quirks of a driver.
pub(super) struct Driver {
    /// Its name, as `rte_eth_dev_info_get` reports it.
    pub name: &'static str,
    /// Other names by which DPDK finds it.
    pub aliases: &'static [&'static str],
    /// Checks the arguments of a device, each `key=value`, that safe code gives. The error says why
    /// they are unsafe.
    pub check_arguments: fn(&[&str]) -> Result<(), &'static str>,
    /// The most receive queues that it handles safely, if it reports more.
    pub max_rx_queues: u16,
    /// The most transmit queues that it handles safely, if it reports more.
    pub max_tx_queues: u16,
    /// How packets must be changed before the driver may send them; `None` if it sends any packet
    /// safely.
    pub tx_guard: for<'eal> fn(&rte_eth_dev_info, &PortConfig<'eal>) -> Option<TxGuard<'eal>>,
    /// Returns true if there are packets that the driver must not send unchanged. Ports of drivers
    /// that send on other ports' queues, where no guard checks, are not configured while such a
    /// port exists.
    pub needs_guard: fn() -> bool,
    /// It sends on the queues of other ports.
    pub sends_on_other_ports: bool,
    /// Bytes for which its receive queues' mbufs must have room.
    pub least_rx_room: fn() -> u16,
    /// Returns the restrictions on a port after DPDK has answered `code` to the setup of a receive
    /// queue.
    pub after_rx_setup: fn(queue: u16, code: i32) -> Restrictions,
    /// It may leave the AF_XDP sockets of its receive queues open when the port is closed.
    pub leaves_sockets: bool,
    /// It makes an interface promiscuous by a flag that stays set when the process ends.
    pub sets_promiscuous_flag: bool,
    /// Its interrupt handlers and its queues and control functions use the same data without a
    /// lock.
    pub shares_with_interrupts: bool,
    /// The name of a hash table that it looks up, and whose values it uses as pointers.
    pub hash_table: Option<&'static str>,
    /// Prefix of the rings that it looks up and whose content it uses as packets.
    pub ring_prefix: Option<&'static str>,
}

/// Operations on a port that must not be done because of its driver's behaviour.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Restrictions {
    /// Do not configure it again.
    pub no_configure: bool,
    /// Do not close it: the driver might free memory twice.
    pub no_close: bool,
}

impl Driver {
    /// A driver without quirks.
    const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        check_arguments: |_| Ok(()),
        max_rx_queues: u16::MAX,
        max_tx_queues: u16::MAX,
        tx_guard: |_, _| None,
        needs_guard: || false,
        sends_on_other_ports: false,
        least_rx_room: || 0,
        after_rx_setup: |_, _| Restrictions { no_configure: false, no_close: false },
        leaves_sockets: false,
        sets_promiscuous_flag: false,
        shares_with_interrupts: false,
        hash_table: None,
        ring_prefix: None,
    };

    /// Finds a driver by the name that a port's driver reports.
    pub fn of_port(name: &str) -> &'static Self {
        static PLAIN: Driver = Driver::PLAIN;
        let mut known = DRIVERS.into_iter().chain(OTHERS);
        known.find(|driver| driver.name == name).unwrap_or(&PLAIN)
    }

    /// Finds a driver by the information that a port's driver reports.
    pub fn of_info(info: &rte_eth_dev_info) -> &'static Self {
        if info.driver_name.is_null() {
            return Self::of_port("");
        }
        // SAFETY: the driver's own name, a C string that lives as long as it is loaded.
        let name = unsafe { CStr::from_ptr(info.driver_name) };
        Self::of_port(&name.to_string_lossy())
    }

    /// Finds a driver by the name of a virtual device: DPDK chooses the driver whose name is a
    /// prefix of the device's name. `None` if the driver is not listed, or if the name is not
    /// plain.
    pub fn of_device(device: &str) -> Option<&'static Self> {
        let is_plain = |rest: &str| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        DRIVERS.into_iter().find(|driver| {
            let mut names = driver.aliases.iter().chain([&driver.name]);
            names.any(|name| device.strip_prefix(name).is_some_and(is_plain))
        })
    }
}

/// Returns true if a driver would use a hash table of this name as its own.
pub(crate) fn reserves_hash_table(name: &str) -> bool {
    DRIVERS.iter().any(|driver| driver.hash_table == Some(name))
}

/// Returns true if a driver would use a ring of this name as its own.
pub(crate) fn reserves_ring(name: &str) -> bool {
    DRIVERS.iter().any(|driver| driver.ring_prefix.is_some_and(|prefix| name.starts_with(prefix)))
}

/// Refuses arguments that begin with a key.
fn refuse_key(arguments: &[&str], key: &str, why: &'static str) -> Result<(), &'static str> {
    match arguments.iter().any(|argument| argument.starts_with(key)) {
        true => Err(why),
        false => Ok(()),
    }
}

/// Parses a number that C reads in the same way: digits only, 16 bits at most.
fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n| text.bytes().all(|b| b.is_ascii_digit()) && *n <= u16::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Restrictions = Restrictions { no_configure: false, no_close: false };

    #[test]
    fn drivers_are_found_by_the_names_of_ports_and_devices() {
        for driver in DRIVERS {
            assert!(std::ptr::eq(Driver::of_port(driver.name), driver));
            for name in driver.aliases.iter().chain([&driver.name]) {
                let found = Driver::of_device(&format!("{name}_a0"));
                assert_eq!(found.map(|found| found.name), Some(driver.name), "{name}");
            }
        }
        for device in ["net_bonding0", "net_ring-0", "net_rin", ""] {
            assert!(Driver::of_device(device).is_none(), "{device}");
        }
        for driver in OTHERS {
            assert!(std::ptr::eq(Driver::of_port(driver.name), driver));
            assert!(Driver::of_device(driver.name).is_none(), "it is the command line's");
        }
        let other = Driver::of_port("net_ice");
        assert_eq!((other.max_rx_queues, (other.after_rx_setup)(1, -12)), (u16::MAX, FREE));
    }

    #[test]
    fn names_that_drivers_look_up_are_reserved() {
        assert!(reserves_ring("ETH_RXTX0_net_ring0") && !reserves_ring("RXTX"));
        assert!(reserves_hash_table("memif-sh") && !reserves_hash_table("memif-sh2"));
    }

    #[test]
    fn ports_whose_queues_could_not_be_set_up_stay_open() {
        const ENOENT: i32 = 2;
        const ENOMEM: i32 = 12;
        let of = |driver: Driver, queue, code| (driver.after_rx_setup)(queue, code);
        let open = Restrictions { no_close: true, ..FREE };
        let lost = Restrictions { no_configure: true, no_close: true };
        assert_eq!(of(af_xdp::DRIVER, 0, 0), Restrictions { no_configure: true, ..FREE });
        assert_eq!(of(pcap::DRIVER, 0, 0), FREE);
        assert_eq!(of(pcap::DRIVER, 1, -ENOENT), FREE);
        for driver in [af_xdp::DRIVER, pcap::DRIVER] {
            assert_eq!((driver.after_rx_setup)(0, -ENOMEM), open);
            assert_eq!((driver.after_rx_setup)(1, -ENOMEM), lost);
        }
        assert_eq!(of(memif::DRIVER, 1, -ENOMEM), FREE);
    }
}
