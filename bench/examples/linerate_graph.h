/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the compiler's -include when the lab builds DPDK's l3fwd-graph, whose source stays as it is. To
 * what linerate_ports.h does for every routing example this adds:
 *
 * - Routes. l3fwd-graph has a fixed table and no option to change it. When it adds a next hop, which has
 *   the number of a port, the routes to that port are added from the file LINERATE_ROUTES: lines in
 *   l3fwd's form, R<network>/<length> <port>.
 * - TX queues are those of the lcores that forward. The main lcore only prints, and memif takes no
 *   queue that the other end does not have.
 * - Waits sleep. The main lcore prints once per second and would spin in between, on the CPU that it
 *   shares with the lcore that forwards.
 */
#ifndef LINERATE_GRAPH_H
#define LINERATE_GRAPH_H

#include "linerate_ports.h"

#include <arpa/inet.h>
#include <time.h>

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_node_ip4_api.h>

/* Ends early at a signal, so that the program notices it. */
static void
linerate_delay(unsigned int us)
{
	struct timespec wait = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	nanosleep(&wait, NULL);
}

/* After EAL's own constructors, which run when its library is loaded. */
static void __attribute__((constructor))
linerate_sleep_when_waiting(void)
{
	rte_delay_us_callback_register(linerate_delay);
}

static inline uint16_t
linerate_workers(void)
{
	return rte_lcore_count() - 1;
}

static inline int
linerate_graph_configure(uint16_t port, uint16_t rx_queues, uint16_t tx_queues,
			 const struct rte_eth_conf *asked)
{
	return linerate_eth_dev_configure(port, rx_queues, RTE_MIN(tx_queues, linerate_workers()),
					  asked);
}

static inline int
linerate_graph_tx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors,
			      unsigned int socket, const struct rte_eth_txconf *conf)
{
	if (queue >= linerate_workers())
		return 0;
	return rte_eth_tx_queue_setup(port, queue, descriptors, socket, conf);
}

/* Add the routes of a file that lead to this port. */
static inline int
linerate_add_routes(FILE *file, uint16_t port, enum rte_node_ip4_lookup_next node)
{
	char line[128], network[16];
	unsigned int length, out;
	struct in_addr address;
	int ret;

	while (fgets(line, sizeof(line), file) != NULL) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "R%15[0-9.]/%u %u", network, &length, &out) != 3 ||
		    inet_pton(AF_INET, network, &address) != 1 || length > 32)
			return -EINVAL;
		if (out != port)
			continue;
		ret = rte_node_ip4_route_add(rte_be_to_cpu_32(address.s_addr), length, port, node);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static inline int
linerate_route_add(uint32_t ip, uint8_t depth, uint16_t next_hop,
		   enum rte_node_ip4_lookup_next node)
{
	const char *path = getenv("LINERATE_ROUTES");
	int ret = rte_node_ip4_route_add(ip, depth, next_hop, node);
	FILE *file;

	if (ret < 0 || path == NULL)
		return ret;
	file = fopen(path, "r");
	if (file != NULL) {
		ret = linerate_add_routes(file, next_hop, node);
		fclose(file);
	} else {
		ret = -errno;
	}
	if (ret < 0)
		fprintf(stderr, "linerate: LINERATE_ROUTES=%s: %s\n", path, strerror(-ret));
	return ret;
}

#undef rte_eth_dev_configure
#define rte_eth_dev_configure linerate_graph_configure
#define rte_eth_tx_queue_setup linerate_graph_tx_queue_setup
#define rte_node_ip4_route_add linerate_route_add

#endif
