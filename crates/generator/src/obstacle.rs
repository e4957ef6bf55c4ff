// SPDX-License-Identifier: BSD-3-Clause
//! Finds what prevents frames from passing at a network interface, as far as the kernel reports it.
//!
//! DPDK 22.11's af_packet and af_xdp drivers always report their link as up, and count frames as
//! sent that the kernel drops. Each of these cases was seen between network namespaces:
//! `tests/test_interfaces.py` reproduces them.

use std::fmt;

use crate::location::{Driver, Location};
use host::Interface;

/// Bytes of an Ethernet header and of a VLAN tag.
const ETHERNET: usize = 14;
const VLAN_TAG: usize = 4;
/// Bytes of a frame beyond its MTU: Ethernet's header and the FCS.
const NOT_MTU: usize = ETHERNET + packet::FCS_LEN;
/// Longest text in a telemetry answer of DPDK (`RTE_TEL_MAX_STRING_LEN`), without its NUL.
const BRIEF: usize = 127;

/// Why frames do not pass, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The interface is gone since the port was opened.
    #[error("there is no interface {0} any more: post the configuration again when there is")]
    Gone(String),
    /// The interface is gone, and another one has its name. The port's sockets still belong to the
    /// old one.
    #[error(
        "{0} is not the interface that it was when the port was opened: post the configuration again"
    )]
    Replaced(String),
    /// It is set down.
    #[error("{0} is down: nothing can be sent or received; `ip link set {0} up`")]
    Down(String),
    /// The far end of a veth is set down.
    #[error(
        "{name}: its peer {peer} is down: every frame would be dropped; set it up by `ip link`"
    )]
    PeerDown {
        /// Our end.
        name: String,
        /// The other one, and where it is.
        peer: Peer,
    },
    /// There is no link, for an unknown reason.
    #[error(
        "{0} has no carrier: every frame would be dropped; look at its cable or what is behind it"
    )]
    NoCarrier(String),
    /// Frames are longer than one of the ends allows.
    #[error(
        "{at}: a frame of {len_with_fcs} bytes is longer than its MTU of {mtu} allows: every such frame would be dropped; \
         `ip link set` it an MTU of {}", .len_with_fcs.saturating_sub(NOT_MTU)
    )]
    TooLong {
        /// Which end.
        at: String,
        /// Bytes of the longest frame.
        len_with_fcs: usize,
        /// The largest packet in bytes.
        mtu: u32,
    },
    /// The peer has an XDP program and the port's interface has none.
    #[error(
        "{name}: its peer {peer} has an XDP program and {name} has none: frames that this program returns with XDP_TX are dropped; if it returns any, use af_xdp:{name}"
    )]
    PeerXdp {
        /// Our end.
        name: String,
        /// The other one, and where it is.
        peer: Peer,
    },
    /// The peer belongs to a bridge that is down.
    #[error(
        "{name}: its peer {peer} belongs to {bridge}, which is down: only a packet socket on the peer sees frames"
    )]
    PeerBridgeDown {
        /// Our end.
        name: String,
        /// The other one, and where it is.
        peer: Peer,
        /// The bridge or bond.
        bridge: String,
    },
    /// AF_XDP receives from fewer queues than the interface has.
    #[error(
        "{name} has {there} receive queues and the port takes {ours}: frames on the others go to the kernel; `ethtool -L {name} combined {ours}`, or rx and tx for a veth"
    )]
    Queues {
        /// The interface.
        name: String,
        /// Its receive queues.
        there: usize,
        /// Those of the port.
        ours: u16,
    },
}

/// The far end of a veth, as messages name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name, if it may be seen.
    pub name: Option<String>,
    /// True if it is in another network namespace.
    pub elsewhere: bool,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.elsewhere) {
            (Some(name), true) => write!(f, "{name} in another namespace"),
            (Some(name), false) => f.write_str(name),
            (None, _) => f.write_str("in another namespace"),
        }
    }
}

impl Obstacle {
    /// Returns true if certainly no frame passes, so that a start is useless. Other obstacles
    /// depend on the far end, and are only worth a warning.
    pub fn is_certain(&self) -> bool {
        use Obstacle::{Down, Gone, NoCarrier, PeerDown, Replaced, TooLong};
        matches!(
            self,
            Gone(_) | Replaced(_) | Down(_) | PeerDown { .. } | NoCarrier(_) | TooLong { .. }
        )
    }

