/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_nearfree: virtual ports that cost next to nothing, for comparing what forwarders themselves
 * cost. Loaded by EAL's -d; then
 * --vdev=net_nearfree0[,size=BYTES][,ring=PACKETS][,dense=1][,frames=FILE[,check=1]].
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
 * With frames=FILE packets hold the frames of a capture file, in turn (traffic.h). Each is written anew when it is
 * received, whatever was made of the packet before: the work per packet is to copy the frame. A packet that is sent and that
 * another one still owns, or that has several segments or another pool, is freed, and another one taken. Packets have the types, and
 * with the offloads that a port's user asks for the hashes and the state of the checksums that a NIC would tell. Queues of one port
 * share the frames by their hashes.
 *
 * With check=1 as well, each packet that is sent is looked at (check.h), which takes longer than all else.
 *
 * Threads: one may receive from a queue while another sends on it.
 *
 * Bytes are not counted, because that would be work per packet: they stay 0. A packet's `port` is that
 * of the port that took it from its pool.
 */
/* rte_eth_dev_conf_get is stable since 23.11. */
#define ALLOW_EXPERIMENTAL_API

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "arguments.h"
#include "check.h"
#include "dense.h"
#include "driver_abi.h"
#include "say.h"
#include "self_test.h"
#include "traffic.h"

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
	uint16_t port;
	uint16_t size;
	/* Null unless packets have contents; which flags of packets the port's user wants to know. */
	const struct traffic *traffic;
	uint64_t known;
	/* Which of its frames come to this queue, and how many they are; null: all of them. */
	uint32_t *order;
	uint32_t frames;
	/* Null unless what is sent is checked. */
	struct check *check;

	uint32_t head __rte_cache_aligned;
	/* Place of the next frame among those of the queue. */
	uint32_t next;
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
	struct traffic *traffic;
	struct check *check;
	/* What the user asked for when the port was configured: what packets have, and a hash by this key or the usual one, with ports. */
	uint64_t known;
	bool keyed;
	bool ports;
	uint8_t key[TRAFFIC_KEY];
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

/* Packets of the ring, and fresh ones for what it lacks; how many there are. */
static inline uint16_t obtain(struct queue *queue, struct rte_mbuf **pkts, uint16_t n)
{
	const uint32_t there = __atomic_load_n(&queue->tail, __ATOMIC_ACQUIRE) - queue->head;
	const uint16_t taken = RTE_MIN((uint32_t)n, there);

	take(queue, pkts, taken);
	if (unlikely(taken < n))
		n = taken + fresh(queue, pkts + taken, n - taken);
	return n;
}

static uint16_t receive(void *raw, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = raw;

	n = obtain(queue, pkts, n);
	count(&queue->received, n);
	return n;
}

/* How many packets the ring can take. */
static inline uint32_t room(const struct queue *queue)
{
	return queue->limit - (queue->tail - __atomic_load_n(&queue->head, __ATOMIC_ACQUIRE));
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
	const uint16_t given = RTE_MIN((uint32_t)n, room(queue));

	give(queue, pkts, given);
	if (unlikely(given < n))
		rte_pktmbuf_free_bulk(pkts + given, n - given);
	count(&queue->sent, n);
	return n;
}

/* The queue's next frame. */
static inline const struct traffic_frame *next_frame(struct queue *queue)
{
	const uint32_t number = queue->order ? queue->order[queue->next] : queue->next;

	queue->next = queue->next + 1 == queue->frames ? 0 : queue->next + 1;
	return &queue->traffic->frames[number];
}

static uint16_t receive_frames(void *raw, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = raw;

	if (unlikely(queue->frames == 0))
		return 0;
	n = obtain(queue, pkts, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct traffic_frame *frame = next_frame(queue);

		traffic_put(frame, pkts[i], queue->port, queue->known);
		if (unlikely(queue->check != NULL))
			check_mark(queue->check, pkts[i], frame);
	}
	count(&queue->received, n);
	return n;
}

/* Whether a packet that is sent can be handed out again: the driver's alone, and such as come from its pool. */
static inline bool renewable(const struct queue *queue, const struct rte_mbuf *packet)
{
	return packet->nb_segs == 1 && packet->next == NULL && RTE_MBUF_DIRECT(packet) &&
	       rte_mbuf_refcnt_read(packet) == 1 && packet->pool == queue->pool;
}

