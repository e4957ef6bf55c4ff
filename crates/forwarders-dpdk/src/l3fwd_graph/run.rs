// SPDX-License-Identifier: BSD-3-Clause
//! Starts lcores according to the options, and cleans up.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use dpdk::qsbr::{Qsbr, Reader, Replaceable};
use dpdk::telemetry::Value;
use dpdk::{Eal, Lcore, Port, PortControl, Queues, RxQueue, Started, TxQueue};
use forwarders_common::{say, say_on};

use super::commands::{self, Family, PAGE, Request, Wish};
use super::desk::Desk;
use super::error::{RunError, SetupError};
use super::nodes::{
    BURST, Classify, Discard, Filter, Ip4Lookup, Ip4Rewrite, Ip6Lookup, Ip6Rewrite, Receive,
    Transmit, addresses_by_port,
};
use super::options::Options;
use super::plan::Plan;
use super::rules::{self, IPV4, IPV6, Rules};
use super::screen::Screen;
use super::topology::{self, Router, Walked};
use super::{ports, routes};
use crate::ethernet::Addresses;
use crate::polling::{self, QueueFigures};
use crate::ports::await_links;
use crate::stop::Stop;

/// Routes until `stop` is set, then prints "Bye...", as the C example does.
///
/// # Errors
/// See [`RunError`]. Nothing is left running or configured.
pub fn start(eal: &Eal, options: &Options, stop: &Stop) -> Result<(), RunError> {
    let plan = plan(eal, options)?;
    let lcores: Vec<Lcore> =
        eal.lcores().into_iter().filter(|lcore| plan.lcores.contains(&lcore.id())).collect();
    let routes = routes::Tables::load(eal, options, stop)?;
    // The main lcore is a reader too, when counters are requested.
    let qsbr = Qsbr::new(lcores.len() as u16 + 1);
    let filters = Filters::load(eal, &qsbr, options, &lcores)?;
    if stop.is_raised() {
        stop.announce();
        return Ok(());
    }

    let (mut started, addresses) = ports::start(eal, &plan, options)?;
    let controls: Vec<PortControl<'_>> = started.iter().map(Port::control).collect();
    await_links(&controls, stop);
    let figures: Vec<Arc<QueueFigures>> = plan
        .queues
        .iter()
        .map(|polled| QueueFigures::with_limit(polled.lcore, polled.port, polled.queue, BURST))
        .map(Arc::new)
        .collect();
    polling::register(eal, figures.clone())?;
    let mut queues = QueuesByPort::of(&mut started);
    let mut jobs = Vec::new();
    for (place, lcore) in lcores.iter().enumerate() {
        let nodes = queues.router(&plan, place, *lcore, &figures, &routes, &addresses);
        let name = format!("worker_{}", lcore.id());
        let graph = if filters.are_none() {
            topology::make(eal, options.executor, &name, nodes)?
        } else {
            let filter = Filter::new(&filters.tables, qsbr.register()?, place);
            topology::make(eal, options.executor, &name, nodes.filtered(filter))?
        };
        jobs.push((*lcore, graph, Arc::new(Desk::new(lcore.id()))));
    }
    let desks: Vec<Arc<Desk>> = jobs.iter().map(|(.., desk)| Arc::clone(desk)).collect();
    let dot = jobs.first().map(|(_, graph, _)| graph.dot()).unwrap_or_default();
    say!("{dot}");
    let requests = commands::register(eal, &desks, dot)?;
    let mut office = Office { filters: &filters, reader: qsbr.register()?, eal, number: 1 };
    let screen = Screen::new(desks);
    eal.scope(|scope| {
        let launched = jobs.into_iter().try_for_each(|(lcore, graph, desk)| {
            scope.launch(lcore, move || walk(eal, lcore, graph, &desk, stop))
        });
        if launched.is_err() {
            stop.raise();
        }
        office.serve(&requests, screen, stop);
        launched
    })?;
    drop(requests);
    stop.announce();
    drop(queues);
    for port in started {
        say_on!("Closing port {}...", port.id());
        port.stop()?;
        say!(" Done");
    }
    say!("Bye...");
    Ok(())
}

