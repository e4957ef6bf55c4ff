// SPDX-License-Identifier: BSD-3-Clause
use super::*;

#[test]
fn good_locations_read_and_print() {
    for (text, arguments) in [
        ("veth0", "net_af_packet_veth0_7,iface=veth0"),
        (
            "memif:/run/a.sock",
            "net_memif_a_sock_0_7,role=server,id=0,socket=/run/a.sock,socket-abstract=no",
        ),
        (
            "memif:/run/a.sock,role=client,id=3",
            "net_memif_a_sock_3_7,role=client,id=3,socket=/run/a.sock,socket-abstract=no",
        ),
        ("af_packet:veth0,queues=4", "net_af_packet_veth0_7,iface=veth0,qpairs=4"),
        ("af_packet:null", "net_af_packet_null_7,iface=null"),
        ("af_xdp:veth0", "net_af_xdp_veth0_7,iface=veth0"),
        (
            "af_xdp:veth0,queues=2,mode=copy",
            "net_af_xdp_veth0_7,iface=veth0,queue_count=2,force_copy=1",
        ),
        ("af_xdp:veth0,mode=zero-copy", "net_af_xdp_veth0_7,iface=veth0"),
        ("vhost:/run/a.sock", "net_vhost_a_sock_7,iface=/run/a.sock,queues=1,client=0"),
        (
            "vhost:/run/a.sock,role=client,queues=2",
            "net_vhost_a_sock_7,iface=/run/a.sock,queues=2,client=1",
        ),
        ("virtio_user:/run/a.sock", "net_virtio_user_a_sock_7,path=/run/a.sock,queues=1,server=0"),
        (
            "virtio_user:/run/a.sock,role=server,queues=16",
            "net_virtio_user_a_sock_7,path=/run/a.sock,queues=16,server=1",
        ),
        ("tap:tap-8", "net_tap_tap_8_7,iface=tap-8"),
        ("ring:a_1", "net_ring_a_1"),
        ("null", "net_null_7"),
        ("null:b", "net_null_b_7"),
        ("null:size=60", "net_null_7,size=60"),
        ("null:b,size=60,no-rx=1", "net_null_b_7,size=60,no-rx=1"),
        ("vdev:net_null0,size=64", "net_null0,size=64"),
        ("pci:0000:01:00.0", "0000:01:00.0"),
        ("pci:01:00.1", "01:00.1"),
    ] {
        let location: Location = text.parse().unwrap();
        assert_eq!(location.to_string(), text);
        assert_eq!(location.device_arguments(7), arguments);
        let (device, rest) = arguments.split_once(',').unwrap_or((arguments, ""));
        let first = location.device_arguments(0);
        let plain = if location.is_numbered() { device.trim_end_matches("_7") } else { device };
        assert_eq!(first.split_once(',').unwrap_or((&first, "")), (plain, rest));
    }
    for (long, short) in [
        ("af_packet:veth0,queues=1", "veth0"),
        ("af_xdp:veth0,mode=copy,queues=1", "af_xdp:veth0,mode=copy"),
        ("vhost:/a,queues=1,role=server", "vhost:/a"),
        ("virtio_user:/a,role=client", "virtio_user:/a"),
        ("null:no-rx=0", "null"),
        ("null,no-rx=1", "null:no-rx=1"),
        ("null,size=60", "null:size=60"),
        ("null:", "null"),
    ] {
        assert_eq!(long.parse::<Location>().unwrap().to_string(), short);
    }
    assert_eq!("memif:/a,id=0,role=server".parse::<Location>().unwrap().to_string(), "memif:/a");
    for (text, name) in [
        ("pci:01:0A.1", "0000:01:0a.1"),
        ("pci:0001:01:00.0", "0001:01:00.0"),
        ("vdev:net_ring7", "net_ring7"),
        ("tap:a", "net_tap_a_3"),
    ] {
        let location: Location = text.parse().unwrap();
        assert_eq!(location.device_name(&location.device_arguments(3)), name);
    }
}

#[test]
fn memif_has_one_queue_however_it_is_written() {
    let one = |text: &str| text.parse::<Location>().unwrap().has_one_queue();
    assert!(one("memif:/run/a.sock") && one("vdev:net_memif0,socket=/run/a.sock"));
    assert!(!one("ring:r") && !one("vhost:/run/a.sock,queues=2"));
}

