// SPDX-License-Identifier: BSD-3-Clause
//! The HTTP side: every request becomes a message to the control plane, and its answer JSON.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
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
        .with_state(control)
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
