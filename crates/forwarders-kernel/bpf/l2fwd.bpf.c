// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* l2fwd in XDP: sends a frame back out of its port (tx), to the port's partner (redirect), where the kernel would
 * route it (fib), or passes it to the kernel (pass). One object is loaded for each port, with its lane as constants;
 * all share the maps. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lane.h"

#define AF_INET 2
#define AF_INET6 10

/* The only variable here, so that it is at offset 0 of its section. */
volatile const struct lane lane;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct counters);
} port_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAX_PORTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct facts);
} port_facts SEC(".maps");

/* From an interface's index to a port's number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} port_of SEC(".maps");

static __always_inline struct counters *counters_of(__u32 port)
{
	return bpf_map_lookup_elem(&port_counters, &port);
}

static __always_inline __u64 length(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}

/* Counts a received frame; returns 0 if it must be dropped. */
static __always_inline struct counters *receive(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct counters *own = counters_of(lane.rx_port);

	if (!own)
		return NULL;
	own->rx_packets++;
	own->rx_bytes += length(ctx);
	if (data + ETH_HLEN > end) {
		own->rx_runt++;
		return NULL;
	}
	return own;
}

/* Bytes per call of the helper: it takes at most 512, and the verifier checks each step. */
#define CHUNK 256
/* Enough for a packet of the longest MTU in use, 9,000 bytes. */
#define MAX_CHUNKS 36

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* Adds a chunk of the frame, which begins at this offset, to the sum so far. This function and the next are not static,
 * so that the verifier checks them once, and not for each call. */
__noinline int sum_chunk(struct xdp_md *ctx, __u32 at, __u32 sum)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (at > MAX_CHUNKS * CHUNK)
		return 0;
	start += at;
	if (start + CHUNK > end)
		return 0;
	return bpf_csum_diff(NULL, 0, start, CHUNK, sum);
}

/* The same for the last bytes of a packet, fewer than a chunk. */
__noinline int sum_rest(struct xdp_md *ctx, __u32 at, __u32 len, __u32 sum)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 last = 0;

	if (at > (MAX_CHUNKS + 1) * CHUNK)
		return 0;
	start += at;
#pragma unroll
	for (int size = CHUNK / 2; size >= 4; size /= 2) {
		if (!(len & size))
			continue;
		if (start + size > end)
			return 0;
		sum = bpf_csum_diff(NULL, 0, start, size, sum);
		start += size;
	}
	if (len & 2) {
		if (start + 2 > end)
			return 0;
		last = *(__u16 *)start;
		start += 2;
	}
	if (len & 1) {
		if (start + 1 > end)
			return 0;
		last += bpf_htons(*(__u8 *)start << 8);
	}
	return fold((__u64)sum + last);
}

/* Completes a TCP or UDP checksum that the sender left to the interface, as the kernel does on virtual interfaces. A
 * frame that leaves through XDP loses the kernel's mark for this. Its checksum field then has only the sum of the
 * addresses, protocol and length; a correct checksum that happens to equal that sum does not change. Same as
 * src/checksum.rs. */
static __noinline int complete_checksum(struct xdp_md *ctx, struct counters *own)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	__u32 start, len, at;
	__u64 sum = 0;
	__u16 *check;
	__u8 protocol;
	__u32 part;

	if (!own || (void *)(eth + 1) > end)
		return 0;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
			return 0;
		if (ip->frag_off & bpf_htons(0x3fff))
			return 0;
		start = ip->ihl * 4;
		len = bpf_ntohs(ip->tot_len);
		if (len < start)
			return 0;
		len -= start;
		start += ETH_HLEN;
		protocol = ip->protocol;
		sum = (__u64)ip->saddr + ip->daddr;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end || ip->version != 6)
			return 0;
		start = ETH_HLEN + sizeof(*ip);
		len = bpf_ntohs(ip->payload_len);
		protocol = ip->nexthdr;
#pragma unroll
		for (int i = 0; i < 4; i++)
			sum += (__u64)ip->saddr.s6_addr32[i] + ip->daddr.s6_addr32[i];
	} else {
		return 0;
	}
	if (protocol == IPPROTO_TCP)
		at = 16;
	else if (protocol == IPPROTO_UDP)
		at = 6;
	else
		return 0;
	if (len < at + 2)
		return 0;
	sum += bpf_htons(protocol) + bpf_htons(len);
	check = data + start + at;
	if ((void *)(check + 1) > end || *check != fold(sum))
		return 0;
	own->rx_checksum_left++;

	/* A frame that ends before its packet, or whose packet is too long, is not changed. */
	if (length(ctx) < start + len || len > MAX_CHUNKS * CHUNK)
		return 0;
	part = 0;
	for (int i = 0; i < MAX_CHUNKS && len >= CHUNK; i++) {
		part = sum_chunk(ctx, start, part);
		start += CHUNK;
		len -= CHUNK;
	}
	sum = (__u32)sum_rest(ctx, start, len, part);
	sum = (__u16)~fold(sum);
	/* In UDP, 0 means no checksum. */
	if (sum == 0 && protocol == IPPROTO_UDP)
		sum = 0xffff;
	*check = sum;
	own->rx_checksum_completed++;
	return 0;
}

