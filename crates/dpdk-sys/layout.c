/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Offsets, sizes and flags that the native fast path relies on, emitted by the C compiler as lines
 * "->kind NAME value" in its assembly output. Never linked.
 */
#include "options.h"

#include <stddef.h>

#include <rte_acl.h>
#include <rte_ethdev.h>
#include <rte_graph_worker.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#define EMIT(kind, name, value) \
	__asm__ volatile("\n.ascii \"->" kind " " #name " %0\"" : : "i"(value))
#define OFFSET(name, type, field) EMIT("usize", name, offsetof(type, field))
#define SIZE(name, type) EMIT("usize", name, sizeof(type))
#define BYTES(type, field) sizeof(((type *)0)->field)
/* A field that Rust reads and writes as an integer of so many bits, or as a pointer. */
#define FIELD(name, type, field, bits)                                                   \
	do {                                                                             \
		_Static_assert(BYTES(type, field) * 8 == (bits), #field " has changed"); \
		OFFSET(name, type, field);                                               \
	} while (0)
#define POINTER (8 * sizeof(void *))
#define FLAG(name, value) EMIT("u64", name, value)
#define RX_OFFLOAD(name) FLAG(RX_OFFLOAD_##name, RTE_ETH_RX_OFFLOAD_##name)
#define TX_OFFLOAD(name) FLAG(TX_OFFLOAD_##name, RTE_ETH_TX_OFFLOAD_##name)
#define RSS_TYPE(name) FLAG(RSS_TYPE_##name, RTE_ETH_RSS_##name)

/* Releases from 23.03 on call it RTE_IOVA_IN_MBUF. */
#ifdef RTE_IOVA_IN_MBUF
#define IOVA_IN_MBUF RTE_IOVA_IN_MBUF
#else
#define IOVA_IN_MBUF RTE_IOVA_AS_PA
#endif

/* A name of the header's own, which may lose its underscores. */
#ifdef __RTE_QSBR_CNT_THR_OFFLINE
#define QSBR_CNT_THR_OFFLINE __RTE_QSBR_CNT_THR_OFFLINE
#else
#define QSBR_CNT_THR_OFFLINE RTE_QSBR_CNT_THR_OFFLINE
#endif

void lr_layout(void);

void lr_layout(void)
{
	SIZE(FP_OPS_SIZE, struct rte_eth_fp_ops);
	FIELD(FP_RX_PKT_BURST, struct rte_eth_fp_ops, rx_pkt_burst, POINTER);
	FIELD(FP_RXQ_DATA, struct rte_eth_fp_ops, rxq.data, POINTER);
	FIELD(FP_RXQ_CLBK, struct rte_eth_fp_ops, rxq.clbk, POINTER);
	FIELD(FP_TX_PKT_BURST, struct rte_eth_fp_ops, tx_pkt_burst, POINTER);
	FIELD(FP_TX_PKT_PREPARE, struct rte_eth_fp_ops, tx_pkt_prepare, POINTER);
	FIELD(FP_TXQ_DATA, struct rte_eth_fp_ops, txq.data, POINTER);
	FIELD(FP_TXQ_CLBK, struct rte_eth_fp_ops, txq.clbk, POINTER);

	SIZE(MBUF_SIZE, struct rte_mbuf);
	FIELD(MBUF_BUF_ADDR, struct rte_mbuf, buf_addr, POINTER);
	FIELD(MBUF_NEXT, struct rte_mbuf, next, POINTER);
	FIELD(MBUF_DATA_OFF, struct rte_mbuf, data_off, 16);
	FIELD(MBUF_REFCNT, struct rte_mbuf, refcnt, 16);
	FIELD(MBUF_NB_SEGS, struct rte_mbuf, nb_segs, 16);
	FIELD(MBUF_PORT, struct rte_mbuf, port, 16);
	FIELD(MBUF_OL_FLAGS, struct rte_mbuf, ol_flags, 64);
	FIELD(MBUF_PACKET_TYPE, struct rte_mbuf, packet_type, 32);
	FIELD(MBUF_PKT_LEN, struct rte_mbuf, pkt_len, 32);
	FIELD(MBUF_DATA_LEN, struct rte_mbuf, data_len, 16);
	FIELD(MBUF_VLAN_TCI, struct rte_mbuf, vlan_tci, 16);
	FIELD(MBUF_VLAN_TCI_OUTER, struct rte_mbuf, vlan_tci_outer, 16);
	FIELD(MBUF_BUF_LEN, struct rte_mbuf, buf_len, 16);
	FIELD(MBUF_POOL, struct rte_mbuf, pool, POINTER);
	FIELD(MBUF_TX_OFFLOAD, struct rte_mbuf, tx_offload, 64);
	FIELD(MBUF_SHINFO, struct rte_mbuf, shinfo, POINTER);
	FIELD(MBUF_PRIV_SIZE, struct rte_mbuf, priv_size, 16);
	FIELD(MBUF_HASH, struct rte_mbuf, hash, 64);
	FIELD(MBUF_HASH_RSS, struct rte_mbuf, hash.rss, 32);
	FIELD(MBUF_HASH_FDIR_HI, struct rte_mbuf, hash.fdir.hi, 32);
	EMIT("usize", MBUF_HASH_SIZE, BYTES(struct rte_mbuf, hash));
	OFFSET(MBUF_DYNFIELD1, struct rte_mbuf, dynfield1);
	EMIT("usize", MBUF_DYNFIELD1_SIZE, BYTES(struct rte_mbuf, dynfield1));
	/* A build has one of the two; the other has a size of 0. */
#if IOVA_IN_MBUF
	FIELD(MBUF_IOVA, struct rte_mbuf, buf_iova, 64);
	EMIT("usize", MBUF_IOVA_SIZE, BYTES(struct rte_mbuf, buf_iova));
	EMIT("usize", MBUF_DYNFIELD2, 0);
	EMIT("usize", MBUF_DYNFIELD2_SIZE, 0);
#else
	EMIT("usize", MBUF_IOVA, 0);
	EMIT("usize", MBUF_IOVA_SIZE, 0);
	FIELD(MBUF_DYNFIELD2, struct rte_mbuf, dynfield2, 64);
	EMIT("usize", MBUF_DYNFIELD2_SIZE, BYTES(struct rte_mbuf, dynfield2));
#endif
	FIELD(SHINFO_REFCNT, struct rte_mbuf_ext_shared_info, refcnt, 16);
	FLAG(MBUF_F_INDIRECT, RTE_MBUF_F_INDIRECT);
	FLAG(MBUF_F_EXTERNAL, RTE_MBUF_F_EXTERNAL);
	/* What a device says of a packet. */
	FLAG(MBUF_F_RX_VLAN, RTE_MBUF_F_RX_VLAN);
	FLAG(MBUF_F_RX_VLAN_STRIPPED, RTE_MBUF_F_RX_VLAN_STRIPPED);
	FLAG(MBUF_F_RX_QINQ, RTE_MBUF_F_RX_QINQ);
	FLAG(MBUF_F_RX_QINQ_STRIPPED, RTE_MBUF_F_RX_QINQ_STRIPPED);
	FLAG(MBUF_F_RX_RSS_HASH, RTE_MBUF_F_RX_RSS_HASH);
	FLAG(MBUF_F_RX_FDIR, RTE_MBUF_F_RX_FDIR);
	FLAG(MBUF_F_RX_FDIR_ID, RTE_MBUF_F_RX_FDIR_ID);
	FLAG(MBUF_F_RX_LRO, RTE_MBUF_F_RX_LRO);
	FLAG(MBUF_F_RX_IP_CKSUM_BAD, RTE_MBUF_F_RX_IP_CKSUM_BAD);
	FLAG(MBUF_F_RX_IP_CKSUM_GOOD, RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	FLAG(MBUF_F_RX_L4_CKSUM_BAD, RTE_MBUF_F_RX_L4_CKSUM_BAD);
	FLAG(MBUF_F_RX_L4_CKSUM_GOOD, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	FLAG(MBUF_F_RX_OUTER_IP_CKSUM_BAD, RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD);
	FLAG(MBUF_F_RX_OUTER_L4_CKSUM_BAD, RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD);
	FLAG(MBUF_F_RX_OUTER_L4_CKSUM_GOOD, RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD);
	/* What is asked of one. */
	FLAG(MBUF_F_TX_OFFLOAD_MASK, RTE_MBUF_F_TX_OFFLOAD_MASK);
	FLAG(MBUF_F_TX_VLAN, RTE_MBUF_F_TX_VLAN);
	FLAG(MBUF_F_TX_IPV4, RTE_MBUF_F_TX_IPV4);
	FLAG(MBUF_F_TX_IPV6, RTE_MBUF_F_TX_IPV6);
	FLAG(MBUF_F_TX_IP_CKSUM, RTE_MBUF_F_TX_IP_CKSUM);
	FLAG(MBUF_F_TX_TCP_CKSUM, RTE_MBUF_F_TX_TCP_CKSUM);
	FLAG(MBUF_F_TX_UDP_CKSUM, RTE_MBUF_F_TX_UDP_CKSUM);
	FLAG(MBUF_F_TX_SCTP_CKSUM, RTE_MBUF_F_TX_SCTP_CKSUM);
	FLAG(MBUF_F_TX_TCP_SEG, RTE_MBUF_F_TX_TCP_SEG);
	EMIT("u32", MBUF_L2_LEN_SHIFT, RTE_MBUF_L2_LEN_OFS);
	EMIT("u32", MBUF_L2_LEN_BITS, RTE_MBUF_L2_LEN_BITS);
	EMIT("u32", MBUF_L3_LEN_SHIFT, RTE_MBUF_L3_LEN_OFS);
	EMIT("u32", MBUF_L3_LEN_BITS, RTE_MBUF_L3_LEN_BITS);
	EMIT("u32", MBUF_L4_LEN_SHIFT, RTE_MBUF_L4_LEN_OFS);
	EMIT("u32", MBUF_L4_LEN_BITS, RTE_MBUF_L4_LEN_BITS);
	EMIT("u32", MBUF_TSO_SEGSZ_SHIFT, RTE_MBUF_TSO_SEGSZ_OFS);
	_Static_assert(RTE_MBUF_TSO_SEGSZ_BITS == 16, "the size of TCP segments has changed");
	EMIT("u16", MBUF_PORT_INVALID, RTE_MBUF_PORT_INVALID);
	EMIT("u16", PKTMBUF_HEADROOM, RTE_PKTMBUF_HEADROOM);

	SIZE(MEMPOOL_SIZE, struct rte_mempool);
	OFFSET(MEMPOOL_NAME, struct rte_mempool, name);
	FIELD(MEMPOOL_CACHE_SIZE, struct rte_mempool, cache_size, 32);
	FIELD(MEMPOOL_LOCAL_CACHE, struct rte_mempool, local_cache, POINTER);
	SIZE(CACHE_STRIDE, struct rte_mempool_cache);
	FIELD(CACHE_SIZE, struct rte_mempool_cache, size, 32);
	FIELD(CACHE_FLUSHTHRESH, struct rte_mempool_cache, flushthresh, 32);
	FIELD(CACHE_LEN, struct rte_mempool_cache, len, 32);
	/* A refill writes the cache's size and what was missing: twice the largest cache. */
	_Static_assert(BYTES(struct rte_mempool_cache, objs) >=
			       2 * RTE_MEMPOOL_CACHE_MAX_SIZE * sizeof(void *),
		       "a cache has less room than the native refill needs");
	OFFSET(CACHE_OBJS, struct rte_mempool_cache, objs);
	EMIT("u32", MEMPOOL_NO_IOVA_CONTIG, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	EMIT("usize", CACHE_MAX_SIZE, RTE_MEMPOOL_CACHE_MAX_SIZE);
	EMIT("usize", MAX_LCORE, RTE_MAX_LCORE);
	EMIT("usize", MAX_ETHPORTS, RTE_MAX_ETHPORTS);
	EMIT("u16", ETH_ALL, RTE_ETH_ALL);
	EMIT("u32", ETH_DEV_INTR_LSC, RTE_ETH_DEV_INTR_LSC);

	/* Sets that Rust has as types; macros of macros, which bindgen loses. */
	RX_OFFLOAD(VLAN_STRIP);
	RX_OFFLOAD(IPV4_CKSUM);
	RX_OFFLOAD(UDP_CKSUM);
	RX_OFFLOAD(TCP_CKSUM);
	RX_OFFLOAD(TCP_LRO);
	RX_OFFLOAD(QINQ_STRIP);
	RX_OFFLOAD(OUTER_IPV4_CKSUM);
	RX_OFFLOAD(VLAN_FILTER);
	RX_OFFLOAD(VLAN_EXTEND);
	RX_OFFLOAD(SCATTER);
	RX_OFFLOAD(TIMESTAMP);
	RX_OFFLOAD(KEEP_CRC);
	RX_OFFLOAD(SCTP_CKSUM);
	RX_OFFLOAD(OUTER_UDP_CKSUM);
	RX_OFFLOAD(RSS_HASH);
	TX_OFFLOAD(VLAN_INSERT);
	TX_OFFLOAD(IPV4_CKSUM);
	TX_OFFLOAD(UDP_CKSUM);
	TX_OFFLOAD(TCP_CKSUM);
	TX_OFFLOAD(SCTP_CKSUM);
	TX_OFFLOAD(TCP_TSO);
	TX_OFFLOAD(UDP_TSO);
	TX_OFFLOAD(OUTER_IPV4_CKSUM);
	TX_OFFLOAD(QINQ_INSERT);
	TX_OFFLOAD(VXLAN_TNL_TSO);
	TX_OFFLOAD(GRE_TNL_TSO);
	TX_OFFLOAD(IPIP_TNL_TSO);
	TX_OFFLOAD(GENEVE_TNL_TSO);
	TX_OFFLOAD(MULTI_SEGS);
	TX_OFFLOAD(UDP_TNL_TSO);
	TX_OFFLOAD(IP_TNL_TSO);
	TX_OFFLOAD(OUTER_UDP_CKSUM);
	TX_OFFLOAD(SEND_ON_TIMESTAMP);
	RSS_TYPE(IPV4);
	RSS_TYPE(FRAG_IPV4);
	RSS_TYPE(NONFRAG_IPV4_TCP);
	RSS_TYPE(NONFRAG_IPV4_UDP);
	RSS_TYPE(NONFRAG_IPV4_SCTP);
	RSS_TYPE(NONFRAG_IPV4_OTHER);
	RSS_TYPE(IPV6);
	RSS_TYPE(FRAG_IPV6);
	RSS_TYPE(NONFRAG_IPV6_TCP);
	RSS_TYPE(NONFRAG_IPV6_UDP);
	RSS_TYPE(NONFRAG_IPV6_SCTP);
	RSS_TYPE(NONFRAG_IPV6_OTHER);
	RSS_TYPE(L2_PAYLOAD);
	RSS_TYPE(IPV6_EX);
	RSS_TYPE(IPV6_TCP_EX);
	RSS_TYPE(IPV6_UDP_EX);
	RSS_TYPE(PORT);
	RSS_TYPE(VXLAN);
	RSS_TYPE(GENEVE);
	RSS_TYPE(NVGRE);
	RSS_TYPE(GTPU);
	RSS_TYPE(ETH);
	RSS_TYPE(S_VLAN);
	RSS_TYPE(C_VLAN);
	RSS_TYPE(ESP);
	RSS_TYPE(AH);
	RSS_TYPE(L2TPV3);
	RSS_TYPE(PFCP);
	RSS_TYPE(PPPOE);
	RSS_TYPE(ECPRI);
	RSS_TYPE(MPLS);
	RSS_TYPE(IPV4_CHKSUM);
	RSS_TYPE(L4_CHKSUM);
	RSS_TYPE(L2TPV2);
	RSS_TYPE(L2_DST_ONLY);
	RSS_TYPE(L2_SRC_ONLY);
	RSS_TYPE(L4_DST_ONLY);
	RSS_TYPE(L4_SRC_ONLY);
	RSS_TYPE(L3_DST_ONLY);
	RSS_TYPE(L3_SRC_ONLY);
	FLAG(VLAN_STRIP_OFFLOAD, RTE_ETH_VLAN_STRIP_OFFLOAD);
	FLAG(VLAN_FILTER_OFFLOAD, RTE_ETH_VLAN_FILTER_OFFLOAD);
	FLAG(VLAN_EXTEND_OFFLOAD, RTE_ETH_VLAN_EXTEND_OFFLOAD);
	FLAG(VLAN_QINQ_STRIP_OFFLOAD, RTE_ETH_QINQ_STRIP_OFFLOAD);
	_Static_assert(RTE_ETH_RETA_GROUP_SIZE == 64, "groups of RSS tables have changed");
	_Static_assert(RTE_ETH_XSTATS_NAME_SIZE == 64, "names of statistics have changed");

	OFFSET(ACL_RULE_PRIORITY, struct rte_acl_rule, data.priority);
	OFFSET(ACL_RULE_USERDATA, struct rte_acl_rule, data.userdata);
	OFFSET(ACL_RULE_FIELDS, struct rte_acl_rule, field);
	SIZE(ACL_FIELD_SIZE, struct rte_acl_field);
	OFFSET(ACL_FIELD_MASK_RANGE, struct rte_acl_field, mask_range);

	_Static_assert(sizeof(struct rte_lpm_tbl_entry) == 4, "an entry of LPM has changed");
	OFFSET(LPM_TBL24, struct rte_lpm, tbl24);
	FIELD(LPM_TBL8, struct rte_lpm, tbl8, POINTER);
	EMIT("u32", LPM_TBL24_ENTRIES, RTE_LPM_TBL24_NUM_ENTRIES);
	EMIT("u32", LPM_GROUP_ENTRIES, RTE_LPM_TBL8_GROUP_NUM_ENTRIES);
	EMIT("u32", LPM_EXTENDED, RTE_LPM_VALID_EXT_ENTRY_BITMASK);
	EMIT("u32", LPM_FOUND, RTE_LPM_LOOKUP_SUCCESS);

	FIELD(QSBR_TOKEN, struct rte_rcu_qsbr, token, 64);
	FIELD(QSBR_ACKED, struct rte_rcu_qsbr, acked_token, 64);
	OFFSET(QSBR_COUNTERS, struct rte_rcu_qsbr, qsbr_cnt);
	SIZE(QSBR_COUNTER_STRIDE, struct rte_rcu_qsbr_cnt);
	FIELD(QSBR_COUNTER, struct rte_rcu_qsbr_cnt, cnt, 64);
	EMIT("usize", QSBR_ALIGN, __alignof__(struct rte_rcu_qsbr));
	EMIT("u64", QSBR_OFFLINE, QSBR_CNT_THR_OFFLINE);

	SIZE(RING_BYTES, struct rte_ring);
	FIELD(RING_MASK, struct rte_ring, mask, 32);
	FIELD(RING_CAPACITY, struct rte_ring, capacity, 32);
	FIELD(RING_PROD_HEAD, struct rte_ring, prod.head, 32);
	FIELD(RING_PROD_TAIL, struct rte_ring, prod.tail, 32);
	FIELD(RING_CONS_HEAD, struct rte_ring, cons.head, 32);
	FIELD(RING_CONS_TAIL, struct rte_ring, cons.tail, 32);
	EMIT("usize", RING_NAME_SIZE, RTE_RING_NAMESIZE);
	EMIT("u32", RING_EXACT, RING_F_EXACT_SZ);

	FIELD(GRAPH_TAIL, struct rte_graph, tail, 32);
	FIELD(GRAPH_HEAD, struct rte_graph, head, 32);
	FIELD(GRAPH_CIR_MASK, struct rte_graph, cir_mask, 32);
	FIELD(GRAPH_CIR_START, struct rte_graph, cir_start, POINTER);
	FIELD(GRAPH_NODES_START, struct rte_graph, nodes_start, 32);
	FIELD(GRAPH_NB_NODES, struct rte_graph, nb_nodes, 32);
	FIELD(NODE_NEXT, struct rte_node, next, 32);
	FIELD(NODE_NB_EDGES, struct rte_node, nb_edges, 16);
	OFFSET(NODE_CTX, struct rte_node, ctx);
	_Static_assert(BYTES(struct rte_node, ctx) >= 2 * sizeof(void *), "no room for two pointers");
	FIELD(NODE_SIZE, struct rte_node, size, 16);
	FIELD(NODE_IDX, struct rte_node, idx, 16);
	FIELD(NODE_OFF, struct rte_node, off, 32);
	FIELD(NODE_TOTAL_CYCLES, struct rte_node, total_cycles, 64);
	FIELD(NODE_TOTAL_CALLS, struct rte_node, total_calls, 64);
	FIELD(NODE_TOTAL_OBJS, struct rte_node, total_objs, 64);
	FIELD(NODE_OBJS, struct rte_node, objs, POINTER);
	FIELD(NODE_PROCESS, struct rte_node, process, POINTER);
	OFFSET(NODE_NODES, struct rte_node, nodes);
	EMIT("usize", GRAPH_NAME_SIZE, RTE_GRAPH_NAMESIZE);
	EMIT("usize", NODE_NAME_SIZE, RTE_NODE_NAMESIZE);
}
