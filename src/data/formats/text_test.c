/* Plain text: splitting it into words, and documents. */
#include "data/formats/tokenizer.h"

#include "data/scene_test.h"
#include "data/formats/utf8.h"

/* The words of a text, separated by commas. */
static const char *cut(const char *text, size_t size, uint64_t *long_words_out) {
  static char joined[4096];
  char copy[2048];
  memcpy(copy, text, size);
  memset(copy + size, 'x', PWI_TOKENIZER_SLACK + 1);
  copy[size] = '\n';
  struct pwi_tokenizer cut = {.at = copy, .end = copy + size};
  char word[PWI_TOKENIZER_ROOM];
  size_t length = 0, got;
  joined[0] = 0;
  while ((got = pwi_tokenizer_next(&cut, word))) {
    assert_true(length + got + 2 < sizeof joined);
    length += (size_t)sprintf(joined + length, "%s%.*s", length ? "," : "", (int)got, word);
  }
  if (long_words_out) *long_words_out = cut.long_words;
  return joined;
}

static void assert_cuts(const char *text, const char *words) {
  assert_string_equal(cut(text, strlen(text), NULL), words);
}

static void test_words_are_runs_of_letters_and_digits(void **state) {
  (void)state;
  assert_cuts("The quick, brown FOX; jumps-over: it.", "the,quick,brown,fox,jumps,over,it");
  assert_cuts("  \t\r x\v y ", "x,y");
  assert_cuts("", "");
  assert_cuts("...!?", "");
  assert_cuts("a_b", "a,b");
}

static void test_a_word_has_a_letter(void **state) {
  (void)state;
  assert_cuts("42 4x4 x86-64 1st 007", "4x4,x86,1st");
  assert_cuts("\xd9\xa1\xd9\xa2 \xd9\xa1x", "\xd9\xa1x"); /* Arabic digits */
}

static void test_apostrophes_stand_inside_words(void **state) {
  (void)state;
  assert_cuts("don't 'quoted' dogs' rock'n'roll o''clock '", "don't,quoted,dogs,rock'n'roll,o,clock");
  assert_cuts("don\xe2\x80\x99t \xe2\x80\x99tis l\xe2\x80\x99\xc3\xa9t\xc3\xa9", "don't,tis,l'\xc3\xa9t\xc3\xa9");
  assert_cuts("1'a", "1'a");
  assert_cuts("x'", "x");
}

static void test_letters_and_lower_case_are_those_of_unicode(void **state) {
  (void)state;
  assert_cuts("\xc3\x84PFEL Stra\xc3\x9f"
              "e \xce\x9f\xce\x94\xce\x9f\xce\xa3 \xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0",
              "\xc3\xa4pfel,stra\xc3\x9f"
              "e,\xce\xbf\xce\xb4\xce\xbf\xcf\x83,\xd0\xbc\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0");
  assert_cuts("\xe6\x97\xa5\xe6\x9c\xac\xe3\x80\x82\xe8\xaa\x9e",
              "\xe6\x97\xa5\xe6\x9c\xac,\xe8\xaa\x9e"); /* 日本。語 */
  assert_cuts("\xf0\x90\x90\x80", "\xf0\x90\x90\xa8");  /* Deseret, four bytes */
  assert_cuts("\xe2\x84\xaa\xc8\xba", "k\xe2\xb1\xa5"); /* Kelvin becomes shorter, U+023A longer */
  assert_cuts("a\xe2\x80\x94"
              "b\xc2\xa0"
              "c\xef\xbb\xbf"
              "d\xf0\x9f\x98\x80"
              "e",
              "a,b,c,d,e"); /* a dash, a blank, a mark, a face */
}

static void test_marks_go_on_with_a_word_and_begin_none(void **state) {
  (void)state;
  assert_cuts("E\xcc\x81t\xc3\xa9", "e\xcc\x81t\xc3\xa9");
  assert_cuts("\xcc\x81 \xcc\x81x", "x");
  assert_cuts("\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80",
              "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80");
}