fn plan(eal: &Eal, options: &Options) -> Result<Plan, SetupError> {
    let present: Vec<u16> = eal.ports().iter().map(|port| port.index()).collect();
    let workers: Vec<u32> = eal.workers().iter().map(|lcore| lcore.id()).collect();
    Ok(Plan::new(options, &present, eal.main_lcore().id(), &workers)?)
}

/// An lcore's loop.
fn walk(eal: &Eal, lcore: Lcore, mut graph: Walked<'_>, desk: &Desk, stop: &Stop) {
    eal.log_info(&format!("L3FWD_GRAPH: entering main loop on lcore {}", lcore.id()));
    while !stop.is_raised() {
        graph.walk();
        desk.serve(&*graph);
    }
    desk.close(&*graph);
}

/// The queues of the started ports, each to be taken once.
struct QueuesByPort<'port> {
    rx: BTreeMap<(u16, u16), RxQueue<'port>>,
    tx: BTreeMap<(u16, u16), TxQueue<'port>>,
}

impl<'port> QueuesByPort<'port> {
    fn of(started: &'port mut [Port<'_, Started>]) -> Self {
        let (mut rx, mut tx) = (BTreeMap::new(), BTreeMap::new());
        for port in started {
            let id = port.id().index();
            let queues: Queues<'port> = port.queues();
            rx.extend(queues.rx.into_iter().map(|queue| ((id, queue.queue()), queue)));
            tx.extend(queues.tx.into_iter().map(|queue| ((id, queue.queue()), queue)));
        }
        Self { rx, tx }
    }

    /// The nodes of the lcore with that index in the plan.
    fn router(
        &mut self,
        plan: &Plan,
        place: usize,
        lcore: Lcore,
        figures: &'port [Arc<QueueFigures>],
        routes: &'port routes::Tables<'_>,
        addresses: &BTreeMap<u16, Addresses>,
    ) -> Router<'port> {
        let polled =
            plan.queues.iter().zip(figures).filter(|(polled, _)| polled.lcore == lcore.id());
        let rx = polled
            .filter_map(|(polled, figures)| {
                Some((self.rx.remove(&(polled.port, polled.queue))?, &**figures))
            })
            .collect();
        let tx = plan
            .ports
            .iter()
            .filter_map(|port| Some((*port, self.tx.remove(&(*port, place as u16))?)))
            .collect();
        let by_port = addresses_by_port(addresses);
        Router {
            rx: Receive::new(rx),
            classify: Classify,
            lookup4: Ip4Lookup::new(routes.ipv4.of(lcore).lookups(), routes.spread),
            lookup6: Ip6Lookup(routes.ipv6.of(lcore)),
            rewrite4: Ip4Rewrite(by_port),
            rewrite6: Ip6Rewrite(by_port),
            tx: Transmit::new(tx),
            not_ip: Discard,
            no_route: Discard,
            expired: Discard,
            unsent: Discard,
        }
    }
}

/// The access control lists and what is needed to make new ones.
struct Filters<'q, 'eal> {
    tables: rules::Tables<'q, 'eal>,
    read: rules::ReadOptions,
    lcores: &'q [Lcore],
}

impl<'q, 'eal> Filters<'q, 'eal> {
    fn load(
        eal: &'eal Eal,
        qsbr: &'q Qsbr,
        options: &Options,
        lcores: &'q [Lcore],
    ) -> Result<Self, SetupError> {
        let read = rules::ReadOptions::of(options);
        let ipv4 = options.rules_ipv4.as_deref();
        let ipv6 = options.rules_ipv6.as_deref();
        let ipv4 = ipv4.map(|file| rules::load::<Ipv4Addr, IPV4>(eal, file, read, lcores, 0));
        let ipv6 = ipv6.map(|file| rules::load::<Ipv6Addr, IPV6>(eal, file, read, lcores, 0));
        let tables = rules::Tables {
            ipv4: ipv4.transpose()?.map(|rules| Replaceable::new(qsbr, rules)),
            ipv6: ipv6.transpose()?.map(|rules| Replaceable::new(qsbr, rules)),
        };
        Ok(Self { tables, read, lcores })
    }

    fn are_none(&self) -> bool {
        self.tables.ipv4.is_none() && self.tables.ipv6.is_none()
    }
}

