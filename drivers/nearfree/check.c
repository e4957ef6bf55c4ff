/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "headers.h"
#include "say.h"

#if RTE_VERSION < RTE_VERSION_NUM(23, 3, 0, 0)
#define rte_tel_data_add_dict_uint rte_tel_data_add_dict_u64
#define rte_tel_data_add_array_uint rte_tel_data_add_array_u64
#define RTE_TEL_UINT_VAL RTE_TEL_U64_VAL
#endif

/* As many as an answer of telemetry holds with room to spare. */
#define FLOWS_AT_ONCE 256
#define LONGEST 16384
/* Of a frame that is shown. */
#define SHOWN_BYTES 128u
#define MAC_BYTES 6

enum count {
	/* Frames that were received, and those that were at least once; that were sent; packets sent by this port that came from none. */
	RECEIVED,
	SEEN,
	SENT,
	MADE,
	/* Of the frames: no byte is another one; the first address is. */
	UNCHANGED,
	NEW_DESTINATION,
	/* Time to live, where it is IP before and after. */
	TTL_KEPT,
	TTL_LESS,
	TTL_OTHER,
	LONGER,
	SHORTER,
	/* Were right and are wrong. */
	WRONG_LENGTH,
	WRONG_HEADER_CHECKSUM,
	WRONG_PAYLOAD_CHECKSUM,
	COUNTS,
};

static const char *const names[COUNTS] = {
	[RECEIVED] = "received",
	[SEEN] = "seen",
	[SENT] = "sent",
	[MADE] = "made",
	[UNCHANGED] = "unchanged",
	[NEW_DESTINATION] = "new_destination",
	[TTL_KEPT] = "ttl_kept",
	[TTL_LESS] = "ttl_less",
	[TTL_OTHER] = "ttl_other",
	[LONGER] = "longer",
	[SHORTER] = "shorter",
	[WRONG_LENGTH] = "wrong_length",
	[WRONG_HEADER_CHECKSUM] = "wrong_header_checksum",
	[WRONG_PAYLOAD_CHECKSUM] = "wrong_payload_checksum",
};

struct check {
	char name[RTE_ETH_NAME_MAX_LEN];
	const struct traffic *traffic;
	uint64_t counts[COUNTS];
	/* Number of the first frame of which this is true, from 1 on. */
	uint32_t first[COUNTS];
	/* By flow: how many packets were sent, and out of which ports, as bits. */
	uint64_t *sent;
	uint64_t *left_by;
	/* By frame. */
	uint8_t *seen;
	/* Which of the ports with a check it is, from 0 on; from the 64th on they share a bit. */
	unsigned int port;
	struct check *next;
};

/* Where a packet that is received came from. */
struct mark {
	struct check *check;
	const struct traffic_frame *frame;
};

static int mark_at = -1;
static struct check *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int register_marks(void)
{
	static const struct rte_mbuf_dynfield field = {
		.name = DRIVER "_frame", .size = sizeof(struct mark), .align = __alignof__(struct mark)};

	if (mark_at < 0)
		mark_at = rte_mbuf_dynfield_register(&field);
	if (mark_at < 0)
		SAY(ERR, "check=1: no room in packets for a mark\n");
	return mark_at < 0 ? -1 : 0;
}

static void drop(struct check *check)
{
	free(check->sent);
	free(check->left_by);
	free(check->seen);
	free(check);
}

struct check *check_begin(const char *port, const struct traffic *traffic)
{
	struct check *check = register_marks() == 0 ? calloc(1, sizeof(*check)) : NULL;

	if (check == NULL)
		return NULL;
	check->sent = calloc(traffic->flows, sizeof(*check->sent));
	check->left_by = calloc(traffic->flows, sizeof(*check->left_by));
	check->seen = calloc(traffic->count, sizeof(*check->seen));
	if (check->sent == NULL || check->left_by == NULL || check->seen == NULL) {
		SAY(ERR, "check=1: no memory for %" PRIu32 " frames\n", traffic->count);
		drop(check);
		return NULL;
	}
	snprintf(check->name, sizeof(check->name), "%s", port);
	check->traffic = traffic;
	pthread_mutex_lock(&lock);
	check->port = all ? RTE_MIN(all->port + 1, 63u) : 0;
	check->next = all;
	all = check;
	pthread_mutex_unlock(&lock);
	return check;
}

void check_end(struct check *check)
{
	struct check **at = &all;

	if (check == NULL)
		return;
	pthread_mutex_lock(&lock);
	while (*at != check)
		at = &(*at)->next;
	*at = check->next;
	pthread_mutex_unlock(&lock);
	drop(check);
}

