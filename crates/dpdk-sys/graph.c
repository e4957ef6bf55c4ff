/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

uint32_t lr_node_register(const char *name, int source, rte_node_process_t process,
			  const char *const *next, uint16_t edges)
{
	struct rte_node_register *node;
	uint32_t id;

	if (strlen(name) >= sizeof(node->name)) {
		rte_errno = ENAMETOOLONG;
		return RTE_NODE_ID_INVALID;
	}
	node = calloc(1, sizeof(*node) + edges * sizeof(node->next_nodes[0]));
	if (node == NULL) {
		rte_errno = ENOMEM;
		return RTE_NODE_ID_INVALID;
	}
	strcpy(node->name, name);
	node->flags = source ? RTE_NODE_SOURCE_F : 0;
	node->process = process;
	node->parent_id = RTE_NODE_ID_INVALID;
	node->nb_edges = edges;
	memcpy(node->next_nodes, next, edges * sizeof(node->next_nodes[0]));
	id = __rte_node_register(node); /* copies */
	free(node);
	return id;
}

uint16_t lr_graph_create(const char *name, int socket, const char **nodes, uint16_t count)
{
	struct rte_graph_param param = {0};

	param.socket_id = socket;
	param.nb_node_patterns = count;
	param.node_patterns = nodes;
	return rte_graph_create(name, &param);
}

struct stats_reader {
	lr_node_stats_fn fn;
	void *cookie;
};

static int read_node_stats(bool first, bool last, void *cookie,
			   const struct rte_graph_cluster_node_stats *stats)
{
	const struct stats_reader *reader = cookie;

	(void)first;
	(void)last;
	reader->fn(reader->cookie, stats->name, stats->calls, stats->objs, stats->cycles,
		   stats->realloc_count);
	return 0;
}

int lr_graph_cluster_stats(const char **patterns, uint16_t count, lr_node_stats_fn fn,
			   void *cookie)
{
	struct stats_reader reader = {fn, cookie};
	struct rte_graph_cluster_stats_param param = {0};
	struct rte_graph_cluster_stats *stats;

	param.socket_id = SOCKET_ID_ANY;
	param.fn = read_node_stats;
	param.cookie = &reader;
	param.nb_graph_patterns = count;
	param.graph_patterns = patterns;
	stats = rte_graph_cluster_stats_create(&param);
	if (stats == NULL)
		return -rte_errno;
	rte_graph_cluster_stats_get(stats, false);
	rte_graph_cluster_stats_destroy(stats);
	return 0;
}

int lr_node_eth_config(uint16_t port)
{
	struct rte_node_ethdev_config config = {0};
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret < 0)
		return ret;
	config.port_id = port;
	config.num_rx_queues = info.nb_rx_queues;
	config.num_tx_queues = 1; /* looked at for the number of graphs alone */
	ret = rte_node_eth_config(&config, 1, 1);
	return ret < 0 ? ret : info.nb_rx_queues;
}

int lr_matches(const char *pattern, const char *name) { return fnmatch(pattern, name, 0) == 0; }

void lr_graph_walk(struct rte_graph *graph) { rte_graph_walk(graph); }

void lr_node_enqueue(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs,
		     uint16_t n)
{
	rte_node_enqueue(graph, node, next, objs, n);
}

void lr_node_next_stream_move(struct rte_graph *graph, struct rte_node *node, uint16_t next)
{
	rte_node_next_stream_move(graph, node, next);
}

void lr_node_enqueue_x1(struct rte_graph *graph, struct rte_node *node, uint16_t next, void *obj)
{
	rte_node_enqueue_x1(graph, node, next, obj);
}

void lr_node_enqueue_x2(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs)
{
	rte_node_enqueue_x2(graph, node, next, objs[0], objs[1]);
}

void lr_node_enqueue_x4(struct rte_graph *graph, struct rte_node *node, uint16_t next, void **objs)
{
	rte_node_enqueue_x4(graph, node, next, objs[0], objs[1], objs[2], objs[3]);
}

void **lr_node_next_stream_get(struct rte_graph *graph, struct rte_node *node, uint16_t next,
			       uint16_t n)
{
	return rte_node_next_stream_get(graph, node, next, n);
}

void lr_node_next_stream_put(struct rte_graph *graph, struct rte_node *node, uint16_t next,
			     uint16_t n)
{
	rte_node_next_stream_put(graph, node, next, n);
}
