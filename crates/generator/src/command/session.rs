// SPDX-License-Identifier: BSD-3-Clause
//! An engine with its control plane, for the duration of some work.
//!
//! The engine runs on the caller's thread, which is the main lcore; control plane, configurator and
//! work have a thread each, bound to the same CPU.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use dpdk::Eal;
use tokio::sync::{mpsc, oneshot};

use super::client::Client;
use crate::control::{Control, Rules};
use crate::engine::{self, Desk};
use crate::telemetry;

/// The most calls and queries that may wait.
const BACKLOG: usize = 64;

/// Why a session could not be started, or failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// An lcore could not be started.
    #[error(transparent)]
    Launch(#[from] dpdk::LaunchError),
    /// DPDK refused the telemetry commands.
    #[error(transparent)]
    Telemetry(#[from] dpdk::telemetry::RegisterError),
    /// A thread could not be created.
    #[error("a thread cannot be made: {0}")]
    Thread(std::io::Error),
    /// The control plane has ended.
    #[error("the control plane ended early: {0}")]
    Control(std::io::Error),
    /// A thread panicked; its message was printed.
    #[error("the thread {0:?} has failed")]
    Panicked(&'static str),
}

/// Runs `work` beside an engine with these rules. Telemetry is answered meanwhile.
///
/// # Errors
/// [`SessionError`]; what `work` returns is its own.
pub fn session<T: Send>(
    eal: &Eal,
    rules: Rules,
    work: impl FnOnce(&Client) -> T + Send,
) -> Result<T, SessionError> {
    let desk = Desk::new(eal.lcores().len());
    let stop = AtomicBool::new(false);
    let (calls, received) = mpsc::channel(BACKLOG);
    let (questions, asked) = mpsc::channel(BACKLOG);
    telemetry::register(eal, &questions)?;
    let (end, ended) = oneshot::channel::<()>();
    let settings = rules.settings;
    thread::scope(|scope| {
        let (control, configurator) = Control::new(eal, &desk, rules);
        let stop = &stop;
        let configuring = configurator.start(scope).map_err(SessionError::Thread)?;
        let serve = move || {
            let _end = Ends(stop);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                tokio::select! {
                    () = control.serve(received, asked) => {}
                    _ = ended => {}
                }
            });
            Ok(())
        };
        let serving = thread::Builder::new()
            .name("control".to_owned())
            .spawn_scoped(scope, serve)
            .map_err(SessionError::Thread)?;
        let client = Client::new(calls, questions);
        let at_work = move || {
            let _end = Ends(stop);
            work(&client)
        };
        let working =
            thread::Builder::new().name("command".to_owned()).spawn_scoped(scope, at_work);
        let working = match working {
            Ok(working) => working,
            Err(error) => {
                drop(end);
                return Err(SessionError::Thread(error));
            }
        };
        let ran = engine::run(eal, settings, &desk, stop);
        // A caller that waits for an engine that could not run learns it from the control plane's
        // end.
        let end = match &ran {
            Ok(()) => Some(end),
            Err(_) => None,
        };
        let done = working.join().map_err(|_| SessionError::Panicked("command"));
        drop(end);
        let served: Result<std::io::Result<()>, _> = serving.join();
        let configured = configuring.join();
        ran?;
        configured.map_err(|_| SessionError::Panicked("config"))?;
        served.map_err(|_| SessionError::Panicked("control"))?.map_err(SessionError::Control)?;
        done
    })
}

/// Ends the engine when the work on its thread ends, even by a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
