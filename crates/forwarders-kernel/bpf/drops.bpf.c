// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Counts frames that drivers refuse after a program has given them to one: only tracepoints report them. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "lane.h"

struct bpf_prog;

/* The fields that are read; their offsets come from the kernel's BTF when this is loaded. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

/* The network namespace, by its inode number: interfaces in other namespaces have the same indices. */
volatile const __u32 namespace;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} port_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u64);
} port_drops SEC(".maps");

static __always_inline void count(__u32 port, __u64 frames)
{
	__u64 *drops = bpf_map_lookup_elem(&port_drops, &port);

	if (drops)
		*drops += frames;
}

static __always_inline __u32 *port_number(const struct net_device *dev)
{
	__u32 interface = dev->ifindex;

	if (dev->nd_net.net->ns.inum != namespace)
		return NULL;
	return bpf_map_lookup_elem(&port_of, &interface);
}

static __always_inline int count_for(const struct net_device *dev, int frames)
{
	__u32 *port = frames > 0 ? port_number(dev) : NULL;

	if (port)
		count(*port, frames);
	return 0;
}

/* XDP_TX: frames that did not fit into the interface's queue. */
SEC("tp_btf/xdp_bulk_tx")
int BPF_PROG(bulk_tx, const struct net_device *dev, int sent, int drops, int err)
{
	return count_for(dev, drops);
}

/* XDP_REDIRECT: the same at the other interface. */
SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(devmap_xmit, const struct net_device *from, const struct net_device *to, int sent,
	     int drops, int err)
{
	return count_for(to, drops);
}

/* XDP_REDIRECT: refused before it reached the other interface (which is down, or the frame is too long). */
SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(redirect_err, const struct net_device *dev, const struct bpf_prog *program,
	     const void *target, int err, int map_type, __u32 map, __u32 index)
{
	if (map_type == BPF_MAP_TYPE_DEVMAP && port_number(dev))
		count(index, 1);
	return 0;
}

/* The driver does not support the program's action. */
SEC("tp_btf/xdp_exception")
int BPF_PROG(exception, const struct net_device *dev, const struct bpf_prog *program, __u32 action)
{
	return action == XDP_TX || action == XDP_REDIRECT ? count_for(dev, 1) : 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
