/* SPDX-License-Identifier: BSD-3-Clause */
#include "shim.h"

#include <errno.h>
#include <stdio.h>
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

int lr_graph_export(const char *name, char **text)
{
	size_t size;
	FILE *file = open_memstream(text, &size);
	int ret;

	if (file == NULL)
		return -errno;
	ret = rte_graph_export(name, file) == 0 ? 0 : -rte_errno;
	if (fclose(file) != 0 && ret == 0)
		ret = -errno;
	if (ret != 0)
		free(*text);
	return ret;
}

void lr_free(void *memory) { free(memory); }

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
