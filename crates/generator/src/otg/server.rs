// SPDX-License-Identifier: BSD-3-Clause
//! The HTTP side: every request becomes a message to the control plane, and its answer JSON.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::{API_VERSION, ApiError, MAX_BODY, json as strict};

/// Longest time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of a body that is too large which are read all the same.
const MAX_DROPPED: usize = 16 * MAX_BODY;

/// What a client wants.
#[derive(Debug)]
pub enum Call {
    /// POST /config.
    SetConfig(Value),
    /// GET /config.
    GetConfig,
    /// POST /control/state.
    SetState(Value),
    /// POST /monitor/metrics.
    Metrics(Value),
}

/// A call and the place for its answer.
#[derive(Debug)]
pub struct Message {
    /// What is wanted.
    pub call: Call,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Value, ApiError>>,
}

/// The routes of the API; calls go to `control`.
pub fn router(control: mpsc::Sender<Message>) -> Router {
    Router::new()
        .route("/config", post(set_config).get(get_config).fallback(unsupported_method))
        .route("/control/state", post(set_state).fallback(unsupported_method))
        .route("/monitor/metrics", post(metrics).fallback(unsupported_method))
        .route("/capabilities/version", get(version).fallback(unsupported_method))
        .fallback(unknown_path)
        .layer(middleware::from_fn(from_this_machine))
        .with_state(control)
}

/// Refuses what a web page makes a browser send: the API asks for no password, and a browser on this
/// machine reaches it.
async fn from_this_machine(request: Request, next: Next) -> Response {
    match check_origin(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => respond(Err(error)),
    }
}

fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key(header::ORIGIN) {
        return Err(ApiError::request(403, "Origin: requests of web pages are refused"));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_loopback(host) => Ok(()),
        _ => Err(ApiError::request(
            403,
            "Host: must be a loopback address or localhost, such as 127.0.0.1:8080",
        )),
    }
}

fn is_loopback(host: &HeaderValue) -> bool {
    let Ok(text) = host.to_str() else { return false };
    let host = match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => text,
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

async fn set_config(State(control): State<mpsc::Sender<Message>>, request: Request) -> Response {
    with_body(control, request, Call::SetConfig).await
}

async fn set_state(State(control): State<mpsc::Sender<Message>>, request: Request) -> Response {
    with_body(control, request, Call::SetState).await
}

async fn metrics(State(control): State<mpsc::Sender<Message>>, request: Request) -> Response {
    with_body(control, request, Call::Metrics).await
}

async fn get_config(State(control): State<mpsc::Sender<Message>>) -> Response {
    respond(ask(&control, Call::GetConfig).await)
}

async fn version() -> Response {
    respond(Ok(json!({
        "api_spec_version": API_VERSION,
        "sdk_version": API_VERSION,
        "app_version": env!("CARGO_PKG_VERSION"),
    })))
}

async fn unknown_path(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    respond(Err(ApiError::request(404, format!("{} {path}: not supported", request.method()))))
}

async fn unsupported_method(request: Request) -> Response {
    respond(Err(ApiError::request(
        405,
        format!("{} {}: not supported", request.method(), request.uri().path()),
    )))
}

async fn with_body(
    control: mpsc::Sender<Message>,
    request: Request,
    call: fn(Value) -> Call,
) -> Response {
    let answer = match body(request.into_body()).await {
        Ok(body) => ask(&control, call(body)).await,
        Err(error) => Err(error),
    };
    respond(answer)
}

async fn body(body: Body) -> Result<Value, ApiError> {
    let too_slow = || format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
    match tokio::time::timeout(BODY_TIMEOUT, read(body)).await {
        Ok(bytes) => strict::parse(&bytes?),
        Err(_) => Err(ApiError::request(408, too_slow())),
    }
}

/// Reads a body. Of one that is too large the rest is read and dropped, within bounds, because a
/// client that is still sending does not see its answer.
async fn read(mut body: Body) -> Result<Vec<u8>, ApiError> {
    let (mut bytes, mut seen) = (Vec::new(), 0);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame
            .map_err(|error| ApiError::request(400, format!("the body is cut short: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen <= MAX_BODY {
            bytes.extend_from_slice(&data);
        } else if seen > MAX_DROPPED {
            break;
        }
    }
    match seen <= MAX_BODY {
        true => Ok(bytes),
        false => Err(ApiError::request(413, format!("the body is larger than {MAX_BODY} bytes"))),
    }
}

async fn ask(control: &mpsc::Sender<Message>, call: Call) -> Result<Value, ApiError> {
    let gone = || ApiError::request(503, "the generator is ending");
    let (answer, reply) = oneshot::channel();
    control.send(Message { call, answer }).await.map_err(|_| gone())?;
    reply.await.map_err(|_| gone())?
}

fn respond(answer: Result<Value, ApiError>) -> Response {
    let (status, value) = match answer {
        Ok(value) => (StatusCode::OK, value),
        Err(error) => (
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error.to_json(),
        ),
    };
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_this_machine_that_no_page_makes_are_served() {
        let check = |fields: &[(header::HeaderName, &'static str)]| {
            let fields = fields.iter().map(|(name, value)| (name.clone(), *value));
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(name, HeaderValue::from_static(value));
            }
            check_origin(&headers).map_err(|error| error.status)
        };
        for host in [
            "127.0.0.1:80",
            "127.0.0.1",
            "127.9.9.9:1",
            "localhost",
            "LocalHost:80",
            "[::1]:80",
            "[::1]",
        ] {
            assert_eq!(check(&[(header::HOST, host)]), Ok(()), "{host}");
            assert_eq!(
                check(&[(header::HOST, host), (header::ORIGIN, "http://127.0.0.1")]),
                Err(403)
            );
            assert_eq!(check(&[(header::HOST, host), (header::ORIGIN, "null")]), Err(403));
            assert_eq!(check(&[(header::HOST, host), (header::HOST, host)]), Err(403));
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example@127.0.0.1",
            "10.0.0.1:80",
            "0.0.0.0:80",
            "[::2]:80",
            "127.0.0.1:80,evil.example",
            "127.0.0.1:80:80",
            "127.0.0.1:x",
            "[::1",
        ] {
            assert_eq!(check(&[(header::HOST, host)]), Err(403), "{host}");
        }
        assert_eq!(check(&[]), Err(403));
    }
}
