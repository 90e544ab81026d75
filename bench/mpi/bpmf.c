/* The exchange of rows by MPI, for `pawl-bench lapser`: the same worker as the other ways have.
 *
 *   mpirun -np N mpi_bpmf isend|put FILE TEST_SHARE RANK ITERATIONS BURN_IN SEED
 *
 * Prints `digest cpu_s`, and then a line for each iteration: seconds of the slowest rank, seconds of communication of all
 * ranks, and the sums of squared errors of all (see struct pwi_lapser_step).
 *
 * isend: a rank sends the rows of each block, as soon as they are drawn, to the ranks that need them, and the sums of the
 *        block to all. Receives are posted before the block is needed.
 * put:   a rank puts them into windows of the others, and when it has drawn all blocks the number of the iteration.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command/lapser/lapser.h"

#define REQUESTS_MAX (PWI_LAPSER_WORKERS_MAX * BPMF_BLOCKS * 2)

static int rank, ranks;
static struct bpmf_part parts[PWI_LAPSER_WORKERS_MAX];
static MPI_Datatype types[PWI_LAPSER_WORKERS_MAX][BPMF_SIDES][BPMF_BLOCKS]; /* rows that a rank needs of a block */
static int is_needed[PWI_LAPSER_WORKERS_MAX][BPMF_SIDES][BPMF_BLOCKS];

static void *room_for(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

/* --- who needs what --------------------------------------------------------------------------------------- */

struct pieces {
  int *starts, *lengths, count, width;
};

static void add_piece(void *context, size_t row, size_t count) {
  struct pieces *pieces = context;
  pieces->starts[pieces->count] = (int)row * pieces->width;
  pieces->lengths[pieces->count++] = (int)count * pieces->width;
}

static void make_types(const struct bpmf_sampler *sampler) {
  for (int number = 0; number < BPMF_SIDES; number++) {
    const struct bpmf_side *side = &sampler->sides[number];
    struct pieces pieces = {room_for(side->block_rows, sizeof(int)), room_for(side->block_rows, sizeof(int)), 0,
                            (int)sampler->width};
    for (int peer = 0; peer < ranks; peer++)
      for (size_t block = 0; block < side->blocks; block++) {
        pieces.count = 0;
        pwi_lapser_needed(&parts[peer], side, number, block, block + 1, add_piece, &pieces);
        is_needed[peer][number][block] = pieces.count > 0;
        if (pieces.count == 0) continue;
        MPI_Type_indexed(pieces.count, pieces.lengths, pieces.starts, MPI_FLOAT, &types[peer][number][block]);
        MPI_Type_commit(&types[peer][number][block]);
      }
    free(pieces.starts);
    free(pieces.lengths);
  }
}

static bool is_own(const struct bpmf_part *part, int side, size_t block) {
  return block >= part->first[side] && block < part->end[side];
}

static void nothing(struct bpmf_worker *worker) { (void)worker; }

static double *sums_at(const struct bpmf_worker *worker, double *sums, int side, size_t block) {
  return sums + bpmf_sums_size(worker->sampler.width) *
                    bpmf_sums_place(&worker->sampler, side, block, worker->sampler.iteration);
}

/* --- isend ------------------------------------------------------------------------------------------------ */

static float *arrived[BPMF_SIDES]; /* rows; the worker may still compute with those before */
static double *arrived_sums;
static MPI_Request sends[REQUESTS_MAX], receives[BPMF_SIDES][2 * BPMF_BLOCKS];
static int send_count, receive_count[BPMF_SIDES];

static int owner_of(int side, size_t block) {
  int owner = 0;
  while (owner + 1 < ranks && !is_own(&parts[owner], side, block)) owner++;
  return owner;
}

/* For the iteration after the present one: its sums have the other place. */
static void post(struct bpmf_worker *worker, int side, uint64_t iteration) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  int size = (int)bpmf_sums_size(sampler->width), *count = &receive_count[side];
  *count = 0;
  for (size_t block = 0; block < sampler->sides[side].blocks; block++) {
    int from = owner_of(side, block), tag = side * BPMF_BLOCKS + (int)block;
    if (from == rank) continue;
    if (is_needed[rank][side][block])
      MPI_Irecv(arrived[side], 1, types[rank][side][block], from, tag, MPI_COMM_WORLD, &receives[side][(*count)++]);
    MPI_Irecv(arrived_sums + (size_t)size * bpmf_sums_place(sampler, side, block, iteration), size, MPI_DOUBLE, from,
              tag + BPMF_SIDES * BPMF_BLOCKS, MPI_COMM_WORLD, &receives[side][(*count)++]);
  }
}

