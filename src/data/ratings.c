#include "data/ratings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/formats/number.h"
#include "data/formats/rating_lines.h"
#include "data/paths.h"
#include "data/whole.h"

#define MARK "\xef\xbb\xbf" /* a byte order mark */

const char *pwi_ratings_place(const struct pawl_ratings *ratings, uint64_t n, uint64_t *line_out) {
  size_t file = 0;
  while (file + 1 < ratings->file_count && ratings->files[file + 1].first <= n) file++;
  *line_out = ratings->lines[n];
  return ratings->files[file].path;
}

/* --- lines ----------------------------------------------------------------------------------------------- */

/* A file while it is read. */
struct ratings_text {
  struct pawl_ratings *to;
  const struct pawl_ratings_options *options;
  const char *path;
  struct pwi_rating_rule rule;
  uint64_t line, entries; /* number of the present line, and lines with ratings so far */
  struct pwi_fault *fault;
};

static pawl_status no_memory(struct ratings_text *text) {
  return pwi_fault_plain(text->fault, PAWL_NO_MEMORY, text->path);
}

/* Adds a name, and undoubles its quotes. */
static bool add_name(struct pwi_id_names *names, struct pwi_field field, uint32_t *number_out) {
  char name[PWI_RATING_NAME_MAX];
  size_t size = 0;
  for (const char *at = field.begin; at < field.end; at++) {
    if (field.is_quoted && *at == '"') at++;
    name[size++] = *at;
  }
  return pwi_id_names_add(names, name, size, number_out);
}

static pawl_status add_rating(struct ratings_text *text, const struct pwi_rating_line *line) {
  struct pawl_ratings *to = text->to;
  size_t count = (size_t)to->info.count;
  struct pawl_rating rating = {.value = (float)line->value};
  if (count == UINT32_MAX || text->line > UINT32_MAX)
    return pwi_fault(text->fault, PAWL_TOO_LARGE, "%s:%" PRIu64 ": 2^32 ratings or lines; use a part of them",
                     text->path, text->line);
  if (!PWI_GROW(to->list, to->list_room, count + 1) || !PWI_GROW(to->lines, to->lines_room, count + 1) ||
      !add_name(&to->users, line->user, &rating.user) || !add_name(&to->items, line->item, &rating.item))
    return no_memory(text);
  to->list[count] = rating;
  to->lines[count] = (uint32_t)text->line;
  to->info.count++;
  return PAWL_OK;
}

static pawl_status skip_line(struct ratings_text *text, const struct pwi_rating_line *line) {
  struct pawl_ratings *to = text->to;
  pwi_fault(text->fault, PAWL_CORRUPT, "%s:%" PRIu64 ": %s", text->path, text->line, line->problem);
  if (to->info.skipped == text->options->skip_bad) return PAWL_CORRUPT;
  if (to->info.skipped++ == 0) memcpy(to->first_bad, text->fault->text, sizeof to->first_bad);
  return PAWL_OK;
}

static pawl_status read_lines(struct ratings_text *text, const char *at, const char *end) {
  struct pwi_rating_line line;
  pawl_status status = PAWL_OK;
  const char *next;
  for (; at < end && !status; at = next) {
    const char *stop = pwi_rating_line_end(at, end, &next);
    text->line++;
    if (stop == at) continue;
    text->entries++;
    status = pwi_rating_line_parse(&text->rule, at, stop, &line) ? add_rating(text, &line) : skip_line(text, &line);
  }
  return status;
}

/* --- files ----------------------------------------------------------------------------------------------- */

static bool add_path(struct pawl_ratings *ratings, const char *path) {
  struct pwi_ratings_file *files = pwi_resize_array(ratings->files, ratings->file_count + 1, sizeof *ratings->files);
  if (!files) return false;
  ratings->files = files;
  files[ratings->file_count] = (struct pwi_ratings_file){pwi_copy_string(path), ratings->info.count};
  return files[ratings->file_count++].path != NULL;
}

