// SPDX-License-Identifier: BSD-3-Clause
//! A stream on which the first bytes must come in time.
//!
//! They say whether a peer speaks HTTP/1 or HTTP/2. Whoever waits for them has no time limit of its own.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Bytes of the preface of HTTP/2 (RFC 9113, 3.4). A request of HTTP/1.1 with a host has more.
const FIRST: usize = 24;

/// A stream that fails if its first bytes are late.
#[derive(Debug)]
pub struct Opening<S> {
    stream: S,
    /// How many are still to come, and until when.
    missing: usize,
    late: Pin<Box<Sleep>>,
}

impl<S> Opening<S> {
    /// Wraps a new stream. Must be called within a tokio runtime with time.
    pub fn new(stream: S, most: Duration) -> Self {
        Opening { stream, missing: FIRST, late: Box::pin(tokio::time::sleep(most)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.missing = self.missing.saturating_sub(buffer.filled().len() - before);
        if read.is_pending() && self.missing > 0 && self.late.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Reads 24 bytes of a stream on which `sent` bytes were sent.
    fn read(sent: usize) -> io::Result<usize> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut peer, own) = duplex(64);
            peer.write_all(&[b'x'; 64][..sent]).await?;
            let mut opening = Opening::new(own, Duration::from_millis(20));
            let mut bytes = [0; FIRST];
            opening.read_exact(&mut bytes).await?;
            // The rest may take as long as it likes.
            let waits = tokio::time::timeout(Duration::from_millis(60), opening.read_u8()).await;
            assert!(waits.is_err(), "nothing else comes, and nothing fails");
            Ok(FIRST)
        })
    }

    #[test]
    fn only_the_first_bytes_must_come_in_time() {
        assert_eq!(read(FIRST).unwrap(), FIRST);
        for sent in [0, 3, FIRST - 1] {
            assert_eq!(read(sent).unwrap_err().kind(), io::ErrorKind::TimedOut, "{sent}");
        }
    }
}
