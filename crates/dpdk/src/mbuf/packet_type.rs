// SPDX-License-Identifier: BSD-3-Clause
//! The packet type that a device has recognised.

use std::ffi::{CStr, c_char};
use std::fmt;

use dpdk_sys::{layout, *};

use super::Mbuf;
use crate::fast::mbuf::{field, set_field};

/// The headers that a packet has (`packet_type` of an mbuf, `RTE_PTYPE_...`). Devices recognise
/// what they can. A layer that the device did not look at is `Unknown`, as are all layers of a
/// packet that was not received. The type describes the bytes as they are: a VLAN tag that was
/// stripped is not included.
///
/// ```
/// use dpdk::{L3Type, Mbuf};
///
/// fn is_for_us(mbuf: &Mbuf<'_>) -> bool {
///     match mbuf.packet_type().l3() {
///         L3Type::Unknown => true, // look at the bytes
///         kind => kind.is_ipv4(),
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PacketType(u32);

/// An enum of the values of one layer.
macro_rules! layer {
    ($(#[$doc:meta])* $name:ident { $($(#[$what:meta])* $variant:ident = $outer:ident $(/ $inner:ident)?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum $name {
            /// Not looked at, or not recognised.
            Unknown,
            $($(#[$what])* $variant,)+
            /// A value that this release of the crate has no name for, as it is in the field.
            Other(u32),
        }

        impl $name {
            #[inline]
            fn outer(bits: u32) -> Self {
                match bits {
                    0 => Self::Unknown,
                    $($outer => Self::$variant,)+
                    other => Self::Other(other),
                }
            }

            layer!(@inner $($variant $($inner)?,)+);
        }
    };
    (@inner $($variant:ident,)+) => {};
    // Some inner layers have no such kind, and some have another number for it.
    (@inner $($variant:ident $($inner:ident)?,)+) => {
        #[inline]
        fn inner(bits: u32) -> Self {
            match bits {
                0 => Self::Unknown,
                $($($inner => Self::$variant,)?)+
                other => Self::Other(other),
            }
        }
    };
}

layer! {
    /// The link layer.
    L2Type {
        /// Ethernet.
        Ethernet = RTE_PTYPE_L2_ETHER / RTE_PTYPE_INNER_L2_ETHER,
        /// IEEE 1588 over Ethernet.
        Timesync = RTE_PTYPE_L2_ETHER_TIMESYNC,
        /// ARP.
        Arp = RTE_PTYPE_L2_ETHER_ARP,
        /// LLDP.
        Lldp = RTE_PTYPE_L2_ETHER_LLDP,
        /// Network service header.
        Nsh = RTE_PTYPE_L2_ETHER_NSH,
        /// One VLAN tag.
        Vlan = RTE_PTYPE_L2_ETHER_VLAN / RTE_PTYPE_INNER_L2_ETHER_VLAN,
        /// Two VLAN tags.
        Qinq = RTE_PTYPE_L2_ETHER_QINQ / RTE_PTYPE_INNER_L2_ETHER_QINQ,
        /// PPPoE.
        Pppoe = RTE_PTYPE_L2_ETHER_PPPOE,
        /// FCoE.
        Fcoe = RTE_PTYPE_L2_ETHER_FCOE,
        /// MPLS.
        Mpls = RTE_PTYPE_L2_ETHER_MPLS,
    }
}

layer! {
    /// The network layer.
    L3Type {
        /// IPv4 without options.
        Ipv4 = RTE_PTYPE_L3_IPV4 / RTE_PTYPE_INNER_L3_IPV4,
        /// IPv4 with options.
        Ipv4Options = RTE_PTYPE_L3_IPV4_EXT / RTE_PTYPE_INNER_L3_IPV4_EXT,
        /// IPv4, with or without options.
        Ipv4Any = RTE_PTYPE_L3_IPV4_EXT_UNKNOWN / RTE_PTYPE_INNER_L3_IPV4_EXT_UNKNOWN,
        /// IPv6 without extension headers.
        Ipv6 = RTE_PTYPE_L3_IPV6 / RTE_PTYPE_INNER_L3_IPV6,
        /// IPv6 with extension headers.
        Ipv6Extensions = RTE_PTYPE_L3_IPV6_EXT / RTE_PTYPE_INNER_L3_IPV6_EXT,
        /// IPv6, with or without extension headers.
        Ipv6Any = RTE_PTYPE_L3_IPV6_EXT_UNKNOWN / RTE_PTYPE_INNER_L3_IPV6_EXT_UNKNOWN,
    }
}

layer! {
    /// The transport layer.
    L4Type {
        /// TCP.
        Tcp = RTE_PTYPE_L4_TCP / RTE_PTYPE_INNER_L4_TCP,
        /// UDP.
        Udp = RTE_PTYPE_L4_UDP / RTE_PTYPE_INNER_L4_UDP,
        /// A fragment of any transport protocol.
        Fragment = RTE_PTYPE_L4_FRAG / RTE_PTYPE_INNER_L4_FRAG,
        /// SCTP.
        Sctp = RTE_PTYPE_L4_SCTP / RTE_PTYPE_INNER_L4_SCTP,
        /// ICMP.
        Icmp = RTE_PTYPE_L4_ICMP / RTE_PTYPE_INNER_L4_ICMP,
        /// Not a fragment, and none of the other types.
        NoFragment = RTE_PTYPE_L4_NONFRAG / RTE_PTYPE_INNER_L4_NONFRAG,
        /// IGMP.
        Igmp = RTE_PTYPE_L4_IGMP,
    }
}

layer! {
    /// The tunnel around a packet.
    TunnelType {
        /// IP in IP.
        Ip = RTE_PTYPE_TUNNEL_IP,
        /// GRE.
        Gre = RTE_PTYPE_TUNNEL_GRE,
        /// VXLAN.
        Vxlan = RTE_PTYPE_TUNNEL_VXLAN,
        /// NVGRE.
        Nvgre = RTE_PTYPE_TUNNEL_NVGRE,
        /// Geneve.
        Geneve = RTE_PTYPE_TUNNEL_GENEVE,
        /// GRE, VXLAN or NVGRE.
        Grenat = RTE_PTYPE_TUNNEL_GRENAT,
        /// GTP-C.
        GtpC = RTE_PTYPE_TUNNEL_GTPC,
        /// GTP-U.
        GtpU = RTE_PTYPE_TUNNEL_GTPU,
        /// ESP.
        Esp = RTE_PTYPE_TUNNEL_ESP,
        /// L2TP.
        L2tp = RTE_PTYPE_TUNNEL_L2TP,
        /// VXLAN-GPE.
        VxlanGpe = RTE_PTYPE_TUNNEL_VXLAN_GPE,
        /// MPLS in GRE.
        MplsInGre = RTE_PTYPE_TUNNEL_MPLS_IN_GRE,
        /// MPLS in UDP.
        MplsInUdp = RTE_PTYPE_TUNNEL_MPLS_IN_UDP,
    }
}

impl L3Type {
    /// Returns true if it is IPv4 (`RTE_ETH_IS_IPV4_HDR`).
    #[inline]
    #[must_use]
    pub fn is_ipv4(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv4Options | Self::Ipv4Any)
    }

    /// Returns true if it is IPv6 (`RTE_ETH_IS_IPV6_HDR`).
    #[inline]
    #[must_use]
    pub fn is_ipv6(self) -> bool {
        matches!(self, Self::Ipv6 | Self::Ipv6Extensions | Self::Ipv6Any)
    }
}

impl PacketType {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(0);

    /// The value of the field, such as an `RTE_PTYPE_...` of C or several of them ORed.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The value of the field.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The link layer, the outermost where there are two.
    #[inline]
    #[must_use]
    pub fn l2(self) -> L2Type {
        L2Type::outer(self.0 & RTE_PTYPE_L2_MASK)
    }

    /// The network layer, the outermost where there are two.
    #[inline]
    #[must_use]
    pub fn l3(self) -> L3Type {
        L3Type::outer(self.0 & RTE_PTYPE_L3_MASK)
    }

    /// The transport layer, the outermost where there are two.
    #[inline]
    #[must_use]
    pub fn l4(self) -> L4Type {
        L4Type::outer(self.0 & RTE_PTYPE_L4_MASK)
    }

    /// The tunnel around the inner packet.
    #[inline]
    #[must_use]
    pub fn tunnel(self) -> TunnelType {
        TunnelType::outer(self.0 & RTE_PTYPE_TUNNEL_MASK)
    }

    /// The link layer inside the tunnel.
    #[inline]
    #[must_use]
    pub fn inner_l2(self) -> L2Type {
        L2Type::inner(self.0 & RTE_PTYPE_INNER_L2_MASK)
    }

    /// The network layer inside the tunnel.
    #[inline]
    #[must_use]
    pub fn inner_l3(self) -> L3Type {
        L3Type::inner(self.0 & RTE_PTYPE_INNER_L3_MASK)
    }

    /// The transport layer inside the tunnel.
    #[inline]
    #[must_use]
    pub fn inner_l4(self) -> L4Type {
        L4Type::inner(self.0 & RTE_PTYPE_INNER_L4_MASK)
    }
}

/// Prints it as `rte_get_ptype_name` does: `L2_ETHER L3_IPV4 L4_UDP`.
impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type Name = unsafe extern "C" fn(u32) -> *const c_char;
        const LAYERS: [(u32, Name); 7] = [
            (RTE_PTYPE_L2_MASK, rte_get_ptype_l2_name),
            (RTE_PTYPE_L3_MASK, rte_get_ptype_l3_name),
            (RTE_PTYPE_L4_MASK, rte_get_ptype_l4_name),
            (RTE_PTYPE_TUNNEL_MASK, rte_get_ptype_tunnel_name),
            (RTE_PTYPE_INNER_L2_MASK, rte_get_ptype_inner_l2_name),
            (RTE_PTYPE_INNER_L3_MASK, rte_get_ptype_inner_l3_name),
            (RTE_PTYPE_INNER_L4_MASK, rte_get_ptype_inner_l4_name),
        ];
        if self.0 == 0 {
            return f.write_str("UNKNOWN");
        }
        let mut gap = "";
        for (_, name) in LAYERS.into_iter().filter(|(mask, _)| self.0 & mask != 0) {
            // SAFETY: the function takes any number and returns a static C string.
            let name = unsafe { CStr::from_ptr(name(self.0)) };
            write!(f, "{gap}{}", name.to_string_lossy())?;
            gap = " ";
        }
        Ok(())
    }
}

