/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of ../src/packets.rs in C: over packets of the same pool with the same bytes. Each returns the same sum.
 */
#include <stdbool.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#define PACKETS 32
#define FRAME 60
#define ETHER sizeof(struct rte_ether_hdr)
#define IPV4 sizeof(struct rte_ipv4_hdr)
#define HEADERS (ETHER + IPV4 + 4)

uint64_t bench_header(const char *name, uint64_t rounds);
uint64_t bench_prepend_adj(const char *name, uint64_t rounds);
uint64_t bench_append_trim(const char *name, uint64_t rounds);
uint64_t bench_checksum(const char *name, uint64_t rounds);
uint64_t bench_ipip(const char *name, uint64_t rounds);

static const uint8_t header[HEADERS] = {
	2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, /* Ethernet */
	0x45, 0, 0, 46, 0, 7, 0x40, 0, 64, 17, 0x23, 0x45, 192, 0, 2, 1, 198, 51, 100, 1, /* IPv4 */
	0x30, 0x39, 0, 53, /* ports */
};
static const uint8_t tag[4] = {0x81, 0, 0, 7};
static const struct rte_ether_addr to = {{2, 0, 0, 0, 1, 1}}, from = {{2, 0, 0, 0, 1, 2}};

static bool make(const char *name, struct rte_mbuf *packets[PACKETS])
{
	struct rte_mempool *pool = rte_mempool_lookup(name);

	if (pool == NULL || rte_pktmbuf_alloc_bulk(pool, packets, PACKETS) != 0)
		return false;
	for (int i = 0; i < PACKETS; i++) {
		char *bytes = rte_pktmbuf_append(packets[i], FRAME);

		memset(bytes, 0, FRAME);
		memcpy(bytes, header, HEADERS);
	}
	return true;
}

/* Applies `operation` to each packet, `rounds` times, and returns the sum of its results. */
#define EACH(name, rounds, operation)                                             \
	do {                                                                      \
		struct rte_mbuf *packets[PACKETS];                                \
		uint64_t sum = 0;                                                 \
                                                                                  \
		if (!make(name, packets))                                         \
			return 0;                                                 \
		for (uint64_t round = 0; round < (rounds); round++) {             \
			for (int i = 0; i < PACKETS; i++)                         \
				sum += operation(packets[i]);                     \
			rte_compiler_barrier();                                   \
		}                                                                 \
		rte_pktmbuf_free_bulk(packets, PACKETS);                          \
		return sum;                                                       \
	} while (0)

static inline uint32_t one_header(const struct rte_mbuf *m)
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, ETHER);

	if (rte_pktmbuf_data_len(m) < HEADERS)
		return 0;
	return rte_be_to_cpu_32(ip->src_addr);
}

uint64_t bench_header(const char *name, uint64_t rounds) { EACH(name, rounds, one_header); }

static inline uint32_t one_prepend_adj(struct rte_mbuf *m)
{
	char *bytes = rte_pktmbuf_prepend(m, sizeof(tag));
	uint32_t len;

	if (bytes == NULL)
		return 0;
	memcpy(bytes, tag, sizeof(tag));
	len = rte_pktmbuf_pkt_len(m);
	return rte_pktmbuf_adj(m, sizeof(tag)) == NULL ? 0 : len;
}

uint64_t bench_prepend_adj(const char *name, uint64_t rounds) { EACH(name, rounds, one_prepend_adj); }

static inline uint32_t one_append_trim(struct rte_mbuf *m)
{
	char *bytes = rte_pktmbuf_append(m, sizeof(tag));
	uint32_t len;

	if (bytes == NULL)
		return 0;
	memcpy(bytes, tag, sizeof(tag));
	len = rte_pktmbuf_pkt_len(m);
	return rte_pktmbuf_trim(m, sizeof(tag)) != 0 ? 0 : len;
}

uint64_t bench_append_trim(const char *name, uint64_t rounds) { EACH(name, rounds, one_append_trim); }

static inline uint16_t one_checksum(const struct rte_mbuf *m)
{
	if (rte_pktmbuf_data_len(m) < HEADERS)
		return 0;
	return rte_be_to_cpu_16((uint16_t)~rte_raw_cksum(rte_pktmbuf_mtod_offset(m, const void *, ETHER), IPV4));
}

uint64_t bench_checksum(const char *name, uint64_t rounds) { EACH(name, rounds, one_checksum); }

static inline void set_ether(struct rte_ether_hdr *ether)
{
	ether->dst_addr = to;
	ether->src_addr = from;
	ether->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
}

static inline uint16_t one_ipip(struct rte_mbuf *m)
{
	const struct rte_ipv4_hdr *inner = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, ETHER);
	struct rte_ether_hdr *ether;
	struct rte_ipv4_hdr *ip;
	uint16_t len, sum;

	if (rte_pktmbuf_data_len(m) < ETHER + IPV4)
		return 0;
	len = rte_be_to_cpu_16(inner->total_length) + IPV4;
	ether = (struct rte_ether_hdr *)rte_pktmbuf_prepend(m, IPV4);
	if (ether == NULL)
		return 0;
	set_ether(ether);
	ip = (struct rte_ipv4_hdr *)(ether + 1);
	*ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16(len),
		.fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_IPIP,
		.src_addr = rte_cpu_to_be_32(RTE_IPV4(10, 9, 0, 1)),
		.dst_addr = rte_cpu_to_be_32(RTE_IPV4(10, 0, 0, 1)),
	};
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	sum = rte_be_to_cpu_16(ip->hdr_checksum);
	ether = (struct rte_ether_hdr *)rte_pktmbuf_adj(m, IPV4);
	if (ether == NULL)
		return 0;
	set_ether(ether);
	return sum;
}

uint64_t bench_ipip(const char *name, uint64_t rounds) { EACH(name, rounds, one_ipip); }
