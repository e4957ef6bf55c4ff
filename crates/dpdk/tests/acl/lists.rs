// SPDX-License-Identifier: BSD-3-Clause
//! Lists are made and dropped, and refuse what DPDK would misinterpret.

use std::num::NonZeroU32;

use dpdk::acl::{
    Acl, AclConfig, AclError, Algorithm, Built, ClassifyError, Configuring, Field, IPV4_5TUPLE,
    InputError, Layout, MAX_PRIORITY, Match, Matching, Rule, RuleError,
};
use dpdk::qsbr::{Qsbr, Replaceable};
use dpdk::{Eal, PerSocket};

const ANY: [Match; 5] = [Match::Any; 5];
const ONE: NonZeroU32 = NonZeroU32::MIN;

/// A layout for packets of any bytes.
pub fn empty<'eal>(eal: &'eal Eal, name: &str) -> Acl<'eal, Configuring, 5> {
    let config = AclConfig { max_rules: 2, ..AclConfig::named(name) };
    Acl::new(eal, &IPV4_5TUPLE.at_fixed_places(), &config).unwrap()
}

fn verdict(acl: &Acl<'_, Built, 5>) -> Option<NonZeroU32> {
    let mut verdicts = [[None]];
    acl.classify_slices(&[[0; 24]], &mut verdicts).unwrap();
    verdicts[0][0]
}

pub fn lifecycle(eal: &Eal) {
    let acl = empty(eal, "list").build().unwrap();
    assert_eq!(verdict(&acl), None, "without rules nothing matches");
    let mut acl = acl.reconfigure();
    acl.add(&Rule::new(ONE, 1, ANY)).unwrap();
    let acl = acl.build().unwrap();
    assert_eq!(verdict(&acl), Some(ONE));
    let mut acl = acl.reconfigure();
    assert_eq!(acl.rules(), 1, "rules stay");
    let two = NonZeroU32::new(2).unwrap();
    acl.add(&Rule::new(two, 2, ANY)).unwrap();
    let acl = acl.build().unwrap();
    assert_eq!(verdict(&acl), Some(two));
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(verdict(&acl), Some(two)));
        assert_eq!(verdict(&acl), Some(two));
    });
    let mut acl = acl.reconfigure();
    acl.clear();
    let acl = acl.build().unwrap();
    assert_eq!(verdict(&acl), None, "cleared");
    drop(acl);
    for _ in 0..100 {
        drop(empty(eal, "list")); // Its name is free again, and so is its memory.
    }
    let lists = PerSocket::try_new(eal, |socket| {
        let config = AclConfig { socket, ..AclConfig::named(format!("of {socket:?}")) };
        Acl::<_, 5>::new(eal, &IPV4_5TUPLE.at_fixed_places(), &config)
    });
    let lists = lists.unwrap().try_map(|_, acl| acl.build()).unwrap();
    assert_eq!(verdict(lists.of(eal.main_lcore())), None);
    assert_eq!(lists.iter().next().unwrap().0, eal.main_lcore().socket());
}

/// Every lookup uses a complete list, the one before a change or the one after it.
pub fn replaced_while_packets_are_looked_up(eal: &Eal) {
    const ROUNDS: u32 = 300;
    let list = |round: u32| {
        let mut acl = empty(eal, &format!("round {round}"));
        acl.add(&Rule::new(ONE.saturating_add(round), 1, ANY)).unwrap();
        acl.build().unwrap()
    };
    let qsbr = Qsbr::new(1);
    let table = Replaceable::new(&qsbr, list(0));
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut reader = qsbr.register().unwrap();
            let mut online = reader.online();
            let mut last = ONE;
            while last.get() <= ROUNDS {
                let acl = table.read(&online);
                let mut verdicts = [[None]; 64];
                acl.classify_slices(&[[0; 24].as_slice(); 64], &mut verdicts).unwrap();
                let now = verdicts[0][0].unwrap();
                assert!(now >= last, "a list that was replaced before");
                assert_eq!(verdicts, [[Some(now)]; 64]);
                last = now;
                online.quiescent();
            }
        });
        for round in 1..=ROUNDS {
            let old = table.replace(list(round)).wait();
            assert_eq!(verdict(&old), NonZeroU32::new(round));
        }
        reader.join().unwrap();
    });
}

pub fn refusals(eal: &Eal) {
    let make = |config: AclConfig| Acl::<_, 5>::new(eal, &IPV4_5TUPLE, &config).unwrap_err();
    let held = empty(eal, "held");
    assert!(matches!(make(AclConfig::named("held")), AclError::Taken(_)));
    for name in ["", "a\0b", "a name of 32 bytes, one too many"] {
        assert!(
            matches!(make(AclConfig::named(name)), AclError::Name { most: 31, .. }),
            "{name:?}"
        );
    }
    for max_rules in [0, u32::MAX / 96 + 1, u32::MAX] {
        let config = AclConfig { max_rules, ..AclConfig::named("many") };
        assert!(matches!(make(config), AclError::Rules { most, .. } if most == u32::MAX / 96));
    }
    let config = AclConfig { max_rules: 40_000_000, ..AclConfig::named("large") };
    assert!(matches!(make(config), AclError::Memory { .. }));
    let foreign = if cfg!(target_arch = "x86_64") { Algorithm::Neon } else { Algorithm::Sse };
    let config = AclConfig { algorithm: foreign, ..AclConfig::named("foreign") };
    assert!(matches!(make(config), AclError::Algorithm(_)));
    drop(empty(eal, "foreign")); // What was refused left no name behind.

    rules(held);
    inputs(eal);
}

