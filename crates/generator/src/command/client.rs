// SPDX-License-Identifier: BSD-3-Clause
//! Calls the control plane from an ordinary thread, like any other client.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use dpdk::telemetry::Value as Told;
use measure::histogram::Summary;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::engine::Mode;
use crate::otg::ApiError;
use crate::otg::server::{Answer, Call, Message, Ready};
use crate::plan::Plan;
use crate::telemetry::{Histogram, Question, Subject};

/// The longest time for a query. Starts wait for links longer, and are not queries.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The control plane, as a client uses it.
pub struct Client {
    calls: mpsc::Sender<Message>,
    questions: mpsc::Sender<Question>,
}

/// Telemetry of a port or a flow.
#[derive(Debug, Default)]
pub struct Figures(Vec<(String, Told)>);

impl Figures {
    /// A number; `None` if there is none.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.0.iter().find(|(known, _)| known == name)? {
            (_, Told::U64(number)) => Some(*number),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.iter().find(|(known, _)| known == name)? {
            (_, Told::String(text) | Told::Text(text)) => Some(text),
            _ => None,
        }
    }
}

impl Client {
    /// A client that uses these channels for calls and queries.
    pub fn new(calls: mpsc::Sender<Message>, questions: mpsc::Sender<Question>) -> Self {
        Client { calls, questions }
    }

    /// Makes a call; returns its answer.
    ///
    /// # Errors
    /// The answer's error; 503 if nobody answers any more.
    pub fn call(&self, call: Call) -> Result<Value, ApiError> {
        let gone = || ApiError::request(503, "the generator is ending");
        let (answer, reply) = oneshot::channel();
        self.calls.blocking_send(Message { call, answer, alone: None }).map_err(|_| gone())?;
        match reply.blocking_recv().map_err(|_| gone())?? {
            Answer::Json(value) => Ok(value),
            Answer::Text(text) => serde_json::from_slice(&text)
                .map_err(|error| ApiError::internal(format!("an answer cannot be read: {error}"))),
            Answer::File(_) => Ok(Value::Null),
        }
    }

    /// Applies a plan. Returns warnings.
    ///
    /// # Errors
    /// Why it cannot be applied.
    pub fn load(&self, plan: Plan, config: Value, mode: Mode) -> Result<Vec<String>, ApiError> {
        self.call(Call::Load(Box::new(Ready { plan, config, mode })))
            .map(|answer| warnings(&answer))
    }

    /// Starts or stops flows; no names mean all. Returns warnings.
    ///
    /// # Errors
    /// Why they cannot be started or stopped.
    pub fn transmit(&self, state: &str, flows: &[&str]) -> Result<Vec<String>, ApiError> {
        let transmit = json!({ "state": state, "flow_names": flows });
        let traffic = json!({ "choice": "flow_transmit", "flow_transmit": transmit });
        let state = json!({ "choice": "traffic", "traffic": traffic });
        self.call(Call::SetState(state)).map(|answer| warnings(&answer))
    }

    /// Starts or stops all captures.
    ///
    /// # Errors
    /// Why they cannot be started or stopped.
    pub fn capture(&self, state: &str) -> Result<(), ApiError> {
        let port = json!({ "choice": "capture", "capture": { "state": state } });
        self.call(Call::SetState(json!({ "choice": "port", "port": port }))).map(|_| ())
    }

    /// OTG's metrics of all flows that have some, or of all ports.
    ///
    /// # Errors
    /// Why there are none.
    pub fn metrics(&self, choice: &str) -> Result<Vec<Value>, ApiError> {
        let answer = self.call(Call::Metrics(json!({ "choice": choice, choice: {} })))?;
        let list = answer.get(format!("{choice}_metrics")).and_then(Value::as_array);
        Ok(list.cloned().unwrap_or_default())
    }

    /// Telemetry of a flow or a port.
    pub fn ask(&self, subject: Subject) -> Figures {
        Figures(self.question(subject, None).unwrap_or_default())
    }

    /// Returns true if a port of the current plan transmits.
    pub fn transmitting(&self, plan: &Plan) -> bool {
        let subject = |port: &crate::plan::PortPlan| Subject::Port(port.name.clone());
        plan.ports.iter().any(|port| self.ask(subject(port)).text("transmit") == Some("started"))
    }

    /// A distribution of a flow, if it has one.
    pub fn histogram(&self, flow: &str, kind: Histogram) -> Option<Summary> {
        let told = Figures(self.question(Subject::Flow(flow.to_owned()), Some(kind))?);
        measure::histogram::decode(told.text(kind.name())?)
    }

    fn question(
        &self,
        subject: Subject,
        histogram: Option<Histogram>,
    ) -> Option<Vec<(String, Told)>> {
        let (answer, reply) = sync_channel(1);
        self.questions.blocking_send(Question { subject, histogram, answer }).ok()?;
        match reply.recv_timeout(TIMEOUT).ok()?? {
            Told::Dict(entries) => Some(entries),
            _ => None,
        }
    }
}

fn warnings(answer: &Value) -> Vec<String> {
    let list = answer.get("warnings").and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
