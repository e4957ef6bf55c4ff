// SPDX-License-Identifier: BSD-3-Clause
//! The headers that filters name, and where their fields are.

/// A header whose fields are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Destination, source and the type as it stands in the first 14 bytes.
    Ethernet,
    /// A tag: priority, CFI, VLAN, and the type of what follows it.
    Vlan,
    /// IPv4, behind any tags.
    Ipv4,
    /// IPv6, behind any tags.
    Ipv6,
}

impl Layer {
    /// Its name in OTG.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Ethernet => "ethernet",
            Layer::Vlan => "vlan",
            Layer::Ipv4 => "ipv4",
            Layer::Ipv6 => "ipv6",
        }
    }

    /// Names of its fields with their first bit and their number of bits.
    pub(super) fn table(self) -> &'static [(&'static str, u32, u32)] {
        match self {
            Layer::Ethernet => &[("dst", 0, 48), ("src", 48, 48), ("ether_type", 96, 16)],
            Layer::Vlan => {
                &[("priority", 0, 3), ("cfi", 3, 1), ("id", 4, 12), ("protocol", 16, 16)]
            }
            Layer::Ipv4 => &[
                ("version", 0, 4),
                ("header_length", 4, 4),
                ("priority", 8, 8),
                ("total_length", 16, 16),
                ("identification", 32, 16),
                ("reserved", 48, 1),
                ("dont_fragment", 49, 1),
                ("more_fragments", 50, 1),
                ("fragment_offset", 51, 13),
                ("time_to_live", 64, 8),
                ("protocol", 72, 8),
                ("header_checksum", 80, 16),
                ("src", 96, 32),
                ("dst", 128, 32),
            ],
            Layer::Ipv6 => &[
                ("version", 0, 4),
                ("traffic_class", 4, 8),
                ("flow_label", 12, 20),
                ("payload_length", 32, 16),
                ("next_header", 48, 8),
                ("hop_limit", 56, 8),
                ("src", 64, 128),
                ("dst", 192, 128),
            ],
        }
    }

    /// Names of the fields that can be compared.
    pub fn fields(self) -> impl Iterator<Item = &'static str> {
        self.table().iter().map(|(name, ..)| *name)
    }
}
