/* Files of ratings: any bytes, in each format, with and without values. What is accepted has finite values, and ids within
 * their limits.
 *
 * The first byte chooses format, duplicates and options.
 *
 * covers: src/data/formats/rating_lines.c src/data/id_names.c
 *
 * (A quarter of src/data/ratings.c opens files, and is not reached from here.)
 */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/formats/number.h"
#include "data/formats/rating_lines.h"
#include "data/ratings.h"

static void check(const struct pawl_ratings *ratings, bool values_optional) {
  assert(ratings->info.count > 0 && ratings->info.users <= ratings->info.count + ratings->info.duplicates);
  for (uint64_t i = 0; i < ratings->info.count; i++) {
    const struct pawl_rating *rating = &ratings->list[i];
    uint64_t line;
    uint32_t number;
    assert(rating->user < ratings->info.users && rating->item < ratings->info.items);
    assert(isfinite(rating->value) || (values_optional && isnan(rating->value)));
    size_t size = strlen(pwi_id_names_get(&ratings->users, rating->user));
    assert(size >= 1 && size <= PWI_RATING_NAME_MAX);
    assert(pwi_id_names_find(&ratings->users, pwi_id_names_get(&ratings->users, rating->user), size, &number));
    assert(number == rating->user);
    assert(pwi_ratings_place(ratings, i, &line) && line > 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  struct pawl_ratings_options options = {.format = (enum pawl_ratings_format)(data[0] % 4),
                                         .duplicates = (enum pawl_ratings_duplicates)(data[0] / 4 % 4),
                                         .skip_bad = data[0] & 16 ? 1000 : 0,
                                         .values_optional = (data[0] & 32) != 0};
  struct pwi_fault fault = {""};
  struct pawl_ratings *ratings = pwi_alloc_zero(1, sizeof *ratings);
  char *text = malloc(size - 1 + PWI_NUMBER_SLACK);
  assert(ratings && text);
  memcpy(text, data + 1, size - 1);
  memset(text + size - 1, 0, PWI_NUMBER_SLACK);
  pawl_status status = pwi_ratings_add(ratings, &options, "file", text, size - 1, &fault);
  if (!status) status = pwi_ratings_finish(ratings, &options, &fault);
  assert(status == PAWL_OK || fault.text[0]);
  if (!status) check(ratings, options.values_optional);
  pwi_ratings_destroy(ratings);
  free(text);
  return 0;
}