pawl_status pwi_ratings_add(struct pawl_ratings *ratings, const struct pawl_ratings_options *options, const char *path,
                            const char *text, size_t size, struct pwi_fault *fault) {
  struct ratings_text is = {.to = ratings, .options = options, .path = path, .fault = fault};
  const char *why = "", *end = text + size;
  if (!add_path(ratings, path)) return no_memory(&is);
  if (size >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0) text += strlen(MARK);
  is.rule.values_optional = options->values_optional;
  pawl_status status = pwi_rating_rule_of(text, (size_t)(end - text), options->format, &is.rule, &why);
  is.line = is.rule.head_lines;
  if (status) return pwi_fault(fault, status, "%s:%" PRIu64 ": %s", path, is.line + 1, why);
  status = read_lines(&is, text + is.rule.head_size, end);
  if (status || is.rule.format != PAWL_RATINGS_MTX || is.entries == is.rule.entries) return status;
  return pwi_fault(fault, PAWL_CORRUPT, "%s: the head states %" PRIu64 " entries, but the file has %" PRIu64, path,
                   is.rule.entries, is.entries);
}

static pawl_status add_file(struct pawl_ratings *ratings, const struct pawl_ratings_options *options, const char *path,
                            struct pwi_fault *fault) {
  char *bytes;
  size_t size;
  pawl_status status = pwi_whole_read(path, PWI_NUMBER_SLACK, &bytes, &size, fault);
  if (status) return status;
  memset(bytes + size, 0, PWI_NUMBER_SLACK);
  status = pwi_ratings_add(ratings, options, path, bytes, size, fault);
  pwi_free(bytes);
  return status;
}

/* --- duplicates ------------------------------------------------------------------------------------------- */

/* A rating by user, item and position. */
struct rating_order {
  uint32_t user, item, position;
};

static int by_pair(const void *a, const void *b) {
  const struct rating_order *one = a, *other = b;
  if (one->user != other->user) return one->user < other->user ? -1 : 1;
  if (one->item != other->item) return one->item < other->item ? -1 : 1;
  return one->position < other->position ? -1 : one->position > other->position;
}

static pawl_status refuse(const struct pawl_ratings *ratings, const struct rating_order *first,
                          struct pwi_fault *fault) {
  uint64_t line, before;
  const char *early = pwi_ratings_place(ratings, first[0].position, &before);
  const char *path = pwi_ratings_place(ratings, first[1].position, &line);
  return pwi_fault(fault, PAWL_EXISTS,
                   "%s:%" PRIu64 ": user %.80s rates item %.80s again, first at %s:%" PRIu64
                   "; choose with --duplicates last or mean",
                   path, line, pwi_id_names_get(&ratings->users, first->user),
                   pwi_id_names_get(&ratings->items, first->item), early, before);
}

/* Merges `count` ratings of one pair into the one that stays, and marks the others by the user UINT32_MAX. */
static void merge(struct pawl_ratings *ratings, const struct rating_order *same, size_t count, bool is_mean) {
  struct pawl_rating *stays = &ratings->list[same[count - 1].position];
  double sum = 0;
  for (size_t i = 0; i < count; i++) sum += (double)ratings->list[same[i].position].value;
  if (is_mean) stays->value = (float)(sum / (double)count);
  for (size_t i = 0; i + 1 < count; i++) ratings->list[same[i].position].user = UINT32_MAX;
  ratings->info.duplicates += count - 1;
}

static void close_gaps(struct pawl_ratings *ratings) {
  size_t kept = 0, file = 0;
  for (size_t i = 0; i < ratings->info.count; i++) {
    while (file < ratings->file_count && ratings->files[file].first == i) ratings->files[file++].first = kept;
    if (ratings->list[i].user == UINT32_MAX) continue;
    ratings->list[kept] = ratings->list[i];
    ratings->lines[kept++] = ratings->lines[i];
  }
  while (file < ratings->file_count) ratings->files[file++].first = kept;
  ratings->info.count = kept;
}

