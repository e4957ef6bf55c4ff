// SPDX-License-Identifier: BSD-3-Clause
//! A stream that ends when its place is given to another connection.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// A stream on a place. When the place is taken away, every read and write fails, those that wait too.
#[derive(Debug)]
pub struct Leased<S> {
    stream: S,
    ended: oneshot::Receiver<()>,
    has_ended: bool,
}

impl<S> Leased<S> {
    /// The stream, until `ended` resolves.
    pub fn new(stream: S, ended: oneshot::Receiver<()>) -> Self {
        Leased { stream, ended, has_ended: false }
    }

    /// What came of a call, unless the place has gone.
    fn unless_ended<T>(
        &mut self,
        context: &mut Context<'_>,
        call: impl FnOnce(&mut S, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.has_ended || Pin::new(&mut self.ended).poll(context).is_ready() {
            self.has_ended = true;
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        call(&mut self.stream, context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Leased<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.unless_ended(context, |stream, context| Pin::new(stream).poll_read(context, buffer))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Leased<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.unless_ended(context, |stream, context| Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.unless_ended(context, |stream, context| {
            Pin::new(stream).poll_write_vectored(context, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unless_ended(context, |stream, context| Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.unless_ended(context, |stream, context| Pin::new(stream).poll_shutdown(context))
    }
}
