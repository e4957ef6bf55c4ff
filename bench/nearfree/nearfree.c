/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_nearfree: virtual ports that cost next to nothing, for comparing what forwarders themselves
 * cost. Loaded by EAL's -d; then
 * --vdev=net_nearfree0[,size=BYTES][,ring=PACKETS][,dense=1][,frames=FILE].
 *
 * Each queue has a ring of packets. Receiving takes a burst out of it and sending on the same
 * queue number of the port puts a burst into it: two copies of pointers per burst and no work per
 * packet. What was sent on a port thus comes back from it, as it was sent: a wire that is bent
 * back, like net_ring with one ring in both directions.
 *
 * Ownership: a packet in the ring is the driver's, any other is not; so a forwarder may keep, free
 * or clone what it receives. A ring that runs low is topped up with fresh packets of the queue's
 * pool and never hands out less than was asked for, unless that pool is empty. What is sent into
 * a full ring, or into one that nobody receives from, is freed and counts as sent. Starting fills
 * each ring; stopping frees what is in it. With dense=1 fresh packets come from a pool of the
 * driver's own (dense.h) instead of the queue's.
 *
 * With frames=FILE packets hold frames of a file, in turn, for forwarders that route (frames.h). Then
 * there is work per packet: 16 bytes of each are written anew when it is received.
 *
 * Threads: one may receive from a queue while another sends on it.
 *
 * Bytes are not counted, because that would be work per packet: they stay 0. A packet's `port` is that
 * of the port that took it from its pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "arguments.h"
#include "dense.h"
#include "driver_abi.h"
#include "frames.h"
#include "say.h"
#include "self_test.h"

#define QUEUES 16
/* A sender may be some bursts ahead of the receiver. */
#define MIN_SLOTS 512u
#define SPEED RTE_ETH_SPEED_NUM_100G

/* One ring. head and tail count packets and wrap; only the receiver writes what is beside head, only
 * the sender what is beside tail. */
struct queue {
	struct rte_mbuf **slots;
	/* Slots - 1 (a power of two less one), and how many packets the ring may hold: none when
	 * nobody receives from it. */
	uint32_t mask;
	uint32_t limit;
	struct rte_mempool *pool;
	/* Null unless packets have contents. */
	const struct frames *frames;
	uint32_t next_frame;
	uint16_t port;
	uint16_t size;

	uint32_t head __rte_cache_aligned;
	uint32_t next_flow;
	uint64_t received;
	uint64_t no_mbuf;

	uint32_t tail __rte_cache_aligned;
	uint64_t sent;
} __rte_cache_aligned;

struct nearfree {
	struct queue queues[QUEUES];
	struct rte_ether_addr mac;
	/* Null unless fresh packets come from there. */
	struct rte_mempool *dense;
	struct frames *frames;
	uint32_t ring;
	uint16_t size;
};

/* Counters have one writer and are read by others at any time. */
static inline void count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* memcpy of few pointers, without a call. */
static inline void copy(struct rte_mbuf **to, struct rte_mbuf *const *from, uint32_t n)
{
	enum { BLOCK = 8 };

	for (; n >= BLOCK; n -= BLOCK, to += BLOCK, from += BLOCK)
		memcpy(to, from, BLOCK * sizeof(*to));
	for (; n > 0; n--)
		*to++ = *from++;
}

static __rte_noinline uint16_t fresh(struct queue *queue, struct rte_mbuf **pkts, uint16_t n)
{
	if (rte_pktmbuf_alloc_bulk(queue->pool, pkts, n) != 0) {
		count(&queue->no_mbuf, n);
		return 0;
	}
	for (uint16_t i = 0; i < n; i++) {
		pkts[i]->data_len = queue->size;
		pkts[i]->pkt_len = queue->size;
		pkts[i]->port = queue->port;
		if (queue->frames != NULL)
			frames_put(queue->frames, queue->next_frame++, pkts[i]);
	}
	return n;
}

static inline void take(struct queue *queue, struct rte_mbuf **pkts, uint32_t n)
{
	const uint32_t at = queue->head & queue->mask;
	const uint32_t first = RTE_MIN(n, queue->mask + 1 - at);

	copy(pkts, queue->slots + at, first);
	copy(pkts + first, queue->slots, n - first);
	__atomic_store_n(&queue->head, queue->head + n, __ATOMIC_RELEASE);
}

