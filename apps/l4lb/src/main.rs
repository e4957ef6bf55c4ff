// SPDX-License-Identifier: BSD-3-Clause
//! A layer 4 load balancer: `l4lb [EAL options] -- [--config FILE] [--connections N] [--graph fused|librte]`
//!
//! Packets to the VIPs of a configuration go to their backends, by IPIP, GRE, VXLAN or NAT, over IPv4 and IPv6; the answers of NAT's
//! backends go back. README.md says more.
//!
//! # Threads
//! Each lcore polls queues of its own, and has connections of its own (`worker`). The tables are shared, and exchanged as a whole
//! (`tables`). One thread more is the control plane (`control`).
#![forbid(unsafe_code)]

mod balancer;
mod capture;
mod config;
mod control;
mod counters;
mod nodes;
mod options;
mod packets;
mod ports;
mod tables;
mod way;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use dpdk::dynfield::DynField;
use dpdk::qsbr::{Qsbr, Replaceable};
use dpdk::{Eal, Lcore, Mempool, Stop};
use packet::MacAddr;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use balancer::Balancer;
use capture::Captures;
use config::Config;
use control::{Control, Names};
use counters::{Counters, LcoreReader, Totals};
use nodes::GraphWorker;
use options::{Engine, Options};
use tables::{Numbers, Tables};
use worker::{QueuePair, Worker};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (eal, arguments) = Eal::init(std::env::args_os())?;
    let options = Options::parse(arguments)?;
    let config = Config::read(&options.config)?;
    let (stop, hangup) = (Stop::new(), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.flag())?;
    }
    signal_hook::flag::register(SIGHUP, Arc::clone(&hangup))?;

    let lcores = eal.lcores();
    let ports = eal.ports();
    let pool = Mempool::packet_pool(&eal, &ports::pool(ports.len(), lcores.len()))?;
    let mut ports = ports
        .into_iter()
        .map(|id| ports::start(&eal, id, &pool, lcores.len()))
        .collect::<Result<Vec<_>>>()?;
    let own = match ports.first() {
        Some(port) => MacAddr(port.control().mac()?),
        None => return Err("no port: add one with --vdev net_ring0 or -a".into()),
    };

    let mut numbers = Numbers::default();
    let first = Tables::new(&eal, &config, own, &mut numbers)?;
    let qsbr = Qsbr::new(lcores.len() as u16);
    let tables = Replaceable::new(&qsbr, first);

    let mut captures = Captures::new();
    let queues = ports::deal(&mut ports, &lcores, &mut captures)?;
    let mut works = Vec::new();
    for queues in queues {
        works.push(Work::new(&eal, &options, &qsbr, &tables, queues)?);
    }
    let totals = Totals::new(works.iter().flat_map(Work::counters).collect());
    let names: Names = Arc::new(Mutex::new(numbers.names()));
    let totals = Arc::new(totals);
    let requests = control::publish(&eal, &totals, &names)?;
    let control = Control {
        eal: &eal,
        config: options.config.clone(),
        own,
        tables: &tables,
        numbers,
        captures,
        hangup,
        names,
    };

    let stop = &stop;
    std::thread::scope(|threads| -> Result<()> {
        threads.spawn(move || {
            let _ends = stop.guard();
            // If that is refused, it shares the main lcore's CPU.
            let _ = control.eal.leave_lcores();
            control.run(&requests, stop);
        });
        // However this or the control plane ends, the others end too.
        eal.scope_until(stop, |scope| -> Result<()> {
            let mut own_work = None;
            for (lcore, work) in lcores.iter().zip(works) {
                if *lcore == eal.main_lcore() {
                    own_work = Some((*lcore, work));
                    continue;
                }
                let (eal, lcore) = (&eal, *lcore);
                scope.launch(lcore, move || work.run(eal, lcore, stop))?;
            }
            println!("{} ports on {} lcores", eal.ports().len(), lcores.len());
            if let Some((lcore, work)) = own_work {
                work.run(&eal, lcore, stop);
            }
            Ok(())
        })
    })?;
    for (name, packets) in totals.all() {
        println!("{name} {packets}");
    }
    for port in ports {
        port.stop()?;
    }
    Ok(())
}

/// The work of an lcore, as a loop or as a graph.
enum Work<'p, 'e, 'q, 't> {
    Loop(Worker<'p, 'e, 'q, 't>),
    Graph(Engine, GraphWorker<'p, 'e, 'q, 't>),
}

impl<'p, 'e, 'q, 't> Work<'p, 'e, 'q, 't> {
    fn new(
        eal: &'e Eal,
        options: &Options,
        qsbr: &'q Qsbr,
        tables: &'t Replaceable<'q, Tables<'e>>,
        queues: Vec<QueuePair<'p>>,
    ) -> Result<Self> {
        let balancer = Balancer::new(options.connections)?;
        if options.engine == Engine::Loop {
            return Ok(Self::Loop(Worker { queues, reader: qsbr.register()?, tables, balancer }));
        }
        let graph = GraphWorker {
            queues,
            reader: qsbr.register()?,
            tables,
            balancer,
            counters: [Counters::new(), Counters::new()],
            ticket: DynField::register(eal, "l4lb_ticket")?,
        };
        Ok(Self::Graph(options.engine, graph))
    }

    fn counters(&self) -> Vec<LcoreReader> {
        match self {
            Self::Loop(worker) => vec![worker.balancer.counters.reader()],
            Self::Graph(_, graph) => {
                let others = graph.counters.iter().map(Counters::reader);
                others.chain([graph.balancer.counters.reader()]).collect()
            }
        }
    }

    fn run(self, eal: &'e Eal, lcore: Lcore, stop: &Stop) {
        match self {
            Self::Loop(worker) => worker.run(stop),
            Self::Graph(Engine::Librte, graph) => {
                let name = format!("l4lb_{}", lcore.id());
                if let Err(error) = graph.run_librte(eal, &name, stop) {
                    eprintln!("error: {error}");
                    stop.set();
                }
            }
            Self::Graph(_, graph) => graph.run_fused(stop),
        }
    }
}
