/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_eth_dev_conf_get is stable since 23.11. */
#define ALLOW_EXPERIMENTAL_API

#include "port.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dense.h"
#include "say.h"
#include "self_test.h"

static struct nearfree *of(const struct abi_port *port)
{
	return port->data->driver_private;
}

static int configure(struct abi_port *port)
{
	struct nearfree *own = of(port);
	struct rte_eth_conf conf = {0};
	bool hashed;

	if (own->traffic != NULL) {
		if (rte_eth_dev_conf_get(port->data->port_id, &conf) != 0)
			return -EINVAL;
		own->known = 0;
		if (conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM)
			own->known |= RTE_MBUF_F_RX_IP_CKSUM_MASK;
		if (conf.rxmode.offloads & (RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM))
			own->known |= RTE_MBUF_F_RX_L4_CKSUM_MASK;
		hashed = conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG;
		if (hashed)
			own->known |= RTE_MBUF_F_RX_RSS_HASH;
		own->ports = !hashed ||
			     conf.rx_adv_conf.rss_conf.rss_hf & (RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
		/* The caller's key need not be there for longer. */
		own->keyed = hashed && conf.rx_adv_conf.rss_conf.rss_key != NULL &&
			     conf.rx_adv_conf.rss_conf.rss_key_len == TRAFFIC_KEY;
		if (own->keyed)
			memcpy(own->key, conf.rx_adv_conf.rss_conf.rss_key, TRAFFIC_KEY);
	}
	/* Queues of an earlier configuration that this one does not have. */
	for (unsigned int i = 0; i < QUEUES; i++)
		own->queues[i].pool = NULL;
	return 0;
}

static int rx_setup(struct abi_port *port, uint16_t id, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct nearfree *own = of(port);

	RTE_SET_USED(descriptors);
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	if (own->dense)
		pool = own->dense;
	if (pool == NULL || rte_pktmbuf_data_room_size(pool) < own->size + RTE_PKTMBUF_HEADROOM) {
		SAY(ERR, "%s%s: %u bytes do not fit into the buffers of queue %u's pool\n",
		    own->traffic ? "frames=" : "size", own->traffic ? own->traffic->path : "", own->size, id);
		return -EINVAL;
	}
	own->queues[id].pool = pool;
	port->data->rx_queues[id] = &own->queues[id];
	return 0;
}

static int tx_setup(struct abi_port *port, uint16_t id, uint16_t descriptors, unsigned int socket,
		    const struct rte_eth_txconf *conf)
{
	RTE_SET_USED(descriptors);
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	port->data->tx_queues[id] = &of(port)->queues[id];
	return 0;
}

static int stop(struct abi_port *port)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		queue_empty(&of(port)->queues[i]);
	port->data->link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

/* Of the frames those that come to a queue of several. Their hash chooses, whether the user asked for that or not. */
static int choose(const struct traffic *traffic, struct queue *queue, uint16_t id, uint16_t queues)
{
	queue->frames = traffic->count;
	if (queues == 1)
		return 0;
	queue->frames = 0;
	queue->order = malloc(traffic->count * sizeof(*queue->order));
	if (queue->order == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < traffic->count; i++)
		if (traffic_queue(&traffic->frames[i], queues) == id)
			queue->order[queue->frames++] = i;
	return 0;
}

/* Which queue each frame comes to. */
static int share_out(struct nearfree *own, const struct abi_port_data *data)
{
	uint16_t mtu = 0;

	if (rte_eth_dev_get_mtu(data->port_id, &mtu) != 0)
		return -EINVAL;
	/* With an Ethernet header and a VLAN tag. */
	if (own->traffic->longest > mtu + RTE_ETHER_HDR_LEN + 4u)
		SAY(WARNING, "frames=%s: some of %" PRIu32 " bytes are longer than the port's MTU of %u allows\n",
		    own->traffic->path, own->traffic->longest, mtu);
	traffic_hash(own->traffic, own->keyed ? own->key : NULL, own->ports);
	for (uint16_t i = 0; i < data->rx_queue_count; i++) {
		own->queues[i].known = own->known;
		if (choose(own->traffic, &own->queues[i], i, data->rx_queue_count) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int start(struct abi_port *port)
{
	struct nearfree *own = of(port);

	if (own->traffic != NULL && share_out(own, port->data) != 0) {
		SAY(ERR, "the frames of port %u cannot be shared out to its queues\n", port->data->port_id);
		stop(port);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < QUEUES; i++) {
		struct queue *queue = &own->queues[i];

		/* Also of one that only sends. */
		queue->check = own->check;
		if (queue->pool == NULL)
			continue;
		queue->port = port->data->port_id;
		queue->size = own->size;
		queue->traffic = own->traffic;
		if (queue_fill(queue, own->ring) != 0) {
			SAY(ERR, "no memory for %" PRIu32 " packets in queue %u; ring=N asks for fewer\n",
			    own->ring, i);
			stop(port);
			return -ENOMEM;
		}
	}
	port->data->link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

void port_give_back(struct nearfree *own)
{
	if (own->dense != NULL)
		dense_release();
	check_end(own->check);
	traffic_release(own->traffic);
	own->dense = NULL;
	own->check = NULL;
	own->traffic = NULL;
}

int port_close(struct abi_port *port)
{
	stop(port);
	port_give_back(of(port));
	/* It lies inside the private data, which ethdev frees, as it would free this. */
	port->data->macs = NULL;
	return 0;
}

static int link_update(struct abi_port *port, int wait)
{
	RTE_SET_USED(port);
	RTE_SET_USED(wait);
	self_test_note(OP_LINK_UPDATE);
	return 0;
}

static int promiscuous_on(struct abi_port *port)
{
	RTE_SET_USED(port);
	self_test_note(OP_PROMISCUOUS_ON);
	return 0;
}

static int promiscuous_off(struct abi_port *port)
{
	RTE_SET_USED(port);
	self_test_note(OP_PROMISCUOUS_OFF);
	return 0;
}

static int mac_set(struct abi_port *port, struct rte_ether_addr *mac)
{
	/* ethdev keeps the address. */
	RTE_SET_USED(port);
	RTE_SET_USED(mac);
	return 0;
}

static int stats_get(struct abi_port *port, struct rte_eth_stats *stats)
{
	struct nearfree *own;

	if (self_test_note(OP_STATS_GET))
		return 0;
	own = of(port);
	for (unsigned int i = 0; i < QUEUES; i++) {
		struct queue *queue = &own->queues[i];

		stats->ipackets += __atomic_load_n(&queue->received, __ATOMIC_RELAXED);
		stats->opackets += __atomic_load_n(&queue->sent, __ATOMIC_RELAXED);
		stats->rx_nombuf += __atomic_load_n(&queue->no_mbuf, __ATOMIC_RELAXED);
	}
	return 0;
}

static int stats_reset(struct abi_port *port)
{
	struct nearfree *own;

	if (self_test_note(OP_STATS_RESET))
		return 0;
	own = of(port);
	for (unsigned int i = 0; i < QUEUES; i++) {
		own->queues[i].received = 0;
		own->queues[i].sent = 0;
		own->queues[i].no_mbuf = 0;
	}
	return 0;
}

static int info(struct abi_port *port, struct rte_eth_dev_info *answer)
{
	answer->max_mac_addrs = 1;
	answer->max_rx_pktlen = UINT16_MAX;
	answer->max_rx_queues = QUEUES;
	answer->max_tx_queues = QUEUES;
	if (of(port)->traffic == NULL)
		return 0;
	answer->rx_offload_capa = RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH;
	/* Nobody computes them; check.c knows which packets ask for it. */
	answer->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE |
				  RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
				  RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	answer->flow_type_rss_offloads = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	answer->hash_key_size = TRAFFIC_KEY;
	return 0;
}

#ifdef ABI_24
static const uint32_t *types(struct abi_port *port, size_t *count)
{
	if (self_test_note(OP_TYPES))
		return NULL;
	return of(port)->traffic ? traffic_types(count) : NULL;
}
#else
static const uint32_t *types(struct abi_port *port)
{
	size_t count;

	if (self_test_note(OP_TYPES))
		return NULL;
	return of(port)->traffic ? traffic_types(&count) : NULL;
}
#endif

const abi_slot port_operations[OP_COUNT] = {
	[OP_CONFIGURE] = (abi_slot)configure,
	[OP_START] = (abi_slot)start,
	[OP_STOP] = (abi_slot)stop,
	[OP_CLOSE] = (abi_slot)port_close,
	[OP_LINK_UPDATE] = (abi_slot)link_update,
	[OP_PROMISCUOUS_ON] = (abi_slot)promiscuous_on,
	[OP_PROMISCUOUS_OFF] = (abi_slot)promiscuous_off,
	[OP_MAC_SET] = (abi_slot)mac_set,
	[OP_STATS_GET] = (abi_slot)stats_get,
	[OP_STATS_RESET] = (abi_slot)stats_reset,
	[OP_INFO] = (abi_slot)info,
	[OP_TYPES] = (abi_slot)types,
	[OP_RX_SETUP] = (abi_slot)rx_setup,
	[OP_TX_SETUP] = (abi_slot)tx_setup,
};
