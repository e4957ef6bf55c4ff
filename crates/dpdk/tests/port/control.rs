// SPDX-License-Identifier: BSD-3-Clause
//! Links, modes, addresses, VLANs.

use std::time::{Duration, Instant};

use dpdk::{Eal, Errno, Lack, Mempool, PortConfig, PortError, PortEvents, VlanModes};

use super::devices::queues;
use super::{refusal, take};

/// net_null reports no link events; like every port, it reports when it is closed.
pub fn what_happens_is_kept(eal: &Eal, pool: &Mempool<'_>) {
    const PATIENCE: Duration = Duration::from_secs(20);
    let id = eal.attach("net_null9,size=64").unwrap()[0];
    let port = eal.take_port(id).unwrap();
    assert!(!port.info().unwrap().link_events);
    let config = PortConfig { link_events: true, ..queues(pool, 1) };
    let port = port.configure(&config).unwrap().start().unwrap();
    let [told] = port.shortfalls() else { panic!("{:?}", port.shortfalls()) };
    assert_eq!(told.lack, Lack::LinkEvents);
    let control = port.control();
    let (one, two, unread) =
        (control.watch().unwrap(), control.watch().unwrap(), control.watch().unwrap());
    drop(control.watch().unwrap());
    let begin = Instant::now();
    assert_eq!(one.wait(Duration::from_millis(20)), PortEvents::EMPTY);
    assert!(begin.elapsed() >= Duration::from_millis(20), "it waits as long as it was told");
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| one.wait(PATIENCE));
        eal.detach(port.stop().unwrap().unconfigure()).unwrap();
        assert_eq!(waiting.join().unwrap(), PortEvents::CLOSED);
    });
    assert_eq!(two.take(), PortEvents::CLOSED);
    assert_eq!([one.take(), two.take()], [PortEvents::EMPTY; 2], "once");
    assert!(matches!(control.watch(), Err(PortError::Absent(absent)) if absent == id));
    // The next port with that number, and one with another.
    let next = eal.attach("net_null9,size=64").unwrap()[0];
    let other = eal.attach("net_null10,size=64").unwrap()[0];
    assert_eq!(next, id);
    eal.detach(eal.take_port(other).unwrap()).unwrap();
    assert_eq!(one.take(), PortEvents::EMPTY, "of another port");
    eal.detach(eal.take_port(next).unwrap()).unwrap();
    assert_eq!([one.take(), unread.take()], [PortEvents::CLOSED; 2]);
}

pub fn link_and_modes(eal: &Eal, pool: &Mempool<'_>) {
    let port = take(eal, "net_ring0").configure(&queues(pool, 1)).unwrap().start().unwrap();
    let (control, number) = (port.control(), port.id().index());
    assert!(control.wait_link(Duration::ZERO).unwrap().up);
    control.set_link(false).unwrap();
    let begin = Instant::now();
    let patience = Duration::from_millis(20);
    assert!(!control.wait_link(patience).unwrap().up);
    assert!(begin.elapsed() >= patience, "it waits as long as it was told");
    std::thread::scope(|threads| {
        threads.spawn(|| control.set_link(true).unwrap());
        assert!(control.wait_link(Duration::from_secs(20)).unwrap().up);
    });
    for on in [true, false] {
        control.set_promiscuous(on).unwrap();
        // SAFETY: questions.
        unsafe {
            assert_eq!(dpdk_sys::rte_eth_promiscuous_get(number), i32::from(on));
            assert_eq!(control.promiscuous().unwrap(), on);
            let multicast = control.set_all_multicast(on);
            assert!(multicast.is_ok() || refusal(multicast) == Errno::ENOTSUP);
            let now = dpdk_sys::rte_eth_allmulticast_get(number) != 0;
            assert_eq!(control.all_multicast().unwrap(), now);
        }
    }
    let mut mtu = 0;
    // SAFETY: a plain out-parameter.
    assert_eq!(unsafe { dpdk_sys::rte_eth_dev_get_mtu(number, &mut mtu) }, 0);
    assert_eq!((control.mtu().unwrap(), mtu), (1500, 1500));
    drop(port);

    let port = take(eal, "net_null0").configure(&queues(pool, 1)).unwrap();
    let info = port.info().unwrap();
    assert!(info.min_mtu <= 1500 && info.max_mtu >= 1500, "{info:?}");
    port.control().set_mtu(1400).unwrap();
    assert_eq!(port.control().mtu().unwrap(), 1400);
    let low = port.control().set_mtu(0);
    assert!(low.as_ref().is_err_and(|error| error.to_string().ends_with("max_mtu")), "{low:?}");
    assert_eq!(refusal(low), Errno::EINVAL);
    port.control().set_mtu(1500).unwrap();
    drop(port);
    // A port that does not exist.
    let added = eal.attach("net_null8,size=64").unwrap()[0];
    let gone = eal.take_port(added).unwrap();
    let control = gone.control();
    eal.detach(gone).unwrap();
    assert!(control.promiscuous().is_err() && control.all_multicast().is_err());
    assert!(control.mtu().is_err() && control.wait_link(Duration::ZERO).is_err());
    assert!(control.macs().is_err() && control.vlan_modes().is_err());
    assert!(control.xstat_names().is_err() && control.rss_key().is_err());
}

