#include "apps/bpmf/data.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <xxhash.h>

#include "apps/bpmf/random.h"
#include "apps/common/memory.h"
#include "apps/common/model_file.h"

static pawl_status no_memory(char *error) { return apps_say(error, PAWL_NO_MEMORY, "no memory for the ratings"); }

/* --- names ------------------------------------------------------------------------------------------------ */

static const char *name_of(const struct pawl_ratings *ratings, int side, uint32_t number) {
  return side == BPMF_USERS ? pawl_ratings_user(ratings, number) : pawl_ratings_item(ratings, number);
}

static bool copy_names(const struct pawl_ratings *ratings, int side, uint32_t count, struct apps_names *names_out) {
  size_t size = 0, at = 0;
  for (uint32_t i = 0; i < count; i++) size += strlen(name_of(ratings, side, i)) + 1;
  char *text = apps_alloc(size);
  for (uint32_t i = 0; text && i < count; i++) {
    size_t length = strlen(name_of(ratings, side, i)) + 1;
    memcpy(text + at, name_of(ratings, side, i), length);
    at += length;
  }
  if (text && apps_names_take(names_out, text, size, count)) return true;
  apps_free(text);
  return false;
}

/* --- the test part ---------------------------------------------------------------------------------------- */

/* Whether a rating is a test rating of a split: a matter of seed and names, and not of the order of the file. */
static bool is_held(const struct pawl_ratings *ratings, const struct pawl_rating *rating, double share, uint64_t seed) {
  const char *user = pawl_ratings_user(ratings, rating->user), *item = pawl_ratings_item(ratings, rating->item);
  uint64_t hash = XXH3_64bits_withSeed(user, strlen(user) + 1, seed + BPMF_FOR_SPLIT);
  hash = XXH3_64bits_withSeed(item, strlen(item), hash);
  return (double)(hash >> 11) * 0x1p-53 < share;
}

static void note_unknown(struct bpmf_data *data, const struct pawl_ratings *test, uint64_t n, int side) {
  const struct pawl_rating *rating = pawl_ratings_list(test) + n;
  uint64_t line;
  const char *path = pawl_ratings_place(test, n, &line);
  if (data->test_unknown++ == 0)
    apps_say(data->first_unknown, PAWL_NOT_FOUND, "%s:%" PRIu64 ": %s %.100s has no training rating", path, line,
             side == BPMF_USERS ? "user" : "item",
             name_of(test, side, side == BPMF_USERS ? rating->user : rating->item));
}

static pawl_status take_tests(struct bpmf_data *data, const struct pawl_ratings *test, char *error) {
  const struct pawl_rating *list = pawl_ratings_list(test);
  struct pawl_ratings_info info;
  pawl_ratings_info(test, &info);
  data->tests = apps_alloc_zero((size_t)info.count, sizeof *data->tests);
  if (!data->tests) return no_memory(error);
  for (uint64_t i = 0; i < info.count; i++) {
    struct bpmf_pair *pair = &data->tests[data->test_count];
    pair->value = list[i].value;
    if (!apps_names_find(&data->names[BPMF_USERS], pawl_ratings_user(test, list[i].user), &pair->user))
      note_unknown(data, test, i, BPMF_USERS);
    else if (!apps_names_find(&data->names[BPMF_ITEMS], pawl_ratings_item(test, list[i].item), &pair->item))
      note_unknown(data, test, i, BPMF_ITEMS);
    else
      data->test_count++;
  }
  return PAWL_OK;
}

/* Sorts the test ratings by user, so that those of a block of users are neighbours. */
static bool sort_tests(struct bpmf_data *data, uint32_t users) {
  struct bpmf_pair *sorted = apps_alloc_zero((size_t)data->test_count, sizeof *sorted);
  data->test_starts = apps_alloc_zero((size_t)users + 2, sizeof *data->test_starts);
  if (!sorted || !data->test_starts) {
    apps_free(sorted);
    return false;
  }
  uint64_t *next = data->test_starts + 1;
  for (uint64_t i = 0; i < data->test_count; i++) data->test_starts[data->tests[i].user + 2]++;
  for (uint32_t user = 0; user < users; user++) data->test_starts[user + 2] += data->test_starts[user + 1];
  for (uint64_t i = 0; i < data->test_count; i++) sorted[next[data->tests[i].user]++] = data->tests[i];
  apps_free(data->tests);
  data->tests = sorted;
  return true;
}

/* --- the training part ------------------------------------------------------------------------------------ */

static bool init_side(struct bpmf_ratings *side, uint32_t rows, uint64_t count) {
  side->rows = rows;
  side->starts = apps_alloc_zero((size_t)rows + 2, sizeof *side->starts);
  side->others = apps_alloc_zero((size_t)count, sizeof *side->others);
  side->values = apps_alloc_zero((size_t)count, sizeof *side->values);
  return side->starts && side->others && side->values;
}

/* Sorts by counting: `from` has the ratings in the order of `key`'s other side, so each row gets its ratings in that
 * order. */
struct sorted_rating {
  uint32_t row, other;
  float value;
};

static void fill_side(struct bpmf_ratings *side, const struct sorted_rating *from, uint64_t count) {
  uint64_t *next = side->starts + 1; /* behind the last rating of row i is the next place of row i */
  for (uint64_t i = 0; i < count; i++) side->starts[from[i].row + 2]++;
  for (uint32_t row = 0; row < side->rows; row++) side->starts[row + 2] += side->starts[row + 1];
  for (uint64_t i = 0; i < count; i++) {
    uint64_t at = next[from[i].row]++;
    side->others[at] = from[i].other;
    side->values[at] = from[i].value;
  }
}

