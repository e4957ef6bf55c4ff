/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "say.h"

#define MAX_FRAMES 65536

static void *all(size_t size)
{
	/* The flows are read in turn, a cache line at a time. */
	return aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE));
}

static struct frames *filled(FILE *file)
{
	struct frames *frames = calloc(1, sizeof(*frames));

	if (frames == NULL)
		return NULL;
	frames->whole = all(MAX_FRAMES * sizeof(*frames->whole));
	frames->flows = all(MAX_FRAMES * sizeof(*frames->flows));
	if (frames->whole != NULL && frames->flows != NULL)
		frames->count = fread(frames->whole, FRAME_BYTES, MAX_FRAMES, file);
	for (uint32_t i = 0; i < frames->count; i++)
		memcpy(frames->flows[i], frames->whole[i] + FRAME_FLOW, FLOW_BYTES);
	if (frames->count == 0) {
		frames_free(frames);
		return NULL;
	}
	return frames;
}

struct frames *frames_read(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct frames *frames = NULL;

	if (file != NULL) {
		errno = 0;
		frames = filled(file);
	}
	if (frames == NULL)
		SAY(ERR, "frames=%s: %s\n", path,
		    errno ? strerror(errno) : "shorter than a frame of 60 bytes");
	if (file != NULL)
		fclose(file);
	return frames;
}

void frames_free(struct frames *frames)
{
	if (frames == NULL)
		return;
	free(frames->whole);
	free(frames->flows);
	free(frames);
}
