/* SPDX-License-Identifier: BSD-3-Clause */
/* Every worker. */
#include <rte_graph_worker.h>
#include <rte_memcpy.h>

#include "bench.h"

#define SWAP 0
#define COPY 1
#define ASSIGN 2
#define SPECULATE 3
#define NOTHING 0
#define LINE 1
#define HASH5 2

static __rte_always_inline uint64_t fold(uint64_t a, uint64_t b)
{
	const unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of addresses and ports: two multiplications, folded. */
static __rte_always_inline uint32_t hash5(const struct packet *p, uint64_t seed)
{
	const uint64_t half = fold(p->addresses ^ 0xa0761d6478bd642fULL, p->ports ^ seed);

	return (uint32_t)fold(half, 0xe7037ed1a0b428dbULL);
}

#define NAME swap1_nothing
#define WAY SWAP
#define SOME 1
#define WORK NOTHING
#include "worker.h"

#define NAME swap1_line
#define WAY SWAP
#define SOME 1
#define WORK LINE
#include "worker.h"

#define NAME swap1_hash5
#define WAY SWAP
#define SOME 1
#define WORK HASH5
#include "worker.h"

#define NAME copy1_nothing
#define WAY COPY
#define SOME 1
#define WORK NOTHING
#include "worker.h"

#define NAME copy1_line
#define WAY COPY
#define SOME 1
#define WORK LINE
#include "worker.h"

#define NAME copy1_hash5
#define WAY COPY
#define SOME 1
#define WORK HASH5
#include "worker.h"

#define NAME copy4_nothing
#define WAY COPY
#define SOME 4
#define WORK NOTHING
#include "worker.h"

#define NAME copy4_line
#define WAY COPY
#define SOME 4
#define WORK LINE
#include "worker.h"

#define NAME copy4_hash5
#define WAY COPY
#define SOME 4
#define WORK HASH5
#include "worker.h"

#define NAME copy8_nothing
#define WAY COPY
#define SOME 8
#define WORK NOTHING
#include "worker.h"

#define NAME copy8_line
#define WAY COPY
#define SOME 8
#define WORK LINE
#include "worker.h"

#define NAME copy8_hash5
#define WAY COPY
#define SOME 8
#define WORK HASH5
#include "worker.h"

#define NAME copy16_nothing
#define WAY COPY
#define SOME 16
#define WORK NOTHING
#include "worker.h"

#define NAME copy16_line
#define WAY COPY
#define SOME 16
#define WORK LINE
#include "worker.h"

#define NAME copy16_hash5
#define WAY COPY
#define SOME 16
#define WORK HASH5
#include "worker.h"

#define NAME copy32_nothing
#define WAY COPY
#define SOME 32
#define WORK NOTHING
#include "worker.h"

#define NAME copy32_line
#define WAY COPY
#define SOME 32
#define WORK LINE
#include "worker.h"

#define NAME copy32_hash5
#define WAY COPY
#define SOME 32
#define WORK HASH5
#include "worker.h"

#define NAME copy64_nothing
#define WAY COPY
#define SOME 64
#define WORK NOTHING
#include "worker.h"

#define NAME copy64_line
#define WAY COPY
#define SOME 64
#define WORK LINE
#include "worker.h"

#define NAME copy64_hash5
#define WAY COPY
#define SOME 64
#define WORK HASH5
#include "worker.h"

#define NAME copy128_nothing
#define WAY COPY
#define SOME 128
#define WORK NOTHING
#include "worker.h"

#define NAME copy128_line
#define WAY COPY
#define SOME 128
#define WORK LINE
#include "worker.h"

#define NAME copy128_hash5
#define WAY COPY
#define SOME 128
#define WORK HASH5
#include "worker.h"

#define NAME copy256_nothing
#define WAY COPY
#define SOME 256
#define WORK NOTHING
#include "worker.h"

#define NAME copy256_line
#define WAY COPY
#define SOME 256
#define WORK LINE
#include "worker.h"

#define NAME copy256_hash5
#define WAY COPY
#define SOME 256
#define WORK HASH5
#include "worker.h"

#define NAME assign1_nothing
#define WAY ASSIGN
#define SOME 1
#define WORK NOTHING
#include "worker.h"

#define NAME assign1_line
#define WAY ASSIGN
#define SOME 1
#define WORK LINE
#include "worker.h"

#define NAME assign1_hash5
#define WAY ASSIGN
#define SOME 1
#define WORK HASH5
#include "worker.h"

#define NAME assign2_nothing
#define WAY ASSIGN
#define SOME 2
#define WORK NOTHING
#include "worker.h"

#define NAME assign2_line
#define WAY ASSIGN
#define SOME 2
#define WORK LINE
#include "worker.h"

#define NAME assign2_hash5
#define WAY ASSIGN
#define SOME 2
#define WORK HASH5
#include "worker.h"

#define NAME assign4_nothing
#define WAY ASSIGN
#define SOME 4
#define WORK NOTHING
#include "worker.h"

#define NAME assign4_line
#define WAY ASSIGN
#define SOME 4
#define WORK LINE
#include "worker.h"

#define NAME assign4_hash5
#define WAY ASSIGN
#define SOME 4
#define WORK HASH5
#include "worker.h"

#define NAME speculate1_nothing
#define WAY SPECULATE
#define SOME 1
#define WORK NOTHING
#include "worker.h"

#define NAME speculate1_line
#define WAY SPECULATE
#define SOME 1
#define WORK LINE
#include "worker.h"

#define NAME speculate1_hash5
#define WAY SPECULATE
#define SOME 1
#define WORK HASH5
#include "worker.h"

const rte_node_process_t bench_workers[WAYS_TO_PASS][KINDS_OF_WORK][2] = {
	{
		{swap1_nothing_one, swap1_nothing_split},
		{swap1_line_one, swap1_line_split},
		{swap1_hash5_one, swap1_hash5_split},
	},
	{
		{copy1_nothing_one, copy1_nothing_split},
		{copy1_line_one, copy1_line_split},
		{copy1_hash5_one, copy1_hash5_split},
	},
	{
		{copy4_nothing_one, copy4_nothing_split},
		{copy4_line_one, copy4_line_split},
		{copy4_hash5_one, copy4_hash5_split},
	},
	{
		{copy8_nothing_one, copy8_nothing_split},
		{copy8_line_one, copy8_line_split},
		{copy8_hash5_one, copy8_hash5_split},
	},
	{
		{copy16_nothing_one, copy16_nothing_split},
		{copy16_line_one, copy16_line_split},
		{copy16_hash5_one, copy16_hash5_split},
	},
	{
		{copy32_nothing_one, copy32_nothing_split},
		{copy32_line_one, copy32_line_split},
		{copy32_hash5_one, copy32_hash5_split},
	},
	{
		{copy64_nothing_one, copy64_nothing_split},
		{copy64_line_one, copy64_line_split},
		{copy64_hash5_one, copy64_hash5_split},
	},
	{
		{copy128_nothing_one, copy128_nothing_split},
		{copy128_line_one, copy128_line_split},
		{copy128_hash5_one, copy128_hash5_split},
	},
	{
		{copy256_nothing_one, copy256_nothing_split},
		{copy256_line_one, copy256_line_split},
		{copy256_hash5_one, copy256_hash5_split},
	},
	{
		{assign1_nothing_one, assign1_nothing_split},
		{assign1_line_one, assign1_line_split},
		{assign1_hash5_one, assign1_hash5_split},
	},
	{
		{assign2_nothing_one, assign2_nothing_split},
		{assign2_line_one, assign2_line_split},
		{assign2_hash5_one, assign2_hash5_split},
	},
	{
		{assign4_nothing_one, assign4_nothing_split},
		{assign4_line_one, assign4_line_split},
		{assign4_hash5_one, assign4_hash5_split},
	},
	{
		{speculate1_nothing_one, speculate1_nothing_one},
		{speculate1_line_one, speculate1_line_one},
		{speculate1_hash5_one, speculate1_hash5_one},
	},
};
