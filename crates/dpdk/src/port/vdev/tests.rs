// SPDX-License-Identifier: BSD-3-Clause
#![allow(clippy::unwrap_used)] // A test may.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::port::device;

fn verdict<V: Vdev>(device: &V) -> Result<(), VdevError> {
    device.arguments().check(V::DRIVER)?;
    device.check()
}

/// Every device that a builder accepts is accepted by the check of all devices.
fn accepted<V: Vdev>(device: &V) -> String {
    assert_eq!(verdict(device), Ok(()), "{device}");
    assert_eq!(device::check(&device.to_string()), Ok(()), "{device}");
    device.to_string()
}

#[test]
fn every_argument_is_written_as_eal_reads_it() {
    let mac = [2, 0, 0, 0, 0xab, 1];
    assert_eq!(
        accepted(&Null::new("net_null_a").size(64).no_rx(true)),
        "net_null_a,size=64,no-rx=1"
    );
    assert_eq!(accepted(&Ring::new("net_ring7")), "net_ring7");
    assert_eq!(
        accepted(
            &Memif::new("net_memif0")
                .role(Role::Server)
                .abstract_socket("lab")
                .id(1)
                .buffer_size(2048)
                .ring_size_log2(12)
                .mac(mac)
                .secret("word")
        ),
        "net_memif0,role=server,socket=lab,socket-abstract=yes,id=1,bsize=2048,rsize=12,\
         mac=02:00:00:00:ab:01,secret=word"
    );
    assert_eq!(
        accepted(
            &AfPacket::new("net_af_packet0", "eth0")
                .block_size(8192)
                .frame_size(4096)
                .frame_count(256)
                .qdisc_bypass(true)
        ),
        "net_af_packet0,iface=eth0,blocksz=8192,framesz=4096,framecnt=256,qdisc_bypass=1"
    );
    assert_eq!(
        accepted(
            &AfXdp::new("net_af_xdp0", "eth0").xdp_program("/p.o").busy_budget(0).force_copy(true)
        ),
        "net_af_xdp0,iface=eth0,xdp_prog=/p.o,busy_budget=0,force_copy=1"
    );
    assert_eq!(
        accepted(&Tap::new("net_tap0").mac(TapMac::Address(mac)).remote("eth0")),
        "net_tap0,mac=02:00:00:00:ab:01,remote=eth0"
    );
    assert_eq!(accepted(&Pcap::new("net_pcap0").interface("lo")), "net_pcap0,iface=lo");
    assert_eq!(
        accepted(&Pcap::new("net_pcap0").send_file("/tmp/a[1].pcap")),
        "net_pcap0,tx_pcap=/tmp/a[1].pcap"
    );
    assert_eq!(
        accepted(&Pcap::new("net_pcap0").receive_file("a b.pcap").again_and_again(true)),
        "net_pcap0,rx_pcap=a b.pcap,infinite_rx=1"
    );
    assert_eq!(
        accepted(&Vhost::new("net_vhost0", "/s").client(true).tso(false)),
        "net_vhost0,iface=/s,client=1,tso=0"
    );
    assert_eq!(
        accepted(
            &VirtioUser::new("net_virtio_user0", "/s")
                .queue_size(1024)
                .mac(mac)
                .server(true)
                .interface("tap0")
                .mergeable_buffers(false)
                .in_order(false)
                .packed(true)
        ),
        "net_virtio_user0,path=/s,queue_size=1024,mac=02:00:00:00:ab:01,server=1,iface=tap0,\
         mrg_rxbuf=0,in_order=0,packed_vq=1"
    );
}

#[test]
fn the_last_word_counts() {
    assert_eq!(Null::new("net_null0").size(1).size(2).to_string(), "net_null0,size=2");
    assert_eq!(
        Memif::new("net_memif0").abstract_socket("a").socket("/b").to_string(),
        "net_memif0,socket=/b,socket-abstract=no"
    );
}