static pawl_status isend_open(struct bpmf_worker *worker) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  for (int side = 0; side < BPMF_SIDES; side++) {
    arrived[side] = room_for(sampler->sides[side].ratings->rows, sampler->width * sizeof(float));
    if (!arrived_sums) arrived_sums = room_for(4 * BPMF_BLOCKS, bpmf_sums_size(sampler->width) * sizeof(double));
    post(worker, side, sampler->iteration + 1);
  }
  return PAWL_OK;
}

static void isend_put(struct bpmf_worker *worker, int number, size_t block) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  int size = (int)bpmf_sums_size(sampler->width), tag = number * BPMF_BLOCKS + (int)block, flag;
  for (int peer = 0; peer < ranks; peer++) {
    if (peer == rank) continue;
    if (is_needed[peer][number][block])
      MPI_Isend(side->rows, 1, types[peer][number][block], peer, tag, MPI_COMM_WORLD, &sends[send_count++]);
    MPI_Isend(side->sums + (size_t)size * block, size, MPI_DOUBLE, peer, tag + BPMF_SIDES * BPMF_BLOCKS, MPI_COMM_WORLD,
              &sends[send_count++]);
  }
  MPI_Testall(send_count, sends, &flag, MPI_STATUSES_IGNORE); /* makes progress */
  if (flag) send_count = 0;
}

static pawl_status isend_flush(struct bpmf_worker *worker, int side) {
  (void)worker;
  (void)side;
  MPI_Waitall(send_count, sends, MPI_STATUSES_IGNORE);
  send_count = 0;
  return PAWL_OK;
}

/* Rows and sums of an iteration come together. */
static pawl_status isend_rows(struct bpmf_worker *worker, int side) {
  MPI_Waitall(receive_count[side], receives[side], MPI_STATUSES_IGNORE);
  pwi_lapser_take_rows(worker, side, arrived[side]);
  post(worker, side, worker->sampler.iteration + 1);
  return PAWL_OK;
}

static pawl_status isend_sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  pwi_lapser_take_sums(worker, side, clock, arrived_sums);
  return PAWL_OK;
}

static void isend_close(struct bpmf_worker *worker) {
  (void)worker;
  for (int side = 0; side < BPMF_SIDES; side++)
    for (int i = 0; i < receive_count[side]; i++) {
      MPI_Cancel(&receives[side][i]);
      MPI_Request_free(&receives[side][i]);
    }
}

static const struct bpmf_link isend_link = {nothing,    isend_open, isend_put, isend_flush,
                                            isend_rows, isend_sums, nothing,   isend_close};

/* --- put -------------------------------------------------------------------------------------------------- */

static MPI_Win window;
static char
    *memory; /* of this rank's window: rows of users and of items, sums, and an iteration of each rank and side */
static size_t offsets[4];

static void lay_out(const struct bpmf_sampler *sampler) {
  for (int side = 0; side < BPMF_SIDES; side++)
    offsets[side + 1] = offsets[side] + sampler->sides[side].ratings->rows * sampler->width * sizeof(float);
  offsets[3] = offsets[2] + 4 * BPMF_BLOCKS * bpmf_sums_size(sampler->width) * sizeof(double);
}

static pawl_status put_open(struct bpmf_worker *worker) {
  lay_out(&worker->sampler);
  size_t size = offsets[3] + sizeof(uint64_t) * BPMF_SIDES * (size_t)ranks;
  MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, size);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  return PAWL_OK;
}

static void put_put(struct bpmf_worker *worker, int number, size_t block) {
  const struct bpmf_sampler *sampler = &worker->sampler;
  const struct bpmf_side *side = &sampler->sides[number];
  int size = (int)bpmf_sums_size(sampler->width);
  double *to = sums_at(worker, (double *)(void *)(memory + offsets[2]), number, block);
  for (int peer = 0; peer < ranks; peer++) {
    if (peer == rank) continue;
    if (is_needed[peer][number][block])
      MPI_Put(side->rows, 1, types[peer][number][block], peer, (MPI_Aint)offsets[number], 1, types[peer][number][block],
              window);
    MPI_Put(side->sums + (size_t)size * block, size, MPI_DOUBLE, peer, (char *)to - memory, size, MPI_DOUBLE, window);
  }
}

static MPI_Aint place_of(int of, int side) {
  return (MPI_Aint)(offsets[3] + sizeof(uint64_t) * (size_t)(of * BPMF_SIDES + side));
}

