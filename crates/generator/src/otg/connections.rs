// SPDX-License-Identifier: BSD-3-Clause
//! Bounds on what clients may hold: so many connections, each so long without a request, and so
//! long with an answer. [`super::places`] says who gets in when all places are taken.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Address, Server};
use host::SocketUsers;
use hyper_util::rt::TokioTimer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::leased::Leased;
use super::patience::{Patience, Patient};
use super::places::{Peer, Places};

/// Longest time until a TLS handshake is complete.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time until the headers of a connection's next request are complete.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest read buffer of a connection in bytes, and so of a request's headers. The limit of all bodies together does not
/// count these buffers, and hyper's default (400 KiB) was 32 MB for 80 clients that send at once.
const READ_BUFFER: usize = 64 << 10;

/// Serves `router` on a TCP socket, by HTTPS if there is a certificate, until that fails. Users of this machine are told
/// apart by `users`, of the socket's network namespace.
///
/// # Errors
/// What the socket reports.
pub async fn serve_tcp(
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    users: Option<SocketUsers>,
    places: Places,
    router: Router,
) -> io::Result<()> {
    let server = axum_server::from_tcp(listener)?;
    let users = users.map(Arc::new);
    match tls {
        Some(tls) => {
            let acceptor = RustlsAcceptor::new(tls).handshake_timeout(HANDSHAKE_TIMEOUT);
            serve(server.acceptor(acceptor), users, places, router).await
        }
        None => serve(server, users, places, router).await,
    }
}

/// Serves `router` on a Unix socket to the user of this process and to root, until that fails.
///
/// # Errors
/// What the socket reports.
pub async fn serve_unix(listener: UnixListener, places: Places, router: Router) -> io::Result<()> {
    serve(axum_server::from_unix(listener)?, None, places, router).await
}

async fn serve<S, A>(
    server: Server<S, A>,
    users: Option<Arc<SocketUsers>>,
    places: Places,
    router: Router,
) -> io::Result<()>
where
    S: Address + Send + 'static,
    S::Stream: HasPeer + AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Accept<Leased<S::Stream>, Router, Service = Router> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send + 'static,
{
    // Without a choice of versions, the wait for the first bytes would have no end.
    let mut server = server.map(|inner| Bounded { inner, users, places }).http1_only();
    let mut http = server.http_builder().http1();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(READ_BUFFER);
    server.serve(router.into_make_service()).await
}

/// A stream of which it is known who is at the other end.
trait HasPeer {
    fn peer(&self, users: Option<&SocketUsers>) -> io::Result<Peer>;
}

impl HasPeer for TcpStream {
    fn peer(&self, users: Option<&SocketUsers>) -> io::Result<Peer> {
        let (peer, own) = (self.peer_addr()?, self.local_addr()?);
        Ok(Peer::at(peer.ip(), || users?.user(peer, own)))
    }
}

impl HasPeer for UnixStream {
    fn peer(&self, _: Option<&SocketUsers>) -> io::Result<Peer> {
        match self.peer_cred()?.uid() {
            user if user == 0 || user == host::user() => Ok(Peer::Local),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// Accepts those who get a place; a connection's service holds it.
#[derive(Clone)]
struct Bounded<A> {
    inner: A,
    users: Option<Arc<SocketUsers>>,
    places: Places,
}

impl<A, S> Accept<S, Router> for Bounded<A>
where
    S: HasPeer + Send + 'static,
    A: Accept<Leased<S>, Router, Service = Router>,
    A::Future: Send + 'static,
{
    type Stream = Patient<A::Stream>;
    type Service = Router;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Router)>> + Send>>;

    fn accept(&self, stream: S, router: Router) -> Self::Future {
        let entered = stream.peer(self.users.as_deref()).map(|peer| self.places.enter(peer));
        match entered {
            Ok(Some((seat, ended))) => {
                let router = router.layer(Extension(seat));
                let accepted = self.inner.accept(Leased::new(stream, ended), router);
                Box::pin(async {
                    let (stream, router) = accepted.await?;
                    Ok((Patient::new(stream, Patience::default()), router))
                })
            }
            Ok(None) => Box::pin(async { Err(io::Error::other("too many connections")) }),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}