static uint16_t receive(void *raw, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = raw;
	const uint32_t there = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) - queue->head;
	const uint16_t taken = RTE_MIN((uint32_t)n, there);

	take(queue, pkts, taken);
	if (queue->frames != NULL)
		queue->next_flow = frames_renew(queue->frames, queue->next_flow, pkts, taken);
	if (unlikely(taken < n))
		n = taken + fresh(queue, pkts + taken, n - taken);
	count(&queue->received, n);
	return n;
}

static inline void give(struct queue *queue, struct rte_mbuf **pkts, uint32_t n)
{
	const uint32_t at = queue->tail & queue->mask;
	const uint32_t first = RTE_MIN(n, queue->mask + 1 - at);

	copy(queue->slots + at, pkts, first);
	copy(queue->slots, pkts + first, n - first);
	__atomic_store_n(&queue->tail, queue->tail + n, __ATOMIC_RELEASE);
}

static uint16_t transmit(void *raw, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = raw;
	const uint32_t room =
		queue->limit - (queue->tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE));
	const uint16_t given = RTE_MIN((uint32_t)n, room);

	give(queue, pkts, given);
	if (unlikely(given < n))
		rte_pktmbuf_free_bulk(pkts + given, n - given);
	count(&queue->sent, n);
	return n;
}

static struct nearfree *of(const struct abi_port *port)
{
	return port->data->driver_private;
}

