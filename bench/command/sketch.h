/* `pawl-bench sketch`, inside: things per second into a sketch, compared with one thread in memory and
 * with Redis.
 *
 * This process is the only worker; the only server is the child of an embedded session. Streams are
 * generated in memory before the clock starts. Times include the final flush, until everything is
 * answered.
 *
 * All functions here print errors to standard error and then return false.
 */
#ifndef BENCH_COMMAND_SKETCH_H
#define BENCH_COMMAND_SKETCH_H

#include <pawl/session.h>
#include <pawl/sketch.h>

#include "bench.h"
#include "cli/cli.h"

#define PWI_SKETCH_PATIENCE (60 * PAWL_SECOND)

struct pwi_bench_sketch {
  const struct pwi_command *command;
  bool json, is_tcp, with_kill;
  double seconds;  /* per measurement */
  uint64_t things; /* distinct things of the Zipf stream */
  uint64_t seed;
  const char *data; /* a folder with streams to count; NULL: none */
};

/* --- streams: bench/command/sketch.c -------------------------------------------------------------------- */

#define PWI_STREAM_LENGTH ((size_t)8 << 20) /* the stream is repeated as often as needed */

/* Numbers of [0, things), in which thing k, from 1 on, has a probability of about 1 / k; or uniform
 * numbers of 64 bits. NULL if memory is short; free it with pwi_free. */
uint64_t *pwi_stream_zipf(uint64_t things, uint64_t seed);
uint64_t *pwi_stream_uniform(uint64_t seed);

bool pwi_bench_sketch_fail(const struct pwi_bench_sketch *bench, const char *what, pawl_status status);

/* --- Redis: bench/command/redis.c ----------------------------------------------------------------------- */

struct pwi_redis;

/* Starts a redis-server on a free port of loopback, without files. Returns false with `*is_missing_out`
 * set if none is installed. */
bool pwi_redis_start(const struct pwi_command *command, struct pwi_redis **redis_out, bool *is_missing_out);
void pwi_redis_stop(struct pwi_redis *redis); /* NULL is fine */

enum pwi_redis_how {
  PWI_REDIS_INCR,     /* INCR of a key for each thing: exact counts */
  PWI_REDIS_HINCRBY4, /* four HINCRBY for each thing: the cells of a CountMin sketch */
};

/* Things per second, pipelined, for about this time; 0 on failure. */
double pwi_redis_run(struct pwi_redis *redis, enum pwi_redis_how how, const uint64_t *stream, double seconds);

/* --- cases ---------------------------------------------------------------------------------------------- */

bool pwi_bench_sketch_speed(const struct pwi_bench_sketch *bench);
bool pwi_bench_sketch_data(const struct pwi_bench_sketch *bench); /* bench/command/sketch_data.c */
bool pwi_bench_sketch_kill(const struct pwi_bench_sketch *bench); /* bench/command/sketch_kill.c */

extern const struct pwi_command pwi_command_bench_sketch;

#endif
