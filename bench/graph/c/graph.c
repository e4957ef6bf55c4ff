/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer of the graph benchmark: its nodes in C, in librte_graph. Compiled once for each way to
 * pass objects, kind of work and statistics, so that nothing is decided while it runs.
 *
 *   PASS   0 swap, 1 copy COPY pointers at a time, 2 assign 1, 3 assign 2, 4 assign 4, 5 speculate
 *   WORK   0 none, 1 one cache line, 2 hash of a five-tuple
 *   STATS  0 or 1
 */
#include <rte_config.h>
#undef RTE_LIBRTE_GRAPH_STATS
#define RTE_LIBRTE_GRAPH_STATS STATS

#include <stdio.h>
#include <string.h>
#include <rte_graph_worker.h>

struct packet {
	uint64_t addresses, ports;
	uint32_t hash, touched;
	uint16_t route[8];
} __rte_cache_aligned;

#ifndef COPY
#define COPY 8
#endif

static struct packet *packets;
static uint16_t burst;
static uint64_t sunk;

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint32_t hash5(const struct packet *p, uint64_t seed)
{
	const uint64_t half = fold(p->addresses ^ 0xa0761d6478bd642fULL, p->ports ^ seed);
	return (uint32_t)fold(half, 0xe7037ed1a0b428dbULL);
}

static inline void work(struct packet *p, uint64_t seed)
{
#if WORK == 1
	(void)seed;
	p->touched++;
#elif WORK == 2
	p->hash ^= hash5(p, seed);
#else
	(void)p;
	(void)seed;
#endif
}

static uint16_t source(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t i;

	(void)n;
	for (i = 0; i < burst; i++)
		objs[i] = &packets[i];
	node->idx = burst;
	rte_node_next_stream_move(graph, node, 0);
	return burst;
}

static uint16_t worker(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	const uint64_t seed = *(const uint64_t *)node->ctx;
	uint16_t i;
#if PASS == 0
	for (i = 0; WORK != 0 && i < n; i++)
		work(objs[i], seed);
	rte_node_next_stream_move(graph, node, 0);
#elif PASS == 1
	for (i = 0; WORK != 0 && i < n; i++)
		work(objs[i], seed);
	for (i = 0; i < n; i += COPY) {
		const uint16_t some = RTE_MIN(n - i, COPY);
		void **to = rte_node_next_stream_get(graph, node, 0, some);

		if (some == COPY)
			rte_memcpy(to, &objs[i], COPY * sizeof(void *));
		else
			rte_memcpy(to, &objs[i], some * sizeof(void *));
		rte_node_next_stream_put(graph, node, 0, some);
	}
#elif PASS == 2
	for (i = 0; i < n; i++) {
		work(objs[i], seed);
		rte_node_enqueue_x1(graph, node, 0, objs[i]);
	}
#elif PASS == 3
	for (i = 0; i + 1 < n; i += 2) {
		work(objs[i], seed);
		work(objs[i + 1], seed);
		rte_node_enqueue_x2(graph, node, 0, objs[i], objs[i + 1]);
	}
	for (; i < n; i++) {
		work(objs[i], seed);
		rte_node_enqueue_x1(graph, node, 0, objs[i]);
	}
#elif PASS == 4
	for (i = 0; i + 3 < n; i += 4) {
		work(objs[i], seed);
		work(objs[i + 1], seed);
		work(objs[i + 2], seed);
		work(objs[i + 3], seed);
		rte_node_enqueue_x4(graph, node, 0, objs[i], objs[i + 1], objs[i + 2], objs[i + 3]);
	}
	for (; i < n; i++) {
		work(objs[i], seed);
		rte_node_enqueue_x1(graph, node, 0, objs[i]);
	}
#else
	/* All to the last one's edge, until one differs. */
	rte_edge_t next = *(const uint16_t *)(node->ctx + 8);
	const unsigned int hop = *(const uint16_t *)(node->ctx + 10);
	uint16_t held = 0, last = 0;
	void **to = rte_node_next_stream_get(graph, node, next, n);

	for (i = 0; i < n; i++) {
		struct packet *p = objs[i];

		work(p, seed);
		if (unlikely(p->route[hop] != next)) {
			rte_memcpy(to, &objs[last], (i - last) * sizeof(void *));
			held += i - last;
			rte_node_next_stream_put(graph, node, next, held);
			held = 0;
			last = i;
			next = p->route[hop];
			to = rte_node_next_stream_get(graph, node, next, n - i);
		}
	}
	if (last == 0) {
		rte_node_next_stream_move(graph, node, next);
	} else {
		rte_memcpy(to, &objs[last], (n - last) * sizeof(void *));
		rte_node_next_stream_put(graph, node, next, n - last);
	}
	*(uint16_t *)(node->ctx + 8) = next;
#endif
	return n;
}

static uint16_t sink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	(void)graph;
	(void)node;
	(void)objs;
	sunk += n;
	return n;
}

static struct rte_graph *graph;

static int node_of(const char *name, int is_source, rte_node_process_t process, const char *next)
{
	struct {
		struct rte_node_register node;
		const char *next[1];
	} it;

	memset(&it, 0, sizeof(it));
	snprintf(it.node.name, sizeof(it.node.name), "%s", name);
	it.node.flags = is_source ? RTE_NODE_SOURCE_F : 0;
	it.node.process = process;
	it.node.parent_id = RTE_NODE_ID_INVALID;
	it.node.nb_edges = next != NULL;
	it.next[0] = next;
	return __rte_node_register(&it.node) == RTE_NODE_ID_INVALID ? -1 : 0;
}

int bench_make(const char *prefix, struct packet *objects, uint16_t count, int workers)
{
	char names[16][64];
	const char *patterns[16];
	struct rte_graph_param param = {0};
	int i;

	packets = objects;
	burst = count;
	for (i = 0; i < workers + 2; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%d", prefix, i);
		patterns[i] = names[i];
	}
	for (i = 0; i < workers + 2; i++)
		if (node_of(names[i], i == 0, i == 0 ? source : i <= workers ? worker : sink,
			    i <= workers ? names[i + 1] : NULL) != 0)
			return -1;
	param.socket_id = -1;
	param.nb_node_patterns = workers + 2;
	param.node_patterns = patterns;
	if (rte_graph_create(prefix, &param) == RTE_GRAPH_ID_INVALID)
		return -2;
	graph = rte_graph_lookup(prefix);
	for (i = 1; i <= workers; i++) {
		struct rte_node *node = rte_graph_node_get_by_name(prefix, names[i]);

		*(uint64_t *)node->ctx = i * 0x9e3779b97f4a7c15ULL;
		*(uint16_t *)(node->ctx + 8) = 0;
		*(uint16_t *)(node->ctx + 10) = i & 7;
	}
	return 0;
}

void bench_walk(uint64_t walks)
{
	while (walks-- > 0)
		rte_graph_walk(graph);
}

uint64_t bench_sunk(void) { return sunk; }
