/* SPDX-License-Identifier: BSD-3-Clause */
#include "headers.h"

#include <string.h>

#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_net.h>

#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define PORTS_BYTES 4
#define UDP_HEADER 8
#define UDP_CHECKSUM 6
#define TCP_HEADER 20
#define NOT_A_CHECKSUM 0xffff

static uint16_t be16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

/* Whether numbers of 16 bits add up to a right checksum (RFC 1071). */
static enum checksum judged(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == NOT_A_CHECKSUM ? CHECKSUM_GOOD : CHECKSUM_BAD;
}

/* UDP or TCP of `bytes`, whose pseudo header has these addresses. */
static void transport(struct headers *found, uint8_t protocol, const uint8_t *at, uint32_t bytes)
{
	const uint32_t least = protocol == IPPROTO_UDP ? UDP_HEADER : TCP_HEADER;
	const uint8_t addresses = found->tuple_bytes;

	if (bytes < least) {
		found->lengths = false;
		return;
	}
	memcpy(found->tuple + addresses, at, PORTS_BYTES);
	found->tuple_bytes += PORTS_BYTES;
	if (protocol == IPPROTO_UDP) {
		if (be16(at + 4) < UDP_HEADER || be16(at + 4) > bytes) {
			found->lengths = false;
			return;
		}
		bytes = be16(at + 4);
		/* Zero: there is none (RFC 768); IPv6 must have one (RFC 8200, 8.1). */
		if (be16(at + UDP_CHECKSUM) == 0) {
			found->payload = found->ip == 4 ? CHECKSUM_NONE : CHECKSUM_BAD;
			return;
		}
	}
	found->payload = judged(rte_raw_cksum(found->tuple, addresses) + rte_raw_cksum(at, bytes) +
				rte_cpu_to_be_16(bytes) + rte_cpu_to_be_16(protocol));
}

static void ipv4(struct headers *found, const uint8_t *at, uint32_t bytes)
{
	const uint32_t header = (at[0] & 0xf) * 4u, total = be16(at + 2);
	/* More fragments, or not the first one. */
	const bool fragment = be16(at + 6) & 0x3fff;
	const uint8_t protocol = at[9];

	found->ip = 4;
	found->ttl = at[8];
	memcpy(found->tuple, at + 12, 8);
	found->tuple_bytes = 8;
	found->lengths = header >= IPV4_HEADER && total >= header && total <= bytes;
	if (!found->lengths)
		return;
	found->header = judged(rte_raw_cksum(at, header));
	if (!fragment && (protocol == IPPROTO_UDP || protocol == IPPROTO_TCP))
		transport(found, protocol, at + header, total - header);
}

static void ipv6(struct headers *found, const uint8_t *at, uint32_t bytes)
{
	const uint32_t payload = be16(at + 4);
	const uint8_t protocol = at[6];

	found->ip = 6;
	found->ttl = at[7];
	memcpy(found->tuple, at + 8, 32);
	found->tuple_bytes = 32;
	found->lengths = payload <= bytes - IPV6_HEADER;
	if (found->lengths && (protocol == IPPROTO_UDP || protocol == IPPROTO_TCP))
		transport(found, protocol, at + IPV6_HEADER, payload);
}

void headers_read(const uint8_t *frame, uint32_t length, struct headers *found)
{
	struct rte_mbuf packet = {
		.buf_addr = (void *)(uintptr_t)frame, .nb_segs = 1, .pkt_len = length, .data_len = length};
	struct rte_net_hdr_lens lengths = {0};
	uint32_t bytes;

	*found = (struct headers){.packet_type = rte_net_get_ptype(&packet, &lengths, RTE_PTYPE_ALL_MASK)};
	if (lengths.l2_len >= length)
		return;
	bytes = length - lengths.l2_len;
	if (RTE_ETH_IS_IPV4_HDR(found->packet_type) && bytes >= IPV4_HEADER)
		ipv4(found, frame + lengths.l2_len, bytes);
	else if (RTE_ETH_IS_IPV6_HDR(found->packet_type) && bytes >= IPV6_HEADER)
		ipv6(found, frame + lengths.l2_len, bytes);
}
