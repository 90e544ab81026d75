/* `pawl bench sketch`, inside: things a second into a sketch, beside what one thread does in memory and what Redis does.
 *
 * This process is the one worker; the one server is the child of an embedded session. Streams are made before the clock starts,
 * and lie in memory. Times end when everything was answered: a flush is part of them.
 *
 * Everything here prints what went wrong to standard error and then returns false.
 */
#ifndef BENCH_COMMAND_SKETCH_H
#define BENCH_COMMAND_SKETCH_H

#include <pawl/session.h>
#include <pawl/sketch.h>

#include "cli/cli.h"

#define PWI_SKETCH_PATIENCE (60 * PAWL_SECOND)

struct pwi_bench_sketch {
  const struct pwi_command *command;
  bool json, is_tcp, with_kill;
  double seconds;  /* of each measurement */
  uint64_t things; /* different ones of the Zipf stream */
  uint64_t seed;
  const char *data; /* a folder with streams to be counted; NULL: none */
};

/* --- streams: bench/command/sketch.c ---------------------------------------------------------------------------------------------- */

#define PWI_STREAM_LENGTH ((size_t)8 << 20) /* it is gone round as often as it takes */

/* Numbers of [0, things), of which thing k, from 1 on, comes with a probability of about 1 / k; or of all 64 bits, all the
 * same. NULL without memory; freed with pwi_free. */
uint64_t *pwi_stream_zipf(uint64_t things, uint64_t seed);
uint64_t *pwi_stream_uniform(uint64_t seed);

double pwi_bench_sketch_now(void); /* seconds */
bool pwi_bench_sketch_fail(const struct pwi_bench_sketch *bench, const char *what, pawl_status status);

/* --- Redis: bench/command/redis.c ------------------------------------------------------------------------------------------------- */

struct pwi_redis;

/* Starts a redis-server of this machine on a free port of loopback, without any file. False with `*is_missing_out` set: there
 * is none here. */
bool pwi_redis_start(const struct pwi_command *command, struct pwi_redis **redis_out, bool *is_missing_out);
void pwi_redis_stop(struct pwi_redis *redis); /* NULL is fine */

enum pwi_redis_how {
  PWI_REDIS_INCR,     /* INCR of a key for each thing: exact counts */
  PWI_REDIS_HINCRBY4, /* four HINCRBY for each thing: the cells of a CountMin sketch */
};

/* Things a second, pipelined, for about so long; 0 if it failed. */
double pwi_redis_run(struct pwi_redis *redis, enum pwi_redis_how how, const uint64_t *stream, double seconds);

/* --- cases ---------------------------------------------------------------------------------------------------------------- */

bool pwi_bench_sketch_speed(const struct pwi_bench_sketch *bench);
bool pwi_bench_sketch_data(const struct pwi_bench_sketch *bench); /* bench/command/sketch_data.c */
bool pwi_bench_sketch_kill(const struct pwi_bench_sketch *bench); /* bench/command/sketch_kill.c */

extern const struct pwi_command pwi_command_bench_sketch;

#endif
