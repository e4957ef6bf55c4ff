// SPDX-License-Identifier: BSD-3-Clause
//! Ports, queues and lcores on ring and null ports. One test, because DPDK starts once in a process.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dpdk::{
    Burst, Eal, LaunchError, Lcore, Mempool, PoolConfig, PortConfig, PortError, RxConfig, Scope,
    Stop, TxBuffer,
};
use support::started;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn ports_and_queues() {
    let eal = support::eal(&[
        "net_ring0",
        "net_null0,size=100",
        "net_null9,size=9000",
        // Recent releases keep only seven bytes of a name.
        "net_ring1,nodeaction=sib-a:0:CREATE,nodeaction=sib-b:0:CREATE",
    ]);
    let pool = Mempool::packet_pool(
        &eal,
        &PoolConfig { count: 8191, cache: 256, ..PoolConfig::named("packets") },
    )
    .unwrap();
    claims(&eal);
    ports_of_others_are_not_taken(&eal);
    a_device_with_other_ports_stays(&eal);
    too_many_queues(&eal, &pool);
    frames_come_back_in_order(&eal, &pool);
    a_full_ring_leaves_the_rest_in_the_burst(&eal, &pool);
    tx_buffer_sends_when_full_and_counts_drops(&eal, &pool);
    null_port_fills_bursts(&eal, &pool);
    a_port_says_where_it_is_and_how_fast(&eal, &pool);
    a_driver_cannot_make_a_packet_longer_than_its_buffer(&eal, &pool);
    hot_plug(&eal, &pool);
    unsafe_devices_are_refused(&eal);
    questions_meet_no_port_half_gone(&eal, &pool);
    whoever_asks_for_a_link_need_not_wait(&eal, &pool);
    scopes(&eal);
    work_is_asked_to_stop(&eal);
    threads_leave_the_lcores(&eal);
    an_lcore_takes_other_work(&eal);
    refused_work_may_launch_when_it_is_dropped(&eal);
    assert!(pool.is_full());
}

fn a_port_says_where_it_is_and_how_fast(eal: &Eal, pool: &Mempool<'_>) {
    let port = started(eal, pool, "net_ring0");
    let (link, text) = (port.control().link().unwrap(), port.control().link_text().unwrap());
    assert_eq!((link.up, link.speed_mbps), (true, Some(10_000)));
    assert!(text.starts_with("Link up at 10 Gbps FDX"), "{text}");
    assert_eq!(
        format!("{:?}", port.control()),
        format!("PortControl {{ id: {:?}, .. }}", port.id())
    );
    // A virtual device is on the NUMA node of the lcore that created it.
    assert_eq!(port.id().socket(), eal.main_lcore().socket());
    eal.log_info("a line of an application, with % and {}");
    eal.log_info("no line: \0");
}

fn claims(eal: &Eal) {
    let id = eal.ports()[0];
    assert_eq!(eal.port_named(&id.name().unwrap()), Some(id));
    assert_eq!(eal.port_named("net_ring7"), None);
    let port = eal.take_port(id).unwrap();
    assert!(matches!(eal.take_port(id), Err(PortError::Taken(taken)) if taken == id));
    drop(port);
    drop(eal.take_port(id).unwrap());
}

/// A port with an owner, such as a bonding device's member, cannot be taken.
fn ports_of_others_are_not_taken(eal: &Eal) {
    let id = eal.ports()[0];
    let mut owner = dpdk_sys::rte_eth_dev_owner { id: 0, name: [0; 64] };
    // SAFETY: plain out-parameters and a port that exists.
    unsafe {
        assert_eq!(dpdk_sys::rte_eth_dev_owner_new(&mut owner.id), 0);
        assert_eq!(dpdk_sys::rte_eth_dev_owner_set(id.index(), &owner), 0);
    }
    assert!(!eal.ports().contains(&id));
    assert!(matches!(eal.take_port(id), Err(PortError::Owned(port)) if port == id));
    // SAFETY: as above.
    assert_eq!(unsafe { dpdk_sys::rte_eth_dev_owner_unset(id.index(), owner.id) }, 0);
    drop(eal.take_port(id).unwrap());
}

/// Removing it would also remove the other port, which is in use.
fn a_device_with_other_ports_stays(eal: &Eal) {
    let before = eal.ports();
    let siblings: Vec<_> = before
        .iter()
        .filter(|id| id.name().is_some_and(|name| name.starts_with("sib-")))
        .copied()
        .collect();
    assert_eq!(siblings.len(), 2, "{before:?}");
    for id in siblings {
        let error = eal.detach(eal.take_port(id).unwrap()).unwrap_err();
        assert!(
            matches!(&error, PortError::Unsafe(name, _) if name.starts_with("sib-")),
            "{error}"
        );
    }
    assert_eq!(eal.ports(), before);
}

