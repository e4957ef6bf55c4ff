/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the compiler's -include when the lab builds DPDK's routing examples, whose sources stay as they
 * are: their calls that set up ports go through here.
 *
 * Offloads that a port does not support are not requested. l3fwd of DPDK 22.11 requests checksum checks
 * of received packets, which no virtual device supports. It then forwards without that check.
 *
 * Ports that make their own frames (net_null, net_nearfree) return whatever is in the buffer, so a router
 * would find no valid address in it. Before the first port starts, every buffer gets a frame from the
 * file LINERATE_FRAMES: records of 60 bytes, in turn. The packet path does not change.
 *
 * Tables of IPv4 routes have room for as many routes as a file may have. The examples and DPDK's own node make them
 * for 1,024; the larger size costs memory when routes are added, and nothing in lookups.
 */
#ifndef LINERATE_PORTS_H
#define LINERATE_PORTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <rte_config.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* The smallest Ethernet frame, without its FCS. */
#define LINERATE_FRAME 60
/* The lab uses a thousand flows. */
#define LINERATE_MAX_FRAMES 4096
#define LINERATE_MAX_ROUTES (1 << 17)

struct linerate_frames {
	uint8_t bytes[LINERATE_MAX_FRAMES][LINERATE_FRAME];
	size_t count;
};

static inline int
linerate_eth_dev_configure(uint16_t port, uint16_t rx_queues, uint16_t tx_queues,
			   const struct rte_eth_conf *asked)
{
	struct rte_eth_conf conf = *asked;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret != 0)
		return ret;
	conf.rxmode.offloads &= info.rx_offload_capa;
	if (conf.rxmode.offloads != asked->rxmode.offloads)
		printf("linerate: port %u does without RX offloads %#" PRIx64 "\n", port,
		       asked->rxmode.offloads & ~info.rx_offload_capa);
	return rte_eth_dev_configure(port, rx_queues, tx_queues, &conf);
}

static inline int
linerate_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t descriptors,
			    unsigned int socket, const struct rte_eth_rxconf *asked,
			    struct rte_mempool *pool)
{
	struct rte_eth_rxconf conf = *asked;
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret != 0)
		return ret;
	conf.offloads &= info.rx_offload_capa;
	return rte_eth_rx_queue_setup(port, queue, descriptors, socket, &conf, pool);
}

static inline void
linerate_fill_buffer(struct rte_mempool *pool, void *opaque, void *object, unsigned int index)
{
	const struct linerate_frames *frames = opaque;
	struct rte_mbuf *mbuf = object;

	RTE_SET_USED(pool);
	memcpy((uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM,
	       frames->bytes[index % frames->count], LINERATE_FRAME);
}

static inline void
linerate_fill_pool(struct rte_mempool *pool, void *opaque)
{
	/* Pools of anything but packets have no such private data. */
	if (pool->private_data_size < sizeof(struct rte_pktmbuf_pool_private) ||
	    rte_pktmbuf_data_room_size(pool) < RTE_PKTMBUF_HEADROOM + LINERATE_FRAME)
		return;
	rte_mempool_obj_iter(pool, linerate_fill_buffer, opaque);
}

/* Fill the buffers of every pool. */
static inline int
linerate_fill(const char *path)
{
	struct linerate_frames *frames = calloc(1, sizeof(*frames));
	FILE *file = fopen(path, "rb");

	if (frames != NULL && file != NULL)
		frames->count = fread(frames->bytes, LINERATE_FRAME, LINERATE_MAX_FRAMES, file);
	if (file != NULL)
		fclose(file);
	if (frames == NULL || frames->count == 0) {
		fprintf(stderr, "linerate: no frames in LINERATE_FRAMES=%s\n", path);
		free(frames);
		return -EINVAL;
	}
	rte_mempool_walk(linerate_fill_pool, frames);
	free(frames);
	return 0;
}

static inline int
linerate_makes_frames(const char *driver)
{
	return driver != NULL &&
	       (strcmp(driver, "net_null") == 0 || strcmp(driver, "net_nearfree") == 0);
}

static inline int
linerate_eth_dev_start(uint16_t port)
{
	static int filled;
	const char *path = getenv("LINERATE_FRAMES");
	struct rte_eth_dev_info info;
	int ret = rte_eth_dev_info_get(port, &info);

	if (ret == 0 && !filled && path != NULL && linerate_makes_frames(info.driver_name)) {
		ret = linerate_fill(path);
		filled = 1;
	}
	return ret != 0 ? ret : rte_eth_dev_start(port);
}

/*
 * Replaces DPDK's function, for its libraries too: when they are loaded, a program's own symbol comes first. Weak,
 * because every source of an example contains it.
 */
__attribute__((weak)) struct rte_lpm *
rte_lpm_create(const char *name, int socket, const struct rte_lpm_config *asked)
{
	struct rte_lpm *(*create)(const char *, int, const struct rte_lpm_config *) =
		(struct rte_lpm * (*)(const char *, int, const struct rte_lpm_config *))
			dlsym(RTLD_NEXT, "rte_lpm_create");
	struct rte_lpm_config config = *asked;

	config.max_rules = RTE_MAX(config.max_rules, (uint32_t)LINERATE_MAX_ROUTES);
	return create(name, socket, &config);
}

#define rte_eth_dev_configure linerate_eth_dev_configure
#define rte_eth_rx_queue_setup linerate_eth_rx_queue_setup
#define rte_eth_dev_start linerate_eth_dev_start

#endif
