/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pkt_acl, a node of librte_graph between ethdev_rx and pkt_cls. An IPv4 packet that a rule forwards goes to pkt_cls;
 * one that a rule denies, one that matches no rule, and a truncated one go to pkt_drop. Packets that are not IPv4 go
 * to pkt_cls, which handles them.
 *
 * Lists are made on the main lcore before a graph is walked, and only read then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_graph_worker.h>
#include <rte_mbuf.h>

#include "acl_rules.h"

/* Prefetch distance in packets. */
#define AHEAD 8
#define NAME "pkt_acl"

enum next {
	NEXT_CLASSIFY,
	NEXT_DROP,
	NEXTS,
};

/* In a node's context. */
struct context {
	const struct rte_acl_ctx *list;
};

static const uint8_t *
ipv4_header(const struct rte_mbuf *mbuf)
{
	return rte_pktmbuf_mtod_offset(mbuf, const uint8_t *, RTE_ETHER_HDR_LEN);
}

/* Decide for each of up to RTE_GRAPH_BURST_SIZE packets whether it goes on, and return how many do. */
static inline uint16_t
judge(const struct rte_acl_ctx *list, void **objs, uint16_t count, uint8_t goes_on[])
{
	const uint8_t *headers[RTE_GRAPH_BURST_SIZE];
	uint32_t verdicts[RTE_GRAPH_BURST_SIZE];
	uint16_t places[RTE_GRAPH_BURST_SIZE];
	uint16_t asked = 0, pass = 0, i;

	for (i = 0; i < count; i++) {
		const struct rte_mbuf *mbuf = objs[i];
		const struct rte_ether_hdr *ether;

		if (i + AHEAD < count)
			rte_prefetch0(rte_pktmbuf_mtod((struct rte_mbuf *)objs[i + AHEAD], void *));
		ether = rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
		if (mbuf->data_len < RTE_ETHER_HDR_LEN ||
		    ether->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
			goes_on[i] = 1;
			pass++;
		} else if (mbuf->data_len < RTE_ETHER_HDR_LEN + ACL_INPUT_BYTES) {
			goes_on[i] = 0;
		} else {
			headers[asked] = ipv4_header(mbuf);
			places[asked++] = i;
		}
	}
	if (asked == 0)
		return pass;
	/* It fails only for an invalid number of categories. */
	rte_acl_classify(list, headers, verdicts, asked, 1);
	for (i = 0; i < asked; i++) {
		goes_on[places[i]] = verdicts[i] == ACL_FORWARD;
		pass += verdicts[i] == ACL_FORWARD;
	}
	return pass;
}

/* Both streams have room for all, so that each packet can be written to both, and counted in one. */
static inline void
split(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count,
      const uint8_t goes_on[])
{
	void **on = rte_node_next_stream_get(graph, node, NEXT_CLASSIFY, count);
	void **drop = rte_node_next_stream_get(graph, node, NEXT_DROP, count);
	uint16_t passed = 0, i;

	for (i = 0; i < count; i++) {
		on[passed] = objs[i];
		drop[i - passed] = objs[i];
		passed += goes_on[i];
	}
	rte_node_next_stream_put(graph, node, NEXT_CLASSIFY, passed);
	rte_node_next_stream_put(graph, node, NEXT_DROP, count - passed);
}

static uint16_t
process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t count)
{
	const struct context *context = (const struct context *)node->ctx;
	uint8_t goes_on[RTE_GRAPH_BURST_SIZE];
	uint16_t left = count;

	if (likely(count <= RTE_GRAPH_BURST_SIZE &&
		   judge(context->list, objs, count, goes_on) == count)) {
		rte_node_next_stream_move(graph, node, NEXT_CLASSIFY);
		return count;
	}
	if (likely(count <= RTE_GRAPH_BURST_SIZE)) {
		split(graph, node, objs, count, goes_on);
		return count;
	}
	/* Several queues may have filled this stream in one walk. */
	while (left > 0) {
		const uint16_t part = RTE_MIN(left, RTE_GRAPH_BURST_SIZE);

		judge(context->list, objs, part, goes_on);
		split(graph, node, objs, part, goes_on);
		objs += part;
		left -= part;
	}
	return count;
}

static struct rte_node_register pkt_acl = {
	.process = process,
	.name = NAME,
	.nb_edges = NEXTS,
	.next_nodes = {
		[NEXT_CLASSIFY] = "pkt_cls",
		[NEXT_DROP] = "pkt_drop",
	},
};

RTE_NODE_REGISTER(pkt_acl);

int
linerate_acl_insert(void)
{
	const char *own = NAME;
	rte_node_t receive = rte_node_from_name("ethdev_rx");
	rte_edge_t edges = receive == RTE_NODE_ID_INVALID ? 0 : rte_node_edge_count(receive), at;
	char *names[UINT8_MAX];

	if (edges > 0 && edges <= RTE_DIM(names) && rte_node_edge_get(receive, names) > 0) {
		for (at = 0; at < edges; at++) {
			if (strcmp(names[at], "pkt_cls") == 0 &&
			    rte_node_edge_update(receive, at, &own, 1) == 1)
				return 0;
		}
	}
	fprintf(stderr, "linerate: this librte_node has no edge from ethdev_rx to pkt_cls\n");
	return -ENOTSUP;
}

int
linerate_acl_load(const char *graph, int socket)
{
	static const struct rte_acl_ctx *lists[RTE_MAX_NUMA_NODES];
	const char *path = getenv("LINERATE_RULES");
	struct rte_node *node = rte_graph_node_get_by_name(graph, NAME);
	const int place = socket < 0 ? 0 : socket;

	if (path == NULL || node == NULL || place >= RTE_MAX_NUMA_NODES) {
		fprintf(stderr, "linerate: %s\n",
			path == NULL ? "LINERATE_RULES names no file of rules" :
				       "the graph has no node " NAME);
		return -EINVAL;
	}
	if (lists[place] == NULL)
		lists[place] = acl_rules_read(path, socket);
	if (lists[place] == NULL)
		return -EINVAL;
	((struct context *)node->ctx)->list = lists[place];
	return 0;
}
