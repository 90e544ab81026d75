/* The catalogue: its rules one by one, the exact encoded form, and decoders with invalid bytes. */
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "protocol/catalogue.h"

#define SEED UINT64_C(1707)

static const struct pawl_vector_options plain = {.type = PAWL_F32,
                                                 .width = 1,
                                                 .size = 100,
                                                 .function = PAWL_ADD,
                                                 .placement = PAWL_PLACE_ORDERED,
                                                 .layout = PAWL_LAYOUT_DENSE};
static const struct pawl_vector_options of_groups = {.type = PAWL_U64,
                                                     .width = 1,
                                                     .size = PAWL_KEY_END,
                                                     .function = PAWL_ADD,
                                                     .placement = PAWL_PLACE_ORDERED,
                                                     .layout = PAWL_LAYOUT_SPARSE};

static struct pwi_vector_id id_of(uint64_t id) { return (struct pwi_vector_id){id}; }

static struct pwi_entry entry_of(uint64_t id, const char *name) {
  struct pwi_entry entry = {.id = {id}, .is = plain};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  return entry;
}

static struct pwi_entry group_of(uint64_t id, const char *name) {
  struct pwi_entry entry = entry_of(id, name);
  entry.kind = PWI_ENTRY_GROUP;
  entry.is = of_groups;
  return entry;
}

static void add(struct pwi_catalogue *catalogue, struct pwi_entry entry) {
  assert_int_equal(pwi_catalogue_add(catalogue, &entry), PAWL_OK);
}

/* Two entries of 32 and 33 bytes after the head of 13. */
static struct pwi_catalogue example(void) {
  struct pwi_catalogue catalogue = {0};
  struct pwi_entry weights = entry_of(7, "ctr/w");
  weights.is = (struct pawl_vector_options){.type = PAWL_F64,
                                            .width = 3,
                                            .size = PAWL_KEY_END,
                                            .function = PAWL_ASSIGN,
                                            .placement = PAWL_PLACE_MIXED,
                                            .layout = PAWL_LAYOUT_SPARSE};
  add(&catalogue, entry_of(5, "ctr/gone"));
  add(&catalogue, weights);
  add(&catalogue, group_of(9, "ctr/.w"));
  assert_int_equal(pwi_catalogue_remove(&catalogue, id_of(5)), PAWL_OK);
  return catalogue;
}