/// The main lcore's work while the others forward.
struct Office<'f, 'q, 'eal> {
    filters: &'f Filters<'q, 'eal>,
    reader: Reader<'f>,
    eal: &'eal Eal,
    /// The number of lists made so far for each family.
    number: u64,
}

impl<'q, 'eal> Office<'_, 'q, 'eal> {
    fn serve(&mut self, requests: &Receiver<Request>, mut screen: Screen, stop: &Stop) {
        /// How long it may take to notice the end.
        const PATIENCE: Duration = Duration::from_millis(20);
        while !stop.is_raised() {
            if let Ok(Request { wish, reply }) = requests.recv_timeout(PATIENCE.min(screen.due())) {
                // The client may be gone.
                let _ = reply.send(self.answer(wish));
            }
            screen.tick();
        }
    }

    fn answer(&mut self, wish: Wish) -> Value {
        let tables = &self.filters.tables;
        match wish {
            Wish::Rules => {
                let online = self.reader.online();
                let ipv4 = tables.ipv4.as_ref().map(|table| summary(table.read(&online)));
                let ipv6 = tables.ipv6.as_ref().map(|table| summary(table.read(&online)));
                let both = [("ipv4", ipv4), ("ipv6", ipv6)];
                Value::Dict(
                    both.into_iter()
                        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                        .collect(),
                )
            }
            Wish::Hits(Family::Ipv4, first) => self.hits(tables.ipv4.as_ref(), first),
            Wish::Hits(Family::Ipv6, first) => self.hits(tables.ipv6.as_ref(), first),
            Wish::Replace(Family::Ipv4, file) => {
                self.replace::<Ipv4Addr, IPV4>(tables.ipv4.as_ref(), "--rule_ipv4", &file)
            }
            Wish::Replace(Family::Ipv6, file) => {
                self.replace::<Ipv6Addr, IPV6>(tables.ipv6.as_ref(), "--rule_ipv6", &file)
            }
        }
    }

    fn hits<const FIELDS: usize>(
        &mut self,
        table: Option<&Replaceable<'q, Rules<'eal, FIELDS>>>,
        first: usize,
    ) -> Value {
        let Some(table) = table else {
            return commands::error("there are no rules of this family");
        };
        let online = self.reader.online();
        let rules = table.read(&online);
        let page = first.min(rules.rules.len())..first.saturating_add(PAGE).min(rules.rules.len());
        Value::dict([
            ("rules", (rules.rules.len() as u64).into()),
            ("first", (first as u64).into()),
            ("line", Value::Numbers(page.clone().map(|at| rules.rules[at].0 as u64).collect())),
            ("denies", Value::Numbers(page.clone().map(|at| rules.rules[at].1.into()).collect())),
            ("hits", Value::Numbers(page.map(|at| rules.hits(at)).collect())),
        ])
    }

    /// Lcores use the new rules from their next batch on. The old ones are freed when this returns.
    fn replace<A: rules::Family<FIELDS>, const FIELDS: usize>(
        &mut self,
        table: Option<&Replaceable<'q, Rules<'eal, FIELDS>>>,
        option: &str,
        file: &Path,
    ) -> Value {
        let Some(table) = table else {
            return commands::error(format!("the program was started without {option}"));
        };
        let Filters { read, lcores, .. } = *self.filters;
        match rules::load::<A, FIELDS>(self.eal, file, read, lcores, self.number) {
            Ok(rules) => {
                self.number += 1;
                drop(table.replace(rules)); // Waits until no lcore looks up in the old ones.
                summary(table.read(&self.reader.online()))
            }
            Err(error) => commands::error(error),
        }
    }
}

fn summary<const FIELDS: usize>(rules: &Rules<'_, FIELDS>) -> Value {
    let denying = rules.rules.iter().filter(|(_, denies)| *denies).count();
    Value::dict([
        ("file", Value::Text(rules.file.display().to_string())),
        ("rules", (rules.rules.len() as u64).into()),
        ("denying", (denying as u64).into()),
        ("unmatched", rules.unmatched().into()),
        ("warnings", (rules.warnings as u64).into()),
    ])
}
