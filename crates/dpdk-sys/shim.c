/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_hash_crc.h>
#include <rte_jhash.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_thash.h>

int lr_errno(void) { return rte_errno; }

unsigned int lr_lcore_id(void) { return rte_lcore_id(); }

int lr_eth_link_get_nowait(uint16_t port, uint32_t *speed_mbps, int *up, int *full_duplex)
{
	struct rte_eth_link link = {0};
	int ret = rte_eth_link_get_nowait(port, &link);

	*speed_mbps = link.link_speed;
	*up = link.link_status == RTE_ETH_LINK_UP;
	*full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
	return ret;
}

int lr_eth_link_text_nowait(uint16_t port, char *text, size_t size)
{
	struct rte_eth_link link = {0};
	int ret = rte_eth_link_get_nowait(port, &link);

	if (ret == 0)
		ret = rte_eth_link_to_str(text, size, &link);
	return ret < 0 ? ret : 0;
}

int lr_mempool_ops_enqueue_bulk(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	return rte_mempool_ops_enqueue_bulk(mp, objs, n);
}

int lr_mempool_ops_dequeue_bulk(struct rte_mempool *mp, void **objs, unsigned int n)
{
	return rte_mempool_ops_dequeue_bulk(mp, objs, n);
}

void lr_pktmbuf_free(struct rte_mbuf *m) { rte_pktmbuf_free(m); }

uint16_t lr_pktmbuf_data_room_size(struct rte_mempool *mp)
{
	return rte_pktmbuf_data_room_size(mp);
}

void lr_mbuf_refcnt_update(struct rte_mbuf *m, int16_t value)
{
	rte_mbuf_refcnt_update(m, value);
}

uint16_t lr_eth_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, pkts, n);
}

uint16_t lr_eth_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, pkts, n);
}

uint16_t lr_eth_tx_buffer(uint16_t port, uint16_t queue, struct rte_eth_dev_tx_buffer *buffer,
			  struct rte_mbuf *pkt)
{
	return rte_eth_tx_buffer(port, queue, buffer, pkt);
}

uint16_t lr_eth_tx_buffer_flush(uint16_t port, uint16_t queue, struct rte_eth_dev_tx_buffer *buffer)
{
	return rte_eth_tx_buffer_flush(port, queue, buffer);
}

int lr_pktmbuf_alloc_bulk(struct rte_mempool *mp, struct rte_mbuf **pkts, unsigned int n)
{
	return rte_pktmbuf_alloc_bulk(mp, pkts, n);
}

uint16_t lr_pktmbuf_headroom(const struct rte_mbuf *m) { return rte_pktmbuf_headroom(m); }

uint16_t lr_pktmbuf_tailroom(const struct rte_mbuf *m) { return rte_pktmbuf_tailroom(m); }

struct rte_mbuf *lr_pktmbuf_lastseg(struct rte_mbuf *m) { return rte_pktmbuf_lastseg(m); }

char *lr_pktmbuf_mtod(struct rte_mbuf *m) { return rte_pktmbuf_mtod(m, char *); }

char *lr_pktmbuf_prepend(struct rte_mbuf *m, uint16_t len) { return rte_pktmbuf_prepend(m, len); }

char *lr_pktmbuf_append(struct rte_mbuf *m, uint16_t len) { return rte_pktmbuf_append(m, len); }

char *lr_pktmbuf_adj(struct rte_mbuf *m, uint16_t len) { return rte_pktmbuf_adj(m, len); }

int lr_pktmbuf_trim(struct rte_mbuf *m, uint16_t len) { return rte_pktmbuf_trim(m, len); }

int lr_pktmbuf_chain(struct rte_mbuf *head, struct rte_mbuf *tail)
{
	return rte_pktmbuf_chain(head, tail);
}

int lr_pktmbuf_linearize(struct rte_mbuf *m) { return rte_pktmbuf_linearize(m); }

void lr_pktmbuf_refcnt_update(struct rte_mbuf *m, int16_t value)
{
	rte_pktmbuf_refcnt_update(m, value);
}

uint16_t lr_mbuf_refcnt_read(const struct rte_mbuf *m) { return rte_mbuf_refcnt_read(m); }

void lr_pktmbuf_attach_extbuf(struct rte_mbuf *m, void *buffer, uint64_t iova, uint16_t len,
			      struct rte_mbuf_ext_shared_info *shared)
{
	rte_pktmbuf_attach_extbuf(m, buffer, iova, len, shared);
}

uint64_t lr_mbuf_tx_offload(uint64_t l2, uint64_t l3, uint64_t l4, uint64_t tso)
{
	return rte_mbuf_tx_offload(l2, l3, l4, tso, 0, 0, 0);
}

int lr_validate_tx_offload(const struct rte_mbuf *m) { return rte_validate_tx_offload(m); }

int lr_vlan_insert(struct rte_mbuf **m) { return rte_vlan_insert(m); }

uint16_t lr_eth_tx_prepare(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_prepare(port, queue, pkts, n);
}

int lr_lpm_lookup(const struct rte_lpm *lpm, uint32_t ip, uint32_t *next_hop)
{
	return rte_lpm_lookup(lpm, ip, next_hop);
}

