// SPDX-License-Identifier: BSD-3-Clause
//! Caches an answer for a second, because it is asked for often.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// How long an answer is valid.
const GOOD: Duration = Duration::from_secs(1);

/// The latest answer to a question, and when it was found.
#[derive(Clone, Debug)]
pub struct Kept<Q, A>(RefCell<Option<(Instant, Q, A)>>);

impl<Q, A> Default for Kept<Q, A> {
    fn default() -> Self {
        Kept(RefCell::new(None))
    }
}

impl<Q: PartialEq, A: Clone> Kept<Q, A> {
    /// The answer at `now`: the cached one if it is to the same question and less than a second
    /// old, otherwise a new one from `ask`.
    pub fn get(&self, now: Instant, question: Q, ask: impl FnOnce(&Q) -> A) -> A {
        let mut kept = self.0.borrow_mut();
        let (.., answer) = match kept.take() {
            Some(good) if good.1 == question && now.saturating_duration_since(good.0) < GOOD => {
                kept.insert(good)
            }
            _ => {
                let answer = ask(&question);
                kept.insert((now, question, answer))
            }
        };
        answer.clone()
    }

    /// Drops the cached answer.
    pub fn forget(&self) {
        self.0.replace(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_once_a_second() {
        let (kept, begin) = (Kept::default(), Instant::now());
        let mut asked = 0;
        let mut get = |milliseconds, question| {
            kept.get(begin + Duration::from_millis(milliseconds), question, |question| {
                asked += 1;
                (*question, asked)
            })
        };
        assert_eq!((get(0, 'a'), get(999, 'a')), (('a', 1), ('a', 1)));
        assert_eq!((get(1000, 'a'), get(1999, 'a')), (('a', 2), ('a', 2)));
        // Another question has another answer.
        assert_eq!((get(1999, 'b'), get(1999, 'a')), (('b', 3), ('a', 4)));
        kept.forget();
        assert_eq!(kept.get(begin, 'a', |_| ('a', 0)), ('a', 0));
    }
}
