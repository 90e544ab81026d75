/* How blocks are divided among workers, and which rows a worker needs. */
#include "apps/bpmf/share/inside.h"
#include "apps/bpmf/scene_test.h"

struct scene {
  struct pawl_ratings *ratings;
  struct bpmf_data data;
  struct bpmf_sampler sampler;
};

static void make(struct scene *scene, uint32_t users, uint32_t items, double share) {
  char error[PAWL_BPMF_TEXT];
  scene->ratings = low_rank_ratings((struct low_rank){users, items, 2, 0.1, share, 7, 1});
  assert_int_equal(bpmf_data_init(&scene->data, scene->ratings, NULL, 0.2, 1, error), PAWL_OK);
  assert_int_equal(bpmf_sampler_init(&scene->sampler, &scene->data, 4, 2, 1, 1, NULL), PAWL_OK);
}

static void destroy(struct scene *scene) {
  bpmf_sampler_fini(&scene->sampler);
  bpmf_data_fini(&scene->data);
  pawl_ratings_destroy(scene->ratings);
}

static void test_each_block_has_one_worker(void **state) {
  (void)state;
  static const uint32_t rows[][2] = {{1, 1}, {3, 200}, {130, 65}, {64, 5}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct scene scene;
    make(&scene, rows[i][0], rows[i][1], 0.5);
    for (uint32_t count = 1; count <= 70; count++)
      for (int side = 0; side < BPMF_SIDES; side++) {
        size_t next = 0;
        for (uint32_t rank = 0; rank < count; rank++) {
          size_t first, end;
          bpmf_part_divide(&scene.sampler, side, rank, count, &first, &end);
          assert_int_equal(first, next);
          assert_true(end >= first);
          next = end;
        }
        assert_int_equal(next, scene.sampler.sides[side].blocks);
      }
    destroy(&scene);
  }
}

/* The last user has rated everything, and still no part has twice the mean number of ratings and rows. */
static void test_parts_have_similar_work(void **state) {
  (void)state;
  struct scene scene;
  make(&scene, 640, 300, 0.05);
  for (int side = 0; side < BPMF_SIDES; side++) {
    const struct bpmf_side *is = &scene.sampler.sides[side];
    for (uint32_t rank = 0; rank < 4; rank++) {
      size_t first, end;
      bpmf_part_divide(&scene.sampler, side, rank, 4, &first, &end);
      size_t row = bpmf_block_begin(is, first), stop = bpmf_block_begin(is, end);
      double work = (double)(is->ratings->starts[stop] - is->ratings->starts[row] + 8 * (stop - row));
      double mean = (double)(scene.data.count + 8 * is->ratings->rows) / 4;
      if (work > 1.3 * mean || work < 0.7 * mean) fail_msg("side %d, worker %u: %g of %g", side, rank, work, mean);
    }
  }
  destroy(&scene);
}

static bool needs_row(const struct bpmf_part *part, int side, size_t row) {
  for (size_t i = 0; i < part->needs[side].count; i++) {
    const struct pawl_items_keys *range = &part->needs[side].ranges[i];
    if (row >= range->start && row < range->start + range->count) return true;
  }
  return false;
}

static bool is_own(const struct bpmf_sampler *sampler, const struct bpmf_part *part, int side, size_t row) {
  const struct bpmf_side *is = &sampler->sides[side];
  return row >= bpmf_block_begin(is, part->first[side]) && row < bpmf_block_begin(is, part->end[side]);
}

/* Exactly the rows that training and test ratings of its own rows name, without its own. */
static void test_a_worker_needs_the_rows_of_its_ratings(void **state) {
  (void)state;
  struct scene scene;
  make(&scene, 90, 150, 0.04);
  const struct bpmf_sampler *sampler = &scene.sampler;
  assert_true(scene.data.test_count > 10);
  for (uint32_t rank = 0; rank < 5; rank++) {
    struct bpmf_part part;
    assert_true(bpmf_part_init(&part, sampler, rank, 5));
    for (int side = 0; side < BPMF_SIDES; side++) {
      const struct bpmf_ratings *ratings = &scene.data.sides[side];
      uint64_t needed = 0;
      for (uint32_t row = 0; row < ratings->rows; row++) {
        bool is_needed = false;
        for (uint64_t i = ratings->starts[row]; i < ratings->starts[row + 1]; i++)
          is_needed |= is_own(sampler, &part, 1 - side, ratings->others[i]);
        for (uint64_t i = 0; i < scene.data.test_count && side == BPMF_ITEMS; i++)
          is_needed |= scene.data.tests[i].item == row && is_own(sampler, &part, BPMF_USERS, scene.data.tests[i].user);
        is_needed &= !is_own(sampler, &part, side, row);
        assert_int_equal(needs_row(&part, side, row), is_needed);
        needed += is_needed;
      }
      assert_int_equal(part.needs[side].rows, needed);
    }
    bpmf_part_fini(&part);
  }
  destroy(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_block_has_one_worker),
      cmocka_unit_test(test_parts_have_similar_work),
      cmocka_unit_test(test_a_worker_needs_the_rows_of_its_ratings),
  };
  return cmocka_run_group_tests_name("apps.bpmf.share.part", tests, make_folder, remove_folder);
}
