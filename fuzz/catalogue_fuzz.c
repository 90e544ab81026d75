/* Catalogues: any bytes, and any changes.
 *
 * covers: src/protocol/catalogue.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "protocol/catalogue.h"

static bool is_word(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    bool control = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!control && c != '.' && c != '_' && c != '-') return false;
  }
  return size > 0;
}

/* The rules, written a second time. */
static bool is_name(const char *name, enum pwi_entry_kind kind) {
  size_t size = strnlen(name, PAWL_NAME_MAX + 1);
  const char *slash = memchr(name, '/', size);
  if (size > PAWL_NAME_MAX || !slash || slash - name > PWI_SPACE_MAX) return false;
  if (!is_word(name, (size_t)(slash - name)) || !is_word(slash + 1, strlen(slash + 1))) return false;
  return kind != PWI_ENTRY_VECTOR ? slash[1] == '.' : slash[1] != '.';
}

static bool is_settled(const struct pawl_vector_options *is, enum pwi_entry_kind kind) {
  bool full = is->size == PAWL_KEY_END;
  bool ordered = is->placement == PAWL_PLACE_ORDERED, mixed = is->placement == PAWL_PLACE_MIXED;
  bool dense = is->layout == PAWL_LAYOUT_DENSE, sparse = is->layout == PAWL_LAYOUT_SPARSE;
  if (kind != PWI_ENTRY_VECTOR && (is->type != PAWL_U64 || is->width != 1 || !full || mixed)) return false;
  return is->type >= PAWL_F32 && is->type <= PAWL_U64 && is->width > 0 && is->width <= PAWL_WIDTH_MAX && is->size > 0 &&
         (is->function == PAWL_ADD || is->function == PAWL_ASSIGN) && (ordered || (mixed && full)) && (sparse || dense);
}

/* One limit for all, which is the store's. */
static bool can_be_held(const struct pwi_entry *entry) {
  struct pwi_table_options table = pwi_entry_table(entry);
  return pwi_table_check(&table) == PAWL_OK;
}

static bool is_good(const struct pwi_entry *entry) {
  bool known = entry->kind == PWI_ENTRY_VECTOR || entry->kind == PWI_ENTRY_GROUP || entry->kind == PWI_ENTRY_PEERS;
  return known && is_name(entry->name, entry->kind) && is_settled(&entry->is, entry->kind) && can_be_held(entry);
}

static void check_entry(const struct pwi_catalogue *catalogue, const struct pwi_entry *entry) {
  struct pwi_place place = pwi_entry_place(entry);
  struct pwi_table_options table = pwi_entry_table(entry);
  struct pawl_vector_options settled;
  char space[PWI_SPACE_MAX + 1] = {0};
  assert(is_good(entry) && entry->id.id != 0);
  assert(pwi_catalogue_find(catalogue, entry->id) == entry && pwi_catalogue_named(catalogue, entry->name) == entry);
  assert(pwi_place_check(&place) == PAWL_OK && table.span.end == place.size && !(place.mixed && !table.sparse));
  assert(pwi_entry_row_bytes(entry) == table.width * pwi_scalar_size(table.type));
  assert(pwi_options_settle(&entry->is, NULL, &settled) == PAWL_OK && settled.layout == entry->is.layout);
  memcpy(space, entry->name, strcspn(entry->name, "/"));
  assert(pwi_name_is_in(entry->name, space) && !pwi_name_is_in(entry->name, space + 1));
  assert(pwi_group_key(entry->name) < PAWL_KEY_END);
}

/* Its invariants hold, and encoding gives the same bytes. */
static void check(const struct pwi_catalogue *catalogue, const uint8_t *bytes, size_t size) {
  struct pwi_writer writer = {0};
  struct pwi_catalogue again;
  for (size_t i = 0; i < catalogue->count; i++) {
    if (i > 0) assert(catalogue->entries[i - 1].id.id < catalogue->entries[i].id.id);
    check_entry(catalogue, &catalogue->entries[i]);
  }
  pwi_catalogue_encode(catalogue, &writer);
  assert(writer.status == PAWL_OK);
  bool is_older = bytes && bytes[0] < ((const uint8_t *)writer.data)[0]; /* it is written as a newer version */
  if (bytes && !is_older) assert(writer.size == size && memcmp(writer.data, bytes, size) == 0);
  assert(pwi_catalogue_decode(writer.data, writer.size - 1, &again) == PAWL_TRUNCATED);
  assert(pwi_catalogue_decode(writer.data, writer.size, &again) == PAWL_OK);
  assert(again.number == catalogue->number && again.count == catalogue->count);
  pwi_catalogue_fini(&again);
  pwi_writer_fini(&writer);
}

