/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Header-only functions of DPDK that have no symbol to bind to, as symbols.
 *
 * The packet path calls those for which there is no native version: a pool's backend behind the cache, packets
 * of several segments or owners that are freed, callbacks, the hash of a key. For the tests the others are the
 * oracle that the native versions are compared with.
 */
#ifndef LR_SHIM_H
#define LR_SHIM_H

#include <stdbool.h>

#include <rte_ethdev.h>
#include <rte_graph_worker.h>
#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_node_eth_api.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

/* Thread-local variables of a shared library: bindgen takes them for plain statics. */
int lr_errno(void);
unsigned int lr_lcore_id(void);

/* Plain values of what later releases keep in anonymous unions. Returns 0 or -errno. */
int lr_eth_link_get_nowait(uint16_t port, uint32_t *speed_mbps, int *up, int *full_duplex);
/* The link now, as rte_eth_link_to_str words it. Returns 0 or -errno. */
int lr_eth_link_text_nowait(uint16_t port, char *text, size_t size);

/* The pool's backend, behind its per-lcore cache. */
int lr_mempool_ops_enqueue_bulk(struct rte_mempool *mp, void *const *objs, unsigned int n);
int lr_mempool_ops_dequeue_bulk(struct rte_mempool *mp, void **objs, unsigned int n);

void lr_pktmbuf_free(struct rte_mbuf *m);
uint16_t lr_pktmbuf_data_room_size(struct rte_mempool *mp);
void lr_mbuf_refcnt_update(struct rte_mbuf *m, int16_t value);

/* Oracles. */
uint16_t lr_eth_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t lr_eth_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t lr_eth_tx_buffer(uint16_t port, uint16_t queue, struct rte_eth_dev_tx_buffer *buffer,
			  struct rte_mbuf *pkt);
uint16_t lr_eth_tx_buffer_flush(uint16_t port, uint16_t queue,
				struct rte_eth_dev_tx_buffer *buffer);
