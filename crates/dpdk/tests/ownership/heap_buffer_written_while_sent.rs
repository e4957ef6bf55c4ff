// SPDX-License-Identifier: BSD-3-Clause
// expect: E0382
//! A heap buffer written while packets share its bytes.

use dpdk::{ExternalBuffer, HeapBuffer, Mbuf, Mempool};

pub fn send<'m>(mut bytes: HeapBuffer<'m>, pool: &Mempool<'m>) -> Option<Mbuf<'m>> {
    bytes.fill(1);
    let buffer = ExternalBuffer::on_heap(bytes);
    let packet = buffer.packet(pool, ..).ok();
    #[cfg(fault)]
    bytes.fill(2);
    packet
}