/* The ratings of one side, in its order of rows, as input for the other. */
static void list_side(const struct bpmf_ratings *side, struct sorted_rating *to) {
  for (uint32_t row = 0; row < side->rows; row++)
    for (uint64_t i = side->starts[row]; i < side->starts[row + 1]; i++)
      to[i] = (struct sorted_rating){side->others[i], row, side->values[i]};
}

/* Users first in the order of the file, then items by user, then users by item: both sides are sorted within rows. */
static bool make_sides(struct bpmf_data *data, struct sorted_rating *list, const struct pawl_ratings_info *info) {
  struct bpmf_ratings first = {.rows = 0};
  bool is_fine = init_side(&first, info->users, data->count) &&
                 init_side(&data->sides[BPMF_USERS], info->users, data->count) &&
                 init_side(&data->sides[BPMF_ITEMS], info->items, data->count);
  if (is_fine) {
    fill_side(&first, list, data->count);
    list_side(&first, list);
    fill_side(&data->sides[BPMF_ITEMS], list, data->count);
    list_side(&data->sides[BPMF_ITEMS], list);
    fill_side(&data->sides[BPMF_USERS], list, data->count);
  }
  apps_free(first.starts);
  apps_free(first.others);
  apps_free(first.values);
  return is_fine;
}

static double square(double x) { return x * x; }

/* Splits the list, finds mean, range and deviation of the training part, and takes the mean and the deviation out. */
static pawl_status split(struct bpmf_data *data, const struct pawl_ratings *ratings, double share, uint64_t seed,
                         struct sorted_rating *list, char *error) {
  const struct pawl_rating *all = pawl_ratings_list(ratings);
  struct pawl_ratings_info info;
  double sum = 0, squares = 0;
  pawl_ratings_info(ratings, &info);
  if (share > 0) data->tests = apps_alloc_zero((size_t)info.count, sizeof *data->tests);
  if (share > 0 && !data->tests) return no_memory(error);
  data->lowest = INFINITY;
  data->highest = -INFINITY;
  for (uint64_t i = 0; i < info.count; i++) {
    if (!isfinite(all[i].value)) return apps_say(error, PAWL_INVALID, "a training rating has no value");
    if (share > 0 && is_held(ratings, &all[i], share, seed)) {
      data->tests[data->test_count++] = (struct bpmf_pair){all[i].user, all[i].item, all[i].value};
      continue;
    }
    list[data->count++] = (struct sorted_rating){all[i].user, all[i].item, all[i].value};
    sum += (double)all[i].value;
    data->lowest = fminf(data->lowest, all[i].value);
    data->highest = fmaxf(data->highest, all[i].value);
  }
  if (data->count == 0)
    return apps_say(error, PAWL_INVALID, "all %" PRIu64 " ratings are test ratings; use a smaller share", info.count);
  data->mean = sum / (double)data->count;
  for (uint64_t i = 0; i < data->count; i++) squares += square((double)list[i].value - data->mean);
  data->scale = data->lowest < data->highest ? sqrt(squares / (double)data->count) : 1;
  for (uint64_t i = 0; i < data->count; i++)
    list[i].value = (float)(((double)list[i].value - data->mean) / data->scale);
  return PAWL_OK;
}

static uint64_t hash(const void *bytes, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(bytes, size, seed); }

static void make_digest(struct bpmf_data *data) {
  uint64_t sum = hash(&data->mean, sizeof data->mean, data->count);
  sum = hash(&data->scale, sizeof data->scale, sum);
  for (int side = 0; side < BPMF_SIDES; side++) {
    const struct bpmf_ratings *is = &data->sides[side];
    sum = hash(data->names[side].text, data->names[side].size, sum);
    sum = hash(is->starts, ((size_t)is->rows + 1) * sizeof *is->starts, sum);
    sum = hash(is->others, (size_t)data->count * sizeof *is->others, sum);
    sum = hash(is->values, (size_t)data->count * sizeof *is->values, sum);
  }
  if (data->test_count > 0) sum = hash(data->tests, (size_t)data->test_count * sizeof *data->tests, sum);
  data->digest = sum;
}

pawl_status bpmf_data_init(struct bpmf_data *data, const struct pawl_ratings *ratings, const struct pawl_ratings *test,
                           double test_share, uint64_t seed, char *error) {
  struct pawl_ratings_info info;
  *data = (struct bpmf_data){.count = 0};
  pawl_ratings_info(ratings, &info);
  struct sorted_rating *list = apps_alloc_zero((size_t)info.count, sizeof *list);
  if (!list) return no_memory(error);
  pawl_status status = split(data, ratings, test ? 0 : test_share, seed, list, error);
  if (!status && (!make_sides(data, list, &info) || !copy_names(ratings, BPMF_USERS, info.users, &data->names[0]) ||
                  !copy_names(ratings, BPMF_ITEMS, info.items, &data->names[1])))
    status = no_memory(error);
  apps_free(list);
  if (!status && test) status = take_tests(data, test, error);
  if (!status && !sort_tests(data, info.users)) status = no_memory(error);
  if (!status) make_digest(data);
  return status;
}

void bpmf_data_fini(struct bpmf_data *data) {
  for (int side = 0; side < BPMF_SIDES; side++) {
    apps_free(data->sides[side].starts);
    apps_free(data->sides[side].others);
    apps_free(data->sides[side].values);
    apps_names_fini(&data->names[side]);
  }
  apps_free(data->tests);
  apps_free(data->test_starts);
}
