// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Sends frames that user space has written, by BPF_PROG_TEST_RUN with BPF_F_TEST_XDP_LIVE_FRAMES, and
 * counts those that the driver has taken. The loader is src/live/. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* As in src/live/call.rs. */
#define MAX_BURST 32
#define MAX_FRAME 3072

struct frame {
	__u32 length;
	__u8 bytes[MAX_FRAME];
};

/* One call: what user space wants, then what came of it. */
struct call {
	__u32 count;		/* frames to send */
	__u32 interface;	/* by which */
	__u32 next;		/* the frame that the next run sends */
	__u32 refused;		/* whether one was; those behind it are not sent, so that order stays */
	__u32 sent;		/* frames that the driver took */
	__s32 error;		/* why it refused */
	__u32 cpu;		/* where it runs, from 1 on */
	struct frame frames[MAX_BURST];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

struct bpf_prog;

struct net_device {
	int ifindex;
} __attribute__((preserve_access_index));

static __always_inline struct call *the_call(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&calls, &zero);
}

/* XDP_TX of a live frame leaves by the interface that the call names as the one it came from. */
SEC("xdp")
int send(struct xdp_md *ctx)
{
	struct call *call = the_call();
	struct frame *frame;
	__u32 length, have;

	if (!call || call->refused || call->next >= call->count || call->next >= MAX_BURST)
		return XDP_DROP;
	call->cpu = bpf_get_smp_processor_id() + 1;
	frame = &call->frames[call->next & (MAX_BURST - 1)];
	call->next++;
	length = frame->length;
	have = ctx->data_end - ctx->data;
	if (length < 14 || length > MAX_FRAME || length > have)
		goto refuse;
	if (length < have && bpf_xdp_adjust_tail(ctx, (int)length - (int)have))
		goto refuse;
	if (bpf_xdp_store_bytes(ctx, 0, frame->bytes, length))
		goto refuse;
	return XDP_TX;
refuse:
	call->refused = 1;
	return XDP_DROP;
}

/* The call, if these devices are its: frames that come from an interface and leave by it are ours alone. */
static __always_inline struct call *call_of(const struct net_device *from)
{
	struct call *call = the_call();

	if (!call || call->cpu != bpf_get_smp_processor_id() + 1)
		return NULL;
	return (__u32)from->ifindex == call->interface ? call : NULL;
}

SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(taken, const struct net_device *from, const struct net_device *to, int sent, int drops,
	     int err)
{
	struct call *call = call_of(from);

	if (!call || (__u32)to->ifindex != call->interface)
		return 0;
	if (sent > 0)
		call->sent += sent;
	if (drops > 0) {
		call->refused = 1;
		call->error = err;
	}
	return 0;
}

/* Refused before it came to the driver: the interface is down, or the frame is too long. */
SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(not_taken, const struct net_device *dev, const struct bpf_prog *program,
	     const void *target, int err)
{
	struct call *call = call_of(dev);

	if (call) {
		call->refused = 1;
		call->error = err;
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
