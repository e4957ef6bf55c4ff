/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_jhash.h>
#include <rte_thash.h>

#include "headers.h"
#include "say.h"

/* pcap's file format: a header of 24 bytes, and one of 16 before each frame, in the writer's byte order. */
#define PCAP_HEADER 24
#define PCAP_RECORD 16
#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS 0xa1b23c4du
#define PCAP_ETHERNET 1
/* pcapng's first block. */
#define PCAPNG 0x0a0d0d0au

#define MAX_FRAMES (1u << 24)
#define MIN_LENGTH 14u
#define MAX_LENGTH 9600u

static struct traffic *known;

/* Microsoft's key, which verification suites and most drivers have. */
static const uint8_t usual_key[TRAFFIC_KEY] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
	0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
	0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const uint32_t types[] = {
	RTE_PTYPE_L2_ETHER,	 RTE_PTYPE_L2_ETHER_ARP,  RTE_PTYPE_L2_ETHER_VLAN, RTE_PTYPE_L2_ETHER_QINQ,
	RTE_PTYPE_L2_ETHER_MPLS, RTE_PTYPE_L3_IPV4,	  RTE_PTYPE_L3_IPV4_EXT,   RTE_PTYPE_L3_IPV6,
	RTE_PTYPE_L3_IPV6_EXT,	 RTE_PTYPE_L4_TCP,	  RTE_PTYPE_L4_UDP,	   RTE_PTYPE_L4_SCTP,
	RTE_PTYPE_L4_FRAG,	 RTE_PTYPE_TUNNEL_IP,	  RTE_PTYPE_TUNNEL_GRE,	   RTE_PTYPE_INNER_L3_IPV4,
	RTE_PTYPE_INNER_L3_IPV6, RTE_PTYPE_UNKNOWN,
};

const uint32_t *traffic_types(size_t *count)
{
	*count = RTE_DIM(types) - 1;
	return types;
}

/* Room for a file of this size, with a block of zeros behind it, so that the last frame may be read in whole blocks. */
static int make_room(struct traffic *traffic, size_t size)
{
	const size_t room = size + TRAFFIC_BLOCK;
	void *made = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED) {
		SAY(ERR, "frames=%s: no memory for its %zu bytes\n", traffic->path, size);
		return -1;
	}
	/* Which programs of several would get large pages is chance, and would tell in their speed. */
	madvise(made, room, MADV_NOHUGEPAGE);
	traffic->bytes = made;
	traffic->size = size;
	return 0;
}

/* Reads `size` bytes of a file, of which more or less may be there by now. */
static int read_bytes(struct traffic *traffic, int file)
{
	size_t done = 0;

	while (done < traffic->size) {
		const ssize_t got = read(file, traffic->bytes + done, traffic->size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			SAY(ERR, "frames=%s: %s\n", traffic->path,
			    got == 0 ? "the file became shorter while it was read" : strerror(errno));
			return -1;
		}
		done += got;
	}
	return 0;
}

/*
 * Reads the file into memory. It is not mapped: who truncates a mapped file ends all programs that look at what is gone
 * (SIGBUS), and who writes to it changes frames that were looked at.
 */
