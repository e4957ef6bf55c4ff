// SPDX-License-Identifier: BSD-3-Clause
//! Commands for a polling thread: checking for one costs one relaxed load if there is none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A queue of commands. Any thread posts; the polling thread takes.
#[derive(Debug)]
pub struct Mailbox<C> {
    waiting: AtomicBool,
    commands: Mutex<VecDeque<C>>,
}

impl<C> Default for Mailbox<C> {
    fn default() -> Self {
        Mailbox { waiting: AtomicBool::new(false), commands: Mutex::new(VecDeque::new()) }
    }
}

impl<C> Mailbox<C> {
    /// Posts a command.
    pub fn post(&self, command: C) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.push_back(command);
        self.waiting.store(true, Ordering::Release);
    }

    /// Returns the oldest command, if there is one. Takes the lock only if one has been posted.
    #[inline]
    pub fn take(&self) -> Option<C> {
        if !self.waiting.load(Ordering::Relaxed) {
            return None;
        }
        self.take_waiting()
    }

    #[cold]
    fn take_waiting(&self) -> Option<C> {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let command = commands.pop_front();
        self.waiting.store(!commands.is_empty(), Ordering::Relaxed);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_arrive_in_order_and_once() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.take(), None);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|n| mailbox.post(n)));
            let mut next = 0;
            while next < 1000 {
                if let Some(n) = mailbox.take() {
                    assert_eq!(n, next);
                    next += 1;
                }
            }
        });
        assert_eq!(mailbox.take(), None);
    }
}
