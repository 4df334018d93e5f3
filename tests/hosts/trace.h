/* A trace: what a session was given and what it answered, frame by frame. Every host replays it with the same weights and
 * must give the same actions and the same bits of logits. Little-endian, no padding:
 *
 *   char     magic[8]          "exphtrc1"
 *   int32    floats F, ids K, heads A, logits L, deterministic, reserved (0)
 *   uint64   seed              of the session
 *   int64    frames
 *   then for every frame
 *   int32    reset             1: exphil_session_reset(session, -1) before this step
 *   float    floats[F];  int32 ids[K];  int32 actions[A];  float logits[L]
 *
 * The session has the defaults but for seed and deterministic: one stream, actions delivered when they are due. */
#ifndef EXPHIL_TESTS_TRACE_H
#define EXPHIL_TESTS_TRACE_H

#include <stdint.h>

#define TRACE_MAGIC "exphtrc1"

struct trace_header {
    char magic[8];
    int32_t floats, ids, heads, logits, deterministic, reserved;
    uint64_t seed;
    int64_t frames;
};

#endif
