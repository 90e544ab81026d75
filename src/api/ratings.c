/* <pawl/ratings.h>: wraps src/data and copies its faults to pawl_error_text. */
#include <pawl/ratings.h>

#include <string.h>

#include "api/error.h"
#include "api/options.h"
#include "data/ratings.h"

void pawl_ratings_options_init_sized(struct pawl_ratings_options *options, size_t struct_size) {
  const struct pawl_ratings_options defaults = {.format = PAWL_RATINGS_AUTO};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

pawl_status pawl_ratings_read(const char *const *paths, size_t count, const struct pawl_ratings_options *options,
                              struct pawl_ratings **ratings_out) {
  struct pawl_ratings_options is;
  struct pwi_fault fault = {""};
  pawl_ratings_options_init(&is);
  pawl_status status = pwi_take_options("ratings", options, &is, sizeof is);
  if (status) return status;
  status = pwi_ratings_read(paths, count, &is, ratings_out, &fault);
  return status ? pwi_error(status, "%s", fault.text) : PAWL_OK;
}

void pawl_ratings_destroy(struct pawl_ratings *ratings) { pwi_ratings_destroy(ratings); }

void pawl_ratings_info(const struct pawl_ratings *ratings, struct pawl_ratings_info *info_out) {
  *info_out = ratings->info;
}

const struct pawl_rating *pawl_ratings_list(const struct pawl_ratings *ratings) { return ratings->list; }

const char *pawl_ratings_user(const struct pawl_ratings *ratings, uint32_t user) {
  return pwi_id_names_get(&ratings->users, user);
}

const char *pawl_ratings_item(const struct pawl_ratings *ratings, uint32_t item) {
  return pwi_id_names_get(&ratings->items, item);
}

const char *pawl_ratings_place(const struct pawl_ratings *ratings, uint64_t n, uint64_t *line_out) {
  return pwi_ratings_place(ratings, n, line_out);
}

const char *pawl_ratings_first_bad(const struct pawl_ratings *ratings) { return ratings->first_bad; }

pawl_status pawl_ratings_format_parse(const char *name, enum pawl_ratings_format *format_out) {
  static const char *const names[] = {"csv", "triples", "mtx"};
  for (int i = 0; i < 3; i++)
    if (strcmp(name, names[i]) == 0) {
      *format_out = (enum pawl_ratings_format)(PAWL_RATINGS_CSV + i);
      return PAWL_OK;
    }
  return pwi_error(PAWL_INVALID, "unknown format of ratings '%s'; expected csv, triples or mtx", name);
}
