// SPDX-License-Identifier: BSD-3-Clause
//! The HTTP side: every request becomes a message to the control plane, and its answer JSON.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{self, Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodFilter, on, post};
use axum::{Extension, Router};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::auth::Access;
use super::edit::Edit;
use super::places::{MAX_BODIES, Seat};
use super::sending::File;
use super::{
    API_VERSION, API_VERSIONS, ApiError, LARGE_BODY, MAX_BODY, grpc, json as strict, unsupported,
};
use crate::engine::Mode;
use crate::plan::{MAX_FLOWS, Plan};

/// Longest time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest body of a request that is no configuration: the names of all flows take less.
const MAX_REQUEST: usize = 2 << 20;

/// Requests for metrics that are answered at a time: figures of many flows take megabytes.
const METRICS_AT_A_TIME: usize = 4;

/// Bytes of a body that is too large which are read all the same.
const MAX_DROPPED: usize = 2 * MAX_BODY;

/// What a client wants.
#[derive(Debug)]
pub enum Call {
    /// POST /config.
    SetConfig(Value),
    /// PATCH /config.
    UpdateConfig(Value),
    /// PATCH /config/append or /config/delete.
    EditConfig(Edit, Value),
    /// GET /config.
    GetConfig,
    /// POST /control/state.
    SetState(Value),
    /// POST /monitor/metrics.
    Metrics(Value),
    /// POST /monitor/states.
    States(Value),
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
    /// Held as long as a large call is there, or metrics are collected, whether its client still waits or not.
    pub alone: Option<OwnedSemaphorePermit>,
}

/// What a client can ask for, by HTTP or gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    SetConfig,
    UpdateConfig,
    EditConfig(Edit),
    GetConfig,
    SetState,
    Action,
    Metrics,
    States,
    Capture,
    Version,
}

impl Operation {
    /// Most bytes of its body.
    fn most(self) -> usize {
        match self {
            Operation::SetConfig | Operation::UpdateConfig | Operation::EditConfig(_) => MAX_BODY,
            _ => MAX_REQUEST,
        }
    }
}

/// What the routes share.
#[derive(Clone)]
pub(super) struct Api {
    control: mpsc::Sender<Message>,
    large: Arc<Semaphore>,
    /// Answers with many rows are written by so many at a time.
    metrics: Arc<Semaphore>,
}

impl Api {
    /// Does what is asked for.
    pub(super) async fn answer(
        &self,
        operation: Operation,
        body: Bytes,
    ) -> Result<Answer, ApiError> {
        let call = match operation {
            Operation::GetConfig => return ask(&self.control, Call::GetConfig, None).await,
            Operation::Version => return Ok(Answer::Json(version())),
            Operation::SetConfig => Call::SetConfig,
            Operation::UpdateConfig => Call::UpdateConfig,
            Operation::EditConfig(Edit::Append) => |value| Call::EditConfig(Edit::Append, value),
            Operation::EditConfig(Edit::Delete) => |value| Call::EditConfig(Edit::Delete, value),
            Operation::SetState => Call::SetState,
            Operation::Metrics => Call::Metrics,
            Operation::States => Call::States,
            Operation::Capture => Call::Capture,
            Operation::Action => {
                let (value, _) = self.read_json(body, MAX_REQUEST).await?;
                return Err(unsupported::action(&value));
            }
        };
        let (value, alone) = self.read_json(body, operation.most()).await?;
        // The permit goes along, because the client may leave while its answer is made.
        let alone = match operation {
            Operation::Metrics => self.metrics.clone().acquire_owned().await.ok(),
            _ => alone,
        };
        ask(&self.control, call(value), alone).await
    }

    /// Parses a body of at most `most` bytes as JSON. Only one large body is parsed at a time: the caller holds the permit
    /// for as long as it has the value.
    async fn read_json(
        &self,
        body: Bytes,
        most: usize,
    ) -> Result<(Value, Option<OwnedSemaphorePermit>), ApiError> {
        if body.len() > most {
            let what = format!("the body is larger than {most} bytes, the most for this request");
            return Err(ApiError::request(413, what));
        }
        if body.len() <= LARGE_BODY {
            return Ok((strict::parse(&body)?, None));
        }
        let alone = self.alone().await;
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

    /// Waits until no other large body is there.
    pub(super) async fn alone(&self) -> Option<OwnedSemaphorePermit> {
        self.large.clone().acquire_owned().await.ok()
    }
}

/// The routes of the API for those who have access; calls go to `control`. Every connection's requests carry
/// its [`Seat`].
pub fn router(control: mpsc::Sender<Message>, access: Access) -> Router {
    let asked = |path, method: MethodFilter, operation| (path, on(method, handler(operation)));
    let config = post(handler(Operation::SetConfig))
        .patch(handler(Operation::UpdateConfig))
        .get(handler(Operation::GetConfig));
    let mut router = Router::new();
    for (path, methods) in [
        ("/config", config),
        asked("/config/append", MethodFilter::PATCH, Operation::EditConfig(Edit::Append)),
        asked("/config/delete", MethodFilter::PATCH, Operation::EditConfig(Edit::Delete)),
        asked("/control/state", MethodFilter::POST, Operation::SetState),
        asked("/control/action", MethodFilter::POST, Operation::Action),
        asked("/monitor/metrics", MethodFilter::POST, Operation::Metrics),
        asked("/monitor/states", MethodFilter::POST, Operation::States),
        asked("/monitor/capture", MethodFilter::POST, Operation::Capture),
        asked("/capabilities/version", MethodFilter::GET, Operation::Version),
    ] {
        router = router.route(path, methods.fallback(unsupported_method));
    }
    router
        .route(grpc::PATH, post(grpc::serve))
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(Arc::new(access), guard))
        .with_state(Api {
            control,
            large: Arc::new(Semaphore::new(1)),
            metrics: Arc::new(Semaphore::new(METRICS_AT_A_TIME)),
        })
}

/// Lets a request in that may come and has come wholly.
async fn guard(
    State(access): State<Arc<Access>>,
    Extension(seat): Extension<Seat>,
    mut request: Request,
    next: Next,
) -> Response {
    seat.begins();
    name_host(&mut request);
    let grpc = grpc::is_meant(request.headers());
    let refuse = |error| if grpc { grpc::refuse(&error) } else { respond(Err(error)) };
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
            let mut response = refuse(refusal.error);
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
        Ok(Err(error)) => return refuse(error),
        Err(_) => return refuse(ApiError::request(408, too_slow())),
    };
    let _served = seat.serve();
    next.run(Request::from_parts(parts, Body::from(body))).await
}

/// In HTTP/2 the host is not a header field.
fn name_host(request: &mut Request) {
    let authority =
        request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    if let (Version::HTTP_2, Some(Ok(host))) = (request.version(), authority) {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
}

/// A handler of requests for this.
fn handler(operation: Operation) -> impl Fn(State<Api>, Request) -> Answered + Clone {
    move |State(api), request| {
        Box::pin(async move {
            respond(match whole(request).await {
                Ok(body) => api.answer(operation, body).await,
                Err(error) => Err(error),
            })
        })
    }
}

type Answered = Pin<Box<dyn Future<Output = Response> + Send>>;

fn version() -> Value {
    json!({
        "api_spec_version": API_VERSIONS,
        "sdk_version": API_VERSION,
        "app_version": env!("CARGO_PKG_VERSION"),
    })
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

/// The body, which the guard has read.
pub(super) async fn whole(request: Request) -> Result<Bytes, ApiError> {
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