static struct pwi_writer bytes_of(const struct pwi_catalogue *catalogue) {
  struct pwi_writer writer = {0};
  pwi_catalogue_encode(catalogue, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

static struct pwi_writer example_bytes(void) {
  struct pwi_catalogue catalogue = example();
  struct pwi_writer writer = bytes_of(&catalogue);
  pwi_catalogue_fini(&catalogue);
  return writer;
}

/* --- names ---------------------------------------------------------------------------------------------- */

static void test_names_are_two_words_with_a_slash_between(void **state) {
  (void)state;
  const char *good[] = {"a/b", "A.b_c-9/Z.z_z-0", "0/1", "-/_", "./a", "a/b."};
  const char *bad[] = {"",     "a",     "/",      "a/",      "/a",         "a/b/c", "a//b",  "a /b",
                       "a/b ", "a/b\n", "a\\b/c", "a/b\x80", "\xc3\xa9/b", "a/b*",  "a:b/c", "/a/b"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_int_equal(pwi_name_check(good[i], PWI_ENTRY_VECTOR), PAWL_OK);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(pwi_name_check(bad[i], PWI_ENTRY_VECTOR), PAWL_INVALID);
    assert_int_equal(pwi_name_check(bad[i], PWI_ENTRY_GROUP), PAWL_INVALID);
  }
}

static void test_the_second_word_of_a_group_and_of_no_vector_begins_with_a_dot(void **state) {
  (void)state;
  assert_int_equal(pwi_name_check("a/.b", PWI_ENTRY_GROUP), PAWL_OK);
  assert_int_equal(pwi_name_check("a/.b", PWI_ENTRY_VECTOR), PAWL_INVALID);
  assert_int_equal(pwi_name_check("a/b", PWI_ENTRY_GROUP), PAWL_INVALID);
  assert_int_equal(pwi_name_check("a/.b", PWI_ENTRY_PEERS), PAWL_OK);
  assert_int_equal(pwi_name_check("a/b", PWI_ENTRY_PEERS), PAWL_INVALID);
  assert_int_equal(pwi_name_check(".a/b", PWI_ENTRY_GROUP), PAWL_INVALID);
}

static void test_names_and_spaces_end_at_their_limits(void **state) {
  (void)state;
  char name[PAWL_NAME_MAX + 2];
  memset(name, 'x', sizeof name);
  name[PAWL_NAME_MAX] = '\0';
  name[PWI_SPACE_MAX] = '/';
  assert_int_equal(pwi_name_check(name, PWI_ENTRY_VECTOR), PAWL_OK);
  name[PAWL_NAME_MAX] = 'x';
  name[PAWL_NAME_MAX + 1] = '\0';
  assert_int_equal(pwi_name_check(name, PWI_ENTRY_VECTOR), PAWL_INVALID);
  name[10] = '\0';
  name[9] = '/';
  assert_int_equal(pwi_name_check(name, PWI_ENTRY_VECTOR), PAWL_INVALID);
  memset(name, 'x', sizeof name);
  name[PWI_SPACE_MAX + 1] = '/';
  name[PWI_SPACE_MAX + 3] = '\0';
  assert_int_equal(pwi_name_check(name, PWI_ENTRY_VECTOR), PAWL_INVALID);
}

static void test_a_name_is_in_its_own_space_only(void **state) {
  (void)state;
  assert_true(pwi_name_is_in("ctr/w", "ctr"));
  assert_false(pwi_name_is_in("ctr/w", "ct"));
  assert_false(pwi_name_is_in("ctr/w", "ctr2"));
  assert_false(pwi_name_is_in("ctr/w", "w"));
  assert_false(pwi_name_is_in("ctr/w", ""));
  assert_false(pwi_name_is_in("c", "ctr"));
}

static void test_the_key_of_a_group_is_fixed_by_its_name(void **state) {
  (void)state;
  struct pwi_place place = {PAWL_KEY_END, false};
  uint64_t key = pwi_group_key("ctr/.all");
  assert_true(key == UINT64_C(0x06fd3e6ea1511d3c)); /* where clocks lie that are kept on disk */
  assert_true(key == pwi_group_key("ctr/.all"));
  assert_true(key != pwi_group_key("ctr/.al"));
  assert_true(pwi_place_position(&place, key) == key);
}

/* --- options -------------------------------------------------------------------------------------------- */

static void settles(uint64_t size, enum pawl_placement placement, enum pawl_layout layout, pawl_status status,
                    enum pawl_placement placed, enum pawl_layout laid) {
  struct pawl_vector_options asked = {.type = PAWL_I32,
                                      .width = 2,
                                      .size = size,
                                      .function = PAWL_ASSIGN,
                                      .placement = placement,
                                      .layout = layout},
                             settled = {0};
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), status);
  if (status) {
    assert_int_equal(settled.type, 0);
    return;
  }
  assert_int_equal(settled.type, PAWL_I32);
  assert_int_equal(settled.width, 2);
  assert_true(settled.size == size);
  assert_int_equal(settled.function, PAWL_ASSIGN);
  assert_int_equal(settled.placement, placed);
  assert_int_equal(settled.layout, laid);
}

static void test_unset_options_follow_from_the_span(void **state) {
  (void)state;
  const uint64_t small = UINT64_C(1) << 28, large = UINT32_MAX - 16;
  const enum pawl_placement place = PAWL_PLACE_AUTO, ordered = PAWL_PLACE_ORDERED, mixed = PAWL_PLACE_MIXED;
  const enum pawl_layout layout = PAWL_LAYOUT_AUTO, dense = PAWL_LAYOUT_DENSE, sparse = PAWL_LAYOUT_SPARSE;
  settles(1, place, layout, PAWL_OK, ordered, dense);
  settles(small, place, layout, PAWL_OK, ordered, dense);
  settles(small + 1, place, layout, PAWL_OK, ordered, sparse);
  settles(PAWL_KEY_END - 1, place, layout, PAWL_OK, ordered, sparse);
  settles(PAWL_KEY_END, place, layout, PAWL_OK, mixed, sparse);
  settles(PAWL_KEY_END, ordered, layout, PAWL_OK, ordered, sparse);
  settles(PAWL_KEY_END, mixed, sparse, PAWL_OK, mixed, sparse);
  settles(5, ordered, sparse, PAWL_OK, ordered, sparse);
  settles(large, place, dense, PAWL_OK, ordered, dense);
  settles(large + 1, place, dense, PAWL_TOO_LARGE, place, layout);
  settles(UINT64_C(1) << 32, place, dense, PAWL_TOO_LARGE, place, layout);
  settles(PAWL_KEY_END, mixed, dense, PAWL_TOO_LARGE, place, layout);
  settles(PAWL_KEY_END - 1, mixed, layout, PAWL_INVALID, place, layout);
  settles(0, place, layout, PAWL_INVALID, place, layout);
}

