/* Readers of ratings: what they return, and their complaints about each kind of bad line. */
#include <math.h>

#include "data/formats/rating_lines.h"
#include "data/ratings.h"
#include "data/scene_test.h"
#include "data/titles.h"

static struct pawl_ratings_options rating_options(void) {
  struct pawl_ratings_options is;
  pawl_ratings_options_init(&is);
  return is;
}

static struct pawl_ratings *ratings_of(const char *path, const struct pawl_ratings_options *options) {
  struct pawl_ratings *ratings = NULL;
  struct pwi_fault fault = {""};
  if (pwi_ratings_read(&path, 1, options, &ratings, &fault)) fail_msg("%s", fault.text);
  return ratings;
}

/* The ratings as text: `user/item=value …`. */
static struct told told_ratings(const struct pawl_ratings *ratings) {
  struct told told = {.size = 0};
  for (uint64_t i = 0; i < ratings->info.count; i++)
    tell(&told, "%s%s/%s=%g", i ? " " : "", pwi_id_names_get(&ratings->users, ratings->list[i].user),
         pwi_id_names_get(&ratings->items, ratings->list[i].item), (double)ratings->list[i].value);
  return told;
}

static void check_with(const char *text, const struct pawl_ratings_options *options, const char *wanted) {
  struct pawl_ratings *ratings = ratings_of(write_text("ratings", text), options);
  assert_string_equal(told_ratings(ratings).text, wanted);
  pwi_ratings_destroy(ratings);
}

static void check(const char *text, const char *wanted) {
  struct pawl_ratings_options options = rating_options();
  check_with(text, &options, wanted);
}

/* Why a text is refused, without the folder. */
static void check_bad_with(const char *text, const struct pawl_ratings_options *options, pawl_status status,
                           const char *wanted) {
  const char *path = write_text("ratings", text);
  struct pawl_ratings *ratings = NULL;
  struct pwi_fault fault = {""};
  assert_int_equal(pwi_ratings_read(&path, 1, options, &ratings, &fault), status);
  assert_null(ratings);
  assert_string_equal(fault.text + strlen(folder) + 1, wanted);
}

static void check_bad(const char *text, const char *wanted) {
  struct pawl_ratings_options options = rating_options();
  check_bad_with(text, &options, PAWL_CORRUPT, wanted);
}

static void test_movielens_csv_is_read_with_its_header(void **state) {
  (void)state;
  check("userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,1260759179\n7,31,4,1\n",
        "1/31=2.5 1/1029=3 7/31=4");
  check("1,31,2.5\r\n2,31,3\r\n", "1/31=2.5 2/31=3"); /* without a header, and with the line breaks of Windows */
  check("\xef\xbb\xbfuser_id,item_id,Rating\nann,\"Boy, The\",-1e2\nann,\"a \"\"b\"\"\",0",
        "ann/Boy, The=-100 ann/a \"b\"=0");
}

static void test_a_header_may_have_any_names(void **state) {
  (void)state;
  check("u,i,r\n1,2,3\n", "1/2=3");
  check("userID\tartistID\tweight\n2\t51\t13883\n", "2/51=13883");
  check("\"User-ID\";\"ISBN\";\"Book-Rating\"\n\"276725\";\"034545104X\";\"0\"\n", "276725/034545104X=0");
  check_bad("u,i2,r\n1,2,3\n", "ratings:1: the rating 'r' is not a number");
  check_bad("ann,film,nan\n1,2,3\n", "ratings:1: the rating 'nan' is not finite");
  check_bad("ann,,r\n1,2,3\n", "ratings:1: the id of the item is empty");
}

static void test_semicolons_separate_unless_there_is_a_comma(void **state) {
  (void)state;
  check("1;2;3\n4;\"a;b\";5\n", "1/2=3 4/a;b=5");
  check("a;b,2,3\n", "a;b/2=3");
  check("a;b\t2\t3\n", "a;b/2=3");
  check("a;b::2::3\n", "a;b/2=3");
}

static void test_triples_are_separated_by_tabs_blanks_or_colons(void **state) {
  (void)state;
  check("196\t242\t3\t881250949\n186\t302\t3\t891717742\n", "196/242=3 186/302=3");
  check("\n  1   2  3.5\n\n4 5 6 7 8\n", "1/2=3.5 4/5=6");
  check("1::1193::5::978300760\n1::661::3::978302109\n", "1/1193=5 1/661=3");
  check("a:b\tc d\t1\n", "a:b/c d=1"); /* a tab separates, so ids may have colons and blanks */
}

static void test_matrix_market_is_read(void **state) {
  (void)state;
  check("%%MatrixMarket matrix coordinate real general\n% words\n\n3 4 2\n1 4 2.5\n03 1 -1\n", "1/4=2.5 3/1=-1");
  check("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 7\n", "1/1=7");
}