static __always_inline int send(struct xdp_md *ctx, struct counters *own, __u32 port)
{
	struct counters *out = counters_of(port);
	int action;

	if (lane.virtual)
		complete_checksum(ctx, own);
	action = bpf_redirect_map(&ports, port, XDP_DROP);
	if (!out || action != XDP_REDIRECT) {
		own->tx_no_port++;
		return XDP_DROP;
	}
	out->tx_given++;
	out->tx_given_bytes += length(ctx);
	return action;
}

static __always_inline int write_addresses(struct xdp_md *ctx)
{
	__u32 *to = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;

	if (!lane.rewrite)
		return 0;
	if ((void *)(to + 3) > end)
		return -1;
	/* Words, not bytes: a quarter of the loads and stores. */
	to[0] = lane.addresses[0];
	to[1] = lane.addresses[1];
	to[2] = lane.addresses[2];
	return 0;
}

SEC("xdp")
int linerate_tx(struct xdp_md *ctx)
{
	struct counters *own = receive(ctx);

	if (!own || write_addresses(ctx))
		return XDP_DROP;
	if (lane.virtual)
		complete_checksum(ctx, own);
	own->tx_given++;
	own->tx_given_bytes += length(ctx);
	return XDP_TX;
}

SEC("xdp")
int linerate_redirect(struct xdp_md *ctx)
{
	struct counters *own = receive(ctx);

	if (!own || write_addresses(ctx))
		return XDP_DROP;
	return send(ctx, own, lane.tx_port);
}

/* RFC 1624 for a decremented TTL: the field is in the high byte of its word. */
static __always_inline void decrease_ttl(struct iphdr *ip)
{
	__u32 check = ip->check;

	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
}

/* True if a frame has no more padding than Ethernet requires: the kernel removes what follows a packet. */
static __always_inline bool is_whole(struct xdp_md *ctx, __u32 packet)
{
	__u64 frame = length(ctx);

	return frame >= ETH_HLEN + packet && (frame <= ETH_ZLEN || frame == ETH_HLEN + packet);
}

/* The ports of UDP and TCP, which the kernel's rules and hashes may use; a later fragment has none. */
static __always_inline void set_ports(struct bpf_fib_lookup *fib, __be16 *ports, void *end)
{
	if ((fib->l4_protocol == IPPROTO_TCP || fib->l4_protocol == IPPROTO_UDP) &&
	    (void *)(ports + 2) <= end) {
		fib->sport = ports[0];
		fib->dport = ports[1];
	}
}

static __always_inline bool is_multicast_or_more(__be32 address)
{
	return (address & bpf_htonl(0xe0000000)) == bpf_htonl(0xe0000000);
}

static __always_inline bool is_net(__be32 address, __u8 net)
{
	return (address & bpf_htonl(0xff000000)) == bpf_htonl((__u32)net << 24);
}

/* True if the kernel would forward the packet, as far as its header shows (ip_rcv_core and ip_route_input_slow). Rare
 * packets, such as those with options, are left to the kernel. */
static __always_inline bool may_forward4(struct xdp_md *ctx, struct iphdr *ip)
{
	__u16 *words = (__u16 *)ip;
	__u32 sum = 0;

	if (ip->version != 4 || ip->ihl != 5 || ip->ttl <= 1)
		return false;
	if (bpf_ntohs(ip->tot_len) < sizeof(*ip) || !is_whole(ctx, bpf_ntohs(ip->tot_len)))
		return false;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (sum != 0xffff)
		return false;
	/* Martian and multicast addresses. */
	return !is_multicast_or_more(ip->saddr) && !is_net(ip->saddr, 0) && !is_net(ip->saddr, 127) &&
	       !is_multicast_or_more(ip->daddr) && !is_net(ip->daddr, 0) && !is_net(ip->daddr, 127);
}

/* True if the route to the source leads through the interface on which the packet came: neither strict nor loose
 * rp_filter refuses it, and it is no address of this machine. The kernel may accept other sources; it decides. */
