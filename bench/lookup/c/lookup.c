/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of ../src/loops.rs in C, over the same tables, found by their names. Each does the same work in batches of
 * the same size and returns the same sum of what it found.
 */
#include <stddef.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_hash.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#define BATCH 64
#define PACKETS 32
#define MISSED 0x00ffffffu

uint64_t bench_lpm(const char *name, const uint32_t *addresses, size_t n, uint64_t rounds);
uint64_t bench_lpm_x4(const char *name, const uint32_t *addresses, size_t n, uint64_t rounds);
uint64_t bench_hash(const char *name, const uint32_t (*keys)[4], size_t n, uint64_t rounds);
uint64_t bench_acl(const char *name, const uint8_t (*headers)[64], size_t n, uint64_t rounds);
uint64_t bench_pool(const char *name, uint64_t rounds);
uint64_t bench_ring(const char *name, struct rte_mbuf **packets, uint64_t rounds);
uint64_t bench_ring_single(const char *name, struct rte_mbuf **packets, uint64_t rounds);

static inline uint64_t sum_of(const uint32_t found[BATCH])
{
	uint32_t sum = 0;

	for (int i = 0; i < BATCH; i++)
		sum += found[i];
	return sum;
}

uint64_t bench_lpm(const char *name, const uint32_t *addresses, size_t n, uint64_t rounds)
{
	const struct rte_lpm *lpm = rte_lpm_find_existing(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		for (size_t i = 0; i < n; i += BATCH) {
			uint32_t hops[BATCH];

			rte_lpm_lookup_bulk(lpm, addresses + i, hops, BATCH);
			for (int j = 0; j < BATCH; j++)
				hops[j] = hops[j] & RTE_LPM_LOOKUP_SUCCESS ? hops[j] & 0x00ffffff : MISSED;
			sum += sum_of(hops);
			rte_compiler_barrier();
		}
	}
	return sum;
}

uint64_t bench_lpm_x4(const char *name, const uint32_t *addresses, size_t n, uint64_t rounds)
{
	const struct rte_lpm *lpm = rte_lpm_find_existing(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		for (size_t i = 0; i < n; i += BATCH) {
			uint32_t hops[BATCH];

			for (int j = 0; j < BATCH; j += 4) {
				xmm_t four;

				memcpy(&four, addresses + i + j, sizeof(four));
				rte_lpm_lookupx4(lpm, four, hops + j, MISSED);
			}
			sum += sum_of(hops);
			rte_compiler_barrier();
		}
	}
	return sum;
}

uint64_t bench_hash(const char *name, const uint32_t (*keys)[4], size_t n, uint64_t rounds)
{
	const struct rte_hash *table = rte_hash_find_existing(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		for (size_t i = 0; i < n; i += BATCH) {
			const void *batch[BATCH];
			void *found[BATCH];
			uint32_t values[BATCH];
			uint64_t hits = 0;

			for (int j = 0; j < BATCH; j++)
				batch[j] = keys[i + j];
			rte_hash_lookup_bulk_data(table, batch, BATCH, &hits, found);
			for (int j = 0; j < BATCH; j++)
				values[j] = hits >> j & 1 ? (uint32_t)(uintptr_t)found[j] : MISSED;
			sum += sum_of(values);
			rte_compiler_barrier();
		}
	}
	return sum;
}

uint64_t bench_acl(const char *name, const uint8_t (*headers)[64], size_t n, uint64_t rounds)
{
	const struct rte_acl_ctx *acl = rte_acl_find_existing(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		for (size_t i = 0; i < n; i += BATCH) {
			const uint8_t *batch[BATCH];
			uint32_t verdicts[BATCH];

			for (int j = 0; j < BATCH; j++)
				batch[j] = headers[i + j];
			rte_acl_classify(acl, batch, verdicts, BATCH, 1);
			sum += sum_of(verdicts);
			rte_compiler_barrier();
		}
	}
	return sum;
}

uint64_t bench_pool(const char *name, uint64_t rounds)
{
	struct rte_mempool *pool = rte_mempool_lookup(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		struct rte_mbuf *packets[PACKETS];

		if (rte_pktmbuf_alloc_bulk(pool, packets, PACKETS) == 0) {
			sum += PACKETS;
			rte_pktmbuf_free_bulk(packets, PACKETS);
		}
		rte_compiler_barrier();
	}
	return sum;
}

uint64_t bench_ring(const char *name, struct rte_mbuf **packets, uint64_t rounds)
{
	struct rte_ring *ring = rte_ring_lookup(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		sum += rte_ring_mp_enqueue_burst(ring, (void **)packets, PACKETS, NULL);
		sum += rte_ring_mc_dequeue_burst(ring, (void **)packets, PACKETS, NULL);
		rte_compiler_barrier();
	}
	return sum;
}

uint64_t bench_ring_single(const char *name, struct rte_mbuf **packets, uint64_t rounds)
{
	struct rte_ring *ring = rte_ring_lookup(name);
	uint64_t sum = 0;

	while (rounds-- > 0) {
		sum += rte_ring_sp_enqueue_burst(ring, (void **)packets, PACKETS, NULL);
		sum += rte_ring_sc_dequeue_burst(ring, (void **)packets, PACKETS, NULL);
		rte_compiler_barrier();
	}
	return sum;
}
