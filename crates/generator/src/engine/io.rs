// SPDX-License-Identifier: BSD-3-Clause
//! What the engine needs of a port, so that its logic runs in tests without DPDK.

/// Most frames of one call to a port.
pub const BURST: usize = 32;

/// A frame being built.
pub trait Frame {
    /// Makes the frame `len` bytes long and gives its bytes, whatever they were.
    fn resize(&mut self, len: usize) -> Option<&mut [u8]>;
}

/// A port's receive queue, transmit queue and the burst between engine and transmit queue. Queued
/// frames keep their order.
pub trait Io {
    /// A frame of this port.
    type Frame: Frame;

    /// Receives up to [`BURST`] frames, shows each to `look` and frees them. Returns how many.
    fn receive(&mut self, look: impl FnMut(&[u8])) -> usize;

    /// Queues `n` new frames behind those queued, all or none, for the caller to write. `None` when
    /// there are not enough buffers. `n` fits beside what is queued.
    fn reserve(&mut self, n: usize) -> Option<&mut [Self::Frame]>;

    /// Offers the queued frames to the port once; those taken leave the queue from the front.
    /// Returns how many.
    fn offer(&mut self) -> usize;

    /// Frees all queued frames.
    fn discard(&mut self);

    /// Whether buffers keep their bytes between headers and signature from frame to frame.
    fn resident(&self) -> bool;
}