void lr_lpm_lookup_bulk(const struct rte_lpm *lpm, const uint32_t *ips, uint32_t *entries, unsigned int n)
{
	rte_lpm_lookup_bulk(lpm, ips, entries, n);
}

void lr_lpm_lookupx4(const struct rte_lpm *lpm, const uint32_t ips[4], uint32_t hops[4], uint32_t missed)
{
	xmm_t x;

	memcpy(&x, ips, sizeof(x));
	rte_lpm_lookupx4(lpm, x, hops, missed);
}

void lr_rcu_qsbr_thread_online(struct rte_rcu_qsbr *v, unsigned int thread)
{
	rte_rcu_qsbr_thread_online(v, thread);
}

void lr_rcu_qsbr_thread_offline(struct rte_rcu_qsbr *v, unsigned int thread)
{
	rte_rcu_qsbr_thread_offline(v, thread);
}

void lr_rcu_qsbr_quiescent(struct rte_rcu_qsbr *v, unsigned int thread)
{
	rte_rcu_qsbr_quiescent(v, thread);
}

uint64_t lr_rcu_qsbr_start(struct rte_rcu_qsbr *v) { return rte_rcu_qsbr_start(v); }

int lr_rcu_qsbr_check(struct rte_rcu_qsbr *v, uint64_t token, bool wait)
{
	return rte_rcu_qsbr_check(v, token, wait);
}

uint32_t lr_softrss(uint32_t *tuple, uint32_t words, const uint8_t *key)
{
	return rte_softrss(tuple, words, key);
}

unsigned int lr_ring_enqueue(struct rte_ring *r, const void *items, unsigned int size, unsigned int n,
			     bool bulk, bool single)
{
	if (single)
		return bulk ? rte_ring_sp_enqueue_bulk_elem(r, items, size, n, NULL)
			    : rte_ring_sp_enqueue_burst_elem(r, items, size, n, NULL);
	return bulk ? rte_ring_mp_enqueue_bulk_elem(r, items, size, n, NULL)
		    : rte_ring_mp_enqueue_burst_elem(r, items, size, n, NULL);
}

unsigned int lr_ring_dequeue(struct rte_ring *r, void *items, unsigned int size, unsigned int n, bool bulk,
			     bool single)
{
	if (single)
		return bulk ? rte_ring_sc_dequeue_bulk_elem(r, items, size, n, NULL)
			    : rte_ring_sc_dequeue_burst_elem(r, items, size, n, NULL);
	return bulk ? rte_ring_mc_dequeue_bulk_elem(r, items, size, n, NULL)
		    : rte_ring_mc_dequeue_burst_elem(r, items, size, n, NULL);
}

unsigned int lr_ring_count(const struct rte_ring *r) { return rte_ring_count(r); }

unsigned int lr_ring_get_capacity(const struct rte_ring *r) { return rte_ring_get_capacity(r); }

static inline uint32_t marked(uint32_t hash) { return hash | (uint32_t)(hash >> 16 == 0) << 16; }

static uint32_t crc(const void *key, uint32_t len, uint32_t init)
{
	return marked(rte_hash_crc(key, len, init));
}

/* A key's length is constant in a table: of these lengths the CRC is a row of instructions, without loops. */
#define KEY_LENGTHS(X) X(4) X(8) X(12) X(16) X(20) X(24) X(28) X(32) X(36) X(40)
#define CRC_OF(length)                                                                            \
	static uint32_t crc_of_##length(const void *key, __rte_unused uint32_t len, uint32_t init) \
	{                                                                                         \
		return marked(rte_hash_crc(key, length, init));                                   \
	}
KEY_LENGTHS(CRC_OF)
#undef CRC_OF

rte_hash_function lr_hash_crc(uint32_t len)
{
#define CRC_OF(length) \
	case length:   \
		return crc_of_##length;
	switch (len) {
		KEY_LENGTHS(CRC_OF)
	default:
		return crc;
	}
#undef CRC_OF
}

uint32_t lr_jhash(const void *key, uint32_t len, uint32_t init)
{
	return marked(rte_jhash(key, len, init));
}

int lr_mempool_populate_dense(struct rte_mempool *mp)
{
	size_t chunk, align;
	char name[RTE_MEMZONE_NAMESIZE];
	/* A page shift of 0: objects may lie across pages. */
	const ssize_t size = rte_mempool_op_calc_mem_size_default(mp, mp->size, 0, &chunk, &align);
	const struct rte_memzone *zone;
	int ret;

	if (size < 0)
		return (int)size;
	ret = snprintf(name, sizeof(name), RTE_MEMPOOL_MZ_FORMAT "_0", mp->name);
	if (ret < 0 || ret >= (int)sizeof(name))
		return -ENAMETOOLONG;
	zone = rte_memzone_reserve_aligned(name, (size_t)size, mp->socket_id, 0, align);
	if (zone == NULL)
		return -rte_errno;
	ret = rte_mempool_populate_iova(mp, zone->addr, zone->iova, zone->len, NULL, NULL);
	if (ret < 0 || (uint32_t)ret < mp->size) {
		rte_memzone_free(zone);
		return ret < 0 ? ret : -ENOMEM;
	}
	return ret;
}
