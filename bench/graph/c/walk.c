/* SPDX-License-Identifier: BSD-3-Clause */
/* The walk with statistics (WITH_STATS=1) and without: DPDK's header decides that when it is compiled. */
#include <rte_config.h>
#undef RTE_LIBRTE_GRAPH_STATS
#define RTE_LIBRTE_GRAPH_STATS WITH_STATS

#include <rte_graph_worker.h>

#include "bench.h"

#if WITH_STATS
void bench_walk_1(struct rte_graph *graph, uint64_t walks)
#else
void bench_walk_0(struct rte_graph *graph, uint64_t walks)
#endif
{
	while (walks-- > 0)
		rte_graph_walk(graph);
}