static void test_ids_are_kept_by_name_and_numbered_as_they_appear(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  struct pawl_ratings *ratings = ratings_of(write_text("ratings", "9,x,1\n007,x,2\n7,y,3\n9,y,4\n"), &options);
  uint64_t line = 0;
  assert_int_equal(ratings->info.count, 4);
  assert_int_equal(ratings->info.users, 3);
  assert_int_equal(ratings->info.items, 2);
  assert_int_equal(ratings->list[3].user, 0);
  assert_int_equal(ratings->list[3].item, 1);
  assert_string_equal(pwi_id_names_get(&ratings->users, 1), "007");
  assert_string_equal(pwi_ratings_place(ratings, 2, &line), path_of("ratings"));
  assert_int_equal(line, 3);
  pwi_ratings_destroy(ratings);
}

static void test_many_ids_keep_their_numbers(void **state) {
  (void)state;
  struct pwi_id_names names = {.count = 0};
  char name[32];
  uint32_t number;
  for (uint32_t i = 0; i < 5000; i++) {
    int size = snprintf(name, sizeof name, "%x", i * 2654435761u);
    assert_true(pwi_id_names_add(&names, name, (size_t)size, &number));
    assert_int_equal(number, i);
  }
  for (uint32_t i = 0; i < 5000; i++) {
    int size = snprintf(name, sizeof name, "%x", i * 2654435761u);
    assert_true(pwi_id_names_find(&names, name, (size_t)size, &number));
    assert_int_equal(number, i);
  }
  assert_false(pwi_id_names_find(&names, "nobody", 6, &number));
  pwi_id_names_fini(&names);
}

static void test_each_kind_of_bad_line_is_named_with_its_place(void **state) {
  (void)state;
  char text[1024];
  check_bad("1,2,3\n1,3\n", "ratings:2: expected user, item and rating, found 2 fields");
  check_bad("1 2 3\n\n7\n", "ratings:3: expected user, item and rating, found 1 field");
  check_bad("1,2,3\n,3,4\n", "ratings:2: the id of the user is empty");
  check_bad("1,2,3\n1,,4\n", "ratings:2: the id of the item is empty");
  check_bad("1,2,3\n1,3,\n", "ratings:2: the rating is empty");
  check_bad("1,2,3\n1,3,four\n", "ratings:2: the rating 'four' is not a number");
  check_bad("1,2,3\n1,3,4 5\n", "ratings:2: the rating '4 5' is not a number");
  check_bad("1,2,3\n1,3,nan\n", "ratings:2: the rating 'nan' is not finite");
  check_bad("1,2,3\n1,3,inf,0\n", "ratings:2: the rating 'inf' is not finite");
  check_bad("1,2,3\n1,3,1e39\n", "ratings:2: the rating '1e39' is too large: ratings are floats");
  check_bad("1,2,3\n1,3,-1e39\n", "ratings:2: the rating '-1e39' is too large: ratings are floats");
  check_bad("1,2,3\n1,\"3,4\n", "ratings:2: a quote is not closed, or text follows it");
  check_bad("1,2,three\n", "ratings:1: the rating 'three' is not a number"); /* does not pass for a header */
  snprintf(text, sizeof text, "1,2,3\n%0300d,3,4\n", 7);
  check_bad(text, "ratings:2: the id of the user has 300 bytes; at most 255 are possible");
}

static void test_bad_matrices_are_refused(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
#define REAL "%%MatrixMarket matrix coordinate real general\n"
  check_bad(REAL "2 2 1\n3 1 5\n", "ratings:3: row 3 is not from 1 to 2");
  check_bad(REAL "2 2 1\n1 0 5\n", "ratings:3: column 0 is not from 1 to 2");
  check_bad(REAL "2 2 1\na 1 5\n", "ratings:3: the row 'a' is not a whole number");
  check_bad(REAL "2 2 1\n1 1\n", "ratings:3: expected user, item and rating, found 2 fields");
  check_bad(REAL "2 2 3\n1 1 5\n1 2 5\n", "ratings: the head states 3 entries, but the file has 2");
  check_bad(REAL "% no more\n2 2\n1 1 5\n", "ratings:3: expected the numbers of rows, columns and entries");
  check_bad("%%MatrixMarket matrix\n2 2 1\n1 1 5\n",
            "ratings:1: expected '%%MatrixMarket matrix coordinate real general'");
  check_bad_with(REAL, &options, PAWL_TRUNCATED, "ratings:2: the file ends before the line of sizes");
  check_bad_with("%%MatrixMarket matrix array real general\n2 2\n1\n", &options, PAWL_UNSUPPORTED,
                 "ratings:1: only coordinate matrices can be read");
  check_bad_with("%%MatrixMarket matrix coordinate complex general\n2 2 1\n", &options, PAWL_UNSUPPORTED,
                 "ratings:1: only matrices of reals or integers can be read");
  check_bad_with("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n", &options, PAWL_UNSUPPORTED,
                 "ratings:1: a pattern has no ratings");
  check_bad_with("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 1\n", &options, PAWL_UNSUPPORTED,
                 "ratings:1: only general matrices can be read, and no symmetric ones");
  options.format = PAWL_RATINGS_MTX;
  check_bad_with("1 1 1\n1 1 5\n", &options, PAWL_CORRUPT,
                 "ratings:1: expected a first line that begins with %%MatrixMarket");
}

