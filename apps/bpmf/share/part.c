/* How blocks are divided among workers, and which rows of others a worker needs (Lapser thesis, listing 4.1). */
#include <string.h>

#include "apps/bpmf/share/inside.h"
#include "apps/common/memory.h"

/* --- blocks ----------------------------------------------------------------------------------------------- */

/* Work of a block, in ratings. A row costs its ratings, each of which adds to the Gram matrix, and as much as some ratings for
 * the Cholesky factor, the random numbers and the item that it becomes. The numbers fit the times of ranks 8 to 256. */
static uint64_t cost_of(const struct bpmf_sampler *sampler, const struct bpmf_side *side, size_t block) {
  size_t first = bpmf_block_begin(side, block), end = bpmf_block_begin(side, block + 1);
  return side->ratings->starts[end] - side->ratings->starts[first] + (end - first) * (sampler->width / 6 + 36);
}

/* The block at which worker `rank` begins: the first one before which at least rank / count of the work lies, or the one
 * before that, if it is nearer. */
static size_t border(const struct bpmf_sampler *sampler, int number, uint32_t rank, uint32_t count) {
  const struct bpmf_side *side = &sampler->sides[number];
  uint64_t all = 0, before = 0;
  for (size_t block = 0; block < side->blocks; block++) all += cost_of(sampler, side, block);
  for (size_t block = 0; block < side->blocks; block++) {
    uint64_t cost = cost_of(sampler, side, block);
    if ((double)(2 * before + cost) * count >= 2 * (double)all * rank) return block;
    before += cost;
  }
  return side->blocks;
}

void bpmf_part_divide(const struct bpmf_sampler *sampler, int side, uint32_t rank, uint32_t count, size_t *first_out,
                      size_t *end_out) {
  *first_out = rank == 0 ? 0 : border(sampler, side, rank, count);
  *end_out = rank + 1 == count ? sampler->sides[side].blocks : border(sampler, side, rank + 1, count);
}

/* --- rows of others --------------------------------------------------------------------------------------- */

/* Marks the rows of side `number` that the ratings of this worker's rows of the other side name. */
static void mark_rated(const struct bpmf_part *part, const struct bpmf_sampler *sampler, int number, char *marks) {
  const struct bpmf_side *other = &sampler->sides[1 - number];
  const uint64_t *starts = other->ratings->starts;
  size_t first = bpmf_block_begin(other, part->first[1 - number]), end = bpmf_block_begin(other, part->end[1 - number]);
  for (uint64_t i = starts[first]; i < starts[end]; i++) marks[other->ratings->others[i]] = 1;
}

/* Items of the test ratings of this worker's users. */
static void mark_tests(const struct bpmf_part *part, const struct bpmf_sampler *sampler, char *marks) {
  const struct bpmf_side *users = &sampler->sides[BPMF_USERS];
  const uint64_t *starts = sampler->data->test_starts;
  uint64_t end = starts[bpmf_block_begin(users, part->end[BPMF_USERS])];
  for (uint64_t i = starts[bpmf_block_begin(users, part->first[BPMF_USERS])]; i < end; i++)
    marks[sampler->data->tests[i].item] = 1;
}

/* Counts the ranges of marked rows, and writes them unless `ranges` is NULL. */
static void list_ranges(const char *marks, size_t rows, struct pawl_items_keys *ranges, struct bpmf_needs *needs) {
  needs->count = 0;
  needs->rows = 0;
  for (size_t row = 0; row < rows;) {
    size_t end = row;
    while (end < rows && marks[end]) end++;
    if (end > row) {
      if (ranges) ranges[needs->count] = (struct pawl_items_keys){row, end - row, 1};
      needs->count++;
      needs->rows += end - row;
    }
    row = end + 1;
  }
}

static bool find_needs(struct bpmf_part *part, const struct bpmf_sampler *sampler, int number) {
  const struct bpmf_side *side = &sampler->sides[number];
  struct bpmf_needs *needs = &part->needs[number];
  size_t first = bpmf_block_begin(side, part->first[number]), end = bpmf_block_begin(side, part->end[number]);
  char *marks = apps_alloc_zero(side->ratings->rows, 1);
  if (!marks) return false;
  mark_rated(part, sampler, number, marks);
  if (number == BPMF_ITEMS) mark_tests(part, sampler, marks);
  memset(marks + first, 0, end - first);
  list_ranges(marks, side->ratings->rows, NULL, needs);
  needs->ranges = apps_alloc_zero(needs->count + 1, sizeof *needs->ranges);
  if (needs->ranges) list_ranges(marks, side->ratings->rows, needs->ranges, needs);
  apps_free(marks);
  return needs->ranges != NULL;
}

bool bpmf_part_init(struct bpmf_part *part, const struct bpmf_sampler *sampler, uint32_t rank, uint32_t count) {
  *part = (struct bpmf_part){.first = {0}};
  for (int side = 0; side < BPMF_SIDES; side++)
    bpmf_part_divide(sampler, side, rank, count, &part->first[side], &part->end[side]);
  return find_needs(part, sampler, BPMF_USERS) && find_needs(part, sampler, BPMF_ITEMS);
}

void bpmf_part_fini(struct bpmf_part *part) {
  for (int side = 0; side < BPMF_SIDES; side++) apps_free(part->needs[side].ranges);
  *part = (struct bpmf_part){.first = {0}};
}
