// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::otg::walk::Faults;
use packet::payload::Payload;
use packet::size::Sizes;
use serde_json::{Value, json};

fn tags(packet: &Value, egress: &Value) -> Result<Tags, String> {
    let faults = Faults::default();
    let (node, egress) = (Node::root(packet, &faults), Node::root(egress, &faults));
    let spec = FrameSpec {
        headers: crate::otg::headers::read(&node).unwrap(),
        sizes: Sizes::Fixed(128),
        payload: Payload::default(),
        signature: None,
    };
    let egress = egress.value().is_array().then_some(&egress);
    let tags = read(Some(&node), &spec, egress, false, false);
    faults.finish(tags).map_err(|error| error.errors.join("; "))
}

fn tag(name: &str) -> Value {
    json!([{ "name": name }])
}

/// The values of the only tag in the first frames.
fn sent(packet: &Value) -> Vec<u128> {
    let tags = tags(packet, &Value::Null).unwrap();
    (0..6).map(|number| tags.values(&tags.sent(number))[0].unwrap()).collect()
}

#[test]
fn what_is_sent_follows_from_patterns_constants_and_rules() {
    let vlan = |id: Value| json!([{}, {"vlan": {"id": id}}, {"ipv4": {}}]);
    let id = json!({"choice": "increment", "increment": {"start": 100, "step": 3, "count": 4}, "metric_tags": tag("id")});
    assert_eq!(sent(&vlan(id)), [100, 103, 106, 109, 100, 103]);
    let part = json!([{"name": "id", "offset": 10, "length": 2}]);
    let id = json!({"choice": "values", "values": [4, 5, 7], "metric_tags": part});
    assert_eq!(sent(&vlan(id)), [0, 1, 3, 0, 1, 3], "the last two bits");
    let id = json!({"value": 0xabc, "metric_tags": [{"name": "id", "offset": 0, "length": 4}]});
    assert_eq!(sent(&vlan(id)), [0xa; 6]);
    // What nobody has set: the type of what follows, and the type of a tag.
    let ether_type = json!({"choice": "auto", "metric_tags": tag("t")});
    assert_eq!(sent(&json!([{"ethernet": {"ether_type": ether_type}}, {"ipv6": {}}])), [0x86dd; 6]);
    let tpid = json!({"metric_tags": tag("t")});
    assert_eq!(sent(&json!([{}, {"vlan": {"tpid": tpid}}])), [0x8100; 6]);
    let tpid = json!({"choice": "values", "values": [0x88a8, 0x9100], "metric_tags": tag("t")});
    assert_eq!(sent(&json!([{}, {"vlan": {"tpid": tpid}}])), [0x88a8, 0x9100].repeat(3));
    let phb = json!({"choice": "values", "values": [46, 10], "metric_tags": tag("dscp")});
    let priority = json!({"choice": "dscp", "dscp": {"phb": phb}});
    assert_eq!(sent(&json!([{}, {"ipv4": {"priority": priority}}])), [46, 10].repeat(3));
    let custom = json!({"bytes": "0fa5", "metric_tags": [{"name": "c", "offset": 4, "length": 8}]});
    assert_eq!(sent(&json!([{}, {"custom": custom}])), [0xfa; 6]);
    let bit = json!({"bytes": "40", "metric_tags": [{"name": "c", "offset": 1}]});
    assert_eq!(sent(&json!([{}, {"custom": bit}])), [1; 6], "one bit where no length is given");
}

#[test]
fn headers_with_parts_shift_those_behind_them() {
    let segments = json!({"routing": {"choice": "segment_routing", "segment_routing": {"segment_list": [{"segment": {"value": "2001:db8::1"}}, {"segment": {"value": "2001:db8::2"}}]}}});
    let port = json!({"values": [7, 9], "choice": "values", "metric_tags": tag("port")});
    let packet =
        json!([{}, {"ipv6": {}}, {"ipv6_extension_header": segments}, {"udp": {"dst_port": port}}]);
    assert_eq!(sent(&packet), [7, 9].repeat(3));
    let received = tags(&json!([]), &packet).unwrap();
    assert_eq!(received.fields[0].place, Place::Received(8 * (14 + 40 + 8 + 32 + 2)));
    // IPv6 says that a routing header follows, and that one that UDP does, behind its segments.
    let next: Vec<_> =
        received.shape.iter().map(|check| (check.first_bit, &check.any_of)).collect();
    assert!(next.contains(&(8 * (14 + 6), &vec![43])), "{next:?}");
    assert!(next.contains(&(8 * (14 + 40), &vec![17])), "{next:?}");
    let gtp = json!({"next_extension_header_type": {"value": 0x85}, "extension_headers": [{"extension_length": {"value": 1}}]});
    let ttl = json!({"value": 9, "metric_tags": tag("ttl")});
    let packet = json!([{}, {"ipv4": {}}, {"udp": {}}, {"gtpv1": gtp}, {"ipv4": {}}, {"ipv4": {"time_to_live": ttl}}]);
    assert_eq!(sent(&packet), [9; 6]);
}