static void test_bad_lines_are_skipped_up_to_a_number_and_counted(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  const char *text = "userId,movieId,rating\n1,2,3\n1,3\n1,4,nan\n2,2,5\n";
  options.skip_bad = 2;
  struct pawl_ratings *ratings = ratings_of(write_text("ratings", text), &options);
  assert_string_equal(told_ratings(ratings).text, "1/2=3 2/2=5");
  assert_int_equal(ratings->info.skipped, 2);
  assert_string_equal(ratings->first_bad + strlen(folder) + 1,
                      "ratings:3: expected user, item and rating, found 2 fields");
  pwi_ratings_destroy(ratings);
  options.skip_bad = 1;
  check_bad_with(text, &options, PAWL_CORRUPT, "ratings:4: the rating 'nan' is not finite");
  options.skip_bad = 99;
  check_bad_with("1,2\n", &options, PAWL_TRUNCATED, "ratings: no ratings");
}

static void test_duplicates_are_refused_replaced_or_merged(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  const char *text = "1,2,3\n1,3,1\n2,2,4\n1,2,5\n1,2,1\n";
  char wanted[1200];
  snprintf(wanted, sizeof wanted,
           "ratings:4: user 1 rates item 2 again, first at %s:1; choose with --duplicates last or mean",
           path_of("ratings"));
  check_bad_with(text, &options, PAWL_EXISTS, wanted);
  options.duplicates = PAWL_RATINGS_LAST;
  check_with(text, &options, "1/3=1 2/2=4 1/2=1");
  options.duplicates = PAWL_RATINGS_MEAN;
  struct pawl_ratings *ratings = ratings_of(write_text("ratings", text), &options);
  uint64_t line;
  assert_string_equal(told_ratings(ratings).text, "1/3=1 2/2=4 1/2=3");
  assert_int_equal(ratings->info.duplicates, 2);
  assert_string_equal(pwi_ratings_place(ratings, 2, &line), path_of("ratings"));
  assert_int_equal(line, 5);
  pwi_ratings_destroy(ratings);
  options.duplicates = PAWL_RATINGS_ALL;
  check_with(text, &options, "1/2=3 1/3=1 2/2=4 1/2=5 1/2=1");
}

static void test_values_may_be_missing_if_that_is_allowed(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  options.values_optional = true;
  options.duplicates = PAWL_RATINGS_ALL;
  check_with("user,item\n1,2\n1,3,4\n", &options, "1/2=nan 1/3=4");
  check_with("1 2\n", &options, "1/2=nan");
  check_with("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n", &options, "2/1=nan");
  check_bad_with("1,2\n1,3,x\n", &options, PAWL_CORRUPT, "ratings:2: the rating 'x' is not a number");
}

static void test_several_files_form_one_set_and_keep_their_places(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  char first[300], second[300];
  snprintf(first, sizeof first, "%s", write_text("one", "1,2,3\n"));
  snprintf(second, sizeof second, "%s", write_text("two", "userId,movieId,rating\n1,3,4\n2,2,5\n"));
  const char *paths[] = {first, second};
  struct pawl_ratings *ratings = NULL;
  struct pwi_fault fault = {""};
  uint64_t line = 0;
  assert_int_equal(pwi_ratings_read(paths, 2, &options, &ratings, &fault), PAWL_OK);
  assert_string_equal(told_ratings(ratings).text, "1/2=3 1/3=4 2/2=5");
  assert_string_equal(pwi_ratings_place(ratings, 0, &line), first);
  assert_string_equal(pwi_ratings_place(ratings, 2, &line), second);
  assert_int_equal(line, 3);
  pwi_ratings_destroy(ratings);
  write_text("two", "1,2,4\n");
  ratings = NULL;
  assert_int_equal(pwi_ratings_read(paths, 2, &options, &ratings, &fault), PAWL_EXISTS);
  options.duplicates = PAWL_RATINGS_LAST; /* the only rating of the first file goes */
  assert_int_equal(pwi_ratings_read(paths, 2, &options, &ratings, &fault), PAWL_OK);
  assert_string_equal(pwi_ratings_place(ratings, 0, &line), second);
  pwi_ratings_destroy(ratings);
}

