// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use crate::otg::walk::Faults;

fn asked(json: Value) -> Result<Tagged, String> {
    let faults = Faults::default();
    let tagged = read(&Node::root(&json, &faults), &["vlan", "rx_name"]);
    faults.finish(tagged).map_err(|error| error.errors.join("; "))
}

fn row(vlan: u128, port: &str, frames: u64) -> TaggedFigures {
    TaggedFigures {
        tags: vec![
            ("vlan".to_owned(), TagValue::Bits(vlan)),
            ("rx_name".to_owned(), TagValue::Text(port.to_owned())),
        ],
        tx: None,
        rx: Traffic { frames, bytes: 64 * frames, frame_rate: 2.0, byte_rate: 128.0 },
        loss_percent: None,
        timestamps_ns: None,
    }
}

/// The frames of the rows that a request is answered with.
fn answered(json: Value) -> Vec<String> {
    let rows = [row(0x65, "p", 3), row(0x66, "p", 4), row(0x65, "q", 5), row(0x67, "q", 0)];
    let answer = asked(json).unwrap().rows(&rows);
    let frames = |row: &Value| row["frames_rx"].as_str().unwrap().to_owned();
    answer.as_array().unwrap().iter().map(frames).collect()
}

#[test]
fn filters_choose_rows() {
    let filter = |name: &str, values: Value| json!({ "name": name, "values": values });
    assert_eq!(answered(json!({})), ["3", "4", "5"]);
    assert_eq!(answered(json!({"include_empty_metrics": true})), ["3", "4", "5", "0"]);
    assert_eq!(answered(json!({"include": false})), [""; 0]);
    assert_eq!(answered(json!({"filters": [{"name": "vlan"}]})), ["3", "4", "5"]);
    for hex in ["65", "0x65", "0X0065"] {
        assert_eq!(answered(json!({"filters": [filter("vlan", json!([hex]))]})), ["3", "5"]);
    }
    let both =
        json!({"filters": [filter("vlan", json!(["65", "66"])), filter("rx_name", json!(["p"]))]});
    assert_eq!(answered(both), ["3", "4"]);
    for other in ["7", "+65", "", "x"] {
        assert_eq!(
            answered(json!({"filters": [filter("vlan", json!([other]))]})),
            [""; 0],
            "{other:?}"
        );
    }
}

#[test]
fn a_row_has_its_tags_and_the_columns_that_are_wanted() {
    let columns = json!({"metric_names": ["bytes_rx", "rx_rate_bps"]});
    let with_times = TaggedFigures { timestamps_ns: Some((1.0, 2.0)), ..row(0x65, "p", 3) };
    let answer = asked(columns).unwrap().rows(&[with_times]);
    let wanted = json!([{
        "tags": [
            {"name": "vlan", "value": {"choice": "hex", "hex": "65"}},
            {"name": "rx_name", "value": {"choice": "str", "str": "p"}},
        ],
        "bytes_rx": "192",
        "rx_rate_bps": 1024.0,
        "timestamps": {"first_timestamp_ns": 1.0, "last_timestamp_ns": 2.0},
    }]);
    assert_eq!(answer, wanted);
}

#[test]
fn what_was_sent_has_columns_where_it_is_known() {
    let tx = Traffic { frames: 4, ..Traffic::default() };
    let lost = TaggedFigures { tx: Some(tx), loss_percent: Some(100.0), ..row(0x65, "p", 0) };
    let columns = json!({"metric_names": ["frames_tx", "frames_rx"]});
    let answer = asked(columns).unwrap().rows(&[lost, row(0x66, "p", 1)]);
    let figures =
        |row: &Value| (row["frames_tx"].clone(), row["frames_rx"].clone(), row["loss"].clone());
    assert_eq!(figures(&answer[0]), (json!("4"), json!("0"), json!(100.0)), "not empty");
    assert_eq!(figures(&answer[1]), (Value::Null, json!("1"), Value::Null));
}

#[test]
fn unknown_tags_and_columns_are_refused_by_name() {
    for (json, wanted) in [
        (
            json!({"filters": [{"name": "x"}]}),
            "filters[0].name: no flow that is asked about has a metric tag named \"x\"",
        ),
        (json!({"filters": [{"values": []}]}), "filters[0].name: is missing"),
        (
            json!({"filters": [{"name": "vlan", "values": [7]}]}),
            "filters[0].values[0]: must be a string",
        ),
        (json!({"metric_names": ["transmit"]}), "metric_names[0]: \"transmit\" is not supported"),
        (json!({"include": 1}), "include: must be true or false"),
    ] {
        let error = asked(json).unwrap_err();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
}