fn rules(mut acl: Acl<'_, Configuring, 5>) {
    let rule = Rule::new(ONE, 1, ANY);
    let mut refused = |rule: Rule<5>| acl.add(&rule).unwrap_err();
    for priority in [0, -1, i32::MIN, MAX_PRIORITY + 1, i32::MAX] {
        assert_eq!(refused(Rule { priority, ..rule }), RuleError::Priority(priority));
    }
    for given in [0, 2, 3, 1 << 31] {
        let error = RuleError::Categories { given, categories: 1 };
        assert_eq!(refused(Rule { categories: given, ..rule }), error);
    }
    let with = |field: usize, asked: Match| {
        let mut fields = ANY;
        fields[field] = asked;
        Rule { fields, ..rule }
    };
    let bits = |mask| Match::Bits { value: 0, mask };
    let kind = RuleError::Kind { field: 1, expected: Matching::Prefix };
    assert_eq!(refused(with(1, bits(1))), kind);
    let large = RuleError::TooLarge { field: 0, bits: 8, given: 256 };
    assert_eq!(refused(with(0, bits(256))), large);
    assert_eq!(refused(with(0, Match::Bits { value: 256, mask: 1 })), large);
    let large = RuleError::TooLarge { field: 3, bits: 16, given: 65536 };
    assert_eq!(refused(with(3, Match::Range { low: 0, high: 65536 })), large);
    let prefix = RuleError::Prefix { field: 2, bits: 32, len: 33 };
    assert_eq!(refused(with(2, Match::Prefix { value: 0, len: 33 })), prefix);
    let empty = RuleError::Empty { field: 4, low: 2, high: 1 };
    assert_eq!(refused(with(4, Match::Range { low: 2, high: 1 })), empty);
    assert_eq!(acl.rules(), 0);
    acl.add(&rule).unwrap();
    acl.add(&rule).unwrap();
    assert_eq!(acl.add(&rule), Err(RuleError::Full(2)));
}

fn inputs(eal: &Eal) {
    let mut acl = empty(eal, "inputs");
    acl.add(&Rule::new(ONE, MAX_PRIORITY, ANY)).unwrap();
    let acl = acl.build().unwrap();
    let mut inputs = acl.inputs::<1>();
    assert_eq!(inputs.push(&[0; 23]), Err(InputError::Short { len: 23, needed: 24 }));
    assert!(inputs.is_empty());
    inputs.push(&[0; 24]).unwrap();
    assert_eq!(inputs.push(&[0; 24]), Err(InputError::Full(1)));
    let error = ClassifyError::Verdicts { verdicts: 0, packets: 1 };
    assert_eq!(acl.classify(&inputs, &mut []), Err(error));
    let mut verdicts = [[None]; 2];
    acl.classify(&inputs, &mut verdicts).unwrap();
    assert_eq!(verdicts, [[Some(ONE)], [None]]);
    let error = ClassifyError::Short { index: 1, len: 23, needed: 24 };
    let packets = [[0; 24].as_slice(), &[0; 23]];
    assert_eq!(acl.classify_slices(&packets, &mut verdicts), Err(error));
    // More than DPDK gets in one call; the last but one is short, and in arrays all are.
    let mut packets = [[0; 24].as_slice(); 70];
    let mut many = [[None]; 70];
    acl.classify_slices(&packets, &mut many).unwrap();
    assert_eq!(many, [[Some(ONE)]; 70]);
    packets[68] = &[0; 23];
    let error = ClassifyError::Short { index: 68, len: 23, needed: 24 };
    assert_eq!(acl.classify_slices(&packets, &mut many), Err(error));
    let error = ClassifyError::Short { index: 0, len: 23, needed: 24 };
    assert_eq!(acl.classify_slices(&[[0; 23]; 70], &mut many), Err(error));
    let error = ClassifyError::Verdicts { verdicts: 2, packets: 1 };
    assert_eq!(acl.classify_slices(&[[0; 24]], &mut verdicts), Err(error));

    // Equally many fields, but fewer bytes.
    let near = Layout::new([0, 4, 5, 6, 7].map(|offset| Field::bits(offset, 1))).unwrap();
    let near: Acl<_, 5> = Acl::new(eal, &near, &AclConfig::named("near")).unwrap();
    let near = near.build().unwrap();
    let mut inputs = near.inputs::<1>();
    inputs.push(&[0; 8]).unwrap();
    let error = ClassifyError::Foreign { checked: 8, needed: 24 };
    assert_eq!(acl.classify(&inputs, &mut verdicts), Err(error));
}
