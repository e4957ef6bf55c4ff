// SPDX-License-Identifier: BSD-3-Clause
//! Errors that need no port.

use dpdk::{Eal, Mbuf};
use graph::{GraphBuilder, Ip4Route};

use super::acl;
use super::frames::FIRST;

pub fn refused<'q>(builder: GraphBuilder<'q, Mbuf<'q>>) -> String {
    match builder.build::<true>() {
        Ok(_) => panic!("a graph was made"),
        Err(error) => error.to_string(),
    }
}

/// Errors that need no port.
pub fn without_a_port(eal: &Eal) {
    let new = || GraphBuilder::<Mbuf<'_>>::new(eal, "refused");
    let route = |length, next_hop| Ip4Route { address: [10, 0, 0, 0].into(), length, next_hop };
    assert_eq!(refused(new().pkt_drop()), r#"no edge leads to the node "pkt_drop""#);
    assert_eq!(
        refused(acl(new()).pkt_drop()),
        r#"the edge "Allowed" of the node "acl" leads to "pkt_cls", which is not in the graph"#
    );
    assert_eq!(
        refused(acl(new()).pkt_cls().pkt_drop()),
        r#"the edge "ip4_lookup" of the node "pkt_cls" leads to "ip4_lookup", which is not in the graph"#
    );
    assert_eq!(
        refused(acl(new()).pkt_cls().pkt_drop().lead("pkt_cls", "ip4_lookup", "nide")),
        r#"the edge "ip4_lookup" of the node "pkt_cls" leads to "nide", which is not in the graph"#
    );
    assert_eq!(
        refused(new().pkt_drop().lead("pkt_cls", "ip4_lookup", "pkt_drop")),
        r#"cannot redirect an edge of "pkt_cls": the graph has no such node of DPDK's"#
    );
    let said = refused(new().pkt_cls().lead("pkt_cls", "ip4_rewrite", "pkt_drop"));
    let known = r#"the node "pkt_cls" has no edge "ip4_rewrite" that can be redirected (edges: "#;
    assert!(said.starts_with(known), "{said}");
    let said = refused(new().ip4(&[]).pkt_drop().lead("ip4_lookup", "ip4_rewrite", "pkt_drop"));
    assert!(said.contains(r#"no edge "ip4_rewrite" that can be redirected"#), "{said}");
    assert_eq!(
        refused(new().pkt_cls().ip4(&[]).pkt_drop().lead("pkt_cls", "ip4_lookup", "ip4_rewrite")),
        r#"an edge of the node "pkt_cls" leads to "ip4_rewrite", which only takes packets for which ip4_lookup has found a route"#
    );
    assert_eq!(
        refused(new().pkt_cls().ip4(&[]).pkt_drop().lead("ip4_lookup", "pkt_drop", "ip4_rewrite")),
        r#"an edge of the node "ip4_lookup" leads to "ip4_rewrite", which only takes packets for which ip4_lookup has found a route"#
    );
    assert_eq!(
        refused(new().ip4(&[route(0, FIRST)])),
        "route 10.0.0.0/0: a prefix has 1 to 32 bits"
    );
    assert_eq!(
        refused(new().ip4(&[route(8, FIRST)])),
        "route 10.0.0.0/8: the graph has no node ethdev_tx-0"
    );
}