static __always_inline bool source_is_there(struct xdp_md *ctx, const struct bpf_fib_lookup *there)
{
	struct bpf_fib_lookup back = {};
	int found;

	back.family = AF_INET;
	back.tos = there->tos;
	back.l4_protocol = there->l4_protocol;
	back.sport = there->dport;
	back.dport = there->sport;
	back.ipv4_src = there->ipv4_dst;
	back.ipv4_dst = there->ipv4_src;
	back.ifindex = ctx->ingress_ifindex;
	found = bpf_fib_lookup(ctx, &back, sizeof(back), 0);
	return (found == BPF_FIB_LKUP_RET_SUCCESS || found == BPF_FIB_LKUP_RET_NO_NEIGH) &&
	       back.ifindex == ctx->ingress_ifindex;
}

/* Global and unique local addresses, and those that embed IPv4 addresses, except IPv4-mapped ones. */
static __always_inline bool is_forwarded6(const struct in6_addr *address)
{
	const __be32 *words = address->s6_addr32;

	if (address->s6_addr[0] == 0xff || (words[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000))
		return false;
	/* ::, ::1, ::ffff:0:0/96 and others of that net */
	return words[0] || words[1];
}

/* Like may_forward4 (ip6_rcv_core and ip6_forward). */
static __always_inline bool may_forward6(struct xdp_md *ctx, struct ipv6hdr *ip,
					 const struct facts *facts)
{
	if (ip->version != 6 || ip->hop_limit <= 1 || !facts->routes_ipv6)
		return false;
	/* Hop-by-hop options (0) are for the kernel. */
	if (ip->nexthdr == 0 || !is_whole(ctx, bpf_ntohs(ip->payload_len) + sizeof(*ip)))
		return false;
	return is_forwarded6(&ip->saddr) && is_forwarded6(&ip->daddr);
}

static __always_inline bool is_ours(const struct ethhdr *eth, const struct facts *facts)
{
	const __u16 *to = (const __u16 *)eth->h_dest, *mac = (const __u16 *)facts->mac;

	return to[0] == mac[0] && to[1] == mac[1] && to[2] == mac[2];
}

SEC("xdp")
int linerate_fib(struct xdp_md *ctx)
{
	struct counters *own = receive(ctx);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 interface, *port, key = lane.rx_port;
	struct bpf_fib_lookup fib = {};
	struct ethhdr *eth = data;
	struct ipv6hdr *ip6 = NULL;
	struct iphdr *ip = NULL;
	struct facts *facts;

	if (!own || (void *)(eth + 1) > end)
		return XDP_DROP;
	facts = bpf_map_lookup_elem(&port_facts, &key);
	if (!facts || !is_ours(eth, facts))
		goto pass;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		ip = (void *)(eth + 1);
		if ((void *)(ip + 1) > end || !may_forward4(ctx, ip))
			goto pass;
		fib.family = AF_INET;
		fib.tos = ip->tos;
		fib.l4_protocol = ip->protocol;
		fib.tot_len = bpf_ntohs(ip->tot_len);
		fib.ipv4_src = ip->saddr;
		fib.ipv4_dst = ip->daddr;
		if (!(ip->frag_off & bpf_htons(0x1fff)))
			set_ports(&fib, (__be16 *)(ip + 1), end);
		if (!source_is_there(ctx, &fib))
			goto pass;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		ip6 = (void *)(eth + 1);
		if ((void *)(ip6 + 1) > end || !may_forward6(ctx, ip6, facts))
			goto pass;
		fib.family = AF_INET6;
		fib.flowinfo = *(__be32 *)ip6 & bpf_htonl(0x0fffffff);
		fib.l4_protocol = ip6->nexthdr;
		fib.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, sizeof(fib.ipv6_dst));
		set_ports(&fib, (__be16 *)(ip6 + 1), end);
	} else {
		goto pass;
	}
	fib.ifindex = ctx->ingress_ifindex;

	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		interface = fib.ifindex;
		port = bpf_map_lookup_elem(&port_of, &interface);
		/* If a packet goes back out of its interface, the kernel tells the sender of a better route (ICMP redirect). */
		if (!port || interface == ctx->ingress_ifindex)
			goto pass;
		if (ip)
			decrease_ttl(ip);
		else if (ip6)
			ip6->hop_limit--;
		__builtin_memcpy(eth->h_dest, fib.dmac, ETH_ALEN);
		__builtin_memcpy(eth->h_source, fib.smac, ETH_ALEN);
		return send(ctx, own, *port);
	case BPF_FIB_LKUP_RET_BLACKHOLE:
		own->rx_unroutable++;
		return XDP_DROP;
	default:
		break;
	}
pass:
	/* The kernel forwards it, drops it, answers it, or asks for the neighbour. */
	own->rx_passed++;
	return XDP_PASS;
}

SEC("xdp")
int linerate_pass(struct xdp_md *ctx)
{
	struct counters *own = receive(ctx);

	if (!own)
		return XDP_DROP;
	own->rx_passed++;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