static void test_words_that_are_too_long_are_left_out_and_counted(void **state) {
  char text[2000], due[300];
  uint64_t long_words;
  (void)state;
  for (size_t length = 250; length < 520; length++) {
    memset(text, 'X', length);
    memcpy(text + length, " end", 5);
    memset(due, 'x', 255);
    snprintf(due + length * (length <= 255), 45, "%s", length <= 255 ? ",end" : "end");
    assert_string_equal(cut(text, length + 4, &long_words), length <= 255 ? due : "end");
    assert_int_equal(long_words, length > 255);
  }
  memset(text, 'a', 254);
  memcpy(text + 254,
         "\xc3\xa4"
         "b'c d",
         8);
  assert_string_equal(cut(text, 254 + 7, &long_words), "d");
  assert_int_equal(long_words, 1);
}

static void test_broken_utf8_is_found(void **state) {
  static const struct {
    const char *text;
    int at;
  } cases[] = {
      {"plain, and long enough for words of eight", -1},
      {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf", -1},
      {"\xed\x9f\xbf\xee\x80\x80", -1},
      {"abc\x80", 3},
      {"12345678\xbf", 8},
      {"\xc0\xaf", 0}, /* overlong */
      {"\xc1\xbf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},
      {"a\xed\xa0\x80", 1},    /* a surrogate */
      {"\xf4\x90\x80\x80", 0}, /* beyond U+10FFFF */
      {"\xf5\x80\x80\x80", 0},
      {"\xff", 0},
      {"x\xc3", 1}, /* cut off */
      {"x\xe2\x82", 1},
      {"x\xf0\x9f\x98", 1},
      {"\xc3(", 0},
      {"\xe2\x82(", 0},
      {"\xc3\xa4\xa4", 2},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *text = cases[i].text, *wrong = pwi_utf8_wrong(text, text + strlen(text));
    assert_int_equal(wrong ? wrong - text : -1, cases[i].at);
  }
}

static void test_characters_survive_a_round_trip(void **state) {
  (void)state;
  for (uint32_t character = 0; character < 0x110000; character++) {
    char bytes[4];
    uint32_t back;
    if (character >= 0xd800 && character < 0xe000) continue;
    size_t size = pwi_utf8_put(character, bytes);
    assert_null(pwi_utf8_wrong(bytes, bytes + size));
    assert_int_equal(pwi_utf8_get(bytes, &back), size);
    assert_int_equal(back, character);
  }
}

/* --- documents ------------------------------------------------------------------------------------------ */

static void test_a_line_is_a_document_and_an_empty_one_too(void **state) {
  struct pawl_words *words = words_of("the\ncat\ndog\nsat\n");
  struct pwi_parse_rule rule = {.format = PAWL_DATA_TEXT, .words = words};
  (void)state;
  assert_string_equal(parsed(&rule, "The cat sat. The dog!\n\n  \r\nSat cat\n").text,
                      "0 1:2 2:1 3:1 4:1; 0; 0; 0 2:1 4:1; ");
  assert_string_equal(parsed(&rule, "# cat").text, "0 2:1; "); /* text has no comments */
  assert_string_equal(parsed(&rule, "cat\nd\xff\n").text, "0 2:1; !2:2 invalid UTF-8");
  pwi_words_release(words);
}

static void test_without_a_vocabulary_words_are_hashed(void **state) {
  struct pwi_parse_rule rule = {.format = PAWL_DATA_TEXT, .hash_bits = 20};
  struct told due = {.size = 0};
  (void)state;
  tell(&due, "0 %llu:2; ", (unsigned long long)pwi_hashed_id(pwi_hash("word", 4, 0), 20));
  assert_string_equal(parsed(&rule, "Word word").text, due.text);
}

static struct pawl_data_options text_options(const struct pawl_words *words) {
  struct pawl_data_options options = default_options();
  options.format = PAWL_DATA_TEXT;
  options.words = words;
  return options;
}

static void test_unknown_words_are_left_out_and_counted(void **state) {
  struct pawl_words *words = words_of("the\ncat\n");
  struct pawl_data_options options = text_options(words);
  struct pawl_data *data = opened(write_text("text", "the dog and the cat\n7 dogs\n\xff dog\n"), &options);
  struct pwi_batch *batch;
  struct pwi_fault fault;
  (void)state;
  pwi_words_release(words); /* the data set retains it */
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_CORRUPT);
  assert_non_null(strstr(fault.text, "text:3:1: invalid UTF-8"));
  data->options.skip_bad = 10;
  assert_int_equal(pwi_data_read(data, 0, &batch, &fault), PAWL_OK);
  assert_int_equal(batch->is.rows, 2);
  assert_int_equal(batch->is.unknown, 3); /* the words of the bad row do not count */
  assert_int_equal(batch->is.skipped, 1);
  pwi_batch_destroy(batch);
  pwi_data_close(data);
}

static void test_text_is_never_guessed(void **state) {
  struct pawl_data_options options = default_options();
  pawl_status status;
  (void)state;
  const char *path = write_text("prose", "once upon a time\n");
  assert_non_null(strstr(why_not(path, &options, &status), "also if the file is plain text"));
  assert_int_equal(status, PAWL_CORRUPT);
  options.format = PAWL_DATA_TEXT;
  assert_string_equal(why_not(path, &options, &status), "");
  /* two documents without words */
  assert_string_equal(why_not(write_text("blank", "\n\n"), &options, &status), "");
}

static void test_every_cut_and_packing_gives_the_same_documents(void **state) {
  static const char text[] = "The cat\nsat on\n\nthe dog's mat \xc3\x84\n\xc3\xa4\xc3\xa4 x\r\n\nlast";
  struct pawl_words *words = words_of("the\ncat\nsat\ndog's\n\xc3\xa4\nlast\n");
  struct pawl_data_options options = text_options(words);
  unsigned char packed[1000];
  size_t size = sizeof text - 1;
  (void)state;
  const char *paths[] = {write_bytes("cut", text, size),
                         write_bytes("cut.gz", packed, pack_gzip(text, size, packed, sizeof packed)),
                         write_bytes("cut.zst", packed, pack_zstd(text, size, false, packed, sizeof packed))};
  for (int i = 0; i < 3; i++)
    for (options.piece_bytes = 1; options.piece_bytes <= size + 1; options.piece_bytes++) {
      struct told told = {.size = 0};
      struct pawl_data *data = opened(paths[i], &options);
      struct pwi_batch *batch = read_whole(data);
      tell_batch(&told, &batch->is);
      assert_string_equal(told.text, "0 1:1 2:1; 0 3:1; 0; 0 1:1 4:1 5:1; 0; 0; 0 6:1; ");
      pwi_batch_destroy(batch);
      pwi_data_close(data);
    }
  pwi_words_release(words);
}

static void test_the_vocabulary_is_part_of_the_fingerprint(void **state) {
  struct pawl_words *some = words_of("a\nb\n"), *same = words_of("a\r\nb"), *others = words_of("b\na\n");
  const struct pawl_words *choices[] = {NULL, some, same, others};
  uint64_t prints[4];
  (void)state;
  const char *path = write_text("text", "a b\n");
  for (int i = 0; i < 4; i++) {
    struct pawl_data_options options = text_options(choices[i]);
    struct pawl_data *data = opened(path, &options);
    prints[i] = data->fingerprint;
    pwi_data_close(data);
  }
  assert_true(prints[1] == prints[2] && prints[0] != prints[1] && prints[1] != prints[3]);
  pwi_words_release(some);
  pwi_words_release(same);
  pwi_words_release(others);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words_are_runs_of_letters_and_digits),
      cmocka_unit_test(test_a_word_has_a_letter),
      cmocka_unit_test(test_apostrophes_stand_inside_words),
      cmocka_unit_test(test_letters_and_lower_case_are_those_of_unicode),
      cmocka_unit_test(test_marks_go_on_with_a_word_and_begin_none),
      cmocka_unit_test(test_words_that_are_too_long_are_left_out_and_counted),
      cmocka_unit_test(test_broken_utf8_is_found),
      cmocka_unit_test(test_characters_survive_a_round_trip),
      cmocka_unit_test(test_a_line_is_a_document_and_an_empty_one_too),
      cmocka_unit_test(test_without_a_vocabulary_words_are_hashed),
      cmocka_unit_test(test_unknown_words_are_left_out_and_counted),
      cmocka_unit_test(test_text_is_never_guessed),
      cmocka_unit_test(test_every_cut_and_packing_gives_the_same_documents),
      cmocka_unit_test(test_the_vocabulary_is_part_of_the_fingerprint),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