static pawl_status put_flush(struct bpmf_worker *worker, int side) {
  static uint64_t iteration;
  MPI_Win_flush_all(window);
  iteration = worker->sampler.iteration;
  for (int peer = 0; peer < ranks; peer++)
    if (peer != rank)
      MPI_Put(&iteration, sizeof iteration, MPI_BYTE, peer, place_of(rank, side), sizeof iteration, MPI_BYTE, window);
  MPI_Win_flush_all(window);
  return PAWL_OK;
}

static pawl_status put_rows(struct bpmf_worker *worker, int side) {
  for (int peer = 0; peer < ranks; peer++) {
    const volatile uint64_t *iteration = (const volatile uint64_t *)(void *)(memory + place_of(peer, side));
    int flag;
    while (peer != rank && *iteration < worker->sampler.iteration) {
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE); /* makes progress */
      MPI_Win_sync(window);
    }
  }
  pwi_lapser_take_rows(worker, side, (float *)(void *)(memory + offsets[side]));
  return PAWL_OK;
}

static pawl_status put_sums(struct bpmf_worker *worker, int side, uint64_t clock) {
  pwi_lapser_take_sums(worker, side, clock, (double *)(void *)(memory + offsets[2]));
  return PAWL_OK;
}

static void put_close(struct bpmf_worker *worker) {
  (void)worker;
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

static const struct bpmf_link put_link = {nothing,  put_open, put_put, put_flush,
                                          put_rows, put_sums, nothing, put_close};

/* --- the run ---------------------------------------------------------------------------------------------- */

static void report(const struct pwi_lapser_figures *own) {
  static struct pwi_lapser_figures all;
  for (int i = 0; i < ranks; i++) {
    static struct pwi_lapser_figures figures = {0};
    if (i == rank) figures = *own;
    MPI_Bcast(&figures, (int)sizeof figures, MPI_BYTE, i, MPI_COMM_WORLD);
    pwi_lapser_add(&all, &figures);
  }
  if (rank != 0) return;
  printf("%" PRIu64 " %.9g\n", all.digest, all.cpu_s);
  for (uint32_t i = 0; i < all.iterations; i++)
    printf("%.9g %.9g %.17g %.17g\n", all.steps[i].seconds, all.steps[i].shared, all.steps[i].now, all.steps[i].mean);
}

static int run(char **words) {
  static struct pwi_lapser_figures figures;
  struct pawl_ratings *ratings = NULL;
  struct bpmf_data data;
  char error[PAWL_BPMF_TEXT];
  const char *path = words[1];
  struct pwi_lapser_task task = {.data = &data,
                                 .rank = (uint32_t)strtoul(words[3], NULL, 10),
                                 .iterations = (uint32_t)strtoul(words[4], NULL, 10),
                                 .burn_in = (uint32_t)strtoul(words[5], NULL, 10),
                                 .workers = (uint32_t)ranks,
                                 .seed = strtoull(words[6], NULL, 10)};
  int is_put = strcmp(words[0], "put") == 0;
  struct pwi_lapser_worker worker;
  struct pawl_ratings_options reading;
  pawl_ratings_options_init(&reading);
  reading.duplicates = PAWL_RATINGS_LAST;
  if (task.iterations > PWI_LAPSER_ITERATIONS_MAX || ranks > PWI_LAPSER_WORKERS_MAX) return 2;
  if (pawl_ratings_read(&path, 1, &reading, &ratings)) return 1;
  if (bpmf_data_init(&data, ratings, NULL, strtod(words[2], NULL), task.seed, error)) return 1;
  if (pwi_lapser_worker_init(&worker, &task, (uint32_t)rank, is_put ? &put_link : &isend_link)) return 1;
  for (int i = 0; i < ranks; i++)
    if (!bpmf_part_init(&parts[i], &worker.is.sampler, (uint32_t)i, (uint32_t)ranks)) return 1;
  make_types(&worker.is.sampler);
  if (bpmf_worker_open(&worker.is)) return 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (pwi_lapser_worker_run(&worker, task.iterations, &figures)) return 1;
  MPI_Barrier(MPI_COMM_WORLD);
  worker.is.link->close(&worker.is);
  report(&figures);
  return 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int failed = argc == 8 ? run(argv + 1) : 2;
  if (failed) {
    if (rank == 0) fprintf(stderr, "usage: see the beginning of bench/mpi/bpmf.c\n");
    MPI_Abort(MPI_COMM_WORLD, failed);
  }
  MPI_Finalize();
  return 0;
}