fn too_many_queues(eal: &Eal, pool: &Mempool<'_>) {
    let port = eal.take_port(eal.ports()[0]).unwrap();
    let max = port.info().unwrap().max_rx_queues;
    let rx = vec![RxConfig::new(pool); usize::from(max) + 1];
    let error = port.configure(&PortConfig { rx, ..PortConfig::default() }).unwrap_err();
    assert!(matches!(error, PortError::TooManyQueues { direction: "RX", .. }), "{error}");
}

/// A burst of packets whose bytes count up from `first`, packet by packet.
fn numbered<'m, const N: usize>(pool: &Mempool<'m>, first: u8) -> Burst<'m, N> {
    let mut burst = Burst::new();
    pool.fill(&mut burst, N).unwrap();
    for (index, mbuf) in burst.iter_mut().enumerate() {
        mbuf.resize(60).unwrap().fill(first.wrapping_add(index as u8));
    }
    burst
}

fn frames_come_back_in_order(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = started(eal, pool, "net_ring0");
    let control = port.control();
    assert!(control.link().unwrap().up);
    let mut queues = port.queues();
    let mut burst = numbered::<10>(pool, 1);
    assert_eq!(queues.tx[0].send(&mut burst), 10);
    assert!(burst.is_empty());
    let mut back = Burst::<32>::new();
    let kept = numbered::<1>(pool, 0).drain().next().unwrap();
    assert!(back.push(kept).is_ok());
    assert_eq!(queues.rx[0].receive(&mut back), 10);
    let first: Vec<u8> = back.iter().map(|mbuf| mbuf.data()[0]).collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(queues.rx[0].receive(&mut back), 0);
    assert_eq!(control.stats().unwrap().ipackets, 10);
    drop(back);
    drop(queues);
    let port = port.stop().unwrap().start().unwrap();
    drop(port);
    assert!(pool.is_full());
}

fn a_full_ring_leaves_the_rest_in_the_burst(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = started(eal, pool, "net_ring0");
    let mut queues = port.queues();
    let mut accepted = 0u64;
    let mut burst = Burst::<7>::new();
    let mut number = 0u8;
    while burst.is_empty() {
        burst = numbered(pool, number);
        let sent = queues.tx[0].send(&mut burst);
        number = number.wrapping_add(sent as u8);
        accepted += sent as u64;
    }
    assert_eq!(
        burst.as_slice()[0].data()[0],
        number,
        "what is left begins where the driver stopped"
    );
    assert_eq!(accepted as usize + burst.len(), pool.in_use());
    drop(burst);
    let mut back = Burst::<64>::new();
    let mut expected = 0u8;
    while queues.rx[0].receive(&mut back) > 0 {
        for mbuf in back.drain() {
            assert_eq!(mbuf.data()[0], expected);
            expected = expected.wrapping_add(1);
            accepted -= 1;
        }
    }
    assert_eq!(accepted, 0);
    assert!(pool.is_full());
}

fn tx_buffer_sends_when_full_and_counts_drops(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = started(eal, pool, "net_ring0");
    let queues = port.queues();
    let [mut rx] = <[_; 1]>::try_from(queues.rx).ok().unwrap();
    let [tx] = <[_; 1]>::try_from(queues.tx).ok().unwrap();
    let mut buffer = TxBuffer::<4>::new(tx);
    let mut sent = 0;
    for _ in 0..6 {
        sent += buffer.push(pool.alloc().unwrap());
    }
    assert_eq!((sent, buffer.pending()), (4, 2));
    assert_eq!(buffer.flush(), 2);
    let mut pushed = 6;
    while buffer.dropped() == 0 {
        sent += buffer.push(pool.alloc().unwrap());
        pushed += 1;
    }
    sent += 2;
    assert_eq!(sent as u64 + buffer.dropped() + buffer.pending() as u64, pushed);
    assert_eq!(pool.in_use() as u64, pushed - buffer.dropped());
    drop(buffer);
    let mut back = Burst::<64>::new();
    while rx.receive(&mut back) > 0 {
        sent -= back.len();
        back.clear();
    }
    assert_eq!(sent, 0);
    assert!(pool.is_full());
}

fn null_port_fills_bursts(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = started(eal, pool, "net_null0");
    let mut queues = port.queues();
    let mut burst = Burst::<32>::new();
    for _ in 0..1000 {
        assert_eq!(queues.rx[0].receive(&mut burst), 32);
        assert!(burst.iter().all(|mbuf| mbuf.packet_len() == 100));
        assert_eq!(queues.tx[0].send(&mut burst), 32);
    }
    assert!(pool.is_full());
}

