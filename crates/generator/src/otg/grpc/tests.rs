// SPDX-License-Identifier: BSD-3-Clause
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn method(name: &str) -> Method {
    Method::named(name).unwrap()
}

/// A message of this kind, from its JSON.
fn bytes(kind: &str, json: serde_json::Value) -> Bytes {
    let pool = SERVICE.as_ref().unwrap().parent_pool();
    let kind = pool.get_message_by_name(kind).unwrap();
    DynamicMessage::deserialize(kind, json).unwrap().encode_to_vec().into()
}

fn parsed(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap()
}

#[test]
fn a_request_is_the_json_of_http() {
    let config = json!({
        "ports": [{ "name": "p1", "location": "ring:r" }],
        "flows": [{
            "name": "f",
            "rate": { "choice": "pps", "pps": "5000000000" },
            "metrics": { "enable": false },
            "size": { "choice": "fixed", "fixed": 0 },
        }],
    });
    let mut wanted = config.clone();
    // Numbers of 64 bits need no text.
    wanted["flows"][0]["rate"]["pps"] = json!(5_000_000_000_u64);
    let request = bytes("otg.SetConfigRequest", json!({ "config": config }));
    let text = method("SetConfig").json(&[request]).unwrap();
    assert_eq!(parsed(&text), wanted);
    // The same in pieces.
    let whole = bytes("otg.Config", config);
    let pieces: Vec<Bytes> = whole
        .chunks(7)
        .map(|piece| {
            let data = SERVICE.as_ref().unwrap().parent_pool().get_message_by_name("otg.Data");
            let mut data = DynamicMessage::new(data.unwrap());
            data.set_field_by_name("datum", Value::Bytes(Bytes::copy_from_slice(piece)));
            data.encode_to_vec().into()
        })
        .collect();
    assert_eq!(parsed(&method("streamSetConfig").json(&pieces).unwrap()), wanted);
    assert_eq!(method("GetConfig").json(&[Bytes::new()]).unwrap(), Bytes::new());
    // As without a configuration in JSON, where a fault says what is missing.
    assert_eq!(parsed(&method("SetConfig").json(&[Bytes::new()]).unwrap()), json!({}));
}

