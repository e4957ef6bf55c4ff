// SPDX-License-Identifier: BSD-3-Clause
//! The control plane: owns the configuration, opens and closes ports, and speaks for the engine.
//!
//! One task on the HTTP thread handles one call after another, so that nothing of it needs a lock. A
//! call that fails leaves the configuration and running traffic as they were.

mod af_xdp;
mod captures;
mod figures;
mod keeper;
mod kept;
mod link_state;
mod ports;
mod rates;
mod setups;
mod traffic;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use crate::books::{Books, Earlier, Told};
use crate::engine::layout::{self, Share};
use crate::engine::{Command, Desk, FlowSetup, Load, Mode, Order, Settings, Station};
use crate::location::Policy;
use crate::otg::replays::Replays;
use crate::otg::sending::Sending;
use crate::otg::server::{Answer, Call, Message};
use crate::otg::{ApiError, capture, config, metrics, state, update};
use crate::pacing::LineRate;
use crate::plan::Plan;
use crate::telemetry::Question;
use captures::Captures;
pub use ports::PortRules;
use ports::{Entry, Ports};
use rates::Sampler;
use traffic::Pending;

/// A plan's flows as one lcore would send them, where a second has `hz` cycles and `line` is the line rate of every port.
///
/// # Errors
/// A 400 that names each flow which cannot be sent so, and why.
pub fn flow_setups(
    plan: &Plan,
    line: Option<LineRate>,
    hz: u64,
) -> Result<Vec<FlowSetup>, ApiError> {
    let most = vec![layout::MostQueues { rx: 1, tx: 1 }; plan.ports.len()];
    let lines = vec![line; plan.ports.len()];
    let settings = Settings { mode: Mode::Paced, hz, late_after: 0, clock_cost: 0 };
    let setup = setups::setup(plan, layout::shares(1, &most, 1), &lines, &settings)?;
    Ok(setup.work.into_iter().flat_map(|work| work.flows).collect())
}

/// How often the control plane looks while something goes on: a start that waits, a capture.
const LOOK: Duration = Duration::from_millis(5);

/// How often it looks at links while nothing is sent.
const LOOK_AT_LINKS: Duration = Duration::from_secs(1);

/// A configuration in force.
#[derive(Default)]
struct Active<'eal> {
    /// As it was posted, with the changes since.
    config: Value,
    plan: Plan,
    ports: Vec<Entry<'eal>>,
    /// The queues of each lcore.
    shares: Vec<Share>,
    /// By index of a flow the lcore that sends it.
    homes: Vec<usize>,
    books: Arc<Books>,
    /// By index of the port.
    earlier: Vec<Earlier>,
    /// Whether each flow was started since traffic last started from rest: then the port's books have it.
    since_rest: Vec<bool>,
    sampler: Sampler,
    captures: Captures,
}

/// What holds for every configuration, but for the mode of sending: a plan of the program's own command
/// brings its own ([`Call::Load`]).
#[derive(Clone, Debug)]
pub struct Rules {
    /// The engine's.
    pub settings: Settings,
    /// The ports'.
    pub ports: PortRules,
    /// What 100 per cent is on ports without a line rate of their own.
    pub line_rate: Option<crate::pacing::LineRate>,
    /// Where a configuration may have its ports.
    pub locations: Policy,
    /// Whether captures have the FCS of frames.
    pub capture_fcs: bool,
    /// Frames that flows send in place of their own, from the command line.
    pub replays: Replays,
    /// The number of the first start's run. Where it is any, frames of another generator, or of one that was
    /// here before, are most likely of another run.
    pub first_run: u8,
}

impl Rules {
    /// What a configuration may have.
    pub fn limits(&self) -> config::Limits {
        config::Limits {
            locations: self.locations.clone(),
            max_frame: self.ports.max_frame,
            capture_fcs: self.capture_fcs,
        }
    }
}

/// The control plane.
pub struct Control<'run, 'eal> {
    desk: &'run Desk<'eal>,
    rules: Rules,
    ports: Ports<'eal>,
    active: Active<'eal>,
    pending: Option<Pending>,
    /// Files of captures, of earlier configurations too.
    sending: Sending,
    /// The next start's.
    run: u8,
}

impl<'run, 'eal> Control<'run, 'eal> {
    /// A control plane without a configuration.
    pub fn new(eal: &'eal dpdk::Eal, desk: &'run Desk<'eal>, rules: Rules) -> Self {
        let active = Active { config: json!({}), ..Active::default() };
        Control {
            desk,
            ports: Ports::new(eal, rules.ports),
            active,
            pending: None,
            sending: Sending::default(),
            run: rules.first_run,
            rules,
        }
    }