fn a_driver_cannot_make_a_packet_longer_than_its_buffer(eal: &Eal, pool: &Mempool<'_>) {
    let mut port = started(eal, pool, "net_null9");
    let mut burst = Burst::<8>::new();
    assert_eq!(port.queues().rx[0].receive(&mut burst), 8);
    for mbuf in burst.iter_mut() {
        assert_eq!(mbuf.packet_len(), 9000, "as the driver says");
        assert_eq!(mbuf.data().len(), 2048, "what there is");
        mbuf.data_mut().unwrap().fill(0x41);
        assert_eq!(mbuf.segment_data().map(<[u8]>::len).sum::<usize>(), 2048);
    }
    drop(burst);
    eal.detach(port.stop().unwrap().unconfigure()).unwrap();
    assert!(pool.is_full());
}

fn unsafe_devices_are_refused(eal: &Eal) {
    let before = eal.ports();
    for arguments in [
        "net_ring5,internal=0x10",
        "net_ring5,nodeaction=r:0:ATTACH",
        "net_bonding0,slave=net_null0",
        "net_bonding0,slave=net_null0,mac=00:11:22:33:44:55",
        "vdev:net_failsafe0",
        "eth_bond0,slave=net_null0",
        "net_softnic0",
        "net_vdev_netvsc0",
        "eth_null5,copy=1",
        "net_null5,size=9000,copy=1",
        "bus=vdev,name=net_null5,copy=1",
        "net_memif5,socket=/bus=vdev,name=net_null5",
        "net_memif5,role=client,secret=zero-copy=yes",
        "net_pcap5,rx_iface",
        "net_no_such_driver0",
    ] {
        let error = eal.attach(arguments).unwrap_err();
        assert!(matches!(error, PortError::Unsafe(..)), "{arguments}: {error}");
    }
    assert_eq!(eal.ports(), before);
    let port = eal.take_port(eal.ports()[0]).unwrap();
    let error = port.configure(&PortConfig::default()).unwrap_err();
    assert!(matches!(error, PortError::NoQueues(_)), "{error}");
}

/// Queries from another thread while a port comes and goes.
fn questions_meet_no_port_half_gone(eal: &Eal, pool: &Mempool<'_>) {
    let done = AtomicBool::new(false);
    let control = eal.take_port(eal.ports()[0]).unwrap().control();
    let asked = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = (control.stats(), control.link(), control.mac());
                let _ = (control.set_promiscuous(true), control.id().name(), control.id().socket());
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut rounds = 0;
        while rounds < 20 || asked.load(Ordering::Relaxed) < 100 {
            drop(started(eal, pool, "net_ring0"));
            rounds += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A device that waits for its peer does not block other threads.
fn whoever_asks_for_a_link_need_not_wait(eal: &Eal, pool: &Mempool<'_>) {
    let port = started(eal, pool, "net_ring0");
    let control = port.control();
    let link = control.link().unwrap();
    assert_eq!(control.try_link().unwrap(), Some(link));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s");
    let arguments = format!("net_virtio_user0,path={},server=1", socket.display());
    std::thread::scope(|threads| {
        let attaching = threads.spawn(|| eal.attach(&arguments));
        while !socket.exists() {
            assert!(!attaching.is_finished(), "{:?}", attaching.join());
            std::thread::yield_now();
        }
        assert_eq!(control.try_link().unwrap(), None);
        assert!(!attaching.is_finished());
        // A client connects and leaves without a word, and the device gives up.
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            std::thread::yield_now();
        }
        assert!(attaching.join().unwrap().is_err());
    });
    assert_eq!(control.try_link().unwrap(), Some(link));
    drop(port);
}

fn hot_plug(eal: &Eal, pool: &Mempool<'_>) {
    let before = eal.ports();
    let error = eal.attach("net_memif7,role=nobody").unwrap_err();
    assert!(
        matches!(&error, PortError::Attach { arguments, .. } if arguments.ends_with("role=nobody")),
        "{error}"
    );
    for _ in 0..3 {
        let added = eal.attach("net_null7,size=64").unwrap();
        assert_eq!(added.len(), 1);
        let mut port = started(eal, pool, "net_null7");
        let mut burst = Burst::<8>::new();
        assert_eq!(port.queues().rx[0].receive(&mut burst), 8);
        drop(burst);
        eal.detach(port.stop().unwrap().unconfigure()).unwrap();
        assert_eq!(eal.ports(), before);
        assert!(matches!(eal.take_port(added[0]), Err(PortError::Absent(_))));
    }
}

fn scopes(eal: &Eal) {
    let main = eal.main_lcore();
    let counter = AtomicU64::new(0);
    let mut seen = BTreeSet::new();
    eal.scope(|scope| {
        assert!(matches!(scope.launch(main, || {}), Err(LaunchError::Main(_))));
        for lcore in eal.workers() {
            seen.insert(lcore.id());
            let counter = &counter;
            scope
                .launch(lcore, move || {
                    assert_eq!(dpdk::Lcore::current(), Some(lcore));
                    counter.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
        }
    });
    assert_eq!(counter.load(Ordering::Relaxed), seen.len() as u64);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            assert_eq!(dpdk::Lcore::current(), None);
            eal.scope(|scope| {
                assert!(matches!(scope.launch(main, || {}), Err(LaunchError::NotMain)));
            });
        });
    });
}