static int read_file(struct traffic *traffic)
{
	/* A pipe would be waited for. */
	const int file = open(traffic->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat found;
	int ret = -1;

	if (file < 0 || fstat(file, &found) != 0)
		SAY(ERR, "frames=%s: %s\n", traffic->path, strerror(errno));
	else if (!S_ISREG(found.st_mode) || found.st_size < PCAP_HEADER)
		SAY(ERR, "frames=%s: not a capture file (pcap)\n", traffic->path);
	else if (make_room(traffic, found.st_size) == 0)
		ret = read_bytes(traffic, file);
	if (file >= 0)
		close(file);
	return ret;
}

/* A number of the file's. */
static uint32_t number(const uint8_t *at, bool swapped)
{
	uint32_t found;

	memcpy(&found, at, sizeof(found));
	return swapped ? rte_bswap32(found) : found;
}

/* Whether the file's numbers are in the other byte order: 0 or 1; -1, and a message, for another kind of file. */
static int byte_order(const struct traffic *traffic)
{
	const uint32_t magic = number(traffic->bytes, false);
	int swapped;

	if (magic == PCAP_MICROSECONDS || magic == PCAP_NANOSECONDS) {
		swapped = 0;
	} else if (rte_bswap32(magic) == PCAP_MICROSECONDS || rte_bswap32(magic) == PCAP_NANOSECONDS) {
		swapped = 1;
	} else {
		SAY(ERR, "frames=%s: %s\n", traffic->path,
		    magic == PCAPNG ? "pcapng; editcap -F pcap makes a pcap file of it" : "not a capture file (pcap)");
		return -1;
	}
	if ((number(traffic->bytes + 20, swapped) & 0xffff) != PCAP_ETHERNET) {
		SAY(ERR, "frames=%s: its frames are not Ethernet's\n", traffic->path);
		return -1;
	}
	return swapped;
}

/* Notes each frame of the file; the first time only how many there are. */
static int walk(struct traffic *traffic, bool swapped)
{
	const uint8_t *at = traffic->bytes + PCAP_HEADER;
	const uint8_t *end = traffic->bytes + traffic->size;
	uint32_t count = 0;

	for (; (size_t)(end - at) >= PCAP_RECORD; count++) {
		const uint32_t length = number(at + 8, swapped), whole = number(at + 12, swapped);

		at += PCAP_RECORD;
		if (count == MAX_FRAMES)
			break;
		if (length > (size_t)(end - at)) {
			SAY(ERR, "frames=%s: frame %" PRIu32 " ends behind the end of the file\n", traffic->path,
			    count + 1);
			return -1;
		}
		if (length != whole || length < MIN_LENGTH || length > MAX_LENGTH) {
			SAY(ERR, "frames=%s: frame %" PRIu32 " has %" PRIu32 " of %" PRIu32
				 " bytes; whole frames of %u to %u bytes are wanted\n",
			    traffic->path, count + 1, length, whole, MIN_LENGTH, MAX_LENGTH);
			return -1;
		}
		if (traffic->frames == NULL)
			traffic->longest = RTE_MAX(traffic->longest, length);
		else
			traffic->frames[count] = (struct traffic_frame){.bytes = at, .length = length};
		at += length;
	}
	if (count == 0 || count == MAX_FRAMES) {
		SAY(ERR, "frames=%s: %s\n", traffic->path, count ? "too many frames" : "no frame in it");
		return -1;
	}
	traffic->count = count;
	return 0;
}

/* Flags of RTE_MBUF_F_RX_* for what is known of a frame's checksums. */
static uint16_t checksums(const struct headers *headers)
{
	static const uint16_t header[] = {[CHECKSUM_NONE] = 0,
					  [CHECKSUM_GOOD] = RTE_MBUF_F_RX_IP_CKSUM_GOOD,
					  [CHECKSUM_BAD] = RTE_MBUF_F_RX_IP_CKSUM_BAD};
	static const uint16_t payload[] = {[CHECKSUM_NONE] = 0,
					   [CHECKSUM_GOOD] = RTE_MBUF_F_RX_L4_CKSUM_GOOD,
					   [CHECKSUM_BAD] = RTE_MBUF_F_RX_L4_CKSUM_BAD};

	return header[headers->header] | payload[headers->payload];
}

static uint32_t hash(const struct traffic *traffic, const struct headers *headers)
{
	uint32_t words[TUPLE_BYTES / sizeof(uint32_t)];
	const uint8_t addresses = headers->ip == 4 ? 8 : 32;
	const uint8_t bytes = traffic->ports ? headers->tuple_bytes : RTE_MIN(headers->tuple_bytes, addresses);
	const unsigned int count = bytes / sizeof(*words);

	memcpy(words, headers->tuple, headers->tuple_bytes);
	for (unsigned int i = 0; i < count; i++)
		words[i] = rte_be_to_cpu_32(words[i]);
	return count ? rte_softrss(words, count, traffic->key) : 0;
}

/* A flow by two hashes of its tuple: with a million flows one pair in 30 million files is taken for one. */
struct flow {
	uint32_t hashes[2];
	/* From 1 on. */
	uint32_t number;
};

/* Finds a frame's flow in a table of a power of two of places, of which at most half are taken. */
static uint32_t flow(struct traffic *traffic, struct flow *table, uint32_t mask, const struct headers *headers)
{
	uint32_t words[TUPLE_BYTES / sizeof(uint32_t)], one = headers->tuple_bytes, other = 0, at;

	memcpy(words, headers->tuple, sizeof(words));
	rte_jhash_32b_2hashes(words, headers->tuple_bytes / sizeof(*words), &one, &other);
	for (at = one & mask; table[at].number != 0; at = (at + 1) & mask)
		if (table[at].hashes[0] == one && table[at].hashes[1] == other)
			return table[at].number - 1;
	table[at] = (struct flow){{one, other}, ++traffic->flows};
	return traffic->flows - 1;
}

/* What a NIC would say of each frame, and of which flow it is. */
static int describe(struct traffic *traffic)
{
	const uint32_t mask = rte_align32pow2(2 * traffic->count) - 1;
	struct flow *table = calloc((size_t)mask + 1, sizeof(*table));
	struct headers headers;

	if (table == NULL)
		return -1;
	for (uint32_t i = 0; i < traffic->count; i++) {
		struct traffic_frame *frame = &traffic->frames[i];

		headers_read(frame->bytes, frame->length, &headers);
		frame->packet_type = headers.packet_type;
		frame->flags = checksums(&headers) | (headers.ip ? RTE_MBUF_F_RX_RSS_HASH : 0);
		frame->hash = hash(traffic, &headers);
		frame->flow = flow(traffic, table, mask, &headers);
	}
	free(table);
	return 0;
}

void traffic_hash(struct traffic *traffic, const uint8_t *key, bool ports)
{
	struct headers headers;

	if (key == NULL)
		key = usual_key;
	if (traffic->ports == ports && memcmp(traffic->key, key, TRAFFIC_KEY) == 0)
		return;
	memcpy(traffic->key, key, TRAFFIC_KEY);
	traffic->ports = ports;
	for (uint32_t i = 0; i < traffic->count; i++) {
		headers_read(traffic->frames[i].bytes, traffic->frames[i].length, &headers);
		traffic->frames[i].hash = hash(traffic, &headers);
	}
}

static int fill(struct traffic *traffic)
{
	const int swapped = read_file(traffic) == 0 ? byte_order(traffic) : -1;

	if (swapped < 0 || walk(traffic, swapped) != 0)
		return -1;
	memcpy(traffic->key, usual_key, sizeof(usual_key));
	traffic->ports = true;
	traffic->frames = calloc(traffic->count, sizeof(*traffic->frames));
	if (traffic->frames != NULL && walk(traffic, swapped) != 0)
		return -1;
	if (traffic->frames == NULL || describe(traffic) != 0) {
		SAY(ERR, "frames=%s: no memory for %" PRIu32 " frames\n", traffic->path, traffic->count);
		return -1;
	}
	return 0;
}

static void drop(struct traffic *traffic)
{
	if (traffic->bytes != NULL)
		munmap(traffic->bytes, traffic->size + TRAFFIC_BLOCK);
	free(traffic->frames);
	free(traffic->path);
	free(traffic);
}

struct traffic *traffic_acquire(const char *path)
{
	struct traffic *traffic = known;

	while (traffic != NULL && strcmp(traffic->path, path) != 0)
		traffic = traffic->next;
	if (traffic == NULL) {
		traffic = calloc(1, sizeof(*traffic));
		if (traffic == NULL)
			return NULL;
		traffic->path = strdup(path);
		if (traffic->path == NULL || fill(traffic) != 0) {
			drop(traffic);
			return NULL;
		}
		traffic->next = known;
		known = traffic;
	}
	traffic->users++;
	return traffic;
}

void traffic_release(struct traffic *traffic)
{
	struct traffic **at = &known;

	if (traffic == NULL || --traffic->users > 0)
		return;
	while (*at != traffic)
		at = &(*at)->next;
	*at = traffic->next;
	drop(traffic);
}
