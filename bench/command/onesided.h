/* Measures put, get and notifications between one process and others of this machine.
 *
 * Each figure is printed beside a memcpy of the same bytes in the same run, and beside MPI_Put or MPI_Get if
 * bench/mpi/onesided.c was built (CMake found MPI) and there is an mpirun.
 */
#ifndef BENCH_COMMAND_ONESIDED_H
#define BENCH_COMMAND_ONESIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_ONESIDED_PEERS_MAX 256
#define PWI_ONESIDED_ROUNDS_MAX 15

enum pwi_onesided_op {
  PWI_ONESIDED_PUT,    /* puts to all peers in turn, and a fence at the end */
  PWI_ONESIDED_GET,    /* gets from all peers in turn */
  PWI_ONESIDED_NOTIFY, /* a put with a notification to every peer, and one back from each */
};

struct pwi_onesided_options {
  const char *transport; /* tcp, tls, unix or ucx */
  enum pwi_onesided_op op;
  size_t size;    /* bytes of one operation */
  uint32_t peers; /* processes besides the measuring one */
  double seconds; /* per measurement */
  int rounds;     /* pawl and memcpy take turns so many times; medians are reported */
};

/* GB/s of all peers together for put and get; microseconds of one exchange with all peers for notify. */
struct pwi_onesided_result {
  double ours, copied;
  double mpi; /* NaN: not measured */
};

/* The name of an operation as in --op. False if there is none of that name. */
const char *pwi_onesided_name(enum pwi_onesided_op op);
bool pwi_onesided_find(const char *name, enum pwi_onesided_op *op_out);

/* 0; PWI_BENCH_SKIPPED (net.h) if this build or machine lacks the transport; 1 if a child or a link was
 * lost. */
int pwi_bench_onesided(const struct pwi_onesided_options *options, struct pwi_onesided_result *result_out);

/* onesided_mpi.c: the same by MPI, or NaN. */
double pwi_onesided_mpi(const struct pwi_onesided_options *options);

#endif