/// A thread that an lcore spawned has its CPU until it leaves it.
fn threads_leave_the_lcores(eal: &Eal) {
    let refused = eal.leave_lcores().unwrap_err().to_string();
    assert_eq!(refused, format!("lcore {} keeps its CPU", eal.main_lcore().id()));
    let pinned = host::allowed_cpus();
    assert_eq!(pinned.len(), 1);
    std::thread::scope(|threads| {
        let moved = threads.spawn(|| {
            assert_eq!(host::allowed_cpus(), pinned);
            eal.leave_lcores().unwrap();
            host::allowed_cpus()
        });
        // The lcores are on the first and the last CPU.
        let moved = moved.join().unwrap();
        assert!(moved == pinned || !moved.iter().any(|cpu| pinned.contains(cpu)), "{moved:?}");
    });
}

/// However the body of a scope ends, work that runs until it is asked to stop ends.
fn work_is_asked_to_stop(eal: &Eal) {
    let ends = |body: &dyn Fn(&AtomicU64) -> Result<(), &'static str>| {
        let (stop, running) = (Stop::new(), AtomicU64::new(0));
        let flag = stop.flag();
        let ended = eal.scope_until(&stop, |scope| {
            for lcore in eal.workers() {
                let (stop, running) = (&stop, &running);
                scope
                    .launch(lcore, move || {
                        running.fetch_add(1, Ordering::Relaxed);
                        while !stop.is_set() {
                            std::hint::spin_loop();
                        }
                        running.fetch_sub(1, Ordering::Relaxed);
                    })
                    .unwrap();
            }
            assert!(!stop.is_set());
            body(&running)
        });
        assert_eq!(running.load(Ordering::Relaxed), 0);
        assert!(stop.is_set() && flag.load(Ordering::Relaxed));
        ended
    };
    let all_run = |running: &AtomicU64| {
        while running.load(Ordering::Relaxed) < eal.workers().len() as u64 {
            std::thread::yield_now();
        }
    };
    let waits = |running: &AtomicU64| {
        all_run(running);
        Ok(())
    };
    assert_eq!(ends(&waits), Ok(()));
    assert_eq!(ends(&|_| Err("at once")), Err("at once"));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        ends(&|running| {
            all_run(running);
            panic!("in the body")
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"in the body"));
}

/// Tries to launch work when it is dropped.
struct Again<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    lcore: Lcore,
    busy: mpsc::Sender<bool>,
}

impl Drop for Again<'_, '_> {
    fn drop(&mut self) {
        let refused = self.scope.launch(self.lcore, || {});
        let _ = self.busy.send(matches!(refused, Err(LaunchError::Busy(_))));
    }
}

/// Within one scope, after the previous work has returned.
fn an_lcore_takes_other_work(eal: &Eal) {
    let Some(&lcore) = eal.workers().first() else { return };
    let (runs, end) = (AtomicU64::new(0), Instant::now() + PATIENCE);
    let run = || {
        runs.fetch_add(1, Ordering::Relaxed);
    };
    eal.scope(|scope| {
        scope.launch(lcore, run).unwrap();
        loop {
            match scope.launch(lcore, run) {
                Ok(()) => return,
                Err(LaunchError::Busy(busy)) => assert_eq!(busy, lcore),
                Err(error) => panic!("{error}"),
            }
            assert!(Instant::now() < end, "it has returned, and is busy");
        }
    });
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

fn refused_work_may_launch_when_it_is_dropped(eal: &Eal) {
    let Some(&lcore) = eal.workers().first() else { return };
    let (busy, is_busy) = mpsc::channel();
    let ends = AtomicBool::new(false);
    // Work can be launched only on this thread, which might wait for itself: another one watches
    // the time.
    let watch = std::thread::spawn(move || {
        if is_busy.recv_timeout(PATIENCE) != Ok(true) {
            eprintln!("work that was refused waits for ever, or was not refused");
            std::process::abort();
        }
    });
    eal.scope(|scope| {
        let ends = &ends;
        scope
            .launch(lcore, move || {
                while !ends.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
            .unwrap();
        let again = Again { scope, lcore, busy };
        let refused = scope.launch(lcore, move || drop(again));
        ends.store(true, Ordering::Relaxed);
        assert!(matches!(refused, Err(LaunchError::Busy(_))));
    });
    watch.join().unwrap();
}
