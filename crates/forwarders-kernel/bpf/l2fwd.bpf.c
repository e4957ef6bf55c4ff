// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* l2fwd in XDP: back out of the port (tx), to its partner (redirect), or where the kernel's routes say
 * (fib), or on to the kernel (pass). One object is loaded for each port, with its lane as constants; all share the maps. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lane.h"

#define AF_INET 2
#define AF_INET6 10

/* The only variable here, so that it stands at offset 0 of its section. */
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

/* From an interface's number to a port's. */
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

/* Counts a frame that came in; 0 if it is to be dropped. */
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

static __always_inline int send(struct xdp_md *ctx, struct counters *own, __u32 port)
{
	struct counters *out = counters_of(port);
	int action = bpf_redirect_map(&ports, port, XDP_DROP);

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

/* RFC 1624 for a TTL that is one less: the field stands in the high byte of its word. */
static __always_inline void decrease_ttl(struct iphdr *ip)
{
	__u32 check = ip->check;

	check += bpf_htons(0x0100);
	ip->check = (__u16)(check + (check >= 0xffff));
	ip->ttl--;
}

SEC("xdp")
int linerate_fib(struct xdp_md *ctx)
{
	struct counters *own = receive(ctx);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup fib = {};
	struct ethhdr *eth = data;
	struct ipv6hdr *ip6 = NULL;
	struct iphdr *ip = NULL;
	__u32 interface, *port;

	if (!own || (void *)(eth + 1) > end)
		return XDP_DROP;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		ip = (void *)(eth + 1);
		/* Options are the kernel's business. */
		if ((void *)(ip + 1) > end || ip->ihl != 5 || ip->ttl <= 1)
			goto pass;
		fib.family = AF_INET;
		fib.tos = ip->tos;
		fib.l4_protocol = ip->protocol;
		fib.tot_len = bpf_ntohs(ip->tot_len);
		fib.ipv4_src = ip->saddr;
		fib.ipv4_dst = ip->daddr;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		ip6 = (void *)(eth + 1);
		if ((void *)(ip6 + 1) > end || ip6->hop_limit <= 1)
			goto pass;
		fib.family = AF_INET6;
		fib.flowinfo = *(__be32 *)ip6 & bpf_htonl(0x0fffffff);
		fib.l4_protocol = ip6->nexthdr;
		fib.tot_len = bpf_ntohs(ip6->payload_len) + sizeof(*ip6);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, sizeof(fib.ipv6_src));
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, sizeof(fib.ipv6_dst));
	} else {
		goto pass;
	}
	fib.ifindex = ctx->ingress_ifindex;

	switch (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0)) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		interface = fib.ifindex;
		port = bpf_map_lookup_elem(&port_of, &interface);
		if (!port)
			goto pass;
		if (ip)
			decrease_ttl(ip);
		else if (ip6)
			ip6->hop_limit--;
		__builtin_memcpy(eth->h_dest, fib.dmac, ETH_ALEN);
		__builtin_memcpy(eth->h_source, fib.smac, ETH_ALEN);
		return send(ctx, own, *port);
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		own->rx_unroutable++;
		return XDP_DROP;
	default:
		break;
	}
pass:
	/* The kernel forwards it, answers it, or asks for the neighbour. */
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
