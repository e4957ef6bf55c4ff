// SPDX-License-Identifier: BSD-3-Clause
//! Work for each lcore, the main one among them.

use dpdk::{Eal, LaunchError, Lcore};

use crate::stop::Stop;

/// Runs `work` on each lcore with its job, and returns when all have ended. The main lcore is the
/// caller's thread. If one does not start, `stop` is set for the others.
///
/// # Errors
/// See [`LaunchError`].
pub(crate) fn run<J: Send>(
    eal: &Eal,
    jobs: Vec<(Lcore, J)>,
    stop: &Stop,
    work: impl Fn(J) + Sync,
) -> Result<(), LaunchError> {
    let main = eal.main_lcore();
    let work = &work;
    eal.scope(|scope| {
        let mut own = None;
        let launched = jobs.into_iter().try_for_each(|(lcore, job)| {
            if lcore == main {
                own = Some(job);
                return Ok(());
            }
            scope.launch(lcore, move || work(job))
        });
        if launched.is_err() {
            stop.raise();
        }
        if let Some(job) = own {
            work(job);
        }
        launched
    })
}
