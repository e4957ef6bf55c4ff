// SPDX-License-Identifier: BSD-3-Clause
//! A packet that ends at an unmapped page: a lookup that read one byte more than the layout says
//! would crash the test.

use std::ffi::{c_int, c_long, c_void};
use std::num::NonZeroU32;

use dpdk::Eal;
use dpdk::acl::{Acl, AclConfig, Algorithm, Field, IPV4_5TUPLE, IPV6_5TUPLE, Layout, Match, Rule};

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, access: c_int) -> c_int;
}

const PAGE: usize = 65536; // as large as pages are anywhere

/// A page of bytes before one that cannot be read.
fn page() -> &'static mut [u8] {
    const READ_WRITE: c_int = 3;
    const PRIVATE_ANONYMOUS: c_int = 0x22;
    // SAFETY: new memory, of which the first half stays readable and writable for ever.
    unsafe {
        let start = mmap(std::ptr::null_mut(), 2 * PAGE, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
        assert_eq!(mprotect(start.byte_add(PAGE), PAGE, 0), 0);
        std::slice::from_raw_parts_mut(start.cast(), PAGE)
    }
}

pub fn nothing_is_read_behind_a_packet(eal: &Eal) {
    let page = page();
    check(eal, page, IPV4_5TUPLE.at_fixed_places());
    check(eal, page, IPV6_5TUPLE.at_fixed_places());
    let layout = |fields| Layout::<5>::new(fields).unwrap();
    // The first field is the last byte, before the last one, or before a word.
    check(eal, page, layout([4, 0, 1, 2, 3].map(|offset| Field::bits(offset, 1))));
    check(eal, page, layout([2, 0, 1, 2, 3].map(|offset| Field::bits(offset, 1))));
    check(eal, page, layout([0, 1, 2, 3, 4].map(|offset| Field::range(offset, 1))));
    check(eal, page, Layout::new([Field::bits(0, 1)]).unwrap());
    check(eal, page, Layout::new([Field::bits(0, 1), Field::prefix(3, 8)]).unwrap());
}

fn check<const FIELDS: usize>(eal: &Eal, page: &mut [u8], layout: Layout<FIELDS>) {
    let mut acl: Acl<_, FIELDS> = Acl::new(eal, &layout, &AclConfig::named("bounds")).unwrap();
    // One for which all fields are read, and one that is part of others.
    acl.add(&Rule::new(NonZeroU32::MIN, 1, [Match::Any; FIELDS])).unwrap();
    page.fill(7);
    let packet = &page[page.len() - layout.input_len()..];
    let mut acl = acl.build().unwrap().reconfigure();
    for userdata in 2..6u8 {
        // Fields that no rule uses are not read.
        let mut fields = [Match::Any; FIELDS];
        for field in 0..FIELDS {
            for asked in [
                Match::Bits { value: 7, mask: 7 },
                Match::Prefix { value: 0, len: userdata },
                Match::Range { low: userdata.into(), high: 200 },
            ] {
                fields[field] = asked;
                if acl.add(&Rule::new(NonZeroU32::MIN, 1, fields)) == Ok(()) {
                    break;
                }
                fields[field] = Match::Any; // another kind of field
            }
        }
    }
    let mut acl = acl.build().unwrap();
    for algorithm in Algorithm::ALL {
        if acl.set_algorithm(algorithm).is_err() {
            continue;
        }
        for n in [1, 2, 15, 16, 17, 32, 33, 64] {
            let mut verdicts = vec![[None]; n];
            acl.classify_slices(&vec![packet; n], &mut verdicts).unwrap();
            assert!(verdicts.iter().all(|[verdict]| verdict.is_some()), "{algorithm:?}");
        }
    }
}