static void test_compressed_files_are_read_as_well(void **state) {
  (void)state;
  static unsigned char packed[4096];
  const char *text = "1,2,3\n4,5,6\n";
  struct pawl_ratings_options options = rating_options();
  size_t size = pack_zstd(text, strlen(text), true, packed, sizeof packed);
  struct pawl_ratings *ratings = ratings_of(write_bytes("ratings.zst", packed, size), &options);
  assert_string_equal(told_ratings(ratings).text, "1/2=3 4/5=6");
  pwi_ratings_destroy(ratings);
}

static void test_empty_and_missing_files_are_named(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  const char *nothing = path_of("nothing");
  struct pawl_ratings *ratings = NULL;
  struct pwi_fault fault = {""};
  check_bad_with("", &options, PAWL_TRUNCATED, "ratings: the file is empty");
  check_bad_with("\n\n", &options, PAWL_TRUNCATED, "ratings: no ratings");
  check_bad_with("userId,movieId,rating\n", &options, PAWL_TRUNCATED, "ratings: no ratings");
  assert_int_equal(pwi_ratings_read(&nothing, 1, &options, &ratings, &fault), PAWL_NOT_FOUND);
  assert_non_null(strstr(fault.text, "nothing"));
}

static void test_titles_are_found_by_id(void **state) {
  (void)state;
  struct pwi_fault fault = {""};
  const char *const ids[] = {"11", "2", "99"};
  char *titles[3];
  const char *path =
      write_text("movies.csv", "movieId,title,genres\n1,Toy Story (1995),Comedy\n2,\"Boy, The \"\"x\"\"\",\n"
                               "11,Heat,Action\n11,Again,\n");
  assert_int_equal(pwi_titles_find(path, ids, 3, titles, &fault), PAWL_OK);
  assert_string_equal(titles[0], "Heat");
  assert_string_equal(titles[1], "Boy, The \"x\"");
  assert_null(titles[2]);
  pwi_free(titles[0]);
  pwi_free(titles[1]);
  path = write_text("movies.dat", "2::Jumanji, (1995)::Adventure\n\n11::Heat::Action\n");
  assert_int_equal(pwi_titles_find(path, ids, 3, titles, &fault), PAWL_OK);
  assert_string_equal(titles[1], "Jumanji, (1995)");
  pwi_free(titles[0]);
  pwi_free(titles[1]);
  path = write_text("movies.csv", "2,Jumanji\n3\n");
  assert_int_equal(pwi_titles_find(path, ids, 3, titles, &fault), PAWL_CORRUPT);
  assert_string_equal(fault.text + strlen(folder) + 1, "movies.csv:2: expected an id and a title");
  assert_null(titles[1]);
}

static void test_without_memory_nothing_is_left_behind(void **state) {
  (void)state;
  struct pawl_ratings_options options = rating_options();
  char path[300];
  snprintf(path, sizeof path, "%s", write_text("ratings", "1,2,3\n1,3,4\n2,2,5\n2,3,1\n"));
  const char *paths[] = {path};
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (pawl_status status = PAWL_NO_MEMORY; status; n++) {
    struct pawl_ratings *ratings = NULL;
    struct pwi_fault fault = {""};
    pwi_memory_fail_after(n);
    status = pwi_ratings_read(paths, 1, &options, &ratings, &fault);
    pwi_memory_fail_cancel();
    assert_true(status == PAWL_OK || (status == PAWL_NO_MEMORY && !ratings && fault.text[0]));
    pwi_ratings_destroy(ratings);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_movielens_csv_is_read_with_its_header),
      cmocka_unit_test(test_a_header_may_have_any_names),
      cmocka_unit_test(test_semicolons_separate_unless_there_is_a_comma),
      cmocka_unit_test(test_triples_are_separated_by_tabs_blanks_or_colons),
      cmocka_unit_test(test_matrix_market_is_read),
      cmocka_unit_test(test_ids_are_kept_by_name_and_numbered_as_they_appear),
      cmocka_unit_test(test_many_ids_keep_their_numbers),
      cmocka_unit_test(test_each_kind_of_bad_line_is_named_with_its_place),
      cmocka_unit_test(test_bad_matrices_are_refused),
      cmocka_unit_test(test_bad_lines_are_skipped_up_to_a_number_and_counted),
      cmocka_unit_test(test_duplicates_are_refused_replaced_or_merged),
      cmocka_unit_test(test_values_may_be_missing_if_that_is_allowed),
      cmocka_unit_test(test_several_files_form_one_set_and_keep_their_places),
      cmocka_unit_test(test_compressed_files_are_read_as_well),
      cmocka_unit_test(test_empty_and_missing_files_are_named),
      cmocka_unit_test(test_titles_are_found_by_id),
      cmocka_unit_test(test_without_memory_nothing_is_left_behind),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
