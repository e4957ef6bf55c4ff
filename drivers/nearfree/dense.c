/* SPDX-License-Identifier: BSD-3-Clause */
#include "dense.h"

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#define NAME "net_nearfree"
/* One less than a power of two is what a pool's ring holds. */
#define PACKETS 8191
#define CACHE 256

static struct rte_mempool *pool;
static unsigned int users;

static struct rte_mempool *create(void)
{
	struct rte_pktmbuf_pool_private private = {.mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE};
	struct rte_mempool *made = rte_mempool_create_empty(
		NAME, PACKETS, sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE, CACHE,
		sizeof(private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);

	if (made == NULL)
		return NULL;
	if (rte_mempool_set_ops_byname(made, rte_mbuf_best_mempool_ops(), NULL) != 0) {
		rte_mempool_free(made);
		return NULL;
	}
	rte_pktmbuf_pool_init(made, &private);
	if (rte_mempool_populate_default(made) < 0) {
		rte_mempool_free(made);
		return NULL;
	}
	rte_mempool_obj_iter(made, rte_pktmbuf_init, NULL);
	return made;
}

struct rte_mempool *dense_acquire(void)
{
	if (pool == NULL)
		pool = create();
	if (pool != NULL)
		users++;
	return pool;
}

void dense_release(void)
{
	/*
	 * The memory stays, for the next user too: no count says for certain that nobody has a packet
	 * any more while other lcores still free theirs.
	 */
	if (--users == 0 && !rte_mempool_full(pool))
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, NAME ": %u packets did not come back\n",
			rte_mempool_in_use_count(pool));
}
