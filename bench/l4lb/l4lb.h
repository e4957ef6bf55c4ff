/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet path of apps/l4lb in C, as DPDK's guides advise: rte_hash for connections, rte_acl for the rules, bursts of
 * 32, prefetches. Same configuration, same packets out.
 */
#ifndef L4LB_H
#define L4LB_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_acl.h>
#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_mbuf.h>

enum {
	MOST_VIPS = 1024,
	MOST_BACKENDS = 1 << 16,
	MOST_RULES = 1024,
	PLACES = 1021,
	MOST_HEADERS = 72,
	L3 = RTE_ETHER_HDR_LEN,
	NOBODY = -1,
	EMPTY = -2,
};

/* An address of either version; IPv4 in the first four bytes. */
struct address {
	bool v6;
	uint8_t bytes[16];
};

enum mode { IPIP, GRE, VXLAN, NAT };

struct rule {
	struct address source;
	uint8_t prefix_len;
	int protocol; /* or -1 */
	uint16_t low, high;
};

struct to {
	struct address address;
	struct rte_ether_addr mac;
	uint16_t port; /* 0: none of its own */
};

struct vip_config {
	char name[64];
	uint8_t protocol;
	struct address address;
	uint16_t port;
	enum mode mode;
	uint32_t vni;
	struct to *to;
	uint32_t count;
};

struct config {
	struct address local4, local6;
	struct rte_ether_addr gateway;
	uint32_t idle_s;
	uint16_t mtu;
	struct rule rules[MOST_RULES];
	uint32_t rule_count;
	struct vip_config *vips;
	uint32_t vip_count;
};

/* Reads a file; NULL after a message if it is wrong. */
struct config *config_read(const char *file);
void config_free(struct config *config);

/* Both ends of a flow, as they are in its packets. */
struct flow4 {
	uint8_t source[4], destination[4], source_port[2], destination_port[2], protocol, zero[3];
};
struct flow6 {
	uint8_t source[16], destination[16], source_port[2], destination_port[2], protocol, zero[3];
};

/* How a packet gets to a backend, or an answer to its client. */
struct way {
	enum { TUNNEL4, TUNNEL6, NAT4, NAT6 } kind;
	/* Tunnels: Ethernet's and the outer headers, with lengths and checksum 0. */
	uint8_t headers[MOST_HEADERS];
	uint8_t len;
	bool udp;  /* the whole frame goes behind UDP */
	uint32_t sum; /* of the IPv4 header */
	/* NAT. */
	struct rte_ether_addr destination, own;
	bool answers; /* the source becomes another; otherwise the destination */
	uint8_t address[16];
	uint16_t port;
};

struct backend {
	bool here;
	uint16_t vip;
	struct way way;
};

void way_to(struct way *way, const struct vip_config *vip, const struct to *to, const struct config *config,
	    const struct rte_ether_addr *own);
void way_back(struct way *way, const struct vip_config *vip, const struct config *config,
	      const struct rte_ether_addr *own);

enum drop { OTHER, DENIED, NO_VIP, NO_BACKEND, TOO_BIG, FAILED, UNSENT, RECEIVED, FULL, FORGOTTEN, COUNTERS };

/* What is exchanged as a whole when the configuration is read again. */
struct tables {
	struct rte_acl_ctx *deny4, *deny6; /* NULL without rules */
	uint16_t mtu;
	uint32_t idle;
	struct backend *backends;
	uint32_t backend_count;
	struct rte_hash *vips, *answers;
	struct vip {
		uint16_t *places;
		uint32_t len; /* 0 without backends */
		uint32_t *backends;
	} *vip;
	uint32_t vip_count;
};

struct tables *tables_new(const struct config *config, const struct rte_ether_addr *own);
void tables_free(struct tables *tables);

uint64_t maglev_hash(const void *bytes, uint32_t len);

/* The number of a backend for a new flow, NOBODY or EMPTY. */
int32_t tables_destination(const struct tables *tables, bool v6, const void *flow, uint64_t hash);

#endif