static struct mark *mark_of(const struct rte_mbuf *packet)
{
	return RTE_MBUF_DYNFIELD(packet, mark_at, struct mark *);
}

/* Several lcores may send what came from one port. */
static void note(struct check *check, const struct traffic_frame *frame, enum count what)
{
	uint32_t none = 0;

	if (frame != NULL)
		__atomic_compare_exchange_n(&check->first[what], &none, frame - check->traffic->frames + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_fetch_add(&check->counts[what], 1, __ATOMIC_RELEASE);
}

void check_mark(struct check *check, struct rte_mbuf *packet, const struct traffic_frame *frame)
{
	uint8_t *seen = &check->seen[frame - check->traffic->frames];

	*mark_of(packet) = (struct mark){check, frame};
	note(check, NULL, RECEIVED);
	/* A frame comes to one queue. */
	if (!*seen) {
		*seen = 1;
		note(check, NULL, SEEN);
	}
}

/*
 * Takes the mark off a packet, of whichever part has one: a program may put a header in front. A packet that the program
 * drops and takes from the pool again, to fill it itself, has the mark of then.
 */
static struct mark unmark(struct rte_mbuf *packet)
{
	struct mark found = {0};

	for (struct rte_mbuf *part = packet; part != NULL; part = part->next) {
		if (mark_of(part)->check != NULL && found.check == NULL)
			found = *mark_of(part);
		*mark_of(part) = (struct mark){0};
	}
	return found;
}

/* Whether lengths of the packet's parts add up. */
static bool whole(const struct rte_mbuf *packet)
{
	uint64_t length = 0;
	uint32_t parts = 0;

	for (const struct rte_mbuf *part = packet; part != NULL; part = part->next, parts++)
		length += part->data_len;
	return length == packet->pkt_len && parts == packet->nb_segs && length <= LONGEST;
}

static void compare(struct check *check, const struct traffic_frame *frame, const struct rte_mbuf *packet)
{
	static __thread uint8_t copy[LONGEST + TRAFFIC_BLOCK];
	const uint8_t *bytes = rte_pktmbuf_read(packet, 0, packet->pkt_len, copy);
	const uint32_t length = packet->pkt_len;
	struct headers before, after;

	/* What is read past the end is in no figure, but must be there. */
	if (bytes != copy)
		memcpy(copy, bytes, length);
	headers_read(frame->bytes, frame->length, &before);
	headers_read(copy, length, &after);
	if (length == frame->length && memcmp(copy, frame->bytes, length) == 0)
		note(check, frame, UNCHANGED);
	if (length < MAC_BYTES || memcmp(copy, frame->bytes, MAC_BYTES) != 0)
		note(check, frame, NEW_DESTINATION);
	if (length != frame->length)
		note(check, frame, length > frame->length ? LONGER : SHORTER);
	if (before.ip != 0 && after.ip != 0)
		note(check, frame,
		     after.ttl == before.ttl	   ? TTL_KEPT
		     : after.ttl == before.ttl - 1 ? TTL_LESS
						   : TTL_OTHER);
	if ((before.lengths || before.ip == 0) && after.ip != 0 && !after.lengths)
		note(check, frame, WRONG_LENGTH);
	if (before.header != CHECKSUM_BAD && after.header == CHECKSUM_BAD &&
	    !(packet->ol_flags & RTE_MBUF_F_TX_IP_CKSUM))
		note(check, frame, WRONG_HEADER_CHECKSUM);
	if (before.payload != CHECKSUM_BAD && after.payload == CHECKSUM_BAD &&
	    !(packet->ol_flags & RTE_MBUF_F_TX_L4_MASK))
		note(check, frame, WRONG_PAYLOAD_CHECKSUM);
}

void check_packet(struct check *check, struct rte_mbuf *packet)
{
	const struct mark mark = unmark(packet);

	if (mark.check == NULL) {
		note(check, NULL, MADE);
		return;
	}
	note(mark.check, mark.frame, SENT);
	__atomic_fetch_add(&mark.check->sent[mark.frame->flow], 1, __ATOMIC_RELAXED);
	__atomic_fetch_or(&mark.check->left_by[mark.frame->flow], UINT64_C(1) << check->port, __ATOMIC_RELAXED);
	if (whole(packet))
		compare(mark.check, mark.frame, packet);
	else
		note(mark.check, mark.frame, WRONG_LENGTH);
}

/* The check of the port that `text` begins with, and the number behind its comma; under the lock. */
static const struct check *asked(const char *text, uint32_t *number)
{
	const size_t length = text ? strcspn(text, ",") : 0;

	*number = text && text[length] == ',' ? strtoul(text + length + 1, NULL, 10) : 0;
	for (const struct check *check = all; check != NULL; check = check->next)
		if (text != NULL && strlen(check->name) == length && strncmp(check->name, text, length) == 0)
			return check;
	return NULL;
}

static int tell_figures(const struct check *check, uint32_t number, struct rte_tel_data *answer)
{
	char name[64];

	RTE_SET_USED(number);
	rte_tel_data_start_dict(answer);
	rte_tel_data_add_dict_uint(answer, "frames", check->traffic->count);
	rte_tel_data_add_dict_uint(answer, "flows", check->traffic->flows);
	for (unsigned int i = 0; i < COUNTS; i++) {
		rte_tel_data_add_dict_uint(answer, names[i], __atomic_load_n(&check->counts[i], __ATOMIC_RELAXED));
		if (i < UNCHANGED)
			continue;
		snprintf(name, sizeof(name), "first_%s", names[i]);
		rte_tel_data_add_dict_uint(answer, name, __atomic_load_n(&check->first[i], __ATOMIC_RELAXED));
	}
	return 0;
}

static int tell_by_flow(const struct check *check, const uint64_t *figures, uint32_t first,
			struct rte_tel_data *answer)
{
	rte_tel_data_start_array(answer, RTE_TEL_UINT_VAL);
	for (uint32_t i = first; i < check->traffic->flows && i - first < FLOWS_AT_ONCE; i++)
		rte_tel_data_add_array_uint(answer, __atomic_load_n(&figures[i], __ATOMIC_RELAXED));
	return 0;
}

static int tell_flows(const struct check *check, uint32_t first, struct rte_tel_data *answer)
{
	return tell_by_flow(check, check->sent, first, answer);
}

static int tell_ports(const struct check *check, uint32_t first, struct rte_tel_data *answer)
{
	return tell_by_flow(check, check->left_by, first, answer);
}

static int tell_flow(const struct check *check, uint32_t number, struct rte_tel_data *answer)
{
	const struct traffic *traffic = check->traffic;
	char digits[2 * SHOWN_BYTES + 1] = "";

	for (uint32_t i = 0; i < traffic->count; i++) {
		const struct traffic_frame *frame = &traffic->frames[i];

		if (frame->flow != number)
			continue;
		for (uint32_t at = 0; at < RTE_MIN((uint32_t)frame->length, SHOWN_BYTES); at++)
			snprintf(digits + 2 * at, 3, "%02x", frame->bytes[at]);
		rte_tel_data_string(answer, digits);
		return 0;
	}
	return -EINVAL;
}

static int answer(const char *parameters, struct rte_tel_data *data,
		  int (*tell)(const struct check *check, uint32_t number, struct rte_tel_data *data))
{
	const struct check *check;
	uint32_t number;
	int ret = -ENOENT;

	pthread_mutex_lock(&lock);
	check = asked(parameters, &number);
	if (check != NULL)
		ret = tell(check, number, data);
	pthread_mutex_unlock(&lock);
	return ret;
}

static int ask_check(const char *command, const char *parameters, struct rte_tel_data *data)
{
	RTE_SET_USED(command);
	return answer(parameters, data, tell_figures);
}

static int ask_flows(const char *command, const char *parameters, struct rte_tel_data *data)
{
	RTE_SET_USED(command);
	return answer(parameters, data, tell_flows);
}

static int ask_ports(const char *command, const char *parameters, struct rte_tel_data *data)
{
	RTE_SET_USED(command);
	return answer(parameters, data, tell_ports);
}

static int ask_flow(const char *command, const char *parameters, struct rte_tel_data *data)
{
	RTE_SET_USED(command);
	return answer(parameters, data, tell_flow);
}

RTE_INIT(register_commands)
{
	rte_telemetry_register_cmd("/" DRIVER "/check", ask_check,
				   "What was made of frames that a port with check=1 handed out. Parameter: its name");
	rte_telemetry_register_cmd("/" DRIVER "/flows", ask_flows,
				   "Packets sent by flow. Parameters: name of the port, number of the first flow");
	rte_telemetry_register_cmd("/" DRIVER "/ports", ask_ports,
				   "Ports that sent packets, as bits, by flow. Parameters: name of the port that received "
				   "them, number of the first flow");
	rte_telemetry_register_cmd("/" DRIVER "/flow", ask_flow,
				   "The first frame of a flow. Parameters: name of the port, number of the flow");
}
