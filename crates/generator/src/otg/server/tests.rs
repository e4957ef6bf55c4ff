// SPDX-License-Identifier: BSD-3-Clause
//! Requests over a socket, as clients send them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::*;
use crate::otg::auth::Credentials;
use crate::otg::connections;
use crate::otg::places::Places;
use crate::otg::sending::Sending;

/// Serves while `client` runs; every call is answered with its own name, and a capture with bytes.
fn with_server<T: Send>(access: Access, client: impl FnOnce(SocketAddr) -> T + Send) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::scope(|scope| {
        let (done, ended) = oneshot::channel::<()>();
        let client = scope.spawn(move || {
            // However it ends, the server ends too.
            let _done = done;
            client(address)
        });
        runtime.block_on(async {
            let (calls, mut received) = mpsc::channel::<Message>(1);
            // Room for one file at a time.
            let sending = Sending::new(1 << 10);
            let control = async {
                while let Some(Message { call, answer, .. }) = received.recv().await {
                    let json = |name: &str| Ok(Answer::Json(json!({ "call": name })));
                    let _ = answer.send(match call {
                        Call::SetConfig(_) => json("set"),
                        Call::UpdateConfig(_) => json("update"),
                        Call::EditConfig(Edit::Append, _) => json("append"),
                        Call::EditConfig(Edit::Delete, _) => json("delete"),
                        Call::GetConfig => json("get"),
                        Call::SetState(_) => Err(ApiError::internal("broken")),
                        Call::Metrics(_) => json("metrics"),
                        Call::States(_) => json("states"),
                        Call::Capture(_) => {
                            sending.room(4).map(|room| Answer::File(room.file(vec![0xd4, 0xc3, 0xb2, 0xa1])))
                        }
                        Call::Load(_) => Err(ApiError::internal("no request loads a plan")),
                    });
                }
            };
            tokio::select! {
                served = connections::serve_tcp(listener, None, None, Places::default(), router(calls, access)) => served.unwrap(),
                () = control => {}
                _ = ended => {}
            }
        });
        client.join().unwrap()
    })
}

/// Status, headers and body of the answer to one request.
fn send(address: SocketAddr, request: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

fn request(address: SocketAddr, line: &str, more: &str, body: &str) -> (u16, String, Vec<u8>) {
    let len = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}Content-Length: {len}\r\n\r\n"
    );
    send(address, &(head + body))
}

fn value(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn every_route_has_its_call_and_every_error_its_shape() {
    with_server(Access::Loopback, |address| {
        for (line, wanted) in [
            ("GET /config", "get"),
            ("POST /config", "set"),
            ("PATCH /config", "update"),
            ("PATCH /config/append", "append"),
            ("PATCH /config/delete", "delete"),
            ("POST /monitor/metrics", "metrics"),
            ("POST /monitor/states", "states"),
        ] {
            let (status, head, body) = request(address, line, "", "{}");
            assert_eq!((status, value(&body)), (200, json!({ "call": wanted })), "{line}");
            assert!(head.contains("content-type: application/json"), "{head}");
        }
        let (status, head, body) = request(address, "POST /monitor/capture", "", "{}");
        assert_eq!((status, body), (200, vec![0xd4, 0xc3, 0xb2, 0xa1]));
        assert!(head.contains("content-type: application/octet-stream"), "{head}");
        // The first one has gone, and makes room.
        let (status, ..) = request(address, "POST /monitor/capture", "", "{}");
        assert_eq!(status, 200);
        let (_, _, body) = request(address, "GET /capabilities/version", "", "");
        assert_eq!(value(&body)["api_spec_version"], API_VERSIONS);
        assert_eq!(value(&body)["sdk_version"], API_VERSION);
        for (line, body, status, kind, wanted) in [
            ("POST /config", "[]", 400, "validation", "the body must be a JSON object"),
            ("POST /config", "{\"a\":1,\"a\":1}", 400, "validation", "given twice"),
            ("POST /config", &"{\"a\":".repeat(200), 400, "validation", "recursion limit"),
            ("POST /config", "{\"a\":1e999}", 400, "validation", "number out of range"),
            ("POST /control/state", "{}", 500, "internal", "broken"),
            (
                "POST /control/action",
                "{\"choice\":\"port\",\"port\":{\"choice\":\"reboot\"}}",
                400,
                "validation",
                "port.reboot: not supported",
            ),
            ("POST /control/action", "x", 400, "validation", "not valid JSON"),
            ("DELETE /config", "", 405, "validation", "DELETE /config: not supported"),
            ("POST /config/append", "{}", 405, "validation", "POST /config/append: not"),
            ("PATCH /config/other", "{}", 404, "validation", "PATCH /config/other: not"),
            ("GET /", "", 404, "validation", "GET /: not supported"),
        ] {
            let (found, _, answer) = request(address, line, "", body);
            let answer = value(&answer);
            assert_eq!((found, &answer["code"]), (status, &json!(status)), "{line}");
            assert_eq!(answer["kind"], kind);
            assert!(answer["errors"][0].as_str().unwrap().contains(wanted), "{wanted}: {answer}");
        }
    });
}

#[test]
fn a_body_that_is_too_large_is_refused() {
    with_server(Access::Loopback, |address| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_BODY));
        let (status, _, answer) = request(address, "POST /config", "", &body);
        assert_eq!((status, &value(&answer)["code"]), (413, &json!(413)));
    });
}

#[test]
fn a_password_is_asked_for_and_taken() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"open sesame").unwrap();
    let access = Access::Password(Credentials::read("Aladdin", file.path()).unwrap());
    with_server(access, |address| {
        for line in ["GET /config", "GET /capabilities/version", "GET /nowhere", "PUT /config"] {
            let (status, head, body) = request(address, line, "", "");
            assert_eq!((status, &value(&body)["code"]), (401, &json!(401)), "{line}");
            assert!(head.contains("www-authenticate: basic realm=\"generator\""), "{head}");
        }
        let right = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        assert_eq!(request(address, "GET /config", right, "").0, 200);
        let origin = format!("{right}Origin: https://{address}\r\n");
        assert_eq!(request(address, "GET /config", &origin, "").0, 403);
    });
}