/* Options that no server can create are invalid, and AUTO is replaced by options that servers can create. */
static void test_vectors_that_no_server_could_make_are_too_large(void **state) {
  (void)state;
  struct pawl_vector_options asked = {.type = PAWL_F64, .width = 1000000, .size = 200000000}, settled;
  asked.layout = PAWL_LAYOUT_DENSE;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_TOO_LARGE);
  asked.layout = PAWL_LAYOUT_AUTO;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_int_equal(settled.layout, PAWL_LAYOUT_SPARSE);
  asked = (struct pawl_vector_options){.type = PAWL_F64, .width = 1 << 17, .size = (1 << 24) - 16};
  asked.layout = PAWL_LAYOUT_DENSE; /* 2^44 bytes, and one row more */
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  asked.size++;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_TOO_LARGE);
}

static void refuses(struct pawl_vector_options asked) {
  struct pawl_vector_options settled = {.width = 77};
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_INVALID);
  assert_int_equal(settled.width, 77);
}

static void test_options_out_of_bounds_are_refused(void **state) {
  (void)state;
  struct pawl_vector_options asked = plain;
  asked.width = PAWL_WIDTH_MAX;
  assert_int_equal(pwi_options_settle(&asked, NULL, &asked), PAWL_OK);
  asked.width = PAWL_WIDTH_MAX + 1;
  refuses(asked);
  asked.width = 0;
  refuses(asked);
  const int types[] = {0, 6, 255, -1}, others[] = {3, 255, -1};
  for (size_t i = 0; i < 4; i++) {
    asked = plain;
    asked.type = (enum pawl_type)types[i];
    refuses(asked);
  }
  for (size_t i = 0; i < 3; i++) {
    asked = plain;
    asked.function = (enum pawl_function)others[i];
    refuses(asked);
    asked = plain;
    asked.placement = (enum pawl_placement)others[i];
    refuses(asked);
    asked = plain;
    asked.layout = (enum pawl_layout)others[i];
    refuses(asked);
  }
}

static void test_the_modules_below_accept_the_options(void **state) {
  (void)state;
  struct pwi_catalogue catalogue = example();
  for (size_t i = 0; i < catalogue.count; i++) {
    struct pwi_place place = pwi_entry_place(&catalogue.entries[i]);
    struct pwi_table_options options = pwi_entry_table(&catalogue.entries[i]);
    struct pwi_table *table;
    assert_int_equal(pwi_place_check(&place), PAWL_OK);
    assert_int_equal(place.mixed, i == 0);
    assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
    assert_int_equal(table->row_bytes, pwi_entry_row_bytes(&catalogue.entries[i]));
    assert_int_equal(table->row_bytes, i == 0 ? 24 : 8);
    assert_true(table->is.sparse && table->is.span.end == PAWL_KEY_END && table->is.state_width == 0);
    pwi_table_destroy(table);
  }
  struct pwi_entry dense = entry_of(1, "a/b");
  assert_false(pwi_entry_table(&dense).sparse);
  assert_int_equal(pwi_entry_table(&dense).span.begin, 0);
  assert_int_equal(pwi_entry_table(&dense).span.end, 100);
  assert_false(pwi_entry_place(&dense).mixed);
  assert_int_equal(pwi_entry_place(&dense).size, 100);
  pwi_catalogue_fini(&catalogue);
}

/* --- changes -------------------------------------------------------------------------------------------- */

static void test_an_empty_catalogue_has_nothing(void **state) {
  (void)state;
  struct pwi_catalogue catalogue = {0};
  assert_null(pwi_catalogue_find(&catalogue, id_of(0)));
  assert_null(pwi_catalogue_named(&catalogue, "a/b"));
  assert_int_equal(pwi_catalogue_remove(&catalogue, id_of(1)), PAWL_NOT_FOUND);
  assert_int_equal(catalogue.number, 0);
  pwi_catalogue_fini(&catalogue);
}

static void test_entries_are_found_by_id_and_by_name(void **state) {
  (void)state;
  struct pwi_catalogue catalogue = {0};
  char name[32];
  for (uint64_t i = 1; i <= 100; i++) {
    snprintf(name, sizeof name, "s/%d", (int)i);
    add(&catalogue, entry_of(3 * i, name));
    assert_int_equal(catalogue.number, i);
  }
  for (uint64_t i = 0; i <= 303; i++) {
    const struct pwi_entry *entry = pwi_catalogue_find(&catalogue, id_of(i));
    assert_true((entry != NULL) == (i > 0 && i % 3 == 0 && i <= 300));
    if (entry) assert_ptr_equal(pwi_catalogue_named(&catalogue, entry->name), entry);
  }
  assert_null(pwi_catalogue_find(&catalogue, id_of(UINT64_MAX)));
  assert_null(pwi_catalogue_named(&catalogue, "s/101"));
  for (uint64_t i = 2; i <= 100; i += 2) assert_int_equal(pwi_catalogue_remove(&catalogue, id_of(3 * i)), PAWL_OK);
  assert_int_equal(catalogue.number, 150);
  assert_int_equal(catalogue.count, 50);
  for (uint64_t i = 1; i <= 100; i++) assert_true((pwi_catalogue_find(&catalogue, id_of(3 * i)) != NULL) == (i % 2));
  assert_int_equal(pwi_catalogue_remove(&catalogue, id_of(6)), PAWL_NOT_FOUND);
  add(&catalogue, entry_of(UINT64_MAX, "s/2")); /* the name is free again */
  assert_non_null(pwi_catalogue_find(&catalogue, id_of(UINT64_MAX)));
  pwi_catalogue_fini(&catalogue);
}

