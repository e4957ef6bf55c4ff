// SPDX-License-Identifier: BSD-3-Clause
//! bindgen's layouts, from libclang, must equal those of the C compiler; a mismatch would silently
//! corrupt memory, so it is a compile-time error. `layout.c` asserts that each field has the width
//! that Rust assumes.

use core::mem::{offset_of, size_of};

use crate::{
    layout, rte_eth_fp_ops, rte_mbuf, rte_mbuf_ext_shared_info, rte_mempool, rte_mempool_cache,
};

macro_rules! same {
    ($($type:ty { $($($field:ident).+ = $offset:ident),+ $(,)? })+) => {
        $($(const _: () = assert!(offset_of!($type, $($field).+) == layout::$offset);)+)+
    };
}

const _: () = {
    assert!(size_of::<rte_mbuf>() == layout::MBUF_SIZE);
    assert!(size_of::<rte_eth_fp_ops>() == layout::FP_OPS_SIZE);
    assert!(size_of::<rte_mempool>() == layout::MEMPOOL_SIZE);
    assert!(size_of::<rte_mempool_cache>() == layout::CACHE_STRIDE);
    // Tables are indexed by numbers that DPDK keeps in these fields.
    assert!(layout::MAX_ETHPORTS <= u16::MAX as usize && layout::MAX_LCORE < u32::MAX as usize);
    // The native code treats these as bits of one field that do not overlap.
    assert!(layout::MBUF_F_INDIRECT.is_power_of_two() && layout::MBUF_F_EXTERNAL.is_power_of_two());
    assert!(layout::MBUF_F_INDIRECT != layout::MBUF_F_EXTERNAL);
};

same! {
    rte_eth_fp_ops {
        rx_pkt_burst = FP_RX_PKT_BURST,
        rxq.data = FP_RXQ_DATA,
        rxq.clbk = FP_RXQ_CLBK,
        tx_pkt_burst = FP_TX_PKT_BURST,
        txq.data = FP_TXQ_DATA,
        txq.clbk = FP_TXQ_CLBK,
    }
    rte_mempool {
        cache_size = MEMPOOL_CACHE_SIZE,
        local_cache = MEMPOOL_LOCAL_CACHE,
    }
    rte_mempool_cache {
        size = CACHE_SIZE,
        flushthresh = CACHE_FLUSHTHRESH,
        len = CACHE_LEN,
        objs = CACHE_OBJS,
    }
    rte_mbuf_ext_shared_info { refcnt = SHINFO_REFCNT }
}

// Later releases have most of these in anonymous unions.
#[cfg(not(dpdk_24_11))]
same! {
    rte_mbuf {
        buf_addr = MBUF_BUF_ADDR,
        data_off = MBUF_DATA_OFF,
        refcnt = MBUF_REFCNT,
        nb_segs = MBUF_NB_SEGS,
        port = MBUF_PORT,
        ol_flags = MBUF_OL_FLAGS,
        pkt_len = MBUF_PKT_LEN,
        data_len = MBUF_DATA_LEN,
        vlan_tci = MBUF_VLAN_TCI,
        vlan_tci_outer = MBUF_VLAN_TCI_OUTER,
        buf_len = MBUF_BUF_LEN,
        pool = MBUF_POOL,
        next = MBUF_NEXT,
        shinfo = MBUF_SHINFO,
        priv_size = MBUF_PRIV_SIZE,
        dynfield1 = MBUF_DYNFIELD1,
    }
}