#[test]
fn names_are_of_the_driver() {
    for name in
        ["", "null0", "net_ring0", "net_null0,x=1", "net_null-0", "net_null 0", "net_null0\0"]
    {
        let error = verdict(&Null::new(name)).unwrap_err();
        assert!(matches!(error, VdevError::Name { driver: "net_null", .. }), "{error}");
    }
    assert!(verdict(&Null::new(format!("net_null_{}", "a".repeat(31)))).is_ok());
    assert!(verdict(&Null::new(format!("net_null_{}", "a".repeat(32)))).is_err());
    assert!(verdict(&Ring::new("net_ring_0123456789a")).is_ok());
    assert!(verdict(&Ring::new("net_ring_0123456789ab")).is_err());
}

#[test]
fn what_eal_would_read_as_something_else_is_refused() {
    for value in [
        "",
        "a,b",
        "a,internal=0x10",
        "a,zero-copy=yes",
        "a=b",
        "[a",
        "a[b",
        "a[1]b[2",
        "a\0b",
        "a\nb",
        " a",
        "a ",
        "bus=vdev",
        "/bus=vdev,name=net_bonding0",
    ] {
        let socket = verdict(&Memif::new("net_memif0").socket(value));
        assert!(matches!(socket, Err(VdevError::Value { key: "socket", .. })), "{value:?}");
        assert!(verdict(&Memif::new("net_memif0").secret(value)).is_err(), "{value:?}");
        assert!(verdict(&AfPacket::new("net_af_packet0", value)).is_err(), "{value:?}");
        assert!(verdict(&AfXdp::new("net_af_xdp0", value)).is_err(), "{value:?}");
        assert!(verdict(&Tap::new("net_tap0").interface(value)).is_err(), "{value:?}");
        assert!(verdict(&Tap::new("net_tap0").remote(value)).is_err(), "{value:?}");
        assert!(verdict(&Pcap::new("net_pcap0").send_file(value)).is_err(), "{value:?}");
        assert!(verdict(&Vhost::new("net_vhost0", value)).is_err(), "{value:?}");
        assert!(verdict(&VirtioUser::new("net_virtio_user0", value)).is_err(), "{value:?}");
    }
    let latin = OsStr::from_bytes(b"/tmp/\xe9.pcap");
    let error = verdict(&Pcap::new("net_pcap0").receive_file(latin)).unwrap_err();
    assert!(error.to_string().ends_with("it is not UTF-8"), "{error}");
}

#[test]
fn what_drivers_would_cut_or_take_for_something_else_is_refused() {
    let long = "s".repeat(108);
    assert!(verdict(&Memif::new("net_memif0").socket(&long[1..])).is_ok());
    assert!(verdict(&Memif::new("net_memif0").abstract_socket(&long[2..])).is_ok());
    for error in [
        verdict(&Null::new("net_null0").size(65)),
        verdict(&Null::new("net_null0").size(0)),
        verdict(&Memif::new("net_memif0").socket(&long)),
        verdict(&Memif::new("net_memif0").abstract_socket(&long[1..])),
        verdict(&Memif::new("net_memif0").ring_size_log2(15)),
        verdict(&Memif::new("net_memif0").buffer_size(0)),
        verdict(&Memif::new("net_memif0").secret("1234567890123456789012345")),
        verdict(&AfPacket::new("net_af_packet0", "lo").queue_pairs(0)),
        verdict(&AfPacket::new("net_af_packet0", "lo").frame_size(u32::MAX)),
        verdict(&AfXdp::new("net_af_xdp0", "lo").queue_count(0)),
        verdict(&Tap::new("net_tap0").interface("interface-too-long")),
        verdict(&Pcap::new("net_pcap0").interface("lo").send_file("a")),
        verdict(&Vhost::new("net_vhost0", &long)),
        verdict(&Vhost::new("net_vhost0", "/s").queues(129)),
        verdict(&VirtioUser::new("net_virtio_user0", &long)),
        verdict(&VirtioUser::new("net_virtio_user0", "/s").queue_size(100)),
    ] {
        assert!(matches!(error, Err(VdevError::Value { .. })), "{error:?}");
    }
    let error = verdict(&Pcap::new("net_pcap0")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "device net_pcap0: set a file to receive or send, or an interface"
    );
}