static void refuses_entry(const struct pwi_entry *entry, pawl_status status) {
  struct pwi_catalogue catalogue = example();
  struct pwi_writer before = bytes_of(&catalogue);
  assert_int_equal(pwi_catalogue_add(&catalogue, entry), status);
  struct pwi_writer after = bytes_of(&catalogue);
  assert_int_equal(after.size, before.size);
  assert_memory_equal(after.data, before.data, before.size);
  pwi_writer_fini(&after);
  pwi_writer_fini(&before);
  pwi_catalogue_fini(&catalogue);
}

static void test_an_entry_that_breaks_a_rule_changes_nothing(void **state) {
  (void)state;
  struct pwi_entry entry = entry_of(9, "a/b");
  refuses_entry(&entry, PAWL_INVALID); /* an id that is taken */
  entry = entry_of(8, "a/b");
  refuses_entry(&entry, PAWL_INVALID); /* below one that is taken */
  entry = entry_of(0, "a/b");
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "ctr/w");
  refuses_entry(&entry, PAWL_EXISTS);
  entry = group_of(10, "ctr/.w");
  refuses_entry(&entry, PAWL_EXISTS);
  entry = entry_of(10, "a/.b");
  refuses_entry(&entry, PAWL_INVALID);
  entry = group_of(10, "a/b");
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "a/b");
  entry.kind = (enum pwi_entry_kind)3;
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "a/b");
  memset(entry.name + 2, 'x', sizeof entry.name - 2); /* without an end */
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "a/b");
  entry.is.placement = PAWL_PLACE_AUTO;
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "a/b");
  entry.is.layout = PAWL_LAYOUT_AUTO;
  refuses_entry(&entry, PAWL_INVALID);
  entry = entry_of(10, "a/b");
  entry.is.width = 0;
  refuses_entry(&entry, PAWL_INVALID);
}

static void test_a_group_is_what_every_group_is(void **state) {
  (void)state;
  struct pwi_entry entry = group_of(10, "a/.b");
  entry.is.type = PAWL_I64;
  refuses_entry(&entry, PAWL_INVALID);
  entry = group_of(10, "a/.b");
  entry.is.width = 2;
  refuses_entry(&entry, PAWL_INVALID);
  entry = group_of(10, "a/.b");
  entry.is.size = PAWL_KEY_END - 1;
  refuses_entry(&entry, PAWL_INVALID);
  entry = group_of(10, "a/.b");
  entry.is.placement = PAWL_PLACE_MIXED;
  refuses_entry(&entry, PAWL_INVALID);
  entry = group_of(10, "a/.b");
  entry.is.size = 100;
  entry.is.layout = PAWL_LAYOUT_DENSE;
  refuses_entry(&entry, PAWL_INVALID);
}

/* --- rules ---------------------------------------------------------------------------------------------- */

static struct pawl_vector_options ruled(const char *rule) {
  struct pawl_vector_options asked = plain;
  snprintf(asked.rule, sizeof asked.rule, "%s", rule);
  return asked;
}