    /// Serves until nobody can call any more.
    pub async fn serve(
        mut self,
        mut calls: mpsc::Receiver<Message>,
        mut questions: mpsc::Receiver<Question>,
    ) {
        let mut links = tokio::time::interval(LOOK_AT_LINKS);
        links.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let waits = self.pending.is_some() || self.active.captures.are_running();
            tokio::select! {
                call = calls.recv() => match call {
                    Some(message) => self.handle(message).await,
                    None => return,
                },
                Some(question) = questions.recv() => {
                    // Who asked may have stopped waiting.
                    let answer = self.active.telemetry(&question, &self.rules.settings);
                    let _ = question.answer.try_send(answer);
                }
                _ = links.tick() => self.active.note_links(),
                () = tokio::time::sleep(LOOK), if waits => {
                    self.active.captures.collect();
                    self.look_at_links().await;
                }
            }
        }
    }

    async fn handle(&mut self, message: Message) {
        let result = match message.call {
            Call::GetConfig => Ok(Answer::Json(self.active.config.clone())),
            Call::SetConfig(value) => self.set_config(value).await,
            Call::UpdateConfig(value) => self.update_config(&value).await,
            Call::Metrics(value) => self.metrics(&value),
            Call::Capture(value) => self.capture_file(&value),
            Call::Load(ready) => {
                let before = std::mem::replace(&mut self.rules.settings.mode, ready.mode);
                let loaded = self.load(ready.plan, ready.config, Vec::new()).await;
                if loaded.is_err() {
                    self.rules.settings.mode = before;
                }
                loaded
            }
            Call::SetState(value) => match self.wanted_state(&value) {
                Ok(state::Wanted::Transmit { state: state::Transmit::Start, flows }) => {
                    return self.start(flows, message.answer).await;
                }
                Ok(wanted) => self.set_state(wanted).await,
                Err(error) => Err(error),
            },
        };
        // The client may have gone.
        let _ = message.answer.send(result);
    }

    fn port_names(&self) -> Vec<&str> {
        self.active.plan.ports.iter().map(|port| port.name.as_str()).collect()
    }

    fn wanted_state(&self, value: &Value) -> Result<state::Wanted, ApiError> {
        let flows: Vec<&str> =
            self.active.plan.flows.iter().map(|flow| flow.name.as_str()).collect();
        state::validate(value, &flows, &self.port_names())
    }

    async fn set_state(&mut self, wanted: state::Wanted) -> Result<Answer, ApiError> {
        match wanted {
            state::Wanted::Transmit { state, flows } => self.set_transmit(state, flows).await,
            state::Wanted::Link { up, ports } => self.set_links(up, &ports),
            state::Wanted::Capture { start, ports } => self.set_captures(start, &ports).await,
            state::Wanted::Nothing(why) => Ok(Answer::Json(json!({ "warnings": [why] }))),
        }
    }

    /// Gives an order to every lcore and waits until all have obeyed. What they replaced is dropped here.
    async fn order(&self, mut order: impl FnMut() -> Order) -> Result<(), ApiError> {
        let post = |orders: &crate::mailbox::Mailbox<Command>| {
            let (done, reply) = oneshot::channel();
            orders.post(Command { order: order(), done });
            reply
        };
        let replies: Vec<_> = self.desk.orders.iter().map(post).collect();
        for reply in replies {
            reply.await.map_err(|_| ending())?;
        }
        Ok(())
    }

    /// The same with one lcore.
    async fn order_one(&self, lcore: usize, order: Order) -> Result<(), ApiError> {
        let Some(orders) = self.desk.orders.get(lcore) else { return Ok(()) };
        let (done, reply) = oneshot::channel();
        orders.post(Command { order, done });
        reply.await.map(drop).map_err(|_| ending())
    }

    async fn set_config(&mut self, value: Value) -> Result<Answer, ApiError> {
        let (mut plan, mut warnings) = config::validate(&value, &self.rules.limits())?;
        warnings.extend(self.rules.replays.put_into(&mut plan)?);
        self.load(plan, value, warnings).await
    }

    /// Puts a plan in force, which is `value` for those who ask for the configuration.
    async fn load(
        &mut self,
        plan: Plan,
        value: Value,
        mut warnings: Vec<String>,
    ) -> Result<Answer, ApiError> {
        let opened = self.ports.open(&plan.ports, &self.active.ports)?;
        let most: Vec<_> = opened.entries.iter().map(Entry::most_queues).collect();
        let shares = layout::shares(self.rules.ports.lcores, &most, self.rules.ports.rx_queues);
        let lines = self.line_rates(&plan, &opened.entries);
        let setup = match setups::setup(&plan, shares.clone(), &lines, &self.rules.settings) {
            Ok(setup) => setup,
            Err(error) => {
                self.ports.undo(opened);
                return Err(error);
            }
        };
        self.forget_pending();
        let told = |flow: &crate::plan::FlowPlan| Told {
            order: flow.metrics.enable,
            delays: flow.is_stamped(),
        };
        let told: Vec<Told> = plan.flows.iter().map(told).collect();
        let books = Arc::new(Books::new(&told, plan.ports.len(), setup.receivers));
        let (sources, entries, given_up) = opened.commit(std::mem::take(&mut self.active.ports));
        for (entry, port) in entries.iter().zip(&plan.ports) {
            entry.set_promiscuous(port.promiscuous);
        }
        self.active = Active {
            config: value,
            captures: Captures::new(&plan),
            earlier: vec![Earlier::default(); plan.ports.len()],
            since_rest: vec![false; plan.flows.len()],
            plan,
            ports: entries,
            shares,
            homes: setup.homes,
            books: books.clone(),
            sampler: Sampler::default(),
        };
        let (done, old) = oneshot::channel();
        let stations = Station::all(self.rules.settings, setup.work, &setup.expected, &books);
        self.desk.load(Load { ports: sources, stations, done });
        let old = old.await.map_err(|_| ending())?;
        warnings.extend(self.ports.close(old.ports, given_up));
        Ok(Answer::Json(json!({ "warnings": warnings })))
    }

    async fn update_config(&mut self, value: &Value) -> Result<Answer, ApiError> {
        let (active, limits) = (&self.active, self.rules.limits());
        let mut update = update::validate(value, &active.config, &active.plan, &limits)?;
        // What was to be said was said when the configuration came.
        self.rules.replays.put_into(&mut update.plan)?;
        self.change(update).await?;
        Ok(no_warnings())
    }

    /// Bits per second of each planned port on layer 1, where known.
    fn line_rates(
        &self,
        plan: &Plan,
        entries: &[Entry<'eal>],
    ) -> Vec<Option<crate::pacing::LineRate>> {
        let own = |speed: u32| crate::pacing::LineRate::Bits(u64::from(speed) * 1_000_000);
        let rate = |(port, entry): (&crate::plan::PortPlan, &Entry<'eal>)| {
            port.speed_mbps.map(own).or(self.rules.line_rate).or(entry.speed_mbps().map(own))
        };
        plan.ports.iter().zip(entries).map(rate).collect()
    }

    fn metrics(&mut self, value: &Value) -> Result<Answer, ApiError> {
        let active = &mut self.active;
        let ports: Vec<&str> = active.plan.ports.iter().map(|port| port.name.as_str()).collect();
        let flows: Vec<(&str, bool)> = active
            .plan
            .flows
            .iter()
            .map(|flow| (flow.name.as_str(), flow.metrics.enable))
            .collect();
        let request = metrics::validate(value, &ports, &flows)?;
        active.sample();
        Ok(Answer::Json(match request {
            metrics::Request::Ports { ports, columns } => metrics::port_metrics(
                &ports.iter().filter_map(|port| active.port_figures(*port)).collect::<Vec<_>>(),
                &columns,
            ),
            metrics::Request::Flows { flows, columns } => metrics::flow_metrics(
                &flows
                    .iter()
                    .filter_map(|flow| active.flow_figures(*flow, &self.rules.settings))
                    .collect::<Vec<_>>(),
                &columns,
            ),
        }))
    }

    fn capture_file(&mut self, value: &Value) -> Result<Answer, ApiError> {
        let request = capture::request(value, &self.port_names())?;
        self.active.captures.collect();
        self.active.captures.file(&request, &self.sending).map(Answer::File)
    }

    fn set_links(&mut self, up: bool, ports: &[usize]) -> Result<Answer, ApiError> {
        let mut errors = Vec::new();
        for &index in ports {
            let (Some(entry), Some(port)) =
                (self.active.ports.get(index), self.active.plan.ports.get(index))
            else {
                continue;
            };
            if let Err(error) = entry.set_link(up) {
                errors.push(format!("port.link.state: port {:?}: {error}", port.name));
            }
        }
        match errors.is_empty() {
            true => Ok(no_warnings()),
            false => Err(ApiError::invalid(errors)),
        }
    }
}

fn no_warnings() -> Answer {
    Answer::Json(json!({ "warnings": [] }))
}

fn ending() -> ApiError {
    ApiError::request(503, "the generator is ending")
}

/// How long a start waits for links to come up.
const LINK_TIMEOUT: Duration = Duration::from_secs(3);

/// When something that begins now gives up.
fn link_deadline() -> Instant {
    Instant::now() + LINK_TIMEOUT
}
