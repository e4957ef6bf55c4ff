// SPDX-License-Identifier: BSD-3-Clause
use super::*;
use proptest::prelude::*;

fn round(sizes: &Sizes, n: usize) -> Vec<usize> {
    let mut walk = Walk::new(sizes);
    let mut lens = vec![0; n];
    walk.fill(&mut lens);
    lens.iter().map(|len| *len as usize + 4).collect()
}

#[test]
fn imix_is_spread_evenly() {
    let imix = Sizes::preset("imix").unwrap();
    let wanted = [64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 570, 64];
    let seen = round(&imix, 24);
    assert_eq!(seen[..12], seen[12..]);
    for size in [64, 570, 1518] {
        let count = |list: &[usize]| list.iter().filter(|n| **n == size).count();
        assert_eq!(count(&seen[..12]), count(&wanted));
    }
    // No two big ones side by side, no more than two small ones.
    assert!(seen.windows(2).all(|pair| pair[0] == 64 || pair[1] == 64), "{seen:?}");
    assert!(seen.windows(3).all(|three| three != [64, 64, 64]), "{seen:?}");
}

#[test]
fn every_preset_is_sound_and_has_exact_shares() {
    for (name, pairs) in PRESETS {
        let sizes = Sizes::preset(name).unwrap();
        sizes.check().unwrap();
        let total: f64 = pairs.iter().map(|(_, w)| w).sum();
        let sequence = sizes.sequence().unwrap();
        for (size, weight) in pairs {
            let share = sequence.iter().filter(|n| *n == size).count() as f64;
            assert!((share / sequence.len() as f64 - weight / total).abs() < 1e-12, "{name}");
        }
        let mean = sequence.iter().sum::<usize>() as f64 / sequence.len() as f64;
        assert!((sizes.mean_with_fcs() - mean).abs() < 1e-9);
    }
    assert_eq!(Sizes::preset("ipsec_imix").unwrap().sequence().unwrap().len(), 10_000);
    assert_eq!(Sizes::preset("jumbo"), None);
}

#[test]
fn ranges_go_round() {
    let sizes = Sizes::Increment { start: 64, end: 70, step: 4 };
    assert_eq!(round(&sizes, 5), [64, 68, 64, 68, 64]);
    assert_eq!((sizes.max_with_fcs(), sizes.mean_with_fcs()), (68, 66.0));
    assert_eq!(round(&Sizes::Increment { start: 64, end: 70, step: 0 }, 2), [64, 64]);
}

#[test]
fn bad_sizes_are_refused() {
    for size in [0, 63, 9217, usize::MAX] {
        assert_eq!(Sizes::Fixed(size).check(), Err(SizeError::Range(size)));
    }
    let increment = Sizes::Increment { start: 64, end: 9999, step: 1 };
    assert_eq!(increment.check(), Err(SizeError::Range(9999)));
    let random = Sizes::Random { min: 65, max: 64, seed: 0 };
    assert_eq!(random.check(), Err(SizeError::Order(65, 64)));
    for pairs in [vec![], vec![(64, 0.0)], vec![(64, -1.0), (65, 2.0)], vec![(64, f64::NAN)]] {
        assert_eq!(Sizes::Weighted(pairs).check(), Err(SizeError::Weights));
    }
}

#[test]
fn random_sizes_reach_both_ends() {
    let sizes = Sizes::Random { min: 64, max: 66, seed: 1 };
    let seen = round(&sizes, 200);
    assert!([64, 65, 66].iter().all(|n| seen.contains(n)));
    assert!(seen.iter().all(|n| (64..=66).contains(n)));
}

proptest! {
    #[test]
    fn sequences_stay_short_and_near_their_weights(weights in prop::collection::vec(0.0f64..1e4, 1..6)) {
        let pairs: Vec<(usize, f64)> = weights.iter().enumerate().map(|(i, w)| (64 + i, *w)).collect();
        let sizes = Sizes::Weighted(pairs.clone());
        prop_assume!(sizes.check().is_ok());
        let sequence = sizes.sequence().unwrap();
        prop_assert!(sequence.len() <= MAX_SEQUENCE + pairs.len());
        let total: f64 = weights.iter().sum();
        for (size, weight) in pairs {
            let share = sequence.iter().filter(|n| **n == size).count() as f64 / sequence.len() as f64;
            prop_assert!((share - weight / total).abs() < 1e-4);
        }
    }

    #[test]
    fn peek_is_next(min in 64usize..9216, more in 0usize..200, seed: u64, kind in 0..3) {
        let max = (min + more).min(MAX_LEN_WITH_FCS);
        let sizes = match kind {
            0 => Sizes::Random { min, max, seed },
            1 => Sizes::Increment { start: min, end: max, step: 1 + more / 3 },
            _ => Sizes::Weighted(vec![(min, 1.0), (max, 2.5)]),
        };
        prop_assert!(sizes.check().is_ok());
        let mut walk = Walk::new(&sizes);
        let first = walk.peek();
        for _ in 0..30 {
            let next = walk.peek();
            let mut one = [0];
            walk.fill(&mut one);
            prop_assert_eq!(one[0] as usize, next);
            prop_assert!((min..=max).contains(&(next + 4)));
        }
        walk.restart();
        prop_assert_eq!(walk.peek(), first);
    }
}
