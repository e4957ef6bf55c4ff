// SPDX-License-Identifier: BSD-3-Clause
//! What the engine needs of a port, so that its logic runs in tests without DPDK.

/// Most frames of one call to a port.
pub const BURST: usize = 32;

use packet::writer::Buffer;

/// A frame being built.
#[expect(clippy::len_without_is_empty, reason = "nobody asks")]
pub trait Frame: Buffer {
    /// Its length in bytes, without FCS.
    fn len(&self) -> usize;

    /// Its bytes, without FCS; `None` when somebody else may read them now.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

/// A queue from which frames come.
pub trait Receive {
    /// Frees what was received before, and receives up to [`BURST`] frames. Returns how many.
    fn receive(&mut self) -> usize;

    /// Frees what was received.
    fn free(&mut self);

    /// The n-th frame received; empty behind the last.
    fn frame(&self, n: usize) -> &[u8];
}

/// A queue on which frames leave, and the burst between engine and queue. Queued frames keep their order.
pub trait Transmit {
    /// A frame of this queue.
    type Frame: Frame;

    /// Queues `n` new frames behind those queued, all or none, for the caller to write. `None` when
    /// there are not enough buffers. `n` fits beside what is queued.
    fn reserve(&mut self, n: usize) -> Option<&mut [Self::Frame]>;

    /// The queued frames.
    fn queued(&mut self) -> &mut [Self::Frame];

    /// Offers the queued frames to the port once; those taken leave the queue from the front.
    /// Returns how many.
    fn offer(&mut self) -> usize;

    /// Frees all queued frames.
    fn discard(&mut self);

    /// Whether buffers keep their bytes between headers and signature from frame to frame.
    fn resident(&self) -> bool;

    /// Says that frames of other lengths come: buffers keep nothing any more.
    fn forget_resident(&mut self);
}