int lr_pktmbuf_alloc_bulk(struct rte_mempool *mp, struct rte_mbuf **pkts, unsigned int n);
uint16_t lr_pktmbuf_headroom(const struct rte_mbuf *m);
uint16_t lr_pktmbuf_tailroom(const struct rte_mbuf *m);
struct rte_mbuf *lr_pktmbuf_lastseg(struct rte_mbuf *m);
char *lr_pktmbuf_mtod(struct rte_mbuf *m);
char *lr_pktmbuf_prepend(struct rte_mbuf *m, uint16_t len);
char *lr_pktmbuf_append(struct rte_mbuf *m, uint16_t len);
char *lr_pktmbuf_adj(struct rte_mbuf *m, uint16_t len);
int lr_pktmbuf_trim(struct rte_mbuf *m, uint16_t len);
int lr_pktmbuf_chain(struct rte_mbuf *head, struct rte_mbuf *tail);
int lr_pktmbuf_linearize(struct rte_mbuf *m);
void lr_pktmbuf_refcnt_update(struct rte_mbuf *m, int16_t value);
uint16_t lr_mbuf_refcnt_read(const struct rte_mbuf *m);
/* rte_mbuf_tx_offload without an outer packet. */
uint64_t lr_mbuf_tx_offload(uint64_t l2, uint64_t l3, uint64_t l4, uint64_t tso);
int lr_validate_tx_offload(const struct rte_mbuf *m);
int lr_vlan_insert(struct rte_mbuf **m);
uint16_t lr_eth_tx_prepare(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
int lr_lpm_lookup(const struct rte_lpm *lpm, uint32_t ip, uint32_t *next_hop);
/* Entries as they lie in the tables. */
void lr_lpm_lookup_bulk(const struct rte_lpm *lpm, const uint32_t *ips, uint32_t *entries, unsigned int n);
void lr_lpm_lookupx4(const struct rte_lpm *lpm, const uint32_t ips[4], uint32_t hops[4], uint32_t missed);
void lr_rcu_qsbr_thread_online(struct rte_rcu_qsbr *v, unsigned int thread);
void lr_rcu_qsbr_thread_offline(struct rte_rcu_qsbr *v, unsigned int thread);
void lr_rcu_qsbr_quiescent(struct rte_rcu_qsbr *v, unsigned int thread);
uint64_t lr_rcu_qsbr_start(struct rte_rcu_qsbr *v);
int lr_rcu_qsbr_check(struct rte_rcu_qsbr *v, uint64_t token, bool wait);
uint32_t lr_softrss(uint32_t *tuple, uint32_t words, const uint8_t *key);

unsigned int lr_ring_enqueue(struct rte_ring *r, const void *items, unsigned int size, unsigned int n,
			     bool bulk, bool single);
unsigned int lr_ring_dequeue(struct rte_ring *r, void *items, unsigned int size, unsigned int n, bool bulk,
			     bool single);
unsigned int lr_ring_count(const struct rte_ring *r);
unsigned int lr_ring_get_capacity(const struct rte_ring *r);

/*
 * Functions over the bytes of a key, which a table of librte_hash is made with. Never with upper 16 bits that are all 0:
 * these are the mark of an empty place, which an insertion takes for a key of zeros.
 */
rte_hash_function lr_hash_crc(uint32_t len); /* rte_hash_crc for keys of `len` bytes and no others */
uint32_t lr_jhash(const void *key, uint32_t len, uint32_t init);

/*
 * Populates an empty pool made with RTE_MEMPOOL_F_NO_IOVA_CONTIG from one memzone, objects side by side.
 * rte_mempool_populate_default would tell such a pool no IO addresses. Returns the number of objects, or
 * a negative errno. The memzone stays when the pool is freed.
 */
int lr_mempool_populate_dense(struct rte_mempool *mp);

/* For tests: gives an mbuf an external buffer, as some drivers do. */
void lr_pktmbuf_attach_extbuf(struct rte_mbuf *m, void *buffer, uint64_t iova, uint16_t len,
			      struct rte_mbuf_ext_shared_info *shared);

/* Structs of librte_graph grow between releases: what is not named here is 0. */

/* Registers a node. Returns its id, or RTE_NODE_ID_INVALID with rte_errno. */
uint32_t lr_node_register(const char *name, int source, rte_node_process_t process,
			  const char *const *next, uint16_t edges);
/* Makes a graph of the nodes with these names. Returns its id, or RTE_GRAPH_ID_INVALID with rte_errno. */
uint16_t lr_graph_create(const char *name, int socket, const char **nodes, uint16_t count);
/* What happened in a node, summed over graphs. */
typedef void (*lr_node_stats_fn)(void *cookie, const char *name, uint64_t calls, uint64_t objs,
				 uint64_t cycles, uint64_t reallocs);
/* Tells each node of the graphs that these shell patterns match. Returns 0 or -errno. */
int lr_graph_cluster_stats(const char **patterns, uint16_t count, lr_node_stats_fn fn,
			   void *cookie);
/* Whether a shell pattern matches a name, as those for graphs are matched. */
int lr_matches(const char *pattern, const char *name);
/*
 * Makes the nodes of a port: one for each RX queue that it is configured with, one for transmission.
 * Returns the number of RX queues, or -errno.
 */
int lr_node_eth_config(uint16_t port);
/* Oracles. */
void lr_graph_walk(struct rte_graph *graph);
void lr_node_enqueue(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs,
		     uint16_t n);
void lr_node_enqueue_x1(struct rte_graph *graph, struct rte_node *node, uint16_t next, void *obj);
void lr_node_enqueue_x2(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs);
void lr_node_enqueue_x4(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs);
void **lr_node_next_stream_get(struct rte_graph *graph, struct rte_node *node, uint16_t next,
			       uint16_t n);
void lr_node_next_stream_put(struct rte_graph *graph, struct rte_node *node, uint16_t next,
			     uint16_t n);
void lr_node_next_stream_move(struct rte_graph *graph, struct rte_node *node, uint16_t next);

#endif
