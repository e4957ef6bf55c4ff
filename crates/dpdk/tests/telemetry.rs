// SPDX-License-Identifier: BSD-3-Clause
//! An answer on the telemetry socket is complete or `null`, never a part of it. A closure answers.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use dpdk::telemetry::{Value, room};
use dpdk::vdev::Vhost;
use dpdk::{Eal, Mempool, PoolConfig, PortConfig, RxConfig, TxConfig};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use serde_json::{Value as Json, json};

const COMMAND: &str = "/linerate/test";

/// A list of dictionaries, as most of our answers are, of this many bytes; and its JSON.
fn answer(bytes: usize) -> (Value, Json) {
    let (mut values, mut texts) = (Vec::new(), Vec::new());
    let mut left = bytes - "[]".len();
    while left > 0 {
        // The last one fills it up; no text may be longer than 127 bytes.
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
        // If an answer never comes, the test fails.
        set_socket_timeout(&made, Timeout::Recv, Some(Duration::from_secs(20))).unwrap();
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
        self.ask_of(COMMAND, parameters)
    }

    fn ask_of(&self, command: &str, parameters: usize) -> Json {
        send(&self.0, format!("{command},{parameters}").as_bytes(), SendFlags::empty()).unwrap();
        self.read()[command].take()
    }
}

#[test]
fn telemetry_is_answered_by_closures() {
    let eal = support::eal(&[]);
    an_answer_is_whole_or_null(&eal);
    a_refused_answer_leaves_nothing_behind(&eal);
    a_handler_that_is_replaced_may_use_telemetry(&eal);
    statistics_wait_for_queues_only_where_they_may_come(&eal);
}

fn an_answer_is_whole_or_null(eal: &Eal) {
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

fn good() -> Value {
    Value::dict([("good", Value::Numbers(vec![2]))])
}

/// Values that DPDK cannot represent, each after a dictionary that it has accepted.
fn refused() -> Vec<Value> {
    let dict = |name: &str, value: Value| Value::Dict(vec![(name.to_owned(), value)]);
    let bad = [
        dict("a name", Value::U64(1)),
        dict("nul\0", Value::U64(1)),
        dict(&"n".repeat(128), Value::U64(1)),
        dict("nul", "a\0b".into()),
        dict("long", "x".repeat(128).as_str().into()),
        dict("deep", dict("list", Value::List(vec![dict("a name", Value::U64(1))]))),
        Value::U64(1),
        Value::Numbers(vec![0; 513]),
        Value::Text("nul\0".to_owned()),
        Value::Dict((0..257).map(|n| (format!("n{n}"), Value::U64(n))).collect()),
    ];
    let lists = bad.iter().map(|bad| Value::List(vec![good(), bad.clone()]));
    let dicts = bad.iter().filter(|bad| !matches!(bad, Value::U64(_)));
    let dicts = dicts.map(|bad| Value::dict([("good", good()), ("bad", bad.clone())]));
    let alone = ["x".repeat(8192), "nul\0".to_owned()].map(Value::String);
    lists.chain(dicts).chain(alone).collect()
}

fn a_refused_answer_leaves_nothing_behind(eal: &Eal) {
    let count = refused().len();
    let taken = [Value::List(vec![good(), good()]), Value::dict([("a", good()), ("b", good())])];
    let values: Vec<_> = refused().into_iter().chain(taken).collect();
    let reply = move |index: &str| values.get(index.parse::<usize>().ok()?).cloned();
    eal.telemetry().register(COMMAND, "", reply).unwrap();
    let client = Client::new();
    assert_eq!(client.ask(count), json!([{"good": [2]}, {"good": [2]}]));
    assert_eq!(client.ask(count + 1), json!({"a": {"good": [2]}, "b": {"good": [2]}}));
    for index in 0..count {
        let answer = client.ask(index).to_string();
        assert_eq!(answer.get(..100).unwrap_or(&answer), "null", "value {index}");
    }
    // A DPDK list or dictionary takes more than 64 KiB.
    let before = pages();
    for index in 0..count * 50 {
        assert_eq!(client.ask(index % count), Json::Null);
    }
    let more = pages().saturating_sub(before) * 4096;
    assert!(more < count * 50 * (64 << 10) / 4, "{more} bytes more");
}

/// Bytes of the process's memory.
fn pages() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn a_handler_that_is_replaced_may_use_telemetry(eal: &Eal) {
    const OTHER: &str = "/linerate/other";
    /// Asks a question when it is dropped, which another thread answers.
    struct Asks(Client, mpsc::Sender<Json>);
    impl Drop for Asks {
        fn drop(&mut self) {
            let _ = self.1.send(self.0.ask_of(OTHER, 1));
        }
    }
    let telemetry = eal.telemetry();
    telemetry.register(OTHER, "", |_| Some("other".into())).unwrap();
    let (told, tells) = mpsc::channel();
    let asks = Asks(Client::new(), told);
    let first = move |_: &str| {
        let _whole = &asks;
        None
    };
    telemetry.register(COMMAND, "", first).unwrap();
    telemetry.register(COMMAND, "", |_| None).unwrap();
    assert_eq!(tells.try_recv().unwrap(), "other");
}

/// net_vhost's statistics are not read before it has queues. Each question waited for 3 s if a
/// program had not configured the port.
fn statistics_wait_for_queues_only_where_they_may_come(eal: &Eal) {
    const STATS: &str = "/ethdev/stats";
    const BEGINNING: Duration = Duration::from_secs(5);
    let directory = tempfile::tempdir().unwrap();
    let attach = |name: &str| {
        let device = Vhost::new(name, directory.path().join(name));
        eal.take_port(eal.attach_vdev(&device).unwrap()).unwrap()
    };
    let ask = |port: usize| {
        let begin = Instant::now();
        (Client::new().ask_of(STATS, port), begin.elapsed())
    };
    let left_alone = attach("net_vhost0");
    std::thread::sleep(BEGINNING + Duration::from_millis(200));
    let (answer, took) = ask(usize::from(left_alone.id().index()));
    assert_eq!(answer, Json::Null);
    assert!(took < Duration::from_secs(1), "{took:?}");

    let pool = Mempool::packet_pool(eal, &PoolConfig::named("packets")).unwrap();
    let config = PortConfig {
        rx: vec![RxConfig::new(&pool)],
        tx: vec![TxConfig::default()],
        ..PortConfig::default()
    };
    let beginning = attach("net_vhost1");
    let number = usize::from(beginning.id().index());
    let configured = std::thread::scope(|scope| {
        let asks = scope.spawn(|| ask(number));
        std::thread::sleep(Duration::from_millis(300));
        let configured = beginning.configure(&config).unwrap();
        let (answer, took) = asks.join().unwrap();
        assert_eq!(answer["ipackets"], 0, "{answer} after {took:?}");
        configured
    });
    for port in [configured.unconfigure(), left_alone] {
        eal.detach(port).unwrap();
    }
}
