// SPDX-License-Identifier: BSD-3-Clause
//! The C l2fwd and ours send the same frames over memif, byte by byte.
#![allow(clippy::unwrap_used, clippy::expect_used)] // A test may.

mod support;

use std::fs;
use std::path::Path;

use dpdk::{Burst, Eal, Mempool, PoolConfig, Port, PortControl, Started};
use support::{Forwarder, c_l2fwd, frames, memif, runtime_dir, serve, wait_until};

/// The frames sent by each port in use, in order.
type Output = Vec<Vec<Vec<u8>>>;

#[test]
fn frames_leave_as_they_leave_c() {
    let _cleanup = support::Cleanup;
    let eal = support::eal(&[]);
    let pool = Mempool::packet_pool(&eal, &PoolConfig::named("packets")).unwrap();
    let c = c_l2fwd();
    let ours = Path::new(env!("CARGO_BIN_EXE_l2fwd"));
    // The number of ports, those in use, and the options.
    let cases: &[(usize, &[usize], &[&str])] = &[
        (1, &[0], &["-p", "1", "-T", "0"]),
        (1, &[0], &["-p", "1", "-T", "0", "--no-mac-updating"]),
        (1, &[0], &["-p", "0x1", "-T", "1", "-P"]),
        (2, &[0, 1], &["-p", "3", "-q", "2", "-T", "0"]),
        (2, &[0, 1], &["-p", "3", "-q", "2", "-T", "0", "--no-mac-updating"]),
        (2, &[0, 1], &["-p", "3", "-q", "2", "-T", "0", "--portmap=(1,0)"]),
        (2, &[0, 1], &["-p", "3", "-q", "2", "-T", "0", "--portmap=(0,0)(1,1)"]),
        (2, &[1], &["-p", "2", "-T", "0"]),
        (3, &[0, 1, 2], &["-p", "7", "-q", "3", "-T", "0"]),
        (3, &[0, 2], &["-p", "5", "-q", "2", "-T", "0"]),
        (3, &[1, 2], &["-p", "7", "-q", "3", "-T", "0", "--portmap=(2,1)"]),
        // On two lcores.
        (2, &[0, 1], &["-p", "3", "-T", "0"]),
        (3, &[0, 1, 2], &["-p", "7", "-q", "2", "-T", "0"]),
        (4, &[0, 1, 2, 3], &["-p", "f", "-q", "4", "-T", "0"]),
        (4, &[0, 1, 2, 3], &["-p", "f", "-q", "4", "-T", "0", "--portmap=(0,3)(2,1)"]),
    ];
    for &(ports, used, options) in cases {
        let expected = forward(&eal, &pool, &c, ports, used, options);
        assert_eq!(expected.iter().map(Vec::len).sum::<usize>(), frames().len() * used.len());
        let buffered = forward(&eal, &pool, ours, ports, used, options);
        assert!(buffered == expected, "{options:?}: other frames than C's");
        let burst = [options, &["--burst-forwarding"]].concat();
        assert!(forward(&eal, &pool, ours, ports, used, &burst) == expected, "{burst:?}");
    }
    let echoed = forward(&eal, &pool, Path::new(env!("CARGO_BIN_EXE_reflect")), 1, &[0], &[]);
    assert!(
        echoed[0].iter().eq(frames().iter().map(|frame| swapped(frame)).collect::<Vec<_>>().iter())
    );
    what_a_port_refuses_is_counted(&eal, &pool);
    assert!(pool.is_full());
}

/// A null port floods a memif port whose far end accepts nothing.
fn what_a_port_refuses_is_counted(eal: &Eal, pool: &Mempool<'_>) {
    let file = runtime_dir().join("refused.json");
    let stats = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default()
    };
    for more in [&[][..], &["--burst-forwarding"]] {
        let server = serve(eal, pool, 0);
        let path = file.to_str().unwrap();
        let always = ["-p", "3", "-q", "2", "-T", "1", "--json-stats", path];
        let mut forwarder = Forwarder::start(
            Path::new(env!("CARGO_BIN_EXE_l2fwd")),
            &["net_null0,size=64".to_owned(), memif(0, "client")],
            &[&always, more].concat(),
        );
        wait_until("refused packets", || stats()["total"]["dropped"].as_u64() > Some(0));
        assert!(forwarder.stop().success(), "{}", forwarder.err());
        let (total, ports) = (&stats()["total"], &stats()["ports"]);
        let count = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
        assert_eq!(count(total, "received"), count(total, "sent") + count(total, "dropped"));
        assert_eq!(count(&ports[0], "dropped"), 0, "a null port takes everything");
        assert_eq!(count(&ports[1], "sent"), count(&ports[1]["ethdev"], "opackets"));
        assert!(count(&ports[1], "dropped") > 0);
        fs::remove_file(&file).unwrap();
        eal.detach(server.stop().unwrap().unconfigure()).unwrap();
    }
}

fn swapped(frame: &[u8]) -> Vec<u8> {
    match frame.split_at_checked(12) {
        Some((addresses, rest)) => [&addresses[6..], &addresses[..6], rest].concat(),
        None => frame.to_vec(),
    }
}

/// Sends every frame into every port that a forwarder uses, and returns the frames that came back
/// from each.
fn forward(
    eal: &Eal,
    pool: &Mempool<'_>,
    program: &Path,
    ports: usize,
    used: &[usize],
    options: &[&str],
) -> Output {
    let mut servers: Vec<Port<'_, Started>> =
        used.iter().map(|&port| serve(eal, pool, port)).collect();
    let clients: Vec<String> = (0..ports).map(|port| memif(port, "client")).collect();
    let mut forwarder = Forwarder::start(program, &clients, options);
    let controls: Vec<PortControl<'_>> = servers.iter().map(Port::control).collect();
    wait_until("link", || controls.iter().all(|port| port.link().unwrap().up));

    let output = exchange(&mut servers, pool);
    let status = forwarder.stop();
    assert!(status.success(), "{}: {status}", program.display());
    for server in servers {
        eal.detach(server.stop().unwrap().unconfigure()).unwrap();
    }
    assert!(pool.is_full(), "{options:?}: {} mbufs are missing", pool.in_use());
    output
}

fn exchange(servers: &mut [Port<'_, Started>], pool: &Mempool<'_>) -> Output {
    let mut queues: Vec<_> = servers.iter_mut().map(Port::queues).collect();
    let mut output: Output = queues.iter().map(|_| Vec::new()).collect();
    let mut burst = Burst::<64>::new();
    for chunk in frames().chunks(64) {
        for queues in &mut queues {
            pool.fill(&mut burst, chunk.len()).unwrap();
            for (mbuf, frame) in burst.iter_mut().zip(chunk) {
                mbuf.resize(frame.len()).unwrap().copy_from_slice(frame);
            }
            wait_until("room in the ring", || {
                queues.tx[0].send(&mut burst);
                burst.is_empty()
            });
        }
        let expected = output.iter().map(Vec::len).sum::<usize>() + chunk.len() * output.len();
        wait_until("frames", || {
            for (queues, output) in queues.iter_mut().zip(&mut output) {
                queues.rx[0].receive(&mut burst);
                output.extend(burst.drain().map(|mbuf| mbuf.data().to_vec()));
            }
            output.iter().map(Vec::len).sum::<usize>() >= expected
        });
    }
    output
}
