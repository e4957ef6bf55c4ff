/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of any shape. The caller lists nodes and where their edges lead: sources first, then each node after the
 * nodes that send to it.
 */
#include <stdio.h>
#include <string.h>

#include <rte_graph_worker.h>

#include "bench.h"

enum { MOST_NODES = 32, MOST_EDGES = 8 };

/* As in src/c_arm.rs. */
struct node {
	/* Sources have no node before them, sinks no node behind them. */
	uint8_t is_source, edges, shift, mask;
	uint8_t next[MOST_EDGES];
	uint64_t seed;
	/* Only of a source. */
	struct packet *first;
	uint64_t batch;
};

struct made {
	struct packet *first;
	uint16_t batch;
};

/* The number of objects that the sinks of all graphs got. */
static uint64_t sunk;

static uint16_t source(struct rte_graph *own, struct rte_node *node, void **objs, uint16_t n)
{
	const struct made *made = (const struct made *)node->ctx;
	const uint16_t batch = made->batch;
	struct packet *first = made->first;
	uint16_t i;

	RTE_SET_USED(n);
	if (likely(batch <= RTE_GRAPH_BURST_SIZE)) {
		for (i = 0; i < batch; i++)
			objs[i] = &first[i];
		node->idx = batch;
		rte_node_next_stream_move(own, node, 0);
		return batch;
	}
	/* More than a stream has room for at first. */
	objs = rte_node_next_stream_get(own, node, 0, batch);
	for (i = 0; i < batch; i++)
		objs[i] = &first[i];
	rte_node_next_stream_put(own, node, 0, batch);
	return batch;
}

static uint16_t sink(struct rte_graph *own, struct rte_node *node, void **objs, uint16_t n)
{
	RTE_SET_USED(own);
	RTE_SET_USED(node);
	RTE_SET_USED(objs);
	sunk += n;
	return n;
}

static int make_node(const char *prefix, const struct node *all, int at, int way, int work)
{
	const struct node *it = &all[at];
	char names[MOST_EDGES][RTE_NODE_NAMESIZE];
	struct {
		struct rte_node_register node;
		const char *next[MOST_EDGES];
	} made;
	int i;

	memset(&made, 0, sizeof(made));
	snprintf(made.node.name, sizeof(made.node.name), "%s-%d", prefix, at);
	if (rte_node_from_name(made.node.name) != RTE_NODE_ID_INVALID)
		return 0;
	made.node.flags = it->is_source ? RTE_NODE_SOURCE_F : 0;
	made.node.process = it->is_source ? source
			    : it->edges == 0 ? sink
					     : bench_workers[way][work][it->edges > 1];
	made.node.parent_id = RTE_NODE_ID_INVALID;
	made.node.nb_edges = it->edges;
	for (i = 0; i < it->edges; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%d", prefix, it->next[i]);
		made.next[i] = names[i];
	}
	return __rte_node_register(&made.node) == RTE_NODE_ID_INVALID ? -1 : 0;
}

/* Graphs of the same kind share a prefix for the names of their nodes; each graph has a name of its own. Returns 0,
 * or 1 if librte_graph refused a node, 2 if it refused the graph. */
int bench_open(const char *prefix, const char *name, const struct node *nodes, int count, int way, int work,
	       struct rte_graph **opened)
{
	char names[MOST_NODES][RTE_NODE_NAMESIZE];
	const char *patterns[MOST_NODES];
	struct rte_graph_param param;
	int i;

	*opened = NULL;
	/* A node registers its edges by the names of nodes, which need not exist yet. */
	for (i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "%s-%d", prefix, i);
		patterns[i] = names[i];
		if (make_node(prefix, nodes, i, way, work) != 0)
			return 1;
	}
	memset(&param, 0, sizeof(param));
	param.socket_id = SOCKET_ID_ANY;
	param.nb_node_patterns = count;
	param.node_patterns = patterns;
	if (rte_graph_create(name, &param) == RTE_GRAPH_ID_INVALID)
		return 2;
	*opened = rte_graph_lookup(name);
	for (i = 0; i < count; i++) {
		struct rte_node *node = rte_graph_node_get_by_name(name, names[i]);

		if (nodes[i].is_source)
			*(struct made *)node->ctx = (struct made){nodes[i].first, nodes[i].batch};
		else
			*(struct knows *)node->ctx =
				(struct knows){nodes[i].seed, nodes[i].shift, nodes[i].mask, 0};
	}
	return 0;
}

void bench_walk(struct rte_graph *graph, uint64_t walks, int with_stats)
{
	if (with_stats)
		bench_walk_1(graph, walks);
	else
		bench_walk_0(graph, walks);
}

uint64_t bench_sunk(void)
{
	return sunk;
}

void bench_close(struct rte_graph *graph)
{
	rte_graph_destroy(graph->id);
}
