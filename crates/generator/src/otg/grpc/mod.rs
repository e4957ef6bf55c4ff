// SPDX-License-Identifier: BSD-3-Clause
//! gRPC: the operations of HTTP, with the model's protobuf messages in place of JSON.
//!
//! A message becomes the JSON that HTTP would have brought, and the JSON of an answer becomes a message. So both
//! have one engine, and report the same faults. `otg.fds` has the names, numbers and types of the messages.
//!
//! A method `streamX` is `X` for large messages: the bytes of one come in pieces, as `Data`.

use std::future::Future;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes};
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, FieldDescriptor, MessageDescriptor,
    MethodDescriptor, ReflectMessage, SerializeOptions, ServiceDescriptor, Value,
};
use tokio_stream::Iter;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder, Streaming};
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Status};

use super::edit::Edit;
use super::server::{Answer, Api, Operation};
use super::{API_VERSION, ApiError, LARGE_BODY, MAX_BODY};

/// The route of all methods.
pub const PATH: &str = "/otg.Openapi/{method}";

/// Most bytes of a message, and of the pieces of one: the default of gRPC's own libraries. The JSON is three to five
/// times as long.
const MAX_MESSAGE: usize = 4 << 20;

/// Bytes of each piece of an answer.
const PIECE: usize = 1 << 20;

/// Most bytes of the faults in an answer. They are in a header field, where libraries take 8 KiB in all, and some
/// characters take three bytes.
const MAX_FAULTS: usize = 2000;

/// The methods; none if `otg.fds` is broken, which a test excludes.
static SERVICE: LazyLock<Option<ServiceDescriptor>> = LazyLock::new(|| {
    let model = DescriptorPool::decode(include_bytes!("otg.fds").as_slice()).ok()?;
    model.get_service_by_name("otg.Openapi")
});

