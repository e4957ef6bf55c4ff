// SPDX-License-Identifier: BSD-3-Clause
//! The control plane: owns the configuration, and answers requests about the engine.
//!
//! One task on the HTTP thread handles one call after another, so that its state needs no lock.
//! Work that may take long is left to the [`Configurator`], one job at a time: it reads
//! configurations, and opens and closes ports. During a job, the configuration in force can still
//! be read, measured, stopped and paused at once. Another configuration waits for its turn. A call
//! that depends on the next configuration, such as a start, waits for a second; then it fails with
//! a message that says how far the job is. A call that fails leaves the configuration and running
//! traffic unchanged.

mod af_xdp;
mod captures;
mod configurator;
mod figures;
mod keeper;
mod kept;
mod link_state;
mod marks;
mod neighbors;
mod packet_ring;
mod ports;
mod rates;
mod setups;
mod tagged;
mod traffic;

use std::collections::VecDeque;
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::MissedTickBehavior;

use crate::books::{Books, Earlier, State};
use crate::engine::layout::{self, Share};
use crate::engine::{Command, Desk, FlowSetup, Load, Mode, Order, Settings};
use crate::location::Policy;
use crate::otg::replays::Replays;
use crate::otg::sending::Sending;
use crate::otg::server::{Answer, Call, Message};
use crate::otg::{
    ApiError, LARGE_BODY, capture, config, metrics, neighbors as otg_neighbors, state,
};
use crate::pacing::LineRate;
use crate::plan::Plan;
use crate::telemetry::Question;
use captures::{Captures, Making};
pub use configurator::Configurator;
use configurator::{Changed, Current, Job, Next, Progress, Replaced, Report, Task, Wanted};
use neighbors::{Devices, LOOK_AT_NEIGHBORS};
use ports::Entry;
pub use ports::PortRules;
use rates::Sampler;
use traffic::Pending;

/// A plan's flows as a single lcore would send them, with a clock of `hz` cycles per second and the
/// line rate `line` on every port.
///
/// # Errors
/// A 400 that names each flow which cannot be sent at its rate, and why.
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

/// How often the control plane checks for progress while a start waits or a capture runs.
const LOOK: Duration = Duration::from_millis(5);

/// How long a request waits for a configuration that is being set, before it fails.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it checks links while nothing is sent.
const LOOK_AT_LINKS: Duration = Duration::from_secs(1);

/// Most flows, and rows by their metric tags, whose metrics are collected on the control plane's thread: a thousandth of a second.
const FEW_ROWS: usize = 100;

/// Most configurations that wait for the one that is being set: each is in memory, forty times as large as its text.
const MAX_WAITING: usize = 16;

/// A configuration in force.
#[derive(Default)]
struct Active<'eal> {
    /// As it was posted, with the changes since.
    config: Bytes,
    plan: Arc<Plan>,
    ports: Vec<Entry<'eal>>,
    /// The queues of each lcore.
    shares: Vec<Share>,
    /// By index of a flow: the lcore that sends it.
    homes: Vec<usize>,
    books: Arc<Books>,
    /// By index of the port.
    earlier: Vec<Earlier>,
    /// True for each flow that was started since traffic last started from rest: then the port's
    /// books include it.
    since_rest: Vec<bool>,
    sampler: Sampler,
    /// For each flow, where the counters of its rows are sampled.
    row_places: Arc<[usize]>,
    captures: Captures,
    devices: Devices,
}

/// Rules for every configuration. The mode of sending may differ: a plan of the command line brings
/// its own ([`Call::Load`]).
#[derive(Clone, Debug)]
pub struct Rules {
    /// The engine's.
    pub settings: Settings,
    /// The ports'.
    pub ports: PortRules,
    /// What 100 per cent means on ports without a line rate of their own.
    pub line_rate: Option<crate::pacing::LineRate>,
    /// Where a configuration may have its ports.
    pub locations: Policy,
    /// True if captures include the FCS of frames.
    pub capture_fcs: bool,
    /// Frames from the command line that flows send instead of their own.
    pub replays: Replays,
    /// The run number of the first start. If it is random, frames of another generator, or of an
    /// earlier one, most likely have another run number.
    pub first_run: u8,
}