#[test]
fn bad_locations_are_named() {
    for bad in [
        "",
        "a/b",
        "sixteen-letters-x",
        "memif:",
        "memif:relative",
        "memif:/a,role=master",
        "memif:/a,id=-1",
        "memif:/a,id=1,id=2",
        "memif:/a,mac=x",
        "vdev:",
        "pci:",
        "pci:01:00",
        "pci:1:00.0",
        "pci:0000:00:01:00.0",
        "tcp:1.2.3.4",
        "memif:/a\n",
        "af_packet:",
        "af_packet:,queues=1",
        "af_packet:a/b",
        "af_packet:a,queues=0",
        "af_packet:a,queues=17",
        "af_packet:a,queues=+1",
        "af_packet:a,queues=1,queues=1",
        "af_packet:a,queues",
        "af_packet:a,",
        "af_packet:a,mode=copy",
        "af_xdp:a,mode=fast",
        "af_xdp:a,mode=copy,mode=copy",
        "af_xdp:",
        "vhost:",
        "vhost:relative",
        "vhost:/a,role=master",
        "vhost:/a,queues=",
        "vhost:/a,id=1",
        "virtio_user:/a,client=1",
        "tap:",
        "tap:%d",
        "tap:a,remote=eth0",
        "tap:sixteen-letters-x",
        "ring:",
        "ring:nine_long",
        "ring:a-b",
        "ring:a,internal=0x10",
        "null:a-b",
        "null:size=0",
        "null:size=65",
        "null:copy=1",
        "null:no-rx=2",
        "null:a,b",
        "null,a",
        "null,",
    ] {
        assert!(bad.parse::<Location>().is_err(), "{bad:?}");
    }
}

fn vdev(arguments: &str, allowed: Vdevs) -> Location {
    Location::Vdev { arguments: arguments.to_owned(), allowed }
}

fn any() -> Policy {
    Policy { vdevs: Vdevs::Any, ..Policy::COMMAND_LINE }
}

#[test]
fn only_harmless_virtual_devices_are_allowed() {
    for good in [
        "net_null",
        "net_null0,size=64",
        "net_ring_a1",
        "net_memif0,role=client",
        "net_tap0,iface=internal0",
        "net_af_packet0,iface=lo",
        "net_af_xdp0,iface=lo",
        "net_virtio_user0,path=/tmp/s",
        "net_vhost0,iface=/tmp/s",
        "eth_vhost0,iface=/tmp/s",
    ] {
        let text = format!("vdev:{good}");
        assert_eq!(text.parse(), Ok(vdev(good, Vdevs::Known)), "{good}");
    }
    for bad in [
        "net_pcap0,tx_pcap=/tmp/f",
        "net_bonding0,member=0000:01:00.0",
        "net_failsafe0,exec(reboot)",
        "crypto_null",
        "net_rin",
        "net_ring-0",
        "net_ring:0",
        "net_ring0/driver=net_pcap",
        " net_ring0",
        "bus=vdev,name=net_pcap0",
        "vdev:net_pcap0",
        ",net_ring0",
    ] {
        let text = format!("vdev:{bad}");
        let error = text.parse::<Location>().unwrap_err();
        assert!(matches!(error, LocationError::Driver(_)), "{bad}: {error:?}");
        assert!(error.to_string().contains("--allow-any-vdev"), "{error}");
        assert_eq!(Location::read(&text, &any()), Ok(vdev(bad, Vdevs::Any)));
    }
    for bad in [
        "net_ring0,internal=0x10",
        "net_ring0,a=1,internal=0x10",
        "net_ring0, internal =0x10",
        "net_ring0,internal",
        "net_failsafe0,dev(net_ring0,internal=0x10)",
    ] {
        for policy in [Policy::COMMAND_LINE, any()] {
            let read = Location::read(&format!("vdev:{bad}"), &policy);
            assert_eq!(read, Err(LocationError::Internal(bad.to_owned())));
        }
    }
}

#[test]
fn a_socket_left_behind_is_removed_and_a_live_one_kept() {
    let path = std::env::temp_dir().join(format!("location-{}", std::process::id()));
    let at = path.display();
    for (server, client) in [
        (format!("memif:{at}"), format!("memif:{at},role=client")),
        (format!("vhost:{at}"), format!("vhost:{at},role=client")),
        (format!("virtio_user:{at},role=server"), format!("virtio_user:{at}")),
    ] {
        let server: Location = server.parse().unwrap();
        let client: Location = client.parse().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(server.probe(&[]), Err(Unavailable::SocketTaken(_))));
        assert_eq!(client.probe(&[]), Ok(()));
        assert!(path.exists());
        drop(listener);
        // Only a probe that wants to listen there removes it.
        let unserved = client.probe(&[]);
        let once = !matches!(client, Location::VhostUser { end: VhostEnd::Vhost, .. });
        assert_eq!(matches!(unserved, Err(Unavailable::NotServed(_))), once);
        assert!(path.exists());
        assert_eq!(server.probe(&[]), Ok(()));
        assert!(!path.exists());
    }
}

