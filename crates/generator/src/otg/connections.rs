// SPDX-License-Identifier: BSD-3-Clause
//! Bounds on what clients may hold: so many connections, each so long without a request, and so
//! long with an answer.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use axum_server::Server;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::patience::{Patience, Patient};

/// Connections at a time; one more is closed at once.
const MAX_CONNECTIONS: usize = 64;

/// Longest time until the headers of a connection's next request are complete.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves `router` on `server` until that fails.
///
/// # Errors
/// What the server's socket reports.
pub async fn serve<A>(server: Server<SocketAddr, A>, router: Router) -> io::Result<()>
where
    A: Accept<TcpStream, Router, Service = Router> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send + 'static,
{
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // Without a choice of versions, the wait for the first bytes would have no end.
    let mut server = server.map(|inner| Bounded { inner, permits }).http1_only();
    server.http_builder().http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    server.serve(router.into_make_service()).await
}

/// Accepts while there are permits; a connection's service holds its permit.
#[derive(Clone)]
struct Bounded<A> {
    inner: A,
    permits: Arc<Semaphore>,
}

impl<A> Accept<TcpStream, Router> for Bounded<A>
where
    A: Accept<TcpStream, Router, Service = Router>,
    A::Future: Send + 'static,
{
    type Stream = Patient<A::Stream>;
    type Service = Router;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Router)>> + Send>>;

    fn accept(&self, stream: TcpStream, router: Router) -> Self::Future {
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => {
                let router = router.layer(Extension(Arc::new(permit)));
                let accepted = self.inner.accept(stream, router);
                Box::pin(async {
                    let (stream, router) = accepted.await?;
                    Ok((Patient::new(stream, Patience::default()), router))
                })
            }
            Err(_) => Box::pin(async { Err(io::Error::other("too many connections")) }),
        }
    }
}