impl fmt::Debug for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketType({self})")
    }
}

impl Mbuf<'_> {
    /// The type that the receiving device has recognised (`packet_type`).
    #[inline]
    #[must_use]
    pub fn packet_type(&self) -> PacketType {
        // SAFETY: the mbuf is valid.
        PacketType(unsafe { field(self.as_ptr(), layout::MBUF_PACKET_TYPE) })
    }

    /// Sets the packet's type, for later readers. Devices that it is sent to do not read it.
    #[inline]
    pub fn set_packet_type(&mut self, kind: PacketType) {
        // SAFETY: the mbuf is valid, and its first segment is this owner's.
        unsafe { set_field(self.as_ptr(), layout::MBUF_PACKET_TYPE, kind.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_told_apart() {
        let kind = PacketType::from_bits(
            RTE_PTYPE_L2_ETHER_VLAN
                | RTE_PTYPE_L3_IPV4_EXT_UNKNOWN
                | RTE_PTYPE_L4_UDP
                | RTE_PTYPE_TUNNEL_VXLAN
                | RTE_PTYPE_INNER_L2_ETHER
                | RTE_PTYPE_INNER_L3_IPV6_EXT
                | RTE_PTYPE_INNER_L4_SCTP,
        );
        assert_eq!(kind.l2(), L2Type::Vlan);
        assert_eq!(kind.l3(), L3Type::Ipv4Any);
        assert_eq!(kind.l4(), L4Type::Udp);
        assert_eq!(kind.tunnel(), TunnelType::Vxlan);
        assert_eq!(kind.inner_l2(), L2Type::Ethernet);
        assert_eq!(kind.inner_l3(), L3Type::Ipv6Extensions);
        assert_eq!(kind.inner_l4(), L4Type::Sctp);
        assert_eq!(PacketType::UNKNOWN.l3(), L3Type::Unknown);
        assert_eq!(PacketType::from_bits(RTE_PTYPE_L3_MASK).l3(), L3Type::Other(RTE_PTYPE_L3_MASK));
    }

    /// DPDK asks whether a bit is set.
    #[test]
    fn ip_is_what_dpdk_takes_for_it() {
        for bits in (0..=RTE_PTYPE_L3_MASK).step_by(RTE_PTYPE_L3_IPV4 as usize) {
            let l3 = PacketType::from_bits(bits).l3();
            if !matches!(l3, L3Type::Other(_)) {
                assert_eq!(l3.is_ipv4(), bits & RTE_PTYPE_L3_IPV4 != 0, "{l3:?}");
                assert_eq!(l3.is_ipv6(), bits & RTE_PTYPE_L3_IPV6 != 0, "{l3:?}");
            }
        }
    }

    #[test]
    fn names_are_dpdks() {
        for bits in [0, 0x0001_0091, RTE_PTYPE_L4_UDP, 0x0123_4567, u32::MAX, 0x0611_b691] {
            let mut text = [0; 256];
            // SAFETY: DPDK writes no more than there is room for, and a NUL.
            let theirs = unsafe {
                rte_get_ptype_name(bits, text.as_mut_ptr(), text.len());
                CStr::from_ptr(text.as_ptr())
            };
            let theirs = theirs.to_string_lossy().trim_end().to_owned();
            assert_eq!(PacketType::from_bits(bits).to_string(), theirs, "{bits:#x}");
        }
    }
}