static pawl_status merge_all(struct pawl_ratings *ratings, const struct pawl_ratings_options *options,
                             struct rating_order *order, struct pwi_fault *fault) {
  size_t count = (size_t)ratings->info.count, next;
  for (size_t i = 0; i < count; i++)
    order[i] = (struct rating_order){ratings->list[i].user, ratings->list[i].item, (uint32_t)i};
  qsort(order, count, sizeof *order, by_pair);
  for (size_t i = 0; i < count; i = next) {
    for (next = i + 1; next < count && order[next].user == order[i].user && order[next].item == order[i].item;) next++;
    if (next == i + 1) continue;
    if (options->duplicates == PAWL_RATINGS_REFUSE) return refuse(ratings, order + i, fault);
    merge(ratings, order + i, next - i, options->duplicates == PAWL_RATINGS_MEAN);
  }
  if (ratings->info.duplicates > 0) close_gaps(ratings);
  return PAWL_OK;
}

pawl_status pwi_ratings_finish(struct pawl_ratings *ratings, const struct pawl_ratings_options *options,
                               struct pwi_fault *fault) {
  pawl_status status = PAWL_OK;
  ratings->info.users = ratings->users.count;
  ratings->info.items = ratings->items.count;
  if (ratings->info.count == 0)
    return pwi_fault(fault, PAWL_TRUNCATED, "%s: no ratings", ratings->files[ratings->file_count - 1].path);
  if (options->duplicates == PAWL_RATINGS_ALL) return PAWL_OK;
  struct rating_order *order = pwi_resize_array(NULL, (size_t)ratings->info.count, sizeof *order);
  status = order ? merge_all(ratings, options, order, fault)
                 : pwi_fault_plain(fault, PAWL_NO_MEMORY, ratings->files[0].path);
  pwi_free(order);
  return status;
}

/* --- all of it -------------------------------------------------------------------------------------------- */

static pawl_status check(size_t count, const struct pawl_ratings_options *options, struct pwi_fault *fault) {
  if (count == 0) return pwi_fault(fault, PAWL_INVALID, "no file of ratings was given");
  if (options->format > PAWL_RATINGS_MTX)
    return pwi_fault(fault, PAWL_INVALID, "unknown format of ratings %d", (int)options->format);
  if (options->duplicates > PAWL_RATINGS_ALL)
    return pwi_fault(fault, PAWL_INVALID, "unknown treatment of duplicates %d", (int)options->duplicates);
  if (options->values_optional && options->duplicates == PAWL_RATINGS_MEAN)
    return pwi_fault(fault, PAWL_INVALID, "ratings that may be missing have no mean");
  return PAWL_OK;
}

pawl_status pwi_ratings_read(const char *const *paths, size_t count, const struct pawl_ratings_options *options,
                             struct pawl_ratings **ratings_out, struct pwi_fault *fault) {
  struct pwi_paths files = {0};
  pawl_status status = check(count, options, fault);
  if (status) return status;
  struct pawl_ratings *ratings = pwi_alloc_zero(1, sizeof *ratings);
  if (!ratings) return pwi_fault_plain(fault, PAWL_NO_MEMORY, paths[0]);
  status = pwi_paths_expand(paths, count, &files, fault);
  for (size_t i = 0; !status && i < files.count; i++) status = add_file(ratings, options, files.items[i], fault);
  if (!status) status = pwi_ratings_finish(ratings, options, fault);
  pwi_paths_fini(&files);
  if (status)
    pwi_ratings_destroy(ratings);
  else
    *ratings_out = ratings;
  return status;
}

void pwi_ratings_destroy(struct pawl_ratings *ratings) {
  if (!ratings) return;
  for (size_t i = 0; i < ratings->file_count; i++) pwi_free(ratings->files[i].path);
  pwi_free(ratings->files);
  pwi_free(ratings->list);
  pwi_free(ratings->lines);
  pwi_id_names_fini(&ratings->users);
  pwi_id_names_fini(&ratings->items);
  pwi_free(ratings);
}