pub fn addresses(eal: &Eal, pool: &Mempool<'_>) {
    let port = take(eal, "net_null0").configure(&queues(pool, 1)).unwrap();
    let (control, mine) = (port.control(), port.control().mac().unwrap());
    assert_eq!(control.macs().unwrap(), [mine]);
    let other = [2, 0, 0, 0, 0, 7];
    control.set_mac(other).unwrap();
    assert_eq!((control.mac().unwrap(), control.macs().unwrap()), (other, vec![other]));
    for none in [[0; 6], [1, 0, 0x5e, 0, 0, 1]] {
        assert_eq!(refusal(control.set_mac(none)), Errno::EINVAL);
    }
    assert_eq!(control.mac().unwrap(), other);
    control.set_mac(mine).unwrap();
    // It supports no further addresses and no multicast filter.
    assert_eq!(refusal(control.add_mac(other)), Errno::ENOTSUP);
    assert_eq!(refusal(control.remove_mac(other)), Errno::ENOTSUP);
    assert_eq!(refusal(control.set_multicast(&[[1, 0, 0x5e, 0, 0, 1]])), Errno::ENOTSUP);
    drop(port);
    // It has room for one address, its own.
    let port = take(eal, "net_ring0").configure(&queues(pool, 1)).unwrap();
    let control = port.control();
    assert_eq!(port.info().unwrap().max_mac_addresses, 1);
    let before = control.macs().unwrap();
    assert!(control.add_mac([0; 6]).is_err());
    match control.add_mac(other) {
        // Its own address is all zeros, so its slot counts as free.
        Ok(()) => {
            assert!(control.macs().unwrap().contains(&other));
            control.add_mac(other).unwrap();
            let own = control.mac().unwrap() == other;
            assert_eq!(control.remove_mac(other).is_ok(), !own);
        }
        Err(error) => {
            assert!(matches!(error, PortError::Call { .. }), "{error}");
            assert_eq!(control.macs().unwrap(), before);
        }
    }
}

pub fn vlans(eal: &Eal, pool: &Mempool<'_>) {
    let port = take(eal, "net_ring0").configure(&queues(pool, 1)).unwrap();
    let control = port.control();
    assert_eq!(control.vlan_modes().unwrap(), VlanModes::default());
    control.set_vlan_modes(VlanModes::default()).unwrap();
    let strip = VlanModes { strip: true, ..VlanModes::default() };
    assert!(control.set_vlan_modes(strip).is_err(), "net_ring strips nothing");
    assert_eq!(control.vlan_modes().unwrap(), VlanModes::default());
    // ENOSYS: filtering is switched off.
    assert_eq!(refusal(control.add_vlan(4095)).0, 38);
    assert_eq!(refusal(control.remove_vlan(0)).0, 38);
    for vlan in [4096, u16::MAX] {
        for result in
            [control.add_vlan(vlan), control.remove_vlan(vlan), control.set_port_vlan(Some(vlan))]
        {
            assert!(
                matches!(result, Err(PortError::Vlan { vlan: refused, .. }) if refused == vlan)
            );
        }
    }
    assert_eq!(refusal(control.set_port_vlan(Some(1))), Errno::ENOTSUP);
    assert_eq!(refusal(control.set_port_vlan(None)), Errno::ENOTSUP);
    assert!(matches!(refusal(control.set_vlan_strip_on_queue(9, true)), Errno::EINVAL));
    assert_eq!(refusal(control.set_vlan_strip_on_queue(0, true)), Errno::ENOTSUP);
}
