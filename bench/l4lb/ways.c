/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "l4lb.h"

static void put16(uint8_t *bytes, uint16_t value)
{
	bytes[0] = value >> 8;
	bytes[1] = value;
}

static uint32_t sum_of(const uint8_t *bytes, int len)
{
	uint32_t sum = 0;
	for (int at = 0; at < len; at += 2)
		sum += bytes[at] << 8 | bytes[at + 1];
	return sum;
}

void way_to(struct way *way, const struct vip_config *vip, const struct to *to, const struct config *config,
	    const struct rte_ether_addr *own)
{
	memset(way, 0, sizeof(*way));
	if (vip->mode == NAT) {
		way->kind = vip->address.v6 ? NAT6 : NAT4;
		way->destination = to->mac;
		way->own = *own;
		memcpy(way->address, to->address.bytes, 16);
		way->port = to->port ? to->port : vip->port;
		return;
	}
	uint16_t inner_type = vip->address.v6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4;
	uint8_t protocol = vip->mode == GRE ? IPPROTO_GRE :
			   vip->mode == VXLAN ? IPPROTO_UDP :
			   vip->address.v6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	uint8_t *at = way->headers;
	memcpy(at, &to->mac, 6);
	memcpy(at + 6, own, 6);
	at += 12;
	if (to->address.v6) {
		way->kind = TUNNEL6;
		put16(at, RTE_ETHER_TYPE_IPV6);
		struct rte_ipv6_hdr *ip = (void *)(at + 2);
		ip->vtc_flow = rte_cpu_to_be_32(0x60000000);
		ip->proto = protocol;
		ip->hop_limits = 64;
		memcpy(&ip->src_addr, config->local6.bytes, 16);
		memcpy(&ip->dst_addr, to->address.bytes, 16);
		at = (uint8_t *)(ip + 1);
	} else {
		way->kind = TUNNEL4;
		put16(at, RTE_ETHER_TYPE_IPV4);
		struct rte_ipv4_hdr *ip = (void *)(at + 2);
		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
		ip->time_to_live = 64;
		ip->next_proto_id = protocol;
		memcpy(&ip->src_addr, config->local4.bytes, 4);
		memcpy(&ip->dst_addr, to->address.bytes, 4);
		way->sum = sum_of((uint8_t *)ip, sizeof(*ip));
		at = (uint8_t *)(ip + 1);
	}
	if (vip->mode == GRE) {
		put16(at + 2, inner_type);
		at += 4;
	} else if (vip->mode == VXLAN) {
		put16(at + 2, 4789);
		at[8] = 8;
		at[12] = vip->vni >> 16;
		at[13] = vip->vni >> 8;
		at[14] = vip->vni;
		at += 16;
		way->udp = true;
	}
	way->len = at - way->headers;
}

void way_back(struct way *way, const struct vip_config *vip, const struct config *config,
	      const struct rte_ether_addr *own)
{
	memset(way, 0, sizeof(*way));
	way->kind = vip->address.v6 ? NAT6 : NAT4;
	way->answers = true;
	way->destination = config->gateway;
	way->own = *own;
	memcpy(way->address, vip->address.bytes, 16);
	way->port = vip->port;
}