static uint16_t transmit_frames(void *raw, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = raw;
	const uint32_t end = queue->tail + room(queue);
	uint32_t tail = queue->tail;

	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(queue->check != NULL))
			check_packet(queue->check, pkts[i]);
		if (likely(tail != end && renewable(queue, pkts[i])))
			queue->slots[tail++ & queue->mask] = pkts[i];
		else
			rte_pktmbuf_free(pkts[i]);
	}
	__atomic_store_n(&queue->tail, tail, __ATOMIC_RELEASE);
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

/* Frees what is in a ring, and the ring. */
static void empty(struct queue *queue)
{
	for (; queue->head != queue->tail; queue->head++)
		rte_pktmbuf_free(queue->slots[queue->head & queue->mask]);
	rte_free(queue->slots);
	free(queue->order);
	queue->slots = NULL;
	queue->order = NULL;
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
	queue->traffic = own->traffic;
	queue->next = 0;
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
		/* Also of one that only sends. */
		own->queues[i].check = own->check;
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

/* Gives back what a port has, but for its memory. */
static void give_back(struct nearfree *own)
{
	if (own->dense != NULL)
		dense_release();
	check_end(own->check);
	traffic_release(own->traffic);
	own->dense = NULL;
	own->check = NULL;
	own->traffic = NULL;
}

static void drop_own(struct nearfree *own)
{
	if (own == NULL)
		return;
	give_back(own);
	rte_free(own);
}

static int close_port(struct abi_port *port)
{
	stop(port);
	give_back(of(port));
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
	[OP_TYPES] = (abi_slot)types,
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
	port->rx_burst = own->traffic ? receive_frames : receive;
	port->tx_burst = own->traffic ? transmit_frames : transmit;
	rte_eth_dev_probing_finish(port);
}

#define FOREIGN "not the driver interface that this was written for: "

/* Memory, frames and checks of a port; null, and a message, where something cannot be had. */
static struct nearfree *make_own(const char *name, const struct arguments *arguments)
{
	struct nearfree *own = rte_zmalloc(DRIVER, sizeof(*own), RTE_CACHE_LINE_SIZE);

	if (own == NULL)
		return NULL;
	own->size = arguments->size;
	own->ring = arguments->ring;
	own->dense = arguments->dense ? dense_acquire() : NULL;
	own->traffic = arguments->frames ? traffic_acquire(arguments->frames) : NULL;
	own->check = own->traffic && arguments->check ? check_begin(name, own->traffic) : NULL;
	if ((arguments->dense && own->dense == NULL) || (arguments->frames && own->traffic == NULL) ||
	    (arguments->check && own->check == NULL)) {
		drop_own(own);
		return NULL;
	}
	/* In whole blocks. */
	if (own->traffic != NULL)
		own->size = RTE_ALIGN_CEIL(own->traffic->longest, TRAFFIC_BLOCK);
	return own;
}

static int make_port(struct rte_device *device, const char *name, const struct arguments *arguments)
{
	struct nearfree *own = make_own(name, arguments);
	struct abi_port *port = own ? rte_eth_dev_allocate(name) : NULL;
	const char *wrong = port ? self_test_slot(port, name) : NULL;

	if (port == NULL || wrong != NULL) {
		/* A slot that is not as expected may not be touched, not even to give it back. */
		if (wrong != NULL)
			SAY(ERR, FOREIGN "%s\n", wrong);
		drop_own(own);
		return port ? -ENOTSUP : -ENOMEM;
	}
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
	int ret;

	if (wrong == NULL && (name == NULL || strncmp(name, DRIVER, strlen(DRIVER)) != 0))
		wrong = "the device of the bus is somewhere else";
	if (wrong != NULL) {
		SAY(ERR, FOREIGN "%s\n", wrong);
		return -ENOTSUP;
	}
	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return -ENOTSUP;
	ret = arguments_read(rte_dev_devargs(device)->args, &arguments);
	if (ret == 0)
		ret = make_port(device, name, &arguments);
	free(arguments.frames);
	return ret;
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
