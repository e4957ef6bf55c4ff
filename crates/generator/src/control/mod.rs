// SPDX-License-Identifier: BSD-3-Clause
//! The control plane: owns the configuration, opens and closes ports, and speaks for the engine.
//!
//! One task on the HTTP thread handles one call after another, so that nothing of it needs a lock. A
//! call that fails leaves the configuration and running traffic as they were.

mod figures;
mod ports;
mod rates;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::books::Books;
use crate::engine::{Command, FlowSetup, Limit, Load, Mode, Settings};
use crate::location::Vdevs;
use crate::mailbox::Mailbox;
use crate::obstacle::obstacle;
use crate::otg::server::{Call, Message};
use crate::otg::{ApiError, config, metrics, state};
use crate::pacing::{FrameRate, Interval};
use crate::plan::{self, Plan, Rate};
use crate::telemetry::Question;
use packet::template::Template;
use ports::{Entry, Ports};
use rates::Sampler;

/// How long a start waits for links to come up.
const LINK_TIMEOUT: Duration = Duration::from_secs(3);
/// How often it looks.
const LINK_INTERVAL: Duration = Duration::from_millis(10);

/// A configuration in force.
#[derive(Default)]
struct Active<'eal> {
    /// As it was posted.
    config: Value,
    plan: Plan,
    ports: Vec<Entry<'eal>>,
    /// Of each flow.
    intervals: Vec<Interval>,
    books: Arc<Books>,
    sampler: Sampler,
}

/// A start that waits for links.
struct Pending {
    flows: Vec<usize>,
    deadline: Instant,
    answer: oneshot::Sender<Result<Value, ApiError>>,
}

/// The control plane.
pub struct Control<'run, 'eal> {
    mailbox: &'run Mailbox<Command<'eal>>,
    settings: Settings,
    line_rate: Option<u64>,
    vdevs: Vdevs,
    ports: Ports<'eal>,
    active: Active<'eal>,
    pending: Option<Pending>,
}

impl<'run, 'eal> Control<'run, 'eal> {
    /// A control plane without a configuration. `own_eal_options` says that the user gave them,
    /// `vdevs` which virtual devices a configuration may name.
    pub fn new(
        eal: &'eal dpdk::Eal,
        mailbox: &'run Mailbox<Command<'eal>>,
        settings: Settings,
        line_rate: Option<u64>,
        own_eal_options: bool,
        vdevs: Vdevs,
    ) -> Self {
        let active = Active { config: json!({}), ..Active::default() };
        Control {
            mailbox,
            settings,
            line_rate,
            vdevs,
            ports: Ports::new(eal, own_eal_options),
            active,
            pending: None,
        }
    }

    /// Serves until nobody can call any more.
    pub async fn serve(
        mut self,
        mut calls: mpsc::Receiver<Message>,
        mut questions: mpsc::Receiver<Question>,
    ) {
        loop {
            tokio::select! {
                call = calls.recv() => match call {
                    Some(message) => self.handle(message).await,
                    None => return,
                },
                Some(question) = questions.recv() => {
                    // Who asked may have stopped waiting.
                    let _ = question.answer.try_send(self.answer(&question.subject));
                }
                () = tokio::time::sleep(LINK_INTERVAL), if self.pending.is_some() => self.look_at_links().await,
            }
        }
    }

    async fn handle(&mut self, message: Message) {
        let result = match message.call {
            Call::GetConfig => Ok(self.active.config.clone()),
            Call::SetConfig(value) => self.set_config(value).await,
            Call::Metrics(value) => self.metrics(&value),
            Call::SetState(value) => match state::validate(&value, &self.flow_names()) {
                Ok(transmit) if transmit.start => {
                    self.forget_pending();
                    self.pending = Some(Pending {
                        flows: transmit.flows,
                        deadline: Instant::now() + LINK_TIMEOUT,
                        answer: message.answer,
                    });
                    return self.look_at_links().await;
                }
                Ok(transmit) => {
                    self.forget_pending();
                    self.tell_engine(|done| Command::Stop(transmit.flows, done))
                        .await
                        .map(|()| no_warnings())
                }
                Err(error) => Err(error),
            },
        };
        // The client may have gone.
        let _ = message.answer.send(result);
    }

    fn flow_names(&self) -> Vec<&str> {
        self.active.plan.flows.iter().map(|flow| flow.name.as_str()).collect()
    }