static void test_rules_are_settled(void **state) {
  (void)state;
  struct pawl_vector_options settled, other, asked = ruled("  adagrad   rate=0.25 ");
  asked.width = 3;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_int_equal(settled.function, PAWL_RULE);
  assert_true(settled.pushed_width == 3 && settled.stored_width == 3 && settled.state_width == 3);
  assert_non_null(strstr(settled.rule, "adagrad rate=0.25"));
  assert_int_equal(pwi_options_settle(&settled, NULL, &other), PAWL_OK); /* and stay so */
  assert_true(pwi_options_equal(&settled, &other));
  asked = ruled("block_proximal");
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_true(settled.pushed_width == 2 && settled.stored_width == 1);
  asked = ruled("block_newton l1=2");
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_true(settled.pushed_width == 2 && settled.stored_width == 2);
  asked = ruled("assign"); /* plain ones have numbers */
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_true(settled.function == PAWL_ASSIGN && settled.rule[0] == '\0' && settled.stored_width == 0);
  asked = ruled("adagrad rate=-1");
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_INVALID);
  asked = ruled("adagrad");
  asked.type = PAWL_I32;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_INVALID);
  asked = ruled(" somebodys   own=1"); /* others may know it */
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  assert_string_equal(settled.rule, "somebodys own=1");
  assert_false(pwi_options_are_known(&settled));
  struct pwi_entry entry = entry_of(1, "a/b");
  entry.is = settled;
  refuses_entry(&entry, PAWL_INVALID); /* nobody has said how wide it is */
  entry.is.pushed_width = 5;
  entry.is.stored_width = 2;
  struct pwi_catalogue catalogue = {0};
  add(&catalogue, entry);
  struct pwi_writer writer = bytes_of(&catalogue);
  struct pwi_catalogue again = {0};
  assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &again), PAWL_OK);
  assert_int_equal(pwi_entry_pushed_bytes(&again.entries[0]), 20);
  assert_int_equal(pwi_entry_row_bytes(&again.entries[0]), 8);
  pwi_writer_fini(&writer);
  pwi_catalogue_fini(&again);
  pwi_catalogue_fini(&catalogue);
}

/* --- bytes ---------------------------------------------------------------------------------------------- */

/* Offsets in the example. */
enum { NUMBER = 1, COUNT = 9, FIRST = 13, SECOND = 65, END = 118 };
enum {
  KIND = 8,
  LENGTH = 9,
  NAME = 11,
  TYPE = 16,
  WIDTH = 17,
  SIZE = 21,
  FUNCTION = 29,
  PLACEMENT = 30,
  LAYOUT = 31,
  RULE = 32,
  FILTERS = 34,
  PUSHED = 36
};

static void test_the_layout_is_the_documented_one(void **state) {
  (void)state;
  const unsigned char wanted[] =
      "\x03\x04\0\0\0\0\0\0\0\x02\0\0\0"
      "\x07\0\0\0\0\0\0\0\0\x05\0ctr/w\x02\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x02\0\0\0\0"
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
      "\x09\0\0\0\0\0\0\0\x01\x06\0ctr/.w\x05\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\x01\x02\0\0\0\0"
      "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
  struct pwi_writer writer = example_bytes();
  assert_int_equal(writer.size, sizeof wanted - 1);
  assert_memory_equal(writer.data, wanted, sizeof wanted - 1);
  pwi_writer_fini(&writer);
}

/* Accepted bytes must equal the encoder's output. */
static pawl_status decode(const void *bytes, size_t size) {
  struct pwi_catalogue catalogue = {.number = 77};
  pawl_status status = pwi_catalogue_decode(bytes, size, &catalogue);
  if (status) {
    assert_int_equal(catalogue.number, 77);
    assert_null(catalogue.entries);
    return status;
  }
  struct pwi_writer writer = bytes_of(&catalogue);
  assert_int_equal(writer.size, size);
  assert_memory_equal(writer.data, bytes, size);
  pwi_writer_fini(&writer);
  pwi_catalogue_fini(&catalogue);
  return PAWL_OK;
}

static void test_a_decoded_catalogue_goes_on_as_the_first_did(void **state) {
  (void)state;
  struct pwi_catalogue one = example(), other;
  struct pwi_writer writer = bytes_of(&one);
  assert_int_equal(decode(writer.data, writer.size), PAWL_OK);
  assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &other), PAWL_OK);
  pwi_writer_fini(&writer);
  assert_int_equal(other.number, 4);
  assert_string_equal(pwi_catalogue_find(&other, id_of(7))->name, "ctr/w");
  add(&one, entry_of(12, "a/b"));
  add(&other, entry_of(12, "a/b"));
  struct pwi_writer a = bytes_of(&one), b = bytes_of(&other);
  assert_int_equal(a.size, b.size);
  assert_memory_equal(a.data, b.data, a.size);
  pwi_writer_fini(&a);
  pwi_writer_fini(&b);
  pwi_catalogue_fini(&one);
  pwi_catalogue_fini(&other);
}