impl Rules {
    /// The limits of a configuration.
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
    active: Active<'eal>,
    pending: Option<Pending>,
    jobs: std_mpsc::Sender<Job<'eal>>,
    reports: mpsc::Receiver<Report<'eal>>,
    progress: Progress,
    /// The job in progress.
    setting: Option<Setting>,
    /// Calls that wait for its end, each with its deadline, in order of arrival.
    waiting: VecDeque<(Option<Instant>, Message)>,
    /// Calls were dropped without an answer, and their memory is not given back yet.
    forgotten: bool,
    /// Capture files that are being sent to clients, those of earlier configurations included.
    sending: Sending,
    /// The capture file that is being made.
    making: Option<Making>,
    /// Requests for further capture files, in order of arrival.
    files: VecDeque<(Value, oneshot::Sender<Result<Answer, ApiError>>)>,
    /// Run number of the next start.
    run: u8,
}

/// A job of the configurator that is in progress.
struct Setting {
    answer: oneshot::Sender<Result<Answer, ApiError>>,
    _alone: Option<OwnedSemaphorePermit>,
}

impl<'run, 'eal> Control<'run, 'eal> {
    /// Returns a control plane without a configuration, and the configurator, whose thread
    /// [`Configurator::start`] starts.
    pub fn new(
        eal: &'eal dpdk::Eal,
        desk: &'run Desk<'eal>,
        rules: Rules,
    ) -> (Self, Configurator<'eal>) {
        let (jobs, to_do) = std_mpsc::channel();
        let (report, reports) = mpsc::channel(1);
        let configurator = Configurator::new(eal, rules.clone(), to_do, report);
        let control = Control {
            desk,
            active: Active { config: Bytes::from_static(b"{}"), ..Active::default() },
            pending: None,
            jobs,
            reports,
            progress: configurator.progress(),
            setting: None,
            waiting: VecDeque::new(),
            forgotten: false,
            sending: Sending::default(),
            making: None,
            files: VecDeque::new(),
            run: rules.first_run,
            rules,
        };
        (control, configurator)
    }