static void decode(const uint8_t *bytes, size_t size) {
  struct pwi_catalogue catalogue = {.number = 99};
  pawl_status status = pwi_catalogue_decode(bytes, size, &catalogue);
  if (status != PAWL_OK) {
    assert(status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
    assert(catalogue.number == 99 && !catalogue.entries);
    return;
  }
  check(&catalogue, bytes, size);
  pwi_catalogue_fini(&catalogue);
}

/* Mostly valid, and invalid wherever the input says so. */
static struct pwi_entry draw_entry(struct input *input, uint64_t last) {
  static const uint64_t sizes[] = {PAWL_KEY_END, 10, 1 << 28, (1 << 28) + 1, UINT64_C(1) << 32, 0, PAWL_KEY_END - 1};
  uint8_t shape = draw_u8(input), control = draw_u8(input);
  struct pwi_entry entry = {.id = {last + draw_u8(input) % 8}, .kind = (enum pwi_entry_kind)(shape % 4 / 2)};
  if (shape >= 0xf0) {
    draw(input, entry.name, sizeof entry.name);
  } else {
    memcpy(entry.name, entry.kind ? "s/.a" : "s/aa", 4);
    entry.name[3] = (char)('a' + control % 26);
  }
  entry.is.type = (enum pawl_type)(draw_u8(input) % 7);
  entry.is.width = shape >= 0xe0 ? (uint32_t)draw_u64(input) : 1;
  entry.is.size = sizes[draw_u8(input) % 7];
  entry.is.function = (enum pawl_function)(draw_u8(input) % 3);
  entry.is.placement = (enum pawl_placement)(draw_u8(input) % 4);
  entry.is.layout = (enum pawl_layout)(draw_u8(input) % 4);
  if (shape % 2) (void)!pwi_options_settle(&entry.is, NULL, &entry.is);
  return entry;
}

static void add(struct input *input, struct pwi_catalogue *catalogue) {
  uint64_t last = catalogue->count ? catalogue->entries[catalogue->count - 1].id.id : 0;
  struct pwi_entry entry = draw_entry(input, last);
  pawl_status wanted = PAWL_OK;
  if (entry.id.id <= last || !is_good(&entry))
    wanted = PAWL_INVALID;
  else if (pwi_catalogue_named(catalogue, entry.name))
    wanted = PAWL_EXISTS;
  uint64_t number = catalogue->number;
  size_t count = catalogue->count;
  assert(pwi_catalogue_add(catalogue, &entry) == wanted);
  assert(catalogue->number == number + !wanted && catalogue->count == count + !wanted);
  if (!wanted) assert(strcmp(pwi_catalogue_find(catalogue, entry.id)->name, entry.name) == 0);
}

static void take_out(struct input *input, struct pwi_catalogue *catalogue) {
  struct pwi_vector_id id = {draw_u8(input)};
  bool there = pwi_catalogue_find(catalogue, id) != NULL;
  uint64_t number = catalogue->number;
  assert(pwi_catalogue_remove(catalogue, id) == (there ? PAWL_OK : PAWL_NOT_FOUND));
  assert(catalogue->number == number + there && !pwi_catalogue_find(catalogue, id));
}

static void restore(struct input *input, struct pwi_catalogue *catalogue) {
  struct pwi_vector_id id = {draw_u8(input)};
  const struct pwi_entry *entry = pwi_catalogue_find(catalogue, id);
  bool is_vector = entry && entry->kind == PWI_ENTRY_VECTOR;
  uint32_t before = entry ? entry->incarnation : 0;
  assert(pwi_catalogue_restore(catalogue, id) == (is_vector ? PAWL_OK : PAWL_NOT_FOUND));
  if (is_vector) assert(pwi_catalogue_find(catalogue, id)->incarnation == before + 1);
}

/* Options with a server function: settling is canonical, and settled options stay as they are. */
static void settle(struct input *input) {
  static const char *const rules[] = {"adagrad rate=0.1", "  sgd   rate = 0.5 ", "add",   "assign",
                                      "nobody knows=1",   "adam rate=1",         " min ", ""};
  struct pwi_entry entry = draw_entry(input, 0);
  struct pawl_vector_options settled, again;
  uint8_t which = draw_u8(input);
  if (which < 128)
    memcpy(entry.is.rule, rules[which % 8], strlen(rules[which % 8]));
  else
    draw(input, entry.is.rule, 1 + which % (sizeof entry.is.rule - 1));
  if (pwi_options_settle(&entry.is, NULL, &settled)) return;
  assert(pwi_options_settle(&settled, NULL, &again) == PAWL_OK && pwi_options_equal(&settled, &again));
  assert(pwi_options_add_up(&settled) == pwi_options_add_up(&again));
  entry.is = settled;
  assert(pwi_entry_pushed_bytes(&entry) > 0 &&
         pwi_entry_pushed_bytes(&entry) % pwi_scalar_size((enum pwi_scalar)settled.type) == 0);
  struct pwi_writer writer = {0};
  struct pwi_reader reader;
  pwi_options_write(&writer, &settled);
  pwi_reader_init(&reader, writer.data, writer.size);
  again = pwi_options_read_last(&reader);
  assert(pwi_reader_end(&reader) == PAWL_OK && pwi_options_equal(&settled, &again));
  pwi_writer_fini(&writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  struct pwi_catalogue catalogue = {0};
  if (draw_u8(&input) % 2 == 0) {
    decode(input.at, input.left);
    return 0;
  }
  while (input.left > 0) {
    uint8_t what = draw_u8(&input) % 6;
    if (what == 0)
      take_out(&input, &catalogue);
    else if (what == 1)
      restore(&input, &catalogue);
    else if (what == 2)
      settle(&input);
    else
      add(&input, &catalogue);
  }
  check(&catalogue, NULL, 0);
  pwi_catalogue_fini(&catalogue);
  return 0;
}