static int configure(struct abi_port *port)
{
	struct nearfree *own = of(port);

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
	if (pool == NULL || rte_pktmbuf_data_room_size(pool) < own->size + RTE_PKTMBUF_HEADROOM)
		return -EINVAL;
	own->queues[id].pool = own->dense ? own->dense : pool;
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

/* Frees what is in a ring, and the ring. */
static void empty(struct queue *queue)
{
	for (; queue->head != queue->tail; queue->head++)
		rte_pktmbuf_free(queue->slots[queue->head & queue->mask]);
	rte_free(queue->slots);
	queue->slots = NULL;
	queue->mask = 0;
	queue->limit = 0;
	queue->head = 0;
	queue->tail = 0;
}

static int fill(struct nearfree *own, struct queue *queue, uint16_t port)
{
	const uint32_t slots = rte_align32pow2(RTE_MAX(2 * own->ring, MIN_SLOTS));

	queue->port = port;
	queue->size = own->size;
	queue->frames = own->frames;
	queue->slots = rte_zmalloc(DRIVER, slots * sizeof(*queue->slots), RTE_CACHE_LINE_SIZE);
	if (queue->slots == NULL)
		return -ENOMEM;
	queue->mask = slots - 1;
	queue->limit = slots;
	if (fresh(queue, queue->slots, own->ring) == 0)
		return -ENOMEM;
	queue->tail = own->ring;
	return 0;
}

static int stop(struct abi_port *port)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		empty(&of(port)->queues[i]);
	port->data->link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

static int start(struct abi_port *port)
{
	struct nearfree *own = of(port);

	for (unsigned int i = 0; i < QUEUES; i++) {
		if (own->queues[i].pool == NULL)
			continue;
		if (fill(own, &own->queues[i], port->data->port_id) != 0) {
			SAY(ERR, "no memory for %" PRIu32 " packets in queue %u; ring=N asks for fewer\n",
			    own->ring, i);
			stop(port);
			return -ENOMEM;
		}
	}
	port->data->link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int close_port(struct abi_port *port)
{
	stop(port);
	if (of(port)->dense != NULL)
		dense_release();
	frames_free(of(port)->frames);
	of(port)->frames = NULL;
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
	RTE_SET_USED(port);
	answer->max_mac_addrs = 1;
	answer->max_rx_pktlen = UINT16_MAX;
	answer->max_rx_queues = QUEUES;
	answer->max_tx_queues = QUEUES;
	return 0;
}

static const abi_slot operations[OP_COUNT] = {
	[OP_CONFIGURE] = (abi_slot)configure,
	[OP_START] = (abi_slot)start,
	[OP_STOP] = (abi_slot)stop,
	[OP_CLOSE] = (abi_slot)close_port,
	[OP_LINK_UPDATE] = (abi_slot)link_update,
	[OP_PROMISCUOUS_ON] = (abi_slot)promiscuous_on,
	[OP_PROMISCUOUS_OFF] = (abi_slot)promiscuous_off,
	[OP_MAC_SET] = (abi_slot)mac_set,
	[OP_STATS_GET] = (abi_slot)stats_get,
	[OP_STATS_RESET] = (abi_slot)stats_reset,
	[OP_INFO] = (abi_slot)info,
	[OP_RX_SETUP] = (abi_slot)rx_setup,
	[OP_TX_SETUP] = (abi_slot)tx_setup,
};

static void complete(struct abi_port *port, struct rte_device *device, struct nearfree *own)
{
	/* Locally administered, the port's number last. */
	own->mac = (struct rte_ether_addr){{0x02, 0x6c, 0x72, 0, 0, port->data->port_id}};
	port->device = device;
	port->data->driver_private = own;
	port->data->macs = &own->mac;
	port->data->link = (struct rte_eth_link){.link_speed = SPEED,
						 .link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
						 .link_autoneg = RTE_ETH_LINK_FIXED,
						 .link_status = RTE_ETH_LINK_DOWN};
	port->ops = operations;
	port->rx_burst = receive;
	port->tx_burst = transmit;
	rte_eth_dev_probing_finish(port);
}

#define FOREIGN "not the driver interface that this was written for: "

static int make_port(struct rte_device *device, const char *name, const struct arguments *arguments)
{
	struct nearfree *own = rte_zmalloc(DRIVER, sizeof(*own), RTE_CACHE_LINE_SIZE);
	struct rte_mempool *dense = own && arguments->dense ? dense_acquire() : NULL;
	struct abi_port *port = NULL;
	const char *wrong;

	if (own != NULL && (dense != NULL || !arguments->dense))
		port = rte_eth_dev_allocate(name);
	wrong = port ? self_test_slot(port, name) : NULL;
	if (port == NULL || wrong != NULL) {
		/* A slot that is not as expected may not be touched, not even to give it back. */
		if (wrong != NULL)
			SAY(ERR, FOREIGN "%s\n", wrong);
		if (dense != NULL)
			dense_release();
		frames_free(arguments->frames);
		rte_free(own);
		return port ? -ENOTSUP : -ENOMEM;
	}
	own->size = arguments->size;
	own->ring = arguments->ring;
	own->dense = dense;
	own->frames = arguments->frames;
	complete(port, device, own);
	wrong = self_test_port(port);
	if (wrong != NULL) {
		SAY(ERR, FOREIGN "%s\n", wrong);
		close_port(port);
		rte_eth_dev_release_port(port);
		return -ENOTSUP;
	}
	return 0;
}

static int probe(struct abi_vdev *vdev)
{
	struct rte_device *device = abi_device(vdev);
	const char *name = rte_dev_name(device);
	const char *wrong = self_test_symbols();
	struct arguments arguments = {0};

	if (wrong == NULL && (name == NULL || strncmp(name, DRIVER, strlen(DRIVER)) != 0))
		wrong = "the device of the bus is somewhere else";
	if (wrong != NULL) {
		SAY(ERR, FOREIGN "%s\n", wrong);
		return -ENOTSUP;
	}
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return -ENOTSUP;
	if (arguments_read(rte_dev_devargs(device)->args, &arguments) != 0) {
		frames_free(arguments.frames);
		return -EINVAL;
	}
	return make_port(device, name, &arguments);
}

static int remove_port(struct abi_vdev *vdev)
{
	struct abi_port *port = rte_eth_dev_allocated(rte_dev_name(abi_device(vdev)));

	if (port == NULL)
		return 0; /* closed before */
	close_port(port);
	return rte_eth_dev_release_port(port);
}

static struct abi_vdev_driver driver = {
	.driver = {.name = DRIVER},
	.probe = probe,
	.remove = remove_port,
};

RTE_INIT(register_driver)
{
	rte_vdev_register(&driver);
}
