// SPDX-License-Identifier: BSD-3-Clause
//! An answer on the telemetry socket is whole, or `null`; never a part of what was to be said.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use dpdk::telemetry::{Value, room};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use serde_json::{Value as Json, json};

const COMMAND: &str = "/linerate/test";

/// A list of dictionaries, as most of our answers are, of so many bytes, and as JSON.
fn answer(bytes: usize) -> (Value, Json) {
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    let mut left = bytes - "[]".len();
    while left > 0 {
        // The last one fills it up; no text may be longer than 127.
        let entry = if left > 120 { 60 } else { left };
        let comma = usize::from(left > entry);
        let text = "x".repeat(entry - comma - r#"{"t":[""]}"#.len());
        texts.push(json!({"t": [text]}));
        values.push(Value::dict([("t", Value::Text(text))]));
        left -= entry;
    }
    (Value::List(values), Json::Array(texts))
}

struct Client(OwnedFd);

impl Client {
    fn new() -> Self {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let end = format!("/linerate-test-{}/dpdk_telemetry.v2", std::process::id());
        let path = sockets.split_whitespace().find(|word| word.ends_with(&end)).unwrap();
        let flags = SocketFlags::CLOEXEC;
        let made = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        connect(&made, &SocketAddrUnix::new(path).unwrap()).unwrap();
        let client = Self(made);
        assert_eq!(client.read()["max_output_len"], 16 * 1024);
        client
    }

    fn read(&self) -> Json {
        let mut bytes = vec![0; 20_000];
        let (length, _) = recv(&self.0, &mut bytes[..], RecvFlags::empty()).unwrap();
        serde_json::from_slice(&bytes[..length]).unwrap()
    }

    fn ask(&self, parameters: usize) -> Json {
        send(&self.0, format!("{COMMAND},{parameters}").as_bytes(), SendFlags::empty()).unwrap();
        self.read()[COMMAND].take()
    }
}

#[test]
fn an_answer_is_whole_or_null() {
    let eal = support::eal(&[]);
    let reply = |bytes: &str| Some(answer(bytes.parse().ok()?).0);
    eal.telemetry().register(COMMAND, "", reply).unwrap();
    let client = Client::new();
    let most = room(COMMAND);
    for bytes in [most / 2, most - 1, most] {
        let (value, json) = answer(bytes);
        assert_eq!(value.size(), bytes);
        assert_eq!(client.ask(bytes), json, "{bytes}");
    }
    for bytes in [most + 1, most * 2] {
        assert_eq!(client.ask(bytes), Json::Null, "{bytes}");
    }
}
