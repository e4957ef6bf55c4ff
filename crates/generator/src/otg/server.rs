// SPDX-License-Identifier: BSD-3-Clause
//! The HTTP side: every request becomes a message to the control plane, and its answer JSON.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{self, Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::auth::Access;
use super::places::{MAX_BODIES, Seat};
use super::sending::File;
use super::{
    API_VERSION, API_VERSIONS, ApiError, LARGE_BODY, MAX_BODY, json as strict, unsupported,
};
use crate::engine::Mode;
use crate::plan::{MAX_FLOWS, Plan};

/// Longest time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest body of a request that is no configuration: the names of all flows take less.
const MAX_REQUEST: usize = 1 << 20;

/// Bytes of a body that is too large which are read all the same.
const MAX_DROPPED: usize = 8 * MAX_BODY;

/// What a client wants.
#[derive(Debug)]
pub enum Call {
    /// POST /config.
    SetConfig(Value),
    /// PATCH /config.
    UpdateConfig(Value),
    /// GET /config.
    GetConfig,
    /// POST /control/state.
    SetState(Value),
    /// POST /monitor/metrics.
    Metrics(Value),
    /// POST /monitor/capture.
    Capture(Value),
    /// A plan that was read already. No request is this: the program's own command makes it.
    Load(Box<Ready>),
}

impl Call {
    /// Whether frames are to be sent from now on.
    pub fn is_start(&self) -> bool {
        let Call::SetState(value) = self else { return false };
        let state = value.pointer("/traffic/flow_transmit/state").and_then(Value::as_str);
        matches!(state, Some("start" | "resume"))
    }
}

/// A plan to be put in force.
#[derive(Debug)]
pub struct Ready {
    /// The plan.
    pub plan: Plan,
    /// What is given back as the configuration.
    pub config: Value,
    /// How frames leave from now on.
    pub mode: Mode,
}

/// What comes of a call.
#[derive(Debug)]
pub enum Answer {
    /// An object of OTG's model.
    Json(Value),
    /// The text of one.
    Text(Bytes),
    /// A file.
    File(File),
}

/// A call and the place for its answer.
#[derive(Debug)]
pub struct Message {
    /// What is wanted.
    pub call: Call,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Answer, ApiError>>,
    /// Held as long as a large call is there, whether its client still waits or not.
    pub alone: Option<OwnedSemaphorePermit>,
}

/// What the routes share.
#[derive(Clone)]
struct Api {
    control: mpsc::Sender<Message>,
    large: Arc<Semaphore>,
}

/// The routes of the API for those who have access; calls go to `control`. Every connection's requests carry
/// its [`Seat`].
pub fn router(control: mpsc::Sender<Message>, access: Access) -> Router {
    let config = post(set_config).patch(update_config).get(get_config);
    Router::new()
        .route("/config", config.fallback(unsupported_method))
        .route("/control/state", post(set_state).fallback(unsupported_method))
        .route("/control/action", post(action).fallback(unsupported_method))
        .route("/monitor/metrics", post(metrics).fallback(unsupported_method))
        .route("/monitor/states", post(states).fallback(unsupported_method))
        .route("/monitor/capture", post(capture).fallback(unsupported_method))
        .route("/capabilities/version", get(version).fallback(unsupported_method))
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(Arc::new(access), guard))
        .with_state(Api { control, large: Arc::new(Semaphore::new(1)) })
}

