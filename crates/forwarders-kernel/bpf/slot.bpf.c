// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Tests whether the kernel can replace functions by programs, which libxdp's dispatcher needs. Never attached. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__attribute__((noinline)) int slot(struct xdp_md *ctx)
{
	/* So that the compiler neither knows the result nor removes the call. */
	volatile int action = XDP_PASS;

	return ctx ? action : XDP_ABORTED;
}

SEC("xdp")
int dispatch(struct xdp_md *ctx)
{
	return slot(ctx);
}

SEC("freplace/slot")
int replacement(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
