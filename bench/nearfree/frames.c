/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_log.h>

#define MAX_FRAMES 4096

struct frames *frames_read(const char *path)
{
	struct frames *frames = malloc(sizeof(*frames) + MAX_FRAMES * sizeof(frames->bytes[0]));
	FILE *file = fopen(path, "rb");

	errno = file ? 0 : errno;
	if (frames != NULL)
		frames->count = file ? fread(frames->bytes, FRAME_BYTES, MAX_FRAMES, file) : 0;
	if (frames == NULL || frames->count == 0) {
		rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "net_nearfree: frames=%s: %s\n", path,
			errno ? strerror(errno) : "shorter than a frame of 60 bytes");
		free(frames);
		frames = NULL;
	}
	if (file != NULL)
		fclose(file);
	return frames;
}
