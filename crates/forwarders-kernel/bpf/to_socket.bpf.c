// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Redirects every frame of a queue with an AF_XDP socket to it; other frames are counted and left to the kernel. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define MAX_QUEUES 64

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, MAX_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unpolled SEC(".maps");

SEC("xdp")
int to_socket(struct xdp_md *ctx)
{
	int action = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	__u32 key = 0;
	__u64 *frames;

	if (action == XDP_REDIRECT)
		return action;
	frames = bpf_map_lookup_elem(&unpolled, &key);
	if (frames)
		*frames += 1;
	return action;
}

char _license[] SEC("license") = "Dual BSD/GPL";