#[test]
fn what_is_no_socket_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let link = dir.path().join("link");
    std::fs::write(&file, "kept").unwrap();
    // It leads to a dead socket, which belongs to somebody else.
    let dead = dir.path().join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    std::os::unix::fs::symlink(&dead, &link).unwrap();
    for path in [&file, &link] {
        let at = path.display();
        for text in [
            format!("memif:{at}"),
            format!("vhost:{at}"),
            format!("virtio_user:{at},role=server"),
            format!("vdev:net_vhost0,iface={at}"),
            format!("vdev:net_virtio_user0,path={at},server=1"),
            format!("vdev:net_memif0,role=server,socket={at},socket-abstract=no"),
        ] {
            let taken = Err(Unavailable::SocketTaken(at.to_string()));
            assert_eq!(text.parse::<Location>().unwrap().probe(&[]), taken, "{text}");
            assert!(link.is_symlink() && std::fs::read_to_string(&file).unwrap() == "kept");
        }
    }
    let of_the_device: Location =
        format!("vdev:net_vhost0,iface={}", dead.display()).parse().unwrap();
    assert_eq!(of_the_device.probe(&[]), Ok(()));
    assert!(!dead.exists(), "a dead peer's socket makes room");
    let relative: Location = "vdev:net_vhost0,iface=no-such-file".parse().unwrap();
    assert_eq!(relative.probe(&[]), Ok(()));
}

#[test]
fn links_collide_where_only_one_can_be() {
    let at = |text: &str| text.parse::<Location>().unwrap();
    assert!(at("memif:/a").collides_with(&at("memif:/a,id=0")));
    assert!(!at("memif:/a").collides_with(&at("memif:/a,id=1")));
    assert!(at("memif:/a").collides_with(&at("memif:/a,id=1,role=client")));
    assert!(at("lo").collides_with(&at("lo")));
    assert!(at("lo").collides_with(&at("af_xdp:lo")));
    assert!(at("tap:a").collides_with(&at("af_packet:a")));
    assert!(at("vhost:/a").collides_with(&at("vhost:/a,role=client")));
    assert!(at("vhost:/a").collides_with(&at("memif:/a")));
    assert!(!at("vhost:/a").collides_with(&at("vhost:/b")));
    assert!(at("ring:a").collides_with(&at("ring:a")));
    assert!(!at("ring:a").collides_with(&at("ring:b")));
    assert!(at("null:size=1").collides_with(&at("null")));
    assert!(!at("null:a").collides_with(&at("null")));
}

#[test]
fn what_is_not_there_cannot_be_opened() {
    let at = |text: &str| text.parse::<Location>().unwrap().probe(&[]);
    assert!(matches!(at("no-such-if"), Err(Unavailable::NoInterface(_))));
    assert!(matches!(at("memif:/dev/null"), Err(Unavailable::SocketTaken(_))));
    assert!(matches!(at("memif:/no/such/dir/a"), Err(Unavailable::NoDirectory(_))));
    assert!(matches!(at("pci:ffff:ff:1f.7"), Err(Unavailable::NoPciDevice(_))));
    assert_eq!(at("lo"), Ok(()));
    assert!(matches!(at("af_xdp:no-such-if"), Err(Unavailable::NoInterface(_))));
    assert!(matches!(
        at("af_xdp:lo,mode=zero-copy"),
        Err(Unavailable::NoXdp(_) | Unavailable::NoZeroCopy(_))
    ));
    assert!(matches!(at("tap:lo"), Err(Unavailable::InterfaceTaken(_))));
    assert!(matches!(at("vhost:/dev/null"), Err(Unavailable::SocketTaken(_))));
    assert!(matches!(at("virtio_user:/no/such/dir/a"), Err(Unavailable::NotServed(_))));
    assert_eq!("memif:/dev/null".parse::<Location>().unwrap().probe(&["/dev/null"]), Ok(()));
}

#[test]
fn a_device_that_waits_for_its_peer_is_sent_one() {
    let path = std::env::temp_dir().join(format!("patience-{}", std::process::id()));
    let location: Location = format!("virtio_user:{},role=server", path.display()).parse().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let waited = location.attach(|| -> Result<(), String> {
        listener.accept().unwrap();
        Err("the peer has gone".to_owned())
    });
    assert!(waited.unwrap_err().starts_with("nobody connected to"));
    assert_eq!(location.attach(|| Ok(1)), Ok(1));
    assert_eq!(location.attach(|| Err::<(), _>("no".to_owned())), Err("no".to_owned()));
    assert!(!path.exists());
}