    fn forget_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            let _ = pending.answer.send(Err(ApiError::request(
                409,
                "the start was waiting for a link when another request replaced it",
            )));
        }
    }

    /// Starts what waits if nothing hinders it, and gives up when it is time.
    async fn look_at_links(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let (certain, possible) = self.hindrances(&pending.flows);
        let result = if certain.is_empty() {
            let flows = pending.flows;
            let started = self.tell_engine(|done| Command::Start(flows, done)).await;
            self.active.sampler = Sampler::default();
            started.map(|()| json!({ "warnings": possible }))
        } else if Instant::now() < pending.deadline {
            self.pending = Some(pending);
            return;
        } else {
            Err(ApiError::invalid(certain))
        };
        let _ = pending.answer.send(result);
    }

    /// Why these flows cannot pass, and what may be in their way.
    fn hindrances(&self, flows: &[usize]) -> (Vec<String>, Vec<String>) {
        let plan = &self.active.plan;
        // Each port that they need, with the longest frame that it is to send.
        let mut needed: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for flow in flows.iter().filter_map(|index| plan.flows.get(*index)) {
            let longest = needed.entry(flow.tx).or_default();
            *longest = (*longest).max(Some(flow.frame.len_with_fcs));
            for port in &flow.rx {
                needed.entry(*port).or_default();
            }
        }
        let (mut certain, mut possible) = (Vec::new(), Vec::new());
        for (index, longest) in needed {
            let (Some(port), Some(entry)) = (plan.ports.get(index), self.active.ports.get(index))
            else {
                continue;
            };
            match obstacle(&port.location, longest) {
                Some(found) if found.is_certain() => {
                    certain.push(format!("port {:?}: {found}; nothing was started", port.name));
                }
                _ if !entry.link_is_up() => certain.push(format!(
                    "the link of port {:?} ({}) is still down after {} s; nothing was started: start its peer first",
                    port.name,
                    port.location,
                    LINK_TIMEOUT.as_secs()
                )),
                Some(found) => possible.push(format!("port {:?}: {found}", port.name)),
                None => {}
            }
        }
        (certain, possible)
    }

    async fn tell_engine<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<'eal>,
    ) -> Result<T, ApiError> {
        let (done, reply) = oneshot::channel();
        self.mailbox.post(command(done));
        reply.await.map_err(|_| ApiError::request(503, "the generator is ending"))
    }

    async fn set_config(&mut self, value: Value) -> Result<Value, ApiError> {
        let plan = config::validate(&value, self.vdevs)?;
        let opened = self.ports.open(&plan.ports, &self.active.ports)?;
        let (flows, intervals) = match self.setups(&plan, &opened.entries) {
            Ok(flows) => flows,
            Err(error) => {
                self.ports.undo(opened);
                return Err(error);
            }
        };
        self.forget_pending();
        let books = Arc::new(Books::new(plan.flows.len(), plan.ports.len()));
        let (sources, entries, given_up) = opened.commit(std::mem::take(&mut self.active.ports));
        self.active = Active {
            config: value,
            plan,
            ports: entries,
            intervals,
            books: books.clone(),
            sampler: Sampler::default(),
        };
        let old = self
            .tell_engine(|done| Command::Load(Load { ports: sources, flows, books, done }))
            .await?;
        let warnings = self.ports.close(old, given_up);
        Ok(json!({ "warnings": warnings }))
    }

    /// The flows as the engine wants them, and their intervals.
    fn setups(
        &self,
        plan: &Plan,
        entries: &[Entry<'eal>],
    ) -> Result<(Vec<FlowSetup>, Vec<Interval>), ApiError> {
        let mut errors = Vec::new();
        let mut setups = Vec::new();
        for (index, flow) in plan.flows.iter().enumerate() {
            let rate = match flow.rate {
                Rate::Frames(rate) => Some(rate),
                Rate::Percent(percent) => {
                    let physical = entries
                        .get(flow.tx)
                        .and_then(|entry| entry.line_rate(flow.frame.len_with_fcs));
                    self.line_rate
                        .and_then(|rate| FrameRate::new(rate, 1))
                        .or(physical)
                        .and_then(|line| line.percent(percent))
                }
            };
            let Some(rate) = rate else {
                let port = plan.ports.get(flow.tx).map_or("", |port| port.name.as_str());
                errors.push(format!("flows[{index}].rate.percentage: port {port:?} has no line rate; give pps, or start the generator with --line-rate"));
                continue;
            };
            let template =
                match u16::try_from(index).map(|number| Template::new(&flow.frame, number)) {
                    Ok(Ok(template)) => template,
                    Ok(Err(error)) => {
                        errors.push(format!("flows[{index}].size: {error}"));
                        continue;
                    }
                    Err(_) => return Err(ApiError::request(400, "flows: too many")),
                };
            let limit = match (flow.duration, self.settings.mode) {
                (plan::Duration::Continuous, _) => Limit::Endless,
                (plan::Duration::Packets(frames), _) => Limit::Frames(frames),
                (plan::Duration::Nanoseconds(ns), Mode::Paced) => Limit::Frames(rate.frames_in(ns)),
                (plan::Duration::Nanoseconds(ns), Mode::Flood) => {
                    let cycles = u128::from(ns) * u128::from(self.settings.hz) / 1_000_000_000;
                    Limit::Cycles(u64::try_from(cycles).unwrap_or(u64::MAX))
                }
            };
            setups.push(FlowSetup {
                template,
                port: flow.tx,
                rx_mask: flow.rx_mask(),
                interval: rate.interval(self.settings.hz),
                limit,
            });
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid(errors));
        }
        let intervals = setups.iter().map(|setup| setup.interval).collect();
        Ok((setups, intervals))
    }

    fn metrics(&mut self, value: &Value) -> Result<Value, ApiError> {
        let active = &mut self.active;
        let ports: Vec<&str> = active.plan.ports.iter().map(|port| port.name.as_str()).collect();
        let flows: Vec<(&str, bool)> =
            active.plan.flows.iter().map(|flow| (flow.name.as_str(), flow.metrics)).collect();
        let request = metrics::validate(value, &ports, &flows)?;
        active.sample();
        Ok(match request {
            metrics::Request::Ports { ports, columns } => metrics::port_metrics(
                &ports.iter().filter_map(|port| active.port_figures(*port)).collect::<Vec<_>>(),
                &columns,
            ),
            metrics::Request::Flows { flows, columns } => metrics::flow_metrics(
                &flows.iter().filter_map(|flow| active.flow_figures(*flow)).collect::<Vec<_>>(),
                &columns,
            ),
        })
    }

    fn answer(&self, subject: &crate::telemetry::Subject) -> Option<dpdk::telemetry::Value> {
        self.active.telemetry(subject, &self.settings)
    }
}

fn no_warnings() -> Value {
    json!({ "warnings": [] })
}
