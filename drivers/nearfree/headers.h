/* SPDX-License-Identifier: BSD-3-Clause */
/* What a frame's headers say: of those received when their file is read, of those sent when they are checked. */
#ifndef LR_HEADERS_H
#define LR_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

/* Both addresses and both ports. */
#define TUPLE_BYTES 36

enum checksum {
	CHECKSUM_NONE = 0,
	CHECKSUM_GOOD,
	CHECKSUM_BAD,
};

struct headers {
	/* RTE_PTYPE_*; 0: unknown. */
	uint32_t packet_type;
	/* 4 or 6; 0: neither, and nothing below is set. */
	uint8_t ip;
	/* Time to live, or hop limit. */
	uint8_t ttl;
	/* Whether IP's and UDP's lengths lie within the frame. */
	bool lengths;
	/* Of IPv4's header, and of UDP or TCP. None where one is optional and not there, of a fragment, or where it is not looked for:
	 * behind extension headers of IPv6. */
	enum checksum header, payload;
	/* As in the frame: addresses, and ports where there are some. */
	uint8_t tuple[TUPLE_BYTES];
	uint8_t tuple_bytes;
};

/* Of the outermost headers of a frame, without its FCS, that lies in one piece. */
void headers_read(const uint8_t *frame, uint32_t length, struct headers *found);

#endif
