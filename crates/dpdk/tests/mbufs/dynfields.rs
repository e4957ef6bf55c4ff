// SPDX-License-Identifier: BSD-3-Clause
//! Fields and flags by name: they do not overlap, have types, and are copied by clones and copies.

use dpdk::Eal;
use dpdk::dynfield::{
    DynData, DynError, DynField, DynFlag, DynFlagReader, DynReader, RxTimestamp, TxTimestamp,
};

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flow {
    id: u32,
    class: u16,
    hops: u16,
}

// SAFETY: numbers without padding between them.
unsafe impl DynData for Flow {}

pub fn check(eal: &Eal) {
    fields(eal);
    of_c_code(eal);
    flags(eal);
    timestamps(eal);
    room_ends(eal);
}

fn fields(eal: &Eal) {
    let pool = super::pool(eal, "dynfields", 200);
    let flow = DynField::<Flow>::register(eal, "test_flow").unwrap();
    let byte = DynField::<u8>::register(eal, "test_byte").unwrap();
    let bytes = DynField::<[u8; 5]>::register(eal, "test_bytes").unwrap();
    let again = DynField::<Flow>::register(eal, "test_flow").unwrap();
    let reader = DynReader::<Flow>::lookup(eal, "test_flow").unwrap();

    let one = Flow { id: 0xdead_beef, class: 7, hops: u16::MAX };
    let mut mbuf = super::packet(&pool, 100);
    flow.write(&mut mbuf, one);
    byte.write(&mut mbuf, 0xa5);
    bytes.write(&mut mbuf, [1, 2, 3, 4, 5]);
    assert_eq!((flow.read(&mbuf), byte.read(&mbuf)), (one, 0xa5));
    assert_eq!(bytes.read(&mbuf), [1, 2, 3, 4, 5]);
    assert_eq!((again.read(&mbuf), reader.read(&mbuf)), (one, one));
    // The rest of the packet is unchanged.
    assert_eq!(super::content(&mbuf), super::bytes(100));
    assert_eq!((mbuf.segments(), mbuf.packet_len()), (1, 100));

    // Clones and copies have their own fields, which start with the same values.
    let shared = mbuf.share();
    let mut clone = shared.clone_into(&pool).unwrap();
    let copy = shared.copy_into(&pool).unwrap();
    let part = shared.part_into(&pool, 10..20).unwrap();
    let two = Flow { id: 2, ..one };
    flow.write(&mut clone, two);
    assert_eq!(flow.read(&clone), two);
    for mbuf in [&*shared, &copy, &part] {
        assert_eq!((flow.read(mbuf), byte.read(mbuf)), (one, 0xa5));
    }
    drop((shared, clone, copy, part));
    assert!(pool.is_full());

    let refused = DynField::<u32>::register(eal, "test_flow").unwrap_err();
    assert_eq!(
        refused,
        DynError::Shape { name: "test_flow".into(), size: 4, align: 4, there: 8, there_align: 4 }
    );
    let refused = DynReader::<[u8; 8]>::lookup(eal, "test_flow").unwrap_err();
    assert!(matches!(refused, DynError::Shape { size: 8, align: 1, .. }), "{refused}");
    let refused = DynReader::<u8>::lookup(eal, "test_nobody").unwrap_err();
    assert_eq!(refused, DynError::Missing("test_nobody".into()));
    let refused = DynField::<u64>::register(eal, "rte_node_dynfield").unwrap_err();
    assert_eq!(refused, DynError::Reserved("rte_node_dynfield".into()));
    let refused = DynField::<u64>::register(eal, &"n".repeat(64)).unwrap_err();
    assert_eq!(refused, DynError::Name { name: "n".repeat(64), most: 63 });
}

/// Fields that C code has registered can be read; writing them needs an unsafe promise.
fn of_c_code(eal: &Eal) {
    let name = c"driver_field";
    // SAFETY: structs of numbers, and of names that end with a NUL.
    unsafe {
        let mut field: dpdk_sys::rte_mbuf_dynfield = std::mem::zeroed();
        (field.size, field.align) = (4, 4);
        let mut flag: dpdk_sys::rte_mbuf_dynflag = std::mem::zeroed();
        for (index, &byte) in name.to_bytes().iter().enumerate() {
            field.name[index] = byte as std::ffi::c_char;
            flag.name[index] = byte as std::ffi::c_char;
        }
        assert!(dpdk_sys::rte_mbuf_dynfield_register(&raw const field) >= 0);
        assert!(dpdk_sys::rte_mbuf_dynflag_register(&raw const flag) >= 0);
    }
    for _ in 0..2 {
        let taken = DynError::Taken("driver_field".into());
        assert_eq!(DynField::<u32>::register(eal, "driver_field").unwrap_err(), taken);
        assert_eq!(DynFlag::register(eal, "driver_field").unwrap_err(), taken);
    }
    // SAFETY: the test is the driver.
    let (field, flag) = unsafe {
        (DynField::<i32>::adopt(eal, "driver_field"), DynFlag::adopt(eal, "driver_field"))
    };
    let (field, flag) = (field.unwrap(), flag.unwrap());
    let pool = super::pool(eal, "of-c-code", 200);
    let mut mbuf = super::packet(&pool, 20);
    field.write(&mut mbuf, -7);
    flag.set(&mut mbuf, true);
    assert_eq!(DynReader::<u32>::lookup(eal, "driver_field").unwrap().read(&mbuf), -7i32 as u32);
    assert!(DynFlagReader::lookup(eal, "driver_field").unwrap().is_set(&mbuf));
    drop(mbuf);
    assert!(pool.is_full());
}