    /// The message without the advice, in at most [`BRIEF`] bytes, the limit of telemetry.
    pub fn brief(&self) -> String {
        let text = self.to_string();
        let said = text.split("; ").next().unwrap_or_default();
        let fits = said.char_indices().take_while(|(at, char)| at + char.len_utf8() <= BRIEF);
        fits.map(|(_, char)| char).collect()
    }

    /// Returns true if there is no link.
    pub fn is_link_down(&self) -> bool {
        self.is_certain() && !matches!(self, Obstacle::TooLong { .. })
    }
}

/// Returns what prevents frames from passing at the location. `longest` is the number of bytes of
/// the longest frame to be sent, FCS included; `opened` is the index of the interface when the port
/// was opened. `None` if the kernel reports no obstacle or nothing at all: for locations without an
/// interface, and for what only the program at the far end knows.
pub fn obstacle(
    location: &Location,
    longest: Option<usize>,
    opened: Option<u32>,
) -> Option<Obstacle> {
    let name = location.interface()?;
    let own = match host::interface(name) {
        Ok(Some(own)) => own,
        Ok(None) => return Some(Obstacle::Gone(name.to_owned())),
        Err(_) => return None,
    };
    if opened.is_some_and(|opened| opened != own.index) {
        return Some(Obstacle::Replaced(name.to_owned()));
    }
    // Without permission to look into the other namespace, only our own end is known.
    let peer = own.veth_peer().ok().flatten();
    let bridge = peer
        .as_ref()
        .and_then(|peer| host::interface_by_number(peer.master?, own.link_namespace).ok()?);
    let queues = match location {
        Location::Interface { driver: Driver::AfXdp(_), queues, .. } => {
            host::receive_queues(name).map(|there| (there, *queues))
        }
        _ => None,
    };
    judge(&own, peer.as_ref(), bridge.as_ref(), longest, queues)
}

