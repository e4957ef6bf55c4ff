// SPDX-License-Identifier: BSD-3-Clause
//! RCU QSBR: two variables, one used through Rust and one through C, give every writer the same
//! answers.

use dpdk::qsbr::{Online, Qsbr, Reader};
use dpdk_sys::rte_rcu_qsbr;
use proptest::prelude::*;

use super::support::property::for_all_unshrunk;

/// More threads than one word of the registration holds.
const READERS: u16 = 70;

#[derive(Clone, Debug)]
enum Step {
    Register,
    Unregister(prop::sample::Index),
    Online(prop::sample::Index),
    Offline(prop::sample::Index),
    Quiescent(prop::sample::Index),
    AllQuiescent,
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    use prop::sample::Index;
    prop_oneof![
        3 => Just(Step::Register),
        1 => any::<Index>().prop_map(Step::Unregister),
        3 => any::<Index>().prop_map(Step::Online),
        1 => any::<Index>().prop_map(Step::Offline),
        3 => any::<Index>().prop_map(Step::Quiescent),
        1 => Just(Step::AllQuiescent),
        1 => Just(Step::Start),
    ]
}

/// A reader on both sides.
struct Both<'q> {
    /// Dropped before the reader, which it borrows.
    online: Option<Online<'q>>,
    /// A box, as a pointer because `online` borrows its contents.
    reader: *mut Reader<'q>,
    thread: u32,
}

impl Drop for Both<'_> {
    fn drop(&mut self) {
        self.online = None;
        // SAFETY: made from a box, which nothing borrows any more.
        drop(unsafe { Box::from_raw(self.reader) });
    }
}

pub fn agree() {
    for_all_unshrunk(10..=200, &prop::collection::vec(step(), 1..300), |steps| {
        // Some variables become full, so that C takes its other path.
        let readers = if steps.len() % 2 == 0 { READERS } else { 3 };
        run(steps, readers)
    });
}

fn run(steps: Vec<Step>, readers: u16) -> Result<(), TestCaseError> {
    let native = Qsbr::new(readers);
    // SAFETY: computes a size.
    let size = unsafe { dpdk_sys::rte_rcu_qsbr_get_memsize(readers.into()) };
    #[repr(align(128))]
    #[derive(Clone, Copy)]
    struct Line([u8; 128]);
    let mut memory = vec![Line([0; 128]); size.div_ceil(128)];
    assert_eq!(memory[0].0[0], 0);
    let c: *mut rte_rcu_qsbr = memory.as_mut_ptr().cast();
    // SAFETY: the size is the one that DPDK reports; the functions below are given registered
    // thread numbers in its range, and one thread calls them all.
    unsafe { assert_eq!(dpdk_sys::rte_rcu_qsbr_init(c, readers.into()), 0) };
    let mut both: Vec<Both<'_>> = Vec::new();
    let mut free: Vec<u32> = (0..u32::from(readers)).rev().collect();
    let mut tokens = Vec::new();
    for step in steps {
        let at = |index: prop::sample::Index| index.index(both.len().max(1));
        match step {
            Step::Register => {
                let reader = native.register();
                prop_assert_eq!(reader.is_ok(), !free.is_empty());
                if let (Ok(reader), Some(thread)) = (reader, free.pop()) {
                    // SAFETY: as above.
                    unsafe { dpdk_sys::rte_rcu_qsbr_thread_register(c, thread) };
                    let reader = Box::into_raw(Box::new(reader));
                    both.push(Both { online: None, reader, thread });
                }
            }
            Step::Unregister(index) => {
                let at = at(index);
                if at < both.len() {
                    let thread = both.swap_remove(at).thread;
                    free.push(thread);
                    // SAFETY: as above.
                    unsafe {
                        dpdk_sys::lr_rcu_qsbr_thread_offline(c, thread);
                        dpdk_sys::rte_rcu_qsbr_thread_unregister(c, thread);
                    }
                }
            }
            Step::Online(index) => {
                let at = at(index);
                if let Some(one) = both.get_mut(at).filter(|one| one.online.is_none()) {
                    // SAFETY: nothing borrows the reader, and the box lives longer.
                    one.online = Some(unsafe { &mut *one.reader }.online());
                    // SAFETY: as above.
                    unsafe { dpdk_sys::lr_rcu_qsbr_thread_online(c, one.thread) };
                }
            }
            Step::Offline(index) => {
                let at = at(index);
                if let Some(one) = both.get_mut(at).filter(|one| one.online.is_some()) {
                    one.online = None;
                    // SAFETY: as above.
                    unsafe { dpdk_sys::lr_rcu_qsbr_thread_offline(c, one.thread) };
                }
            }
            Step::Quiescent(index) => {
                let at = at(index);
                both.get_mut(at).into_iter().for_each(|one| quiescent(one, c));
            }
            Step::AllQuiescent => both.iter_mut().for_each(|one| quiescent(one, c)),
            Step::Start => {
                // SAFETY: as above.
                tokens.push((native.start(), unsafe { dpdk_sys::lr_rcu_qsbr_start(c) }));
            }
        }
        for (native_token, token) in &tokens {
            // SAFETY: as above.
            let passed = unsafe { dpdk_sys::lr_rcu_qsbr_check(c, *token, false) } == 1;
            prop_assert_eq!(native.check(*native_token), passed);
        }
    }
    Ok(())
}

fn quiescent(one: &mut Both<'_>, c: *mut rte_rcu_qsbr) {
    if let Some(online) = &mut one.online {
        online.quiescent();
        // SAFETY: the variable was made for this thread.
        unsafe { dpdk_sys::lr_rcu_qsbr_quiescent(c, one.thread) };
    }
}
