// SPDX-License-Identifier: BSD-3-Clause
//! A stream that gives up on a peer which does not take its answers.
//!
//! From the moment when a write has to wait, the peer has a credit of time. Bytes that it takes
//! earn it more, up to the credit that it began with; an answer that has gone out wholly ends the
//! matter. So a large answer may take long, but never at less than the least rate, and never with
//! a longer stop than the credit.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a peer may keep a stream waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Longest stop.
    pub credit: Duration,
    /// Bytes that earn a second.
    pub bytes_per_second: u32,
}

impl Default for Patience {
    /// Ten seconds, and 64 KiB/s.
    fn default() -> Self {
        Patience { credit: Duration::from_secs(10), bytes_per_second: 64 << 10 }
    }
}

/// A stream with bounded writes.
#[derive(Debug)]
pub struct Patient<S> {
    stream: S,
    patience: Patience,
    deadline: Option<Instant>,
    sleep: Pin<Box<Sleep>>,
}

impl<S> Patient<S> {
    /// Wraps a stream. Must be called within a tokio runtime with time.
    pub fn new(stream: S, patience: Patience) -> Self {
        let sleep = Box::pin(tokio::time::sleep(patience.credit));
        Patient { stream, patience, deadline: None, sleep }
    }

    /// Passes on what came of a write, unless it waits in vain.
    fn wait<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            return result;
        }
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.patience.credit);
        if self.sleep.deadline() != deadline {
            self.sleep.as_mut().reset(deadline);
        }
        match self.sleep.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Notes what the peer took.
    fn earn(&mut self, bytes: usize) {
        if let Some(deadline) = &mut self.deadline {
            let seconds = bytes as f64 / f64::from(self.patience.bytes_per_second.max(1));
            let earned = *deadline + Duration::from_secs_f64(seconds);
            *deadline = earned.min(Instant::now() + self.patience.credit);
        }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = result {
            self.earn(bytes);
        }
        self.wait(context, result)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        if result.is_ready() {
            self.deadline = None;
        }
        self.wait(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait(context, result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Takes so many bytes at every second write, and nothing at the others.
    struct Slow {
        bytes: usize,
        turn: bool,
    }

    impl AsyncWrite for Slow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.turn = !self.turn;
            if self.bytes == 0 || self.turn {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Ok(self.bytes.min(bytes.len())))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn patient(bytes: usize, credit_ms: u64, bytes_per_second: u32) -> Patient<Slow> {
        let credit = Duration::from_millis(credit_ms);
        Patient::new(Slow { bytes, turn: false }, Patience { credit, bytes_per_second })
    }

    async fn write(stream: &mut Patient<Slow>, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)).await?;
            bytes = &bytes[n..];
        }
        poll_fn(|context| Pin::new(&mut *stream).poll_flush(context)).await
    }

    #[test]
    fn who_takes_nothing_or_too_little_is_given_up() {
        run(async {
            let error = write(&mut patient(0, 30, 1), &[0; 100]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            // However fast this machine is, a billion bytes a second are not taken one by one.
            let trickle = vec![0; 1 << 30];
            let error = write(&mut patient(1, 30, 1_000_000_000), &trickle).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let mut stuck = patient(0, 30, 1);
            let error = poll_fn(|context| Pin::new(&mut stuck).poll_shutdown(context)).await;
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn who_takes_enough_is_served_as_long_as_it_takes() {
        run(async {
            let mut stream = patient(1000, 60_000, 1);
            write(&mut stream, &[0; 100_000]).await.unwrap();
            assert_eq!(stream.deadline, None, "the answer has gone out");
        });
    }
}