/// Returns true for requests of gRPC.
pub fn is_meant(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

/// The answer to a request that is not served.
pub fn refuse(error: &ApiError) -> Response {
    status(error).into_http()
}

/// Answers a request.
pub async fn serve(
    State(api): State<Api>,
    Path(method): Path<String>,
    request: Request,
) -> Response {
    if !is_meant(request.headers()) {
        let what =
            "Content-Type: must be application/grpc; JSON has the paths of HTTP, such as /config";
        return refuse(&ApiError::request(415, what));
    }
    let calls = Calls { api, method };
    let mut grpc = Grpc::new(Raw).max_decoding_message_size(MAX_MESSAGE);
    grpc.streaming(calls, request).await.map(Body::new)
}

/// A method, with its messages.
struct Method {
    operation: Operation,
    itself: MethodDescriptor,
    /// The message of a request, and its only field; no field if it asks for nothing.
    request: (MessageDescriptor, Option<FieldDescriptor>),
    /// The same of an answer.
    answer: (MessageDescriptor, FieldDescriptor),
}

impl Method {
    fn named(name: &str) -> Result<Self, ApiError> {
        let unknown = || ApiError::request(404, format!("{name}: not supported"));
        let base = name.strip_prefix("stream").unwrap_or(name);
        let operation = match base {
            "SetConfig" => Operation::SetConfig,
            "UpdateConfig" => Operation::UpdateConfig,
            "AppendConfig" => Operation::EditConfig(Edit::Append),
            "DeleteConfig" => Operation::EditConfig(Edit::Delete),
            "GetConfig" => Operation::GetConfig,
            "SetControlState" => Operation::SetState,
            "SetControlAction" => Operation::Action,
            "GetMetrics" => Operation::Metrics,
            "GetStates" => Operation::States,
            "GetCapture" => Operation::Capture,
            "GetVersion" => Operation::Version,
            _ => return Err(unknown()),
        };
        let service = SERVICE.as_ref().ok_or_else(|| ApiError::internal("no methods"))?;
        let find = |name: &str| service.methods().find(|each| each.name() == name);
        let itself = find(name).ok_or_else(unknown)?;
        let whole = find(base).ok_or_else(unknown)?;
        let request = (whole.input(), whole.input().fields().next());
        let field = whole.output().fields().next().ok_or_else(unknown)?;
        Ok(Method { operation, itself, request, answer: (whole.output(), field) })
    }

    /// The JSON of a request.
    fn json(&self, messages: &[Bytes]) -> Result<Bytes, ApiError> {
        let (outer, Some(field)) = &self.request else { return Ok(Bytes::new()) };
        let inner = if self.itself.is_client_streaming() {
            let mut all = Vec::new();
            for message in messages {
                all.extend_from_slice(&piece(&decode(self.itself.input(), message)?)?);
            }
            match field.kind().as_message() {
                Some(kind) => decode(kind.clone(), &all)?,
                None => return Err(ApiError::internal("no message")),
            }
        } else {
            let [message] = messages else {
                return Err(ApiError::request(400, "a request must be one message"));
            };
            match decode(outer.clone(), message)?.get_field(field).into_owned() {
                Value::Message(inner) => inner,
                _ => return Err(ApiError::internal("no message")),
            }
        };
        let mut text = Capped(Vec::new());
        let options =
            SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
        match inner.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options) {
            Ok(()) => Ok(text.0.into()),
            Err(error) if error.is_io() => Err(ApiError::request(
                413,
                format!("as JSON the message is larger than {MAX_BODY} bytes"),
            )),
            Err(error) => Err(ApiError::request(400, format!("not a message of OTG: {error}"))),
        }
    }

    /// The messages of an answer.
    fn messages(&self, answer: Answer) -> Result<Vec<Bytes>, ApiError> {
        let (outer, field) = &self.answer;
        let inner = match answer {
            Answer::File(file) => Value::Bytes(Bytes::from_owner(file)),
            Answer::Json(json) => self.message(json)?,
            Answer::Text(text) => self.message(&mut serde_json::Deserializer::from_slice(&text))?,
        };
        if !self.itself.is_server_streaming() {
            let mut message = DynamicMessage::new(outer.clone());
            message.set_field(field, inner);
            return Ok(vec![message.encode_to_vec().into()]);
        }
        let bytes = match inner {
            Value::Bytes(bytes) => bytes,
            Value::Message(message) => message.encode_to_vec().into(),
            _ => return Err(ApiError::internal("no bytes")),
        };
        let data = self.itself.output();
        let field =
            |name| data.get_field_by_name(name).ok_or_else(|| ApiError::internal("no data"));
        let (datum, chunk_size) = (field("datum")?, field("chunk_size")?);
        // Who asks gets one in any case.
        let starts = (0..bytes.len().max(1)).step_by(PIECE);
        Ok(starts
            .map(|start| {
                let mut message = DynamicMessage::new(data.clone());
                let end = bytes.len().min(start + PIECE);
                message.set_field(&datum, Value::Bytes(bytes.slice(start..end)));
                message.set_field(&chunk_size, Value::U64(PIECE as u64));
                message.encode_to_vec().into()
            })
            .collect())
    }

    /// The message of an answer's JSON. What the model does not have is left out.
    fn message<'de, D>(&self, json: D) -> Result<Value, ApiError>
    where
        D: serde::Deserializer<'de>,
        D::Error: std::fmt::Display,
    {
        let (_, field) = &self.answer;
        let kind = field.kind();
        let kind = kind.as_message().ok_or_else(|| ApiError::internal("no message"))?;
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        DynamicMessage::deserialize_with_options(kind.clone(), json, &options)
            .map(Value::Message)
            .map_err(|error| ApiError::internal(format!("the answer is no message: {error}")))
    }
}

/// Reads a message, all fields of which must be known.
fn decode(kind: MessageDescriptor, bytes: &[u8]) -> Result<DynamicMessage, ApiError> {
    let invalid = |what| ApiError::invalid(vec![what]);
    let message = DynamicMessage::decode(kind.clone(), bytes)
        .map_err(|error| invalid(format!("not a message {}: {error}", kind.full_name())))?;
    match unknown(&message) {
        Some(what) => Err(invalid(what)),
        None => Ok(message),
    }
}