/// The same for known interfaces. `queues` are those of an interface used by AF_XDP, and of its
/// port.
fn judge(
    own: &Interface,
    peer: Option<&Interface>,
    bridge: Option<&Interface>,
    longest: Option<usize>,
    queues: Option<(usize, u16)>,
) -> Option<Obstacle> {
    let name = own.name.clone();
    let far =
        Peer { name: peer.map(|peer| peer.name.clone()), elsewhere: own.link_namespace.is_some() };
    if !own.is_up {
        return Some(Obstacle::Down(name));
    }
    let is_veth = own.kind.as_deref() == Some("veth");
    if !own.has_carrier {
        return Some(match is_veth {
            true => Obstacle::PeerDown { name, peer: far },
            false => Obstacle::NoCarrier(name),
        });
    }
    let ends = [(name.clone(), Some(own)), (format!("{name}: its peer {far}"), peer)];
    for (at, end) in ends {
        let Some((len_with_fcs, end)) = longest.zip(end) else { continue };
        // The kernel allows a VLAN tag on top of the MTU, as hardware does.
        let most = end.mtu as usize + ETHERNET + VLAN_TAG;
        if len_with_fcs.saturating_sub(packet::FCS_LEN) > most {
            return Some(Obstacle::TooLong { at, len_with_fcs, mtu: end.mtu });
        }
    }
    if let Some((there, ours)) = queues.filter(|(there, ours)| *there > usize::from(*ours)) {
        return Some(Obstacle::Queues { name, there, ours });
    }
    if let Some(bridge) = bridge.filter(|bridge| !bridge.is_up) {
        return Some(Obstacle::PeerBridgeDown { name, peer: far, bridge: bridge.name.clone() });
    }
    // AF_XDP attaches a program itself.
    let one_sided = peer.is_some_and(|peer| peer.has_xdp_in_driver) && !own.has_xdp_in_driver;
    (one_sided && queues.is_none()).then_some(Obstacle::PeerXdp { name, peer: far })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends of a veth, the far one in another namespace.
    fn ends() -> (Interface, Interface) {
        let own = Interface {
            name: "va".to_owned(),
            is_up: true,
            has_carrier: true,
            mtu: 1500,
            kind: Some("veth".to_owned()),
            link: Some(2),
            link_namespace: Some(0),
            ..Interface::default()
        };
        let peer = Interface { name: "vb".to_owned(), ..own.clone() };
        (own, peer)
    }

    #[test]
    fn nothing_is_in_the_way_of_a_sound_pair() {
        let (own, peer) = ends();
        let bridge = Interface { is_up: true, ..Interface::default() };
        assert_eq!(judge(&own, Some(&peer), Some(&bridge), Some(1518), None), None);
        assert_eq!(judge(&own, None, None, Some(1522), Some((1, 1))), None);
        assert_eq!(obstacle(&"memif:/a".parse().unwrap(), Some(1518), None), None);
    }

    #[test]
    fn an_interface_is_known_by_its_number() {
        let lo = "lo".parse().unwrap();
        let found = obstacle(&lo, None, Some(u32::MAX)).unwrap();
        assert!(found.is_certain() && found.is_link_down());
        assert_eq!(found, Obstacle::Replaced("lo".to_owned()));
        let number = host::interface("lo").unwrap().unwrap().index;
        assert_ne!(obstacle(&lo, None, Some(number)), Some(found));
    }

    #[test]
    fn a_link_that_is_down_comes_before_all_else() {
        let (mut own, mut peer) = ends();
        (own.has_carrier, peer.is_up) = (false, false);
        let found = judge(&own, Some(&peer), None, Some(9000), Some((2, 1))).unwrap();
        assert!(found.is_certain() && found.is_link_down());
        assert!(
            found.to_string().starts_with("va: its peer vb in another namespace is down: every")
        );
        let unknown = judge(&own, None, None, None, None).unwrap().to_string();
        assert!(unknown.starts_with("va: its peer in another namespace is down"), "{unknown}");
        own.is_up = false;
        assert_eq!(judge(&own, None, None, None, None), Some(Obstacle::Down("va".to_owned())));
        (own.is_up, own.kind) = (true, None);
        assert_eq!(judge(&own, None, None, None, None), Some(Obstacle::NoCarrier("va".to_owned())));
    }

    #[test]
    fn telemetry_takes_every_text() {
        let long = "n".repeat(15);
        let peer = Peer { name: Some(long.clone()), elsewhere: true };
        for found in [
            Obstacle::PeerDown { name: long.clone(), peer: peer.clone() },
            Obstacle::PeerXdp { name: long.clone(), peer: peer.clone() },
            Obstacle::PeerBridgeDown { name: long.clone(), peer, bridge: "ü".repeat(60) },
        ] {
            let brief = found.brief();
            assert!(brief.len() <= BRIEF && found.to_string().starts_with(&brief), "{brief}");
            assert!(!found.is_certain() || brief.ends_with("every frame would be dropped"));
        }
    }

    #[test]
    fn the_smaller_mtu_of_both_ends_holds() {
        let (mut own, mut peer) = ends();
        let judged = |own: &Interface, peer: &Interface, length| {
            judge(own, Some(peer), None, Some(length), None)
        };
        // With a VLAN tag, 1522 bytes hold 1500.
        assert_eq!(judged(&own, &peer, 1522), None);
        let found = judged(&own, &peer, 1523).unwrap();
        assert!(found.is_certain() && !found.is_link_down(), "{found}");
        peer.mtu = 1000;
        let found = judged(&own, &peer, 1518).unwrap().to_string();
        assert!(
            found.starts_with("va: its peer vb in another namespace: a frame of 1518"),
            "{found}"
        );
        own.mtu = 1000;
        let found = judged(&own, &peer, 1518).unwrap().to_string();
        assert!(found.starts_with("va: a frame of 1518"), "{found}");
    }

    #[test]
    fn what_may_be_in_the_way_is_not_certain() {
        let (mut own, mut peer) = ends();
        peer.has_xdp_in_driver = true;
        let found = judge(&own, Some(&peer), None, None, None).unwrap();
        assert!(matches!(found, Obstacle::PeerXdp { .. }) && !found.is_certain());
        assert_eq!(judge(&own, Some(&peer), None, None, Some((1, 1))), None, "AF_XDP has its own");
        own.has_xdp_in_driver = true;
        assert_eq!(judge(&own, Some(&peer), None, None, None), None);
        let bridge = Interface { name: "br0".to_owned(), ..Interface::default() };
        let found = judge(&own, Some(&peer), Some(&bridge), None, None).unwrap();
        assert!(matches!(found, Obstacle::PeerBridgeDown { .. }) && !found.is_certain());
        let found = judge(&own, Some(&peer), None, None, Some((2, 1))).unwrap();
        assert!(matches!(found, Obstacle::Queues { .. }) && !found.is_certain());
    }
}
