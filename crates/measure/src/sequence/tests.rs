// SPDX-License-Identifier: BSD-3-Clause
//! The RFC's examples, and a model that remembers every arrival.

use super::*;
use proptest::prelude::*;

const NEXT: Arrival = Arrival::InOrder { skipped: 0 };

fn jump(skipped: u32) -> Arrival {
    Arrival::InOrder { skipped }
}

fn late(extent: u32) -> Arrival {
    Arrival::Reordered { extent }
}

/// Arrivals of a flow whose first frame has number 1, as in the RFC's tables.
fn from_one(order: &[u32]) -> Vec<Arrival> {
    let (mut arrivals, books) = (Arrivals::new(16), SequenceBooks::default());
    arrivals.see(&books, 0);
    order.iter().map(|number| arrivals.see(&books, *number)).collect()
}

#[test]
fn one_packet_reordered_as_in_rfc_4737_section_7() {
    let seen = from_one(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
    assert_eq!(seen, [NEXT, NEXT, NEXT, jump(1), NEXT, NEXT, NEXT, late(4), NEXT, NEXT]);
}

#[test]
fn two_packets_reordered_as_in_rfc_4737_section_7() {
    let seen = from_one(&[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]);
    assert_eq!(seen, [NEXT, NEXT, NEXT, NEXT, jump(2), late(1), late(2), NEXT, NEXT, NEXT]);
}

#[test]
fn three_packets_reordered_as_in_rfc_4737_section_7() {
    let seen = from_one(&[1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11]);
    let late = [late(4), late(5), late(6), NEXT];
    assert_eq!(seen[3..], [&[jump(3), NEXT, NEXT, NEXT], &late[..]].concat());
}

#[test]
fn copies_are_no_arrivals_between_others() {
    let seen = from_one(&[1, 3, 3, 1, 2, 2]);
    let copy = Arrival::Duplicate;
    assert_eq!(seen, [NEXT, jump(1), copy, copy, late(1), copy]);
}

#[test]
fn numbers_go_round() {
    let (mut arrivals, books) = (Arrivals::new(16), SequenceBooks::default());
    assert_eq!(arrivals.see(&books, u32::MAX), Arrival::Unknown, "from before the start");
    assert_eq!(arrivals.see(&books, 1 << 31), Arrival::Unknown, "half the numbers ahead is behind");
    let largest = (1 << 31) - 1;
    assert_eq!(arrivals.see(&books, largest), jump(largest));
    assert_eq!(arrivals.see(&books, u32::MAX - 1), jump(largest - 1));
    assert_eq!(arrivals.see(&books, 1), jump(2));
    assert_eq!(arrivals.see(&books, u32::MAX), late(1));
    assert_eq!(arrivals.see(&books, 0), late(2));
    assert_eq!(arrivals.see(&books, 0), Arrival::Duplicate);
    assert_eq!(arrivals.see(&books, (1 << 31) + 2), late(4), "as old as can be");
    assert_eq!(arrivals.see(&books, 2), NEXT);
    assert_eq!(books.missing.get(), (1 << 32) + 3 - 7);
}

#[test]
fn a_restart_forgets_all_but_the_books() {
    let (mut arrivals, books) = (Arrivals::new(4), SequenceBooks::with_extents());
    for number in [3, 1, 1] {
        arrivals.see(&books, number);
    }
    arrivals.restart();
    let again = [0, 1, 2, 2].map(|number| arrivals.see(&books, number));
    assert_eq!(again, [NEXT, NEXT, NEXT, Arrival::Duplicate], "2 was missing before");
    assert_eq!((books.in_order.get(), books.duplicates.get()), (4, 2));
    assert_eq!((books.extents().unwrap().count(), books.max_extent.get()), (1, 1));
    books.clear();
    assert_eq!(read(&books), [0; 7]);
    assert_eq!(books.extents().unwrap().count(), 0);
}

fn read(books: &SequenceBooks) -> [u64; 7] {
    [
        &books.in_order,
        &books.reordered,
        &books.duplicates,
        &books.unknown,
        &books.missing,
        &books.gaps,
        &books.max_extent,
    ]
    .map(Cell::get)
}

/// The definitions, computed from everything that has arrived.
fn model(came: &mut Vec<u64>, number: u64) -> Arrival {
    let arrival = if came.contains(&number) {
        return Arrival::Duplicate;
    } else if let Some(earliest) = came.iter().position(|other| *other > number) {
        late((came.len() - earliest) as u32)
    } else {
        let expected = came.iter().max().map_or(0, |largest| largest + 1);
        jump((number - expected) as u32)
    };
    came.push(number);
    arrival
}

/// Rows of consecutive numbers: where each starts, seen from the largest number so far, and its length.
fn rows() -> impl Strategy<Value = Vec<(i64, u32)>> {
    let start = prop_oneof![3 => Just(0i64), 2 => -40i64..0, 2 => 1i64..12];
    prop::collection::vec((start, 1u32..9), 1..60)
}

/// The rows with their first numbers in place of the distances.
fn placed(rows: &[(i64, u32)]) -> Vec<(u64, u32)> {
    let mut next = 0i64;
    rows.iter()
        .map(|(start, count)| {
            let first = (next + start).max(0);
            next = next.max(first + i64::from(*count));
            (first as u64, *count)
        })
        .collect()
}

proptest! {
    #[test]
    fn each_frame_is_what_the_definitions_say(rows in rows(), before in any::<u32>()) {
        let (mut arrivals, books) = (Arrivals::new(1024), SequenceBooks::with_extents());
        let mut came = Vec::new();
        // All earlier frames were in order, up to this number.
        arrivals.see_row(&books, 0, before);
        for (first, count) in placed(&rows) {
            for number in first..first + u64::from(count) {
                let seen = arrivals.see(&books, before.wrapping_add(number as u32));
                prop_assert_eq!(seen, model(&mut came, number));
            }
        }
        let largest = came.iter().max().unwrap();
        prop_assert_eq!(books.missing.get(), largest + 1 - came.len() as u64);
        let [in_order, reordered, duplicates, unknown, ..] = read(&books);
        prop_assert_eq!(in_order + reordered, u64::from(before) + came.len() as u64);
        let frames: u64 = rows.iter().map(|(_, count)| u64::from(*count)).sum();
        prop_assert_eq!(duplicates + unknown, frames - came.len() as u64);
        prop_assert_eq!(unknown, 0);
        prop_assert_eq!(books.extents().unwrap().count(), reordered);
        prop_assert_eq!(
            books.extents().unwrap().quantile(1.0).unwrap_or(0), books.max_extent.get());
    }

    #[test]
    fn a_row_is_its_frames(rows in rows(), gaps in 0usize..6) {
        let (mut single, singles) = (Arrivals::new(gaps), SequenceBooks::with_extents());
        let (mut row, row_books) = (Arrivals::new(gaps), SequenceBooks::with_extents());
        for (first, count) in placed(&rows) {
            for number in first..first + u64::from(count) {
                single.see(&singles, number as u32);
            }
            row.see_row(&row_books, first as u32, count);
            prop_assert_eq!(read(&row_books), read(&singles));
        }
        for quantile in [0.1, 0.5, 0.9] {
            prop_assert_eq!(
                row_books.extents().unwrap().quantile(quantile),
                singles.extents().unwrap().quantile(quantile)
            );
        }
    }

    /// With little memory, a frame is classified correctly or as unknown, and memory does not grow.
    #[test]
    fn what_is_forgotten_is_never_misjudged(rows in rows(), gaps in 0usize..6) {
        let (mut arrivals, books) = (Arrivals::new(gaps), SequenceBooks::default());
        let mut perfect = (Arrivals::new(1024), SequenceBooks::default());
        let room = arrivals.gaps.room();
        let mut unknown_arrivals = 0;
        for (first, count) in placed(&rows) {
            for number in first..first + u64::from(count) {
                let expected = perfect.0.see(&perfect.1, number as u32);
                match (arrivals.see(&books, number as u32), expected) {
                    (Arrival::Unknown, Arrival::Reordered { .. }) => unknown_arrivals += 1,
                    (Arrival::Unknown, Arrival::Duplicate) => {}
                    // Unknown frames are left out of the distance.
                    (Arrival::Reordered { extent }, Arrival::Reordered { extent: all }) => {
                        prop_assert!(extent <= all && all <= extent + unknown_arrivals);
                    }
                    (seen, expected) => prop_assert_eq!(seen, expected),
                }
                prop_assert!(arrivals.gaps.len() <= gaps);
            }
        }
        prop_assert_eq!(arrivals.gaps.room(), room);
        prop_assert_eq!(
            books.missing.get(), perfect.1.missing.get() + u64::from(unknown_arrivals));
    }
}