/// Lets a request in that may come and has come wholly.
async fn guard(
    State(access): State<Arc<Access>>,
    Extension(seat): Extension<Seat>,
    request: Request,
    next: Next,
) -> Response {
    seat.begins();
    if !seat.is_trusted() && access.is_guess(request.headers()) {
        seat.guess_turn().await;
    }
    match access.check(request.headers(), seat.peer()) {
        Ok(true) => seat.trust(),
        Ok(false) => {}
        Err(refusal) => {
            if access.is_guess(request.headers()) {
                seat.guessed_wrong();
            }
            let mut response = respond(Err(refusal.error));
            if let Some(challenge) = refusal.challenge {
                let headers = response.headers_mut();
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
            }
            return response;
        }
    }
    let (parts, body) = request.into_parts();
    let too_slow = || format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
    let body = match tokio::time::timeout(BODY_TIMEOUT, read(body, &seat)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return respond(Err(error)),
        Err(_) => return respond(Err(ApiError::request(408, too_slow()))),
    };
    let _served = seat.serve();
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn set_config(State(api): State<Api>, request: Request) -> Response {
    respond(answer(api, request, MAX_BODY, Call::SetConfig).await)
}

async fn update_config(State(api): State<Api>, request: Request) -> Response {
    respond(answer(api, request, MAX_BODY, Call::UpdateConfig).await)
}

async fn set_state(State(api): State<Api>, request: Request) -> Response {
    respond(answer(api, request, MAX_REQUEST, Call::SetState).await)
}

async fn metrics(State(api): State<Api>, request: Request) -> Response {
    respond(answer(api, request, MAX_REQUEST, Call::Metrics).await)
}

async fn capture(State(api): State<Api>, request: Request) -> Response {
    respond(answer(api, request, MAX_REQUEST, Call::Capture).await)
}

async fn action(State(api): State<Api>, request: Request) -> Response {
    respond(Err(match read_json(api, request, MAX_REQUEST).await {
        Ok((value, _)) => unsupported::action(&value),
        Err(error) => error,
    }))
}

async fn states(State(api): State<Api>, request: Request) -> Response {
    respond(Err(match read_json(api, request, MAX_REQUEST).await {
        Ok((value, _)) => unsupported::states(&value),
        Err(error) => error,
    }))
}

async fn get_config(State(api): State<Api>) -> Response {
    respond(ask(&api.control, Call::GetConfig, None).await)
}

async fn version() -> Response {
    respond(Ok(Answer::Json(json!({
        "api_spec_version": API_VERSIONS,
        "sdk_version": API_VERSION,
        "app_version": env!("CARGO_PKG_VERSION"),
    }))))
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

async fn answer(
    api: Api,
    request: Request,
    most: usize,
    call: fn(Value) -> Call,
) -> Result<Answer, ApiError> {
    let control = api.control.clone();
    let (value, alone) = read_json(api, request, most).await?;
    ask(&control, call(value), alone).await
}

/// Reads the body, of at most so many bytes, as JSON. A large one is read alone; what is returned beside it is to be held
/// as long as it is there.
async fn read_json(
    api: Api,
    request: Request,
    most: usize,
) -> Result<(Value, Option<OwnedSemaphorePermit>), ApiError> {
    let body = whole(request).await?;
    if body.len() > most {
        let what = format!("the body is larger than {most} bytes, the most for this request");
        return Err(ApiError::request(413, what));
    }
    if body.len() <= LARGE_BODY {
        return Ok((strict::parse(&body)?, None));
    }
    let alone = api.large.acquire_owned().await.ok();
    // The permit goes along, because the client may leave meanwhile.
    let reading = tokio::task::spawn_blocking(move || {
        let value = strict::parse(&body);
        drop(body);
        if value.is_err() {
            // The part that was read.
            dpdk::trim_heap();
        }
        value.map(|value| (value, alone))
    });
    reading
        .await
        .map_err(|error| ApiError::internal(format!("the body cannot be read: {error}")))?
}

/// The body, which the guard has read.
async fn whole(request: Request) -> Result<Bytes, ApiError> {
    let read = body::to_bytes(request.into_body(), MAX_BODY).await;
    read.map_err(|error| ApiError::request(400, format!("the body is cut short: {error}")))
}

/// Reads a body. Of one that is too large the rest is read and dropped, within bounds, because a
/// client that is still sending does not see its answer.
async fn read(mut body: Body, seat: &Seat) -> Result<Vec<u8>, ApiError> {
    // As long as it says that it is: a vector that grows has twice the room. What is not written takes no memory.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(MAX_BODY);
    let (mut bytes, mut seen) = (Vec::with_capacity(announced.min(MAX_BODY)), 0);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame
            .map_err(|error| ApiError::request(400, format!("the body is cut short: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen <= MAX_BODY {
            if !seat.holds(data.len()) {
                let most = MAX_BODIES >> 20;
                return Err(ApiError::request(
                    503,
                    format!(
                        "the bodies that other clients are sending have {most} MiB together; send this one again later"
                    ),
                ));
            }
            bytes.extend_from_slice(&data);
        } else if seen > MAX_DROPPED {
            break;
        }
    }
    match seen <= MAX_BODY {
        true => Ok(bytes),
        false => Err(ApiError::request(
            413,
            format!(
                "the body is larger than {MAX_BODY} bytes (at most {MAX_FLOWS} flows are supported)"
            ),
        )),
    }
}

async fn ask(
    control: &mpsc::Sender<Message>,
    call: Call,
    alone: Option<OwnedSemaphorePermit>,
) -> Result<Answer, ApiError> {
    let gone = || ApiError::request(503, "the generator is ending");
    let (answer, reply) = oneshot::channel();
    control.send(Message { call, answer, alone }).await.map_err(|_| gone())?;
    reply.await.map_err(|_| gone())?
}

fn respond(answer: Result<Answer, ApiError>) -> Response {
    let json = |value: Value| (Body::from(value.to_string()), "application/json");
    let (status, (body, kind)) = match answer {
        Ok(Answer::Json(value)) => (StatusCode::OK, json(value)),
        Ok(Answer::Text(text)) => (StatusCode::OK, (Body::from(text), "application/json")),
        Ok(Answer::File(file)) => {
            // The file itself goes along, so that it counts as long as it is there.
            let body = Body::from(Bytes::from_owner(file));
            (StatusCode::OK, (body, "application/octet-stream"))
        }
        Err(error) => (
            StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            json(error.to_json()),
        ),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests;
