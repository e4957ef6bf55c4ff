/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A pool of the driver's own whose packets lie side by side.
 *
 * Without huge pages rte_pktmbuf_pool_create lets no packet cross a page: each begins a page of 4 KiB,
 * so that all their first lines fall into one set of the first-level cache, which holds eight. Every
 * access to a packet then waits for the second level, twice as long as the whole of a forwarder's
 * work on it. With huge pages the packets lie as they do here.
 *
 * One pool for all ports, because packets travel between them. Used by the thread that controls ports.
 */
#ifndef LR_DENSE_H
#define LR_DENSE_H

#include <rte_mempool.h>

/* The pool, with one more user; null when there is no memory. */
struct rte_mempool *dense_acquire(void);

/* One user less. The last one frees the pool when every packet is back, and else says how many are
 * not. */
void dense_release(void);

#endif
