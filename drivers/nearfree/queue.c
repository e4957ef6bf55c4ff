/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_malloc.h>

#include "say.h"

/* A sender may be some bursts ahead of the receiver. */
#define MIN_SLOTS 512u

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

uint16_t queue_receive(void *raw, struct rte_mbuf **pkts, uint16_t n)
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

uint16_t queue_transmit(void *raw, struct rte_mbuf **pkts, uint16_t n)
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

uint16_t queue_receive_frames(void *raw, struct rte_mbuf **pkts, uint16_t n)
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

uint16_t queue_transmit_frames(void *raw, struct rte_mbuf **pkts, uint16_t n)
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

void queue_empty(struct queue *queue)
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

int queue_fill(struct queue *queue, uint32_t packets)
{
	const uint32_t slots = rte_align32pow2(RTE_MAX(2 * packets, MIN_SLOTS));

	queue->next = 0;
	queue->slots = rte_zmalloc(DRIVER, slots * sizeof(*queue->slots), RTE_CACHE_LINE_SIZE);
	if (queue->slots == NULL)
		return -ENOMEM;
	queue->mask = slots - 1;
	queue->limit = slots;
	if (fresh(queue, queue->slots, packets) == 0)
		return -ENOMEM;
	queue->tail = packets;
	return 0;
}