#[test]
fn what_is_received_has_a_place_and_a_shape() {
    let egress = json!([
        {"ethernet": {"dst": {"metric_tags": tag("dst")}}},
        {"vlan": {"id": {"value": 9, "metric_tags": tag("vlan")}}},
        {"ipv4": {"time_to_live": {"metric_tags": [{"name": "ttl", "offset": 4, "length": 4}]}}},
        {"udp": {}},
        {"custom": {"bytes": "00"}},
    ]);
    let tags = tags(&json!([]), &egress).unwrap();
    let places: Vec<_> =
        tags.fields.iter().map(|tag| (tag.name.as_str(), tag.bits, &tag.place)).collect();
    assert_eq!(
        places,
        [
            ("dst", 48, &Place::Received(0)),
            ("vlan", 12, &Place::Received(8 * 14 + 4)),
            ("ttl", 4, &Place::Received(8 * 26 + 4)),
        ]
    );
    // Nothing behind the last header with a tag matters.
    let mut frame = vec![0u8; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xa8]);
    frame[14..16].copy_from_slice(&[0xf0, 0x65]);
    frame[16..18].copy_from_slice(&[8, 0]);
    frame[26] = 63;
    let values = |frame: &[u8]| tags.values(&tags.received(0, frame, 0));
    assert_eq!(values(&frame), [Some(0), Some(0x65), Some(15)]);
    frame[16] = 0x86;
    assert_eq!(values(&frame), [None; 3], "IPv6");
    assert_eq!(values(&frame[..26]), [None; 3]);
}

#[test]
fn tags_behind_ipv4_and_labels_need_the_lengths_that_are_said() {
    let egress =
        json!([{}, {"mpls": {}}, {"ipv4": {}}, {"udp": {"dst_port": {"metric_tags": tag("p")}}}]);
    let tags = tags(&json!([]), &egress).unwrap();
    let mut frame = vec![0u8; 60];
    frame[12..14].copy_from_slice(&[0x88, 0x47]);
    (frame[16], frame[18], frame[27]) = (1, 0x45, 17);
    frame[41] = 53;
    let values = |frame: &[u8]| tags.values(&tags.received(0, frame, 0))[0];
    assert_eq!(values(&frame), Some(53));
    for (at, other) in [(16, 0), (18, 0x46), (27, 6)] {
        let mut frame = frame.clone();
        frame[at] = other;
        assert_eq!(values(&frame), None, "byte {at}");
    }
}

#[test]
fn tags_that_cannot_be_are_refused_by_name() {
    let ttl = |tags: Value| json!([{}, {"ipv4": {"time_to_live": {"metric_tags": tags}}}]);
    let fault = |packet: Value, egress: Value| tags(&packet, &egress).unwrap_err();
    let random = json!({"choice": "random", "random": {"count": 65_537}, "metric_tags": tag("r")});
    let wide = |name: &str| json!({"metric_tags": tag(name)});
    let three = json!([{"ipv6": {"src": wide("a"), "dst": wide("b"), "flow_label": wide("c")}}]);
    let many: Vec<Value> = (0..17).map(|n| json!({"name": format!("t{n}"), "length": 1})).collect();
    for (found, wanted) in [
        (
            fault(ttl(json!([{}])), Value::Null),
            "[1].ipv4.time_to_live.metric_tags[0].name: is missing",
        ),
        (
            fault(ttl(json!([{"name": ""}])), Value::Null),
            "metric_tags[0].name: must be 1 to 64 bytes",
        ),
        (fault(ttl(json!([{"name": "rx_name"}])), Value::Null), "metric_tags[0].name: another tag"),
        (
            fault(ttl(json!([{"name": "a"}, {"name": "a"}])), Value::Null),
            "metric_tags[1].name: another tag",
        ),
        (
            fault(ttl(json!([{"name": "a", "length": 0}])), Value::Null),
            "length: must be a whole number from 1",
        ),
        (
            fault(ttl(json!([{"name": "a", "offset": 1}])), Value::Null),
            "metric_tags[0]: offset 1 and length 8 reach past the 8 bits that the field has",
        ),
        (
            fault(ttl(json!([{"name": "a", "x": 1}])), Value::Null),
            "metric_tags[0].x: not supported",
        ),
        (fault(ttl(json!(7)), Value::Null), "metric_tags: must be a list"),
        (fault(ttl(json!(many)), Value::Null), "metric_tags[16]: a flow has 16 tags at most"),
        (
            fault(three, Value::Null),
            "metric_tags[0].length: all tags of a flow have 256 bits at most",
        ),
        (
            fault(json!([{"udp": {"src_port": random}}]), Value::Null),
            "not supported for more than 65536 random",
        ),
        (
            fault(json!([{}, {"ipv4": {"total_length": {"metric_tags": tag("l")}}}]), Value::Null),
            "total_length.metric_tags[0]: not supported for a length",
        ),
        (
            fault(json!([{"gre": {"reserved1": wide("r")}}]), Value::Null),
            "the field is not in the frame",
        ),
        (
            fault(json!([{"ethernet": {"pfc_queue": wide("q")}}]), Value::Null),
            "the field is not in the frame",
        ),
        (
            fault(json!([{"vlan": {"tpid": wide("t")}}]), Value::Null),
            "there is no ethernet or vlan header before",
        ),
        (fault(json!([]), json!([{"rsvp": {}}])), "[0].rsvp: not supported"),
        (
            fault(json!([]), json!([{"udp": {"checksum": {"metric_tags": tag("c")}}}])),
            "[0].udp.checksum.metric_tags: not supported",
        ),
    ] {
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
    let both = tags(&ttl(tag("a")), &ttl(tag("a"))).unwrap_err();
    assert!(both.contains("metric_tags[0].name: another tag of the flow has this name"), "{both}");
}
