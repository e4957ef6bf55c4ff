// SPDX-License-Identifier: BSD-3-Clause
//! Data that a program and its loader exchange, in the layout of `bpf/lane.h`.

use forwarders_common::ethernet::Addresses;

/// `struct lane`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaneConstants {
    pub(super) rx_port: u16,
    pub(super) tx_port: u16,
    /// The MAC addresses to write, if any.
    pub(super) addresses: Option<Addresses>,
    /// True if senders may leave checksums to the interface.
    pub(super) is_virtual: bool,
}

impl LaneConstants {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let numbers = [self.rx_port.into(), self.tx_port.into(), self.addresses.is_some().into()];
        let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.extend(self.addresses.unwrap_or_default());
        bytes.extend(u32::from(self.is_virtual).to_ne_bytes());
        bytes
    }
}

/// `struct facts`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) mac: [u8; 6],
    pub(super) routes_ipv6: bool,
}

impl Facts {
    pub(super) fn bytes(self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.mac;
        [a, b, c, d, e, f, self.routes_ipv6.into(), 0]
    }
}

/// `struct counters`, in its order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counters {
    pub(super) rx_packets: u64,
    pub(super) rx_bytes: u64,
    pub(super) rx_runt: u64,
    pub(super) rx_passed: u64,
    pub(super) rx_unroutable: u64,
    pub(super) tx_given: u64,
    pub(super) tx_given_bytes: u64,
    pub(super) tx_no_port: u64,
    pub(super) rx_checksum_left: u64,
    pub(super) rx_checksum_completed: u64,
}

/// Bytes of `struct counters`.
pub(super) const COUNTERS: usize = size_of::<[u64; 10]>();

impl Counters {
    /// The sum over CPUs of a per-CPU map's values.
    pub(super) fn sum<'b>(values: impl IntoIterator<Item = &'b [u8]>) -> Self {
        let mut sum = [0u64; COUNTERS / size_of::<u64>()];
        for value in values {
            let numbers = value.chunks_exact(size_of::<u64>());
            for (sum, bytes) in sum.iter_mut().zip(numbers) {
                *sum += bytes.try_into().map_or(0, u64::from_ne_bytes);
            }
        }
        let [
            rx_packets,
            rx_bytes,
            rx_runt,
            rx_passed,
            rx_unroutable,
            tx_given,
            tx_given_bytes,
            tx_no_port,
            rx_checksum_left,
            rx_checksum_completed,
        ] = sum;
        Self {
            rx_packets,
            rx_bytes,
            rx_runt,
            rx_passed,
            rx_unroutable,
            tx_given,
            tx_given_bytes,
            tx_no_port,
            rx_checksum_left,
            rx_checksum_completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        let addresses = Some([7; 12]);
        let is_virtual = true;
        let bytes = LaneConstants { rx_port: 1, tx_port: 2, addresses, is_virtual }.bytes();
        assert_eq!(bytes.len(), 28);
        assert_eq!(bytes[..12], [1u32, 2, 1].map(u32::to_ne_bytes).concat());
        assert_eq!(bytes[12..24], [7; 12]);
        assert_eq!(bytes[24..], 1u32.to_ne_bytes());
        let none = LaneConstants { rx_port: 1, tx_port: 2, addresses: None, is_virtual }.bytes();
        assert_eq!((none.len(), &none[8..12]), (28, &[0; 4][..]));
        let facts = Facts { mac: [1, 2, 3, 4, 5, 6], routes_ipv6: true };
        assert_eq!(facts.bytes(), [1, 2, 3, 4, 5, 6, 1, 0]);
    }

    #[test]
    fn counters_are_summed_over_cpus() {
        let cpu = |first: u64| -> Vec<u8> {
            (first..first + 10).flat_map(|number| number.to_ne_bytes()).collect()
        };
        let (one, other) = (cpu(1), cpu(100));
        let sum = Counters::sum([&one[..], &other[..]]);
        assert_eq!((sum.rx_packets, sum.rx_bytes, sum.tx_no_port), (101, 103, 115));
        assert_eq!((sum.rx_checksum_left, sum.rx_checksum_completed), (117, 119));
        assert_eq!(Counters::sum([]), Counters::default());
    }
}