/// A field that the model does not have.
fn unknown(message: &DynamicMessage) -> Option<String> {
    if let Some(field) = message.unknown_fields().next() {
        let (kind, number) = (message.descriptor(), field.number());
        return Some(format!(
            "field {number} of {}: not known; the model is that of release {API_VERSION}",
            kind.name()
        ));
    }
    message.fields().find_map(|(_, value)| match value {
        Value::Message(inner) => unknown(inner),
        Value::List(list) => list.iter().filter_map(Value::as_message).find_map(unknown),
        _ => None,
    })
}

/// The bytes in a message `Data`.
fn piece(data: &DynamicMessage) -> Result<Bytes, ApiError> {
    match data.get_field_by_name("datum").map(|value| value.into_owned()) {
        Some(Value::Bytes(bytes)) => Ok(bytes),
        _ => Err(ApiError::internal("no data")),
    }
}

/// JSON of at most [`MAX_BODY`] bytes: small numbers of protobuf are long names there.
struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_BODY {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error as gRPC has it: its text is the object that HTTP would have sent, with the number of the status in place
/// of HTTP's.
fn status(error: &ApiError) -> Status {
    let code = match error.status {
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 | 405 | 415 => Code::Unimplemented,
        408 => Code::DeadlineExceeded,
        413 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        400..500 => Code::InvalidArgument,
        _ => Code::Internal,
    };
    let mut shown = Vec::new();
    let mut left = MAX_FAULTS;
    for each in &error.errors {
        if each.len() > left {
            break;
        }
        left -= each.len();
        shown.push(each.clone());
    }
    if shown.len() < error.errors.len() {
        let more = error.errors.len() - shown.len();
        shown.push(format!("and {more} more, for which gRPC has no room; HTTP shows them"));
    }
    let mut json = ApiError { status: error.status, errors: shown }.to_json();
    json["code"] = i32::from(code).into();
    Status::new(code, json.to_string())
}

/// The service of one request.
struct Calls {
    api: Api,
    method: String,
}

type Answers = Iter<std::vec::IntoIter<Result<Bytes, Status>>>;

impl StreamingService<Bytes> for Calls {
    type Response = Bytes;
    type ResponseStream = Answers;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Answers>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Streaming<Bytes>>) -> Self::Future {
        let (api, method) = (self.api.clone(), self.method.clone());
        Box::pin(async move {
            let mut stream = request.into_inner();
            let mut messages = Vec::new();
            while let Some(message) = stream.message().await? {
                messages.push(message);
            }
            let answers = answer(&api, &method, messages).await.map_err(|error| status(&error))?;
            let answers: Vec<_> = answers.into_iter().map(Ok).collect();
            Ok(tonic::Response::new(tokio_stream::iter(answers)))
        })
    }
}

async fn answer(api: &Api, method: &str, messages: Vec<Bytes>) -> Result<Vec<Bytes>, ApiError> {
    let method = Method::named(method)?;
    let len: usize = messages.iter().map(Bytes::len).sum();
    if len > MAX_MESSAGE {
        let what = format!("the message is larger than {MAX_MESSAGE} bytes; send it over HTTP");
        return Err(ApiError::request(413, what));
    }
    let operation = method.operation;
    let (method, body) = if len <= LARGE_BODY {
        let body = method.json(&messages)?;
        (method, body)
    } else {
        let alone = api.alone().await;
        aside(move || {
            let body = method.json(&messages);
            // The messages take a hundred times as much memory as their bytes.
            dpdk::trim_heap();
            drop(alone);
            body.map(|body| (method, body))
        })
        .await?
    };
    let answer = api.answer(operation, body).await?;
    match &answer {
        Answer::Text(text) if text.len() > LARGE_BODY => {
            aside(move || method.messages(answer)).await
        }
        _ => method.messages(answer),
    }
}

/// Does long work on another thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::internal(format!("the message cannot be read: {error}")))?
}

/// Messages as bytes; `Method` reads and writes them.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[cfg(test)]
mod tests;