static void test_an_empty_catalogue_has_bytes_too(void **state) {
  (void)state;
  struct pwi_catalogue catalogue = {0};
  struct pwi_writer writer = bytes_of(&catalogue);
  assert_int_equal(writer.size, FIRST);
  assert_int_equal(decode(writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

/* Each prefix is in a block of exactly its size, so that a sanitizer detects reading past its end. */
static void test_a_catalogue_that_was_cut_off_is_truncated(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  for (size_t size = 0; size < writer.size; size++) {
    unsigned char *part = pwi_alloc(size);
    assert_non_null(part);
    memcpy(part, writer.data, size);
    assert_int_equal(decode(part, size), PAWL_TRUNCATED);
    pwi_free(part);
  }
  pwi_write_u8(&writer, 0);
  assert_int_equal(decode(writer.data, writer.size), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

struct damage {
  size_t at;
  const char *bytes;
  size_t size;
  pawl_status status;
};

static void test_every_kind_of_damage_is_seen(void **state) {
  (void)state;
  const struct damage damages[] = {
      {0, "\0", 1, PAWL_UNSUPPORTED},
      {0, "\4", 1, PAWL_UNSUPPORTED},
      {COUNT, "\3", 1, PAWL_TRUNCATED},
      {COUNT, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {COUNT, "\1", 1, PAWL_CORRUPT}, /* bytes left over */
      {FIRST, "\0", 1, PAWL_CORRUPT}, /* no id */
      {FIRST, "\x09", 1, PAWL_CORRUPT},
      {FIRST, "\x0a", 1, PAWL_CORRUPT},
      {FIRST + KIND, "\1", 1, PAWL_CORRUPT}, /* a group with a vector's name */
      {FIRST + KIND, "\2", 1, PAWL_CORRUPT},
      {FIRST + LENGTH, "\x80", 1, PAWL_TRUNCATED},
      {FIRST + NAME, "\0", 1, PAWL_CORRUPT},
      {FIRST + NAME, "ctrrw", 5, PAWL_CORRUPT},
      {FIRST + NAME, "ctr/.", 5, PAWL_CORRUPT},
      {FIRST + TYPE, "\0", 1, PAWL_CORRUPT},
      {FIRST + TYPE, "\6", 1, PAWL_CORRUPT},
      {FIRST + WIDTH, "\0", 1, PAWL_CORRUPT},
      {FIRST + WIDTH, "\1\0\x10", 3, PAWL_CORRUPT},
      {FIRST + SIZE, "\0\0\0\0\0\0\0\0", 8, PAWL_CORRUPT},
      {FIRST + SIZE, "\xfe", 1, PAWL_CORRUPT},   /* mixed, and not full */
      {FIRST + FUNCTION, "\2", 1, PAWL_CORRUPT}, /* a rule that is not there */
      {FIRST + FUNCTION, "\3", 1, PAWL_CORRUPT},
      {FIRST + RULE, "\xff\xff", 2, PAWL_TRUNCATED},
      {FIRST + FILTERS, "\x0c\0\1\0\0\0\0\0\0\0\0\0\0\0", 14, PAWL_CORRUPT}, /* no text */
      {FIRST + PUSHED, "\1", 1, PAWL_CORRUPT},                               /* widths of its own, without
                                                                                a rule */
      {FIRST + PLACEMENT, "\0", 1, PAWL_CORRUPT},                            /* left open */
      {FIRST + PLACEMENT, "\3", 1, PAWL_CORRUPT},
      {FIRST + LAYOUT, "\0", 1, PAWL_CORRUPT}, /* left open */
      {FIRST + LAYOUT, "\1", 1, PAWL_CORRUPT}, /* an array of 2^64 */
      {FIRST + LAYOUT, "\3", 1, PAWL_CORRUPT},
      {SECOND, "\7", 1, PAWL_CORRUPT}, /* an id twice */
      {SECOND, "\6", 1, PAWL_CORRUPT}, /* in disorder */
      {SECOND + KIND, "\0", 1, PAWL_CORRUPT},
      {SECOND + TYPE + 1, "\1", 1, PAWL_CORRUPT}, /* a group of f32 */
      {END - 22, "\2", 1, PAWL_CORRUPT},          /* a mixed group */
      {END - 4, "\1", 1, PAWL_CORRUPT},           /* a group that was loaded */
      {SECOND - 4, "\5", 1, PAWL_OK},             /* a vector that was */
      {NUMBER, "\xff", 1, PAWL_OK},
      {FIRST + FUNCTION, "\0", 1, PAWL_OK},
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    struct pwi_writer writer = example_bytes();
    assert_int_equal(writer.size, END);
    memcpy(writer.data + damages[i].at, damages[i].bytes, damages[i].size);
    assert_int_equal(decode(writer.data, writer.size), damages[i].status);
    pwi_writer_fini(&writer);
  }
}

/* Writes entries as an encoder without checks would. */
static void write_entry_of(struct pwi_writer *writer, int version, uint64_t id, const char *name) {
  pwi_write_u64(writer, id);
  pwi_write_u8(writer, PWI_ENTRY_VECTOR);
  pwi_write_text(writer, name);
  pwi_write_u8(writer, PAWL_F32);
  pwi_write_u32(writer, 1);
  pwi_write_u64(writer, 10);
  pwi_write_u8(writer, PAWL_ADD);
  pwi_write_u8(writer, PAWL_PLACE_ORDERED);
  pwi_write_u8(writer, PAWL_LAYOUT_DENSE);
  if (version > 2) {
    pwi_write_text(writer, "");
    pwi_write_text(writer, "");
    for (int i = 0; i < 3; i++) pwi_write_u32(writer, 0);
  }
  if (version > 1) pwi_write_u32(writer, 0);
}

static void write_entry(struct pwi_writer *writer, uint64_t id, const char *name) {
  write_entry_of(writer, 3, id, name);
}

static void write_head(struct pwi_writer *writer, uint32_t count) {
  pwi_write_u8(writer, 3);
  pwi_write_u64(writer, count);
  pwi_write_u32(writer, count);
}

static void test_a_name_twice_is_damage(void **state) {
  (void)state;
  const char *names[] = {"b/b", "a/a", "c/c", "a/b", "b/a", "a/a"};
  struct pwi_writer writer = {0};
  write_head(&writer, 6);
  for (size_t i = 0; i < 6; i++) write_entry(&writer, i + 1, names[i]);
  assert_int_equal(decode(writer.data, writer.size), PAWL_CORRUPT);
  writer.data[writer.size - 37] = 'c'; /* a/c */
  assert_int_equal(decode(writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

static void test_catalogues_of_earlier_versions_are_read(void **state) {
  (void)state;
  for (int version = 1; version < 3; version++) {
    struct pwi_writer writer = {0};
    struct pwi_catalogue catalogue = {0};
    write_head(&writer, 1);
    write_entry_of(&writer, version, 1, "a/b");
    writer.data[0] = (unsigned char)version;
    assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &catalogue), PAWL_OK);
    assert_int_equal(catalogue.count, 1);
    assert_int_equal(catalogue.entries[0].is.stored_width, 0);
    assert_int_equal(catalogue.entries[0].is.function, PAWL_ADD);
    pwi_catalogue_fini(&catalogue);
    pwi_writer_fini(&writer);
  }
}

static void test_a_restored_vector_is_of_the_next_incarnation(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_catalogue catalogue = {0};
  write_head(&writer, 1);
  write_entry(&writer, 1, "a/b");
  assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &catalogue), PAWL_OK);
  assert_int_equal(catalogue.count, 1);
  assert_int_equal(catalogue.entries[0].incarnation, 0);
  assert_int_equal(pwi_catalogue_restore(&catalogue, (struct pwi_vector_id){1}), PAWL_OK);
  assert_int_equal(catalogue.entries[0].incarnation, 1);
  assert_int_equal(catalogue.number, 2);
  assert_int_equal(pwi_catalogue_restore(&catalogue, (struct pwi_vector_id){2}), PAWL_NOT_FOUND);
  catalogue.entries[0].incarnation = UINT32_MAX; /* 0 would be an earlier one */
  assert_int_equal(pwi_catalogue_restore(&catalogue, (struct pwi_vector_id){1}), PAWL_TOO_LARGE);
  assert_int_equal(catalogue.entries[0].incarnation, UINT32_MAX);
  pwi_catalogue_fini(&catalogue);
  pwi_writer_fini(&writer);
}

static void test_a_name_that_is_too_long_is_damage(void **state) {
  (void)state;
  char name[PAWL_NAME_MAX + 2] = "a/";
  memset(name + 2, 'x', PAWL_NAME_MAX - 2);
  for (size_t longer = 0; longer < 2; longer++) {
    struct pwi_writer writer = {0};
    name[PAWL_NAME_MAX] = longer ? 'x' : '\0';
    write_head(&writer, 1);
    write_entry(&writer, 1, name);
    assert_int_equal(decode(writer.data, writer.size), longer ? PAWL_CORRUPT : PAWL_OK);
    pwi_writer_fini(&writer);
  }
}

static void test_as_many_entries_as_there_may_be_and_one_more(void **state) {
  (void)state;
  struct pwi_catalogue catalogue;
  struct pwi_writer writer = {0};
  char name[16];
  write_head(&writer, PWI_CATALOGUE_MAX);
  for (unsigned i = 0; i < PWI_CATALOGUE_MAX; i++) {
    snprintf(name, sizeof name, "s/%x", i * 2654435761u); /* in no order */
    write_entry(&writer, i + 1, name);
  }
  assert_int_equal(pwi_catalogue_decode(writer.data, writer.size, &catalogue), PAWL_OK);
  struct pwi_entry entry = entry_of(UINT64_MAX, "t/t");
  assert_int_equal(pwi_catalogue_add(&catalogue, &entry), PAWL_TOO_LARGE);
  assert_int_equal(catalogue.count, PWI_CATALOGUE_MAX);
  pwi_catalogue_fini(&catalogue);
  write_entry(&writer, UINT64_MAX, "t/t");
  pwi_put_u32(writer.data + COUNT, PWI_CATALOGUE_MAX + 1);
  assert_int_equal(decode(writer.data, writer.size), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
}

static void test_any_bytes_are_refused_or_are_what_the_encoder_writes(void **state) {
  (void)state;
  struct pwi_random random;
  size_t accepted = 0;
  pwi_random_init(&random, SEED, 0);
  print_message("seed %llu\n", (unsigned long long)SEED);
  uint64_t live = pwi_memory_counts().live;
  for (size_t round = 0; round < 50000; round++) {
    struct pwi_writer writer = example_bytes();
    for (uint64_t changes = 1 + pwi_random_below(&random, 3); changes > 0; changes--)
      writer.data[pwi_random_below(&random, END)] ^=
          (unsigned char)(1 + pwi_random_below(&random, round % 2 ? 255 : 7));
    accepted += decode(writer.data, END) == PAWL_OK;
    pwi_writer_fini(&writer);
  }
  assert_true(accepted > 1000);
  assert_int_equal(pwi_memory_counts().live, live);
}

/* --- out of memory -------------------------------------------------------------------------------------- */

static void test_an_addition_without_memory_changes_nothing(void **state) {
  (void)state;
  struct pwi_catalogue catalogue = {0};
  char name[16];
  size_t failures = 0;
  for (uint64_t i = 1; i <= 40; i++) {
    snprintf(name, sizeof name, "s/%d", (int)i);
    struct pwi_entry entry = entry_of(i, name);
    pwi_memory_fail_after(0);
    pawl_status status = pwi_catalogue_add(&catalogue, &entry);
    if (pwi_memory_fail_cancel()) {
      failures++;
      assert_int_equal(status, PAWL_NO_MEMORY);
      assert_int_equal(catalogue.count, i - 1);
      assert_int_equal(catalogue.number, i - 1);
      assert_null(pwi_catalogue_named(&catalogue, name));
      status = pwi_catalogue_add(&catalogue, &entry);
    }
    assert_int_equal(status, PAWL_OK);
  }
  assert_true(failures >= 3);
  assert_int_equal(catalogue.number, 40);
  for (uint64_t i = 1; i <= 40; i++) assert_non_null(pwi_catalogue_find(&catalogue, id_of(i)));
  pwi_catalogue_fini(&catalogue);
}

static void test_decoding_without_memory_leaves_nothing_behind(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (;; n++) {
    struct pwi_catalogue catalogue = {0};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_catalogue_decode(writer.data, writer.size, &catalogue);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pwi_catalogue_fini(&catalogue);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(catalogue.entries);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_int_equal(n, 2);
  pwi_writer_fini(&writer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_are_two_words_with_a_slash_between),
      cmocka_unit_test(test_the_second_word_of_a_group_and_of_no_vector_begins_with_a_dot),
      cmocka_unit_test(test_names_and_spaces_end_at_their_limits),
      cmocka_unit_test(test_a_name_is_in_its_own_space_only),
      cmocka_unit_test(test_the_key_of_a_group_is_fixed_by_its_name),
      cmocka_unit_test(test_unset_options_follow_from_the_span),
      cmocka_unit_test(test_vectors_that_no_server_could_make_are_too_large),
      cmocka_unit_test(test_options_out_of_bounds_are_refused),
      cmocka_unit_test(test_the_modules_below_accept_the_options),
      cmocka_unit_test(test_an_empty_catalogue_has_nothing),
      cmocka_unit_test(test_entries_are_found_by_id_and_by_name),
      cmocka_unit_test(test_an_entry_that_breaks_a_rule_changes_nothing),
      cmocka_unit_test(test_a_group_is_what_every_group_is),
      cmocka_unit_test(test_the_layout_is_the_documented_one),
      cmocka_unit_test(test_a_decoded_catalogue_goes_on_as_the_first_did),
      cmocka_unit_test(test_an_empty_catalogue_has_bytes_too),
      cmocka_unit_test(test_a_catalogue_that_was_cut_off_is_truncated),
      cmocka_unit_test(test_every_kind_of_damage_is_seen),
      cmocka_unit_test(test_a_name_twice_is_damage),
      cmocka_unit_test(test_catalogues_of_earlier_versions_are_read),
      cmocka_unit_test(test_a_restored_vector_is_of_the_next_incarnation),
      cmocka_unit_test(test_rules_are_settled),
      cmocka_unit_test(test_a_name_that_is_too_long_is_damage),
      cmocka_unit_test(test_as_many_entries_as_there_may_be_and_one_more),
      cmocka_unit_test(test_any_bytes_are_refused_or_are_what_the_encoder_writes),
      cmocka_unit_test(test_an_addition_without_memory_changes_nothing),
      cmocka_unit_test(test_decoding_without_memory_leaves_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