fn flags(eal: &Eal) {
    let pool = super::pool(eal, "dynflags", 200);
    let [one, two] =
        ["test_flag", "test_other_flag"].map(|name| DynFlag::register(eal, name).unwrap());
    assert_ne!(one, two);
    assert_eq!(DynFlag::register(eal, "test_flag"), Ok(one));
    assert_eq!(DynFlagReader::lookup(eal, "test_flag"), Ok(one.reader()));
    let missing = DynFlagReader::lookup(eal, "test_no_flag");
    assert_eq!(missing, Err(DynError::Missing("test_no_flag".into())));
    let reserved = DynFlag::register(eal, "rte_flag");
    assert_eq!(reserved, Err(DynError::Reserved("rte_flag".into())));

    let mut mbuf = super::packet(&pool, 100);
    assert!(!one.is_set(&mbuf) && !two.is_set(&mbuf));
    one.set(&mut mbuf, true);
    assert!(one.is_set(&mbuf) && !two.is_set(&mbuf));
    two.set(&mut mbuf, true);
    one.set(&mut mbuf, false);
    assert!(!one.is_set(&mbuf) && two.is_set(&mbuf));
    assert!(mbuf.is_unshared(), "no flag says whose the bytes are");
    let shared = mbuf.share();
    let clone = shared.clone_into(&pool).unwrap();
    assert!(two.is_set(&shared) && two.is_set(&clone));
    drop((shared, clone));
    // The pool's next mbufs have no value.
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!(all.len(), pool.capacity());
    assert!(!all.iter().any(|mbuf| two.is_set(mbuf)));
    drop(all);
    assert!(pool.is_full());
}

fn timestamps(eal: &Eal) {
    let pool = super::pool(eal, "timestamps", 200);
    let missing = DynReader::<u64>::lookup(eal, "rte_dynfield_timestamp").unwrap_err();
    assert_eq!(missing, DynError::Missing("rte_dynfield_timestamp".into()));
    let rx = RxTimestamp::register(eal).unwrap();
    let tx = TxTimestamp::register(eal).unwrap();
    let field = DynReader::<u64>::lookup(eal, "rte_dynfield_timestamp").unwrap();

    let mut mbuf = super::packet(&pool, 60);
    assert_eq!((rx.read(&mbuf), tx.read(&mbuf)), (None, None));
    tx.write(&mut mbuf, Some(1 << 40));
    assert_eq!((rx.read(&mbuf), tx.read(&mbuf)), (None, Some(1 << 40)));
    assert_eq!(field.read(&mbuf), 1 << 40);
    tx.write(&mut mbuf, None);
    assert_eq!(tx.read(&mbuf), None);

    // Like a driver that stores the time of arrival.
    // SAFETY: the test's own mbuf, written as drivers do.
    let flag = unsafe { DynFlag::adopt(eal, "rte_dynflag_rx_timestamp") }.unwrap();
    flag.set(&mut mbuf, true);
    assert_eq!(rx.read(&mbuf), Some(1 << 40));
    drop(mbuf);
    assert!(pool.is_full());
}

/// Registers fields until no more fit, which returns an error; earlier fields still work.
fn room_ends(eal: &Eal) {
    let first = DynField::<Flow>::register(eal, "test_flow").unwrap();
    let registered: Vec<_> = (0..40)
        .map(|index| DynField::<u64>::register(eal, &format!("test_filler_{index}")))
        .take_while(Result::is_ok)
        .collect();
    assert!(registered.len() < 5, "36 bytes have no room for so many");
    let full = DynField::<u64>::register(eal, "test_full").unwrap_err();
    assert_eq!(full, DynError::Full("test_full".into()));
    let flags: Vec<_> = (0..40)
        .map(|index| DynFlag::register(eal, &format!("test_filler_{index}")))
        .take_while(Result::is_ok)
        .collect();
    assert!((1..20).contains(&flags.len()));
    let full = DynFlag::register(eal, "test_full").unwrap_err();
    assert_eq!(full, DynError::Full("test_full".into()));

    let pool = super::pool(eal, "full-of-fields", 200);
    let mut mbuf = super::packet(&pool, 60);
    let one = Flow { id: 1, class: 2, hops: 3 };
    first.write(&mut mbuf, one);
    for field in registered.iter().flatten() {
        field.write(&mut mbuf, u64::MAX);
    }
    assert_eq!(first.read(&mbuf), one);
    for flag in flags.into_iter().flatten() {
        assert!(!flag.is_set(&mbuf));
        flag.set(&mut mbuf, true);
    }
    assert!(mbuf.is_unshared() && mbuf.requested().is_none());
    assert_eq!(super::content(&mbuf), super::bytes(60));
    drop(mbuf);
    assert!(pool.is_full());
}
