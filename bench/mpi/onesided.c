/* MPI_Put and MPI_Get as `pawl-bench net --op` measures pawl: rank 0 and the other ranks of one machine.
 *
 *   mpirun -np N mpi_onesided put|get|notify SIZE SECONDS ROUNDS
 *
 * Prints one figure: GB/s of all ranks together for put and get; for notify microseconds of one exchange, in
 * which rank 0 puts SIZE bytes and then a number to each other rank, and each answers in the same way.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS 8
#define ROUNDS_MAX 15
#define SAMPLES_MAX 1000000
#define STOP UINT64_MAX

static int rank, ranks;
static MPI_Win window;
static char *memory;      /* of this rank's window: BUFFERS operations, then a number for each rank */
static char *mine;        /* BUFFERS operations */
static size_t size, room; /* of an operation; of all of them */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static double move(int is_get, double seconds) {
  double begin = MPI_Wtime(), bytes = 0;
  do {
    for (int peer = 1; peer < ranks; peer++)
      for (size_t i = 0; i < BUFFERS; i++) {
        MPI_Aint at = (MPI_Aint)(i * size);
        if (is_get)
          MPI_Get(mine + at, (int)size, MPI_BYTE, peer, at, (int)size, MPI_BYTE, window);
        else
          MPI_Put(mine + at, (int)size, MPI_BYTE, peer, at, (int)size, MPI_BYTE, window);
      }
    MPI_Win_flush_all(window);
    bytes += (double)(ranks - 1) * BUFFERS * (double)size;
  } while (MPI_Wtime() - begin < seconds);
  return bytes / (MPI_Wtime() - begin) / 1e9;
}

/* Data first; the number follows when they have landed. */
static void put_and_notify(int peer, uint64_t number) {
  MPI_Aint at = (MPI_Aint)(room + 8 * (size_t)rank);
  MPI_Put(mine, (int)size, MPI_BYTE, peer, 0, (int)size, MPI_BYTE, window);
  MPI_Win_flush(peer, window);
  MPI_Put(&number, 8, MPI_BYTE, peer, at, 8, MPI_BYTE, window);
  MPI_Win_flush(peer, window);
}

/* The number that the peer has put last. */
static uint64_t number_of(int peer) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); /* makes progress */
  MPI_Win_sync(window);
  return *(volatile uint64_t *)(void *)(memory + room + 8 * (size_t)peer);
}

static void answer(void) {
  uint64_t seen = 0, number;
  for (;;) {
    while ((number = number_of(0)) == seen) continue;
    if (number == STOP) return;
    seen = number;
    put_and_notify(0, number);
  }
}

static double exchange(double seconds, uint64_t *number) {
  static double samples[SAMPLES_MAX];
  size_t count = 0;
  double end = MPI_Wtime() + seconds;
  do {
    double begin = MPI_Wtime();
    ++*number;
    for (int peer = 1; peer < ranks; peer++) put_and_notify(peer, *number);
    for (int peer = 1; peer < ranks; peer++)
      while (number_of(peer) != *number) continue;
    samples[count++] = (MPI_Wtime() - begin) * 1e6;
  } while (MPI_Wtime() < end && count < SAMPLES_MAX);
  return median(samples, count);
}

static void lead(const char *op, double seconds, int rounds) {
  double figures[ROUNDS_MAX];
  uint64_t number = 0;
  int is_notify = strcmp(op, "notify") == 0;
  for (int i = 0; i < rounds; i++)
    figures[i] = is_notify ? exchange(seconds, &number) : move(strcmp(op, "get") == 0, seconds);
  for (int peer = 1; is_notify && peer < ranks; peer++) put_and_notify(peer, STOP);
  printf("%.6g\n", median(figures, (size_t)rounds));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int rounds = argc == 5 ? atoi(argv[4]) : 0;
  if (argc != 5 || rounds < 1 || rounds > ROUNDS_MAX || ranks < 2) {
    if (rank == 0) fprintf(stderr, "usage: mpirun -np N mpi_onesided put|get|notify SIZE SECONDS ROUNDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  size = (size_t)strtoull(argv[2], NULL, 10);
  room = (BUFFERS * size + 63) / 64 * 64;
  mine = malloc(BUFFERS * size);
  if (!mine) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(mine, 2, BUFFERS * size);
  MPI_Win_allocate((MPI_Aint)(room + 8 * (size_t)ranks), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, room + 8 * (size_t)ranks);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    lead(argv[1], strtod(argv[3], NULL), rounds);
  else if (strcmp(argv[1], "notify") == 0)
    answer();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(mine);
  MPI_Finalize();
  return 0;
}
