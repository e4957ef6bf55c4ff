/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offsets, sizes and flags that the native fast path relies on, emitted by the C compiler as lines
 * "->kind NAME value" in its assembly output. Never linked.
 */
#include <stddef.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#define EMIT(kind, name, value) \
	__asm__ volatile("\n.ascii \"->" kind " " #name " %0\"" : : "i"(value))
#define OFFSET(name, type, field) EMIT("usize", name, offsetof(type, field))
#define SIZE(name, type) EMIT("usize", name, sizeof(type))
#define FLAG(name, value) EMIT("u64", name, value)

void lr_layout(void);

void lr_layout(void)
{
	SIZE(FP_OPS_SIZE, struct rte_eth_fp_ops);
	OFFSET(FP_RX_PKT_BURST, struct rte_eth_fp_ops, rx_pkt_burst);
	OFFSET(FP_RXQ_DATA, struct rte_eth_fp_ops, rxq.data);
	OFFSET(FP_RXQ_CLBK, struct rte_eth_fp_ops, rxq.clbk);
	OFFSET(FP_TX_PKT_BURST, struct rte_eth_fp_ops, tx_pkt_burst);
	OFFSET(FP_TXQ_DATA, struct rte_eth_fp_ops, txq.data);
	OFFSET(FP_TXQ_CLBK, struct rte_eth_fp_ops, txq.clbk);

	SIZE(MBUF_SIZE, struct rte_mbuf);
	OFFSET(MBUF_BUF_ADDR, struct rte_mbuf, buf_addr);
	OFFSET(MBUF_NEXT, struct rte_mbuf, next);
	OFFSET(MBUF_DATA_OFF, struct rte_mbuf, data_off);
	OFFSET(MBUF_REFCNT, struct rte_mbuf, refcnt);
	OFFSET(MBUF_NB_SEGS, struct rte_mbuf, nb_segs);
	OFFSET(MBUF_PORT, struct rte_mbuf, port);
	OFFSET(MBUF_OL_FLAGS, struct rte_mbuf, ol_flags);
	OFFSET(MBUF_PACKET_TYPE, struct rte_mbuf, packet_type);
	OFFSET(MBUF_PKT_LEN, struct rte_mbuf, pkt_len);
	OFFSET(MBUF_DATA_LEN, struct rte_mbuf, data_len);
	OFFSET(MBUF_VLAN_TCI, struct rte_mbuf, vlan_tci);
	OFFSET(MBUF_VLAN_TCI_OUTER, struct rte_mbuf, vlan_tci_outer);
	OFFSET(MBUF_BUF_LEN, struct rte_mbuf, buf_len);
	OFFSET(MBUF_POOL, struct rte_mbuf, pool);
	OFFSET(MBUF_TX_OFFLOAD, struct rte_mbuf, tx_offload);
	FLAG(MBUF_F_INDIRECT, RTE_MBUF_F_INDIRECT);
	FLAG(MBUF_F_EXTERNAL, RTE_MBUF_F_EXTERNAL);
	EMIT("u16", MBUF_PORT_INVALID, RTE_MBUF_PORT_INVALID);
	EMIT("u16", PKTMBUF_HEADROOM, RTE_PKTMBUF_HEADROOM);

	SIZE(MEMPOOL_SIZE, struct rte_mempool);
	OFFSET(MEMPOOL_CACHE_SIZE, struct rte_mempool, cache_size);
	OFFSET(MEMPOOL_LOCAL_CACHE, struct rte_mempool, local_cache);
	SIZE(CACHE_STRIDE, struct rte_mempool_cache);
	OFFSET(CACHE_SIZE, struct rte_mempool_cache, size);
	OFFSET(CACHE_FLUSHTHRESH, struct rte_mempool_cache, flushthresh);
	OFFSET(CACHE_LEN, struct rte_mempool_cache, len);
	OFFSET(CACHE_OBJS, struct rte_mempool_cache, objs);
	EMIT("usize", CACHE_MAX_SIZE, RTE_MEMPOOL_CACHE_MAX_SIZE);
	EMIT("usize", MAX_LCORE, RTE_MAX_LCORE);
	EMIT("usize", MAX_ETHPORTS, RTE_MAX_ETHPORTS);
}
