/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the compiler's -include when the lab builds DPDK's l3fwd-graph with a node of ours, pkt_acl, whose
 * source (pkt_acl.c) is compiled together with the example's. To what linerate_graph.h does this adds:
 *
 * - Before nodes that receive are made for the ports, the edge of ethdev_rx to pkt_cls leads to pkt_acl instead.
 * - After a graph is made, its node gets the rules of the file that LINERATE_RULES names. They are loaded once for
 *   each NUMA node.
 */
#ifndef LINERATE_GRAPH_ACL_H
#define LINERATE_GRAPH_ACL_H

#include "linerate_graph.h"

#include <rte_graph.h>
#include <rte_node_eth_api.h>

/* 0, or a negative errno, whose reason was printed. */
int linerate_acl_insert(void);
int linerate_acl_load(const char *graph, int socket);

static inline int
linerate_eth_config(struct rte_node_ethdev_config *ports, uint16_t count, uint16_t graphs)
{
	int ret = linerate_acl_insert();

	return ret < 0 ? ret : rte_node_eth_config(ports, count, graphs);
}

static inline rte_graph_t
linerate_graph_create(const char *name, struct rte_graph_param *param)
{
	rte_graph_t graph = rte_graph_create(name, param);

	if (graph != RTE_GRAPH_ID_INVALID && linerate_acl_load(name, param->socket_id) < 0)
		return RTE_GRAPH_ID_INVALID;
	return graph;
}

#define rte_node_eth_config linerate_eth_config
#define rte_graph_create linerate_graph_create

#endif