#[test]
fn an_answer_is_a_message() {
    let answer = || Answer::Json(json!({ "warnings": ["w"], "not of the model": 1 }));
    let sent = method("SetConfig").messages(answer()).unwrap();
    let wanted = bytes("otg.SetConfigResponse", json!({ "warning": { "warnings": ["w"] } }));
    assert_eq!(sent, [wanted]);
    let text = Answer::Text(r#"{"flows":[{"name":"f"}]}"#.into());
    let wanted =
        bytes("otg.GetConfigResponse", json!({ "config": { "flows": [{ "name": "f" }] } }));
    assert_eq!(method("GetConfig").messages(text).unwrap(), [wanted]);
    // In pieces, at least one.
    let long = "x".repeat(5 * PIECE / 2);
    let answer = Answer::Json(json!({ "flows": [{ "name": long }] }));
    let sent = method("streamGetConfig").messages(answer).unwrap();
    let kind = method("streamGetConfig").itself.output();
    let read: Vec<Bytes> =
        sent.iter().map(|each| piece(&decode(kind.clone(), each).unwrap()).unwrap()).collect();
    assert_eq!(read.iter().map(Bytes::len).filter(|len| *len == PIECE).count(), 2);
    assert_eq!(read.concat(), bytes("otg.Config", json!({ "flows": [{ "name": long }] })));
    assert_eq!(method("streamGetConfig").messages(Answer::Json(json!({}))).unwrap().len(), 1);
}

#[test]
fn what_is_wrong_is_said() {
    for (name, messages, status, said) in [
        ("SetConfig", vec![Bytes::from_static(b"\xff")], 400, "not a message otg.SetConfigRequest"),
        ("SetConfig", vec![], 400, "one message"),
        ("SetConfig", vec![Bytes::new(), Bytes::new()], 400, "one message"),
        // Field 500 of the configuration, a number.
        (
            "SetConfig",
            vec![Bytes::from_static(b"\x0a\x03\xa0\x1f\x01")],
            400,
            "field 500 of Config: not known; the model is that of release 1.62.0",
        ),
        // A flow's.
        (
            "SetConfig",
            vec![Bytes::from_static(b"\x0a\x05\x32\x03\xa0\x1f\x01")],
            400,
            "field 500 of Flow: not known",
        ),
        ("streamSetConfig", vec![Bytes::from_static(b"\x12\x01\xff")], 400, "otg.Config"),
    ] {
        let error = method(name).json(&messages).unwrap_err();
        assert_eq!(error.status, status, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    for name in ["AddConfig", "streamGetVersion", "streamAppendConfig", "", "Openapi"] {
        let error = Method::named(name).err().unwrap();
        assert_eq!((error.status, error.errors), (404, vec![format!("{name}: not supported")]));
    }
}

#[test]
fn a_small_message_with_large_json_is_refused() {
    // Millions of values of an enumeration, one byte each.
    const VALUES: usize = 3_500_000;
    let mut list = vec![0x0a];
    prost_reflect::prost::encoding::encode_varint(VALUES as u64, &mut list);
    list.resize(list.len() + VALUES, 1);
    let mut metrics = Vec::new();
    // metric_names of a request for metrics of flows.
    let pool = SERVICE.as_ref().unwrap().parent_pool();
    let flow = pool.get_message_by_name("otg.FlowMetricsRequest").unwrap();
    let names = flow.get_field_by_name("metric_names").unwrap();
    assert!(names.kind().as_enum().is_some() && names.is_list());
    list[0] = u8::try_from(names.number() << 3 | 2).unwrap();
    let port = pool.get_message_by_name("otg.MetricsRequest").unwrap();
    let number = port.get_field_by_name("flow").unwrap().number();
    for number in [number, 1] {
        metrics = vec![u8::try_from(number << 3 | 2).unwrap()];
        prost_reflect::prost::encoding::encode_varint(list.len() as u64, &mut metrics);
        metrics.extend_from_slice(&list);
        list = metrics.clone();
    }
    let error = method("GetMetrics").json(&[metrics.into()]).unwrap_err();
    assert_eq!(error.status, 413, "{error}");
}

#[test]
fn faults_fit_into_a_header() {
    let short = status(&ApiError::request(400, "flows[0].name: missing"));
    assert_eq!(short.code(), Code::InvalidArgument);
    assert_eq!(
        parsed(short.message().as_bytes()),
        json!({ "code": 3, "kind": "validation", "errors": ["flows[0].name: missing"] })
    );
    let many = status(&ApiError::invalid(vec!["\"%".repeat(300); 50]));
    let headers = many.clone().into_http::<Body>();
    let len: usize = headers.headers().values().map(|value| value.len()).sum();
    assert!(len < 8 << 10, "{len}");
    let shown = parsed(many.message().as_bytes());
    let last = shown["errors"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(last.starts_with("and 47 more"), "{last}");
    for (http, code) in [
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (408, Code::DeadlineExceeded),
        (409, Code::InvalidArgument),
        (413, Code::ResourceExhausted),
        (500, Code::Internal),
        (503, Code::Unavailable),
    ] {
        assert_eq!(status(&ApiError::request(http, "x")).code(), code);
    }
}

proptest! {
    /// Whatever comes, there is an answer.
    #[test]
    fn no_bytes_break_it(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        name in prop::sample::select(vec![
            "SetConfig", "streamSetConfig", "UpdateConfig", "SetControlState", "GetMetrics", "GetCapture",
        ]),
    ) {
        let _ = method(name).json(&[bytes.into()]);
    }
}