    /// Serves calls until all callers are gone.
    pub async fn serve(
        mut self,
        mut calls: mpsc::Receiver<Message>,
        mut questions: mpsc::Receiver<Question>,
    ) {
        let mut links = tokio::time::interval(LOOK_AT_LINKS);
        links.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut neighbors = tokio::time::interval(LOOK_AT_NEIGHBORS);
        neighbors.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let looks = self.pending.is_some() || self.active.captures.are_running();
            let waits = self.waiting.iter().filter_map(|(until, _)| *until).min();
            tokio::select! {
                call = calls.recv() => match call {
                    Some(message) => self.take(message).await,
                    None => return,
                },
                report = self.reports.recv() => match report {
                    Some(report) => self.go_on(report).await,
                    // Its thread has failed.
                    None => return,
                },
                Some(question) = questions.recv() => {
                    // The client may have stopped waiting.
                    let answer = self.active.telemetry(&question, &self.rules.settings);
                    let _ = question.answer.try_send(answer);
                }
                _ = links.tick() => self.active.note_links(),
                _ = neighbors.tick(), if self.active.devices.are_on() => {
                    self.look_at_neighbors().await;
                }
                () = tokio::time::sleep(LOOK), if looks => {
                    self.active.captures.collect();
                    self.look_at_links().await;
                }
                () = sleep_until(waits), if waits.is_some() => self.refuse_late(),
                made = Making::made(&mut self.making), if self.making.is_some() => {
                    if let Some(making) = self.making.take() {
                        making.send(made);
                    }
                    self.make_files();
                }
            }
        }
    }

    /// Handles a call now, or after the configuration on which it depends has been set.
    async fn take(&mut self, message: Message) {
        if self.setting.is_none() || self.is_for_now(&message.call) {
            return self.handle(message).await;
        }
        // Calls of clients that have disconnected keep neither memory nor a turn.
        let before = self.waiting.len();
        self.waiting.retain(|(_, waiting)| !waiting.answer.is_closed());
        self.forgotten |= self.waiting.len() < before;
        let until = match message.call {
            Call::SetConfig(_) | Call::Load(_) => None,
            _ => Some(Instant::now() + PATIENCE),
        };
        let configurations = self.waiting.iter().filter(|(until, _)| until.is_none()).count();
        if until.is_none() && configurations >= MAX_WAITING {
            let _ = message.answer.send(Err(ApiError::request(
                503,
                format!(
                    "{MAX_WAITING} configurations wait for one that is being set ({}): ask again later",
                    self.progress.describe()
                ),
            )));
            return;
        }
        self.waiting.push_back((until, message));
    }

    /// Returns true if a call is about the configuration in force, whatever the next one is.
    fn is_for_now(&self, call: &Call) -> bool {
        match call {
            Call::GetConfig | Call::Metrics(_) | Call::States(_) | Call::Capture(_) => true,
            Call::SetState(value) => matches!(
                self.wanted_state(value),
                Ok(state::Wanted::Transmit {
                    state: state::Transmit::Stop | state::Transmit::Pause,
                    ..
                })
            ),
            Call::SetConfig(_) | Call::UpdateConfig(_) | Call::EditConfig(..) | Call::Load(_) => {
                false
            }
        }
    }

    /// Refuses calls that have waited long enough, with the progress of the configuration.
    fn refuse_late(&mut self) {
        let now = Instant::now();
        let (late, waiting): (VecDeque<_>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(until, _)| until.is_some_and(|until| until <= now));
        self.waiting = waiting;
        for (_, message) in late {
            let _ = message.answer.send(Err(ApiError::request(
                409,
                format!(
                    "a configuration is being set ({}): ask again when it is",
                    self.progress.describe()
                ),
            )));
        }
    }

    /// Gives up starts that wait for a configuration, because another request stops traffic.
    fn forget_waiting_starts(&mut self) {
        let (starts, waiting): (VecDeque<_>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(_, message)| message.call.is_start());
        self.waiting = waiting;
        for (_, message) in starts {
            let _ = message.answer.send(Err(ApiError::request(
                409,
                "the start was waiting for a configuration when another request replaced it",
            )));
        }
    }

    async fn handle(&mut self, message: Message) {
        let result = match message.call {
            Call::GetConfig => Ok(Answer::Text(self.active.config.clone())),
            Call::SetConfig(value) => {
                let task = Task::Set(Wanted::Posted(value), self.active.ports.clone());
                return self.begin(task, message.answer, message.alone);
            }
            Call::Load(ready) => {
                let task = Task::Set(Wanted::Ready(ready), self.active.ports.clone());
                return self.begin(task, message.answer, message.alone);
            }
            Call::UpdateConfig(value) => {
                let task = Task::Update(value, self.current());
                return self.begin(task, message.answer, message.alone);
            }
            Call::EditConfig(..) if self.sends() => Err(ApiError::request(
                409,
                "flows are sending or paused: stop them before flows are appended or deleted",
            )),
            Call::EditConfig(edit, value) => {
                let task = Task::Edit(edit, value, self.current());
                return self.begin(task, message.answer, message.alone);
            }
            Call::Metrics(value) => {
                return self.metrics(&value, message.answer, message.alone);
            }
            Call::States(value) => self.states(&value),
            Call::Capture(value) => match capture::request(&value, &self.port_names()) {
                Ok(_) => return self.queue_file(value, message.answer),
                Err(error) => Err(error),
            },
            Call::SetState(value) => match self.wanted_state(&value) {
                Ok(state::Wanted::Transmit { state: state::Transmit::Start, flows }) => {
                    return self.start(flows, message.answer).await;
                }
                Ok(wanted) => self.set_state(wanted).await,
                Err(error) => Err(error),
            },
        };
        // The client may be gone.
        let _ = message.answer.send(result);
    }

    /// The configuration in force, for a change of it.
    fn current(&self) -> Current<'eal> {
        Current {
            config: self.active.config.clone(),
            plan: self.active.plan.clone(),
            ports: self.active.ports.clone(),
            homes: self.active.homes.clone(),
            destinations: self.active.devices.destinations().to_vec(),
        }
    }

    /// Returns true if any flow sends or is paused.
    fn sends(&self) -> bool {
        self.active.books.tx.iter().any(|flow| flow.state() != State::Stopped)
    }

    /// Gives the configurator a job. It must have no other one.
    fn begin(
        &mut self,
        task: Task<'eal>,
        answer: oneshot::Sender<Result<Answer, ApiError>>,
        alone: Option<OwnedSemaphorePermit>,
    ) {
        let large =
            alone.is_some() || self.active.config.len() > LARGE_BODY || !self.waiting.is_empty();
        self.progress.begin();
        match self.jobs.send(Job { task, large }) {
            Ok(()) => self.setting = Some(Setting { answer, _alone: alone }),
            Err(_) => drop(answer.send(Err(ending()))),
        }
    }

    /// Continues with the configurator's result.
    async fn go_on(&mut self, report: Report<'eal>) {
        match report {
            Report::Next(next) => self.put_in_force(*next).await,
            Report::Changed(changed) => self.change(*changed).await,
            Report::Ended(result) => {
                if let Some(setting) = self.setting.take() {
                    let _ = setting.answer.send(result);
                }
                while self.setting.is_none()
                    && let Some((_, message)) = self.waiting.pop_front()
                {
                    if message.answer.is_closed() {
                        self.forgotten = true;
                    } else {
                        self.handle(message).await;
                    }
                }
                if std::mem::take(&mut self.forgotten) {
                    tokio::task::spawn_blocking(dpdk::trim_heap);
                }
            }
        }
    }

    /// Puts a configuration in force. What it replaced is sent back, to be dropped on another
    /// thread.
    async fn put_in_force(&mut self, next: Next<'eal>) {
        self.forget_pending();
        self.rules.settings = next.settings;
        let active = std::mem::replace(&mut self.active, next.active);
        let (done, old) = oneshot::channel();
        self.desk.load(Load { ports: next.sources, stations: next.stations, done });
        // No answer means that the engine has ended.
        if let Ok(given_up) = old.await {
            let _ = next.replaced.send(Replaced { active, given_up });
            self.listen_to_neighbors().await;
        }
    }

    /// Changes flows of the configuration in force.
    async fn change(&mut self, changed: Changed) {
        self.active.plan = changed.plan;
        self.active.config = changed.config;
        let mut changes = changed.changes.into_iter();
        let result = self.order(|| Order::Change(changes.next().unwrap_or_default())).await;
        let _ = changed.done.send(result);
    }

    fn port_names(&self) -> Vec<&str> {
        self.active.plan.ports.iter().map(|port| port.name.as_str()).collect()
    }

    fn wanted_state(&self, value: &Value) -> Result<state::Wanted, ApiError> {
        let flows: Vec<&str> =
            self.active.plan.flows.iter().map(|flow| flow.name.as_str()).collect();
        let devices = !self.active.plan.interfaces.is_empty();
        state::validate(value, &flows, &self.port_names(), devices)
    }

    async fn set_state(&mut self, wanted: state::Wanted) -> Result<Answer, ApiError> {
        match wanted {
            state::Wanted::Transmit { state, flows } => self.set_transmit(state, flows).await,
            state::Wanted::Link { up, ports } => self.set_links(up, &ports),
            state::Wanted::Capture { start, ports } => self.set_captures(start, &ports).await,
            state::Wanted::Protocols { start } => {
                self.set_protocols(start);
                Ok(no_warnings())
            }
            state::Wanted::Nothing(why) => Ok(Answer::Json(json!({ "warnings": [why] }))),
        }
    }

    /// Gives an order to every lcore and waits until all have carried it out. What they replaced is
    /// dropped here.
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

    /// Answers with metrics. Those of many flows are collected on another thread.
    /// Few are collected at a time: `turn` is held until it is done.
    fn metrics(
        &mut self,
        value: &Value,
        answer: oneshot::Sender<Result<Answer, ApiError>>,
        turn: Option<OwnedSemaphorePermit>,
    ) {
        let request = match self.metrics_request(value) {
            Ok(request) => request,
            Err(error) => return drop(answer.send(Err(error))),
        };
        self.active.sample();
        let settings = self.rules.settings;
        let rows = |flow: &usize| {
            let tags = self.active.plan.flows.get(*flow).and_then(|flow| flow.tags.as_ref());
            1 + tags.map_or(0, |tags| tags.rows)
        };
        match &request {
            metrics::Request::Flows { flows, .. }
                if flows.iter().map(rows).sum::<usize>() > FEW_ROWS =>
            {
                let view = self.active.view();
                tokio::task::spawn_blocking(move || {
                    if !answer.is_closed() {
                        let text = view.figures(request, &settings).text();
                        drop(answer.send(Ok(Answer::Text(text.into()))));
                    }
                    drop(turn);
                });
            }
            _ => {
                let figures = self.active.figures(request, &settings);
                drop(answer.send(Ok(Answer::Json(figures.json()))));
            }
        }
    }

    fn metrics_request(&self, value: &Value) -> Result<metrics::Request, ApiError> {
        let flows: Vec<_> = self.active.plan.flows.iter().map(metrics::Known::from).collect();
        metrics::validate(value, &self.port_names(), &flows)
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

/// Sleeps until that time, if there is one.
async fn sleep_until(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time.into()).await;
    }
}

/// How long a start waits for links to come up and for gateways to answer.
const LINK_TIMEOUT: Duration = Duration::from_secs(3);

/// The deadline of a wait for links and gateways that starts now.
fn link_deadline() -> Instant {
    Instant::now() + LINK_TIMEOUT
}
