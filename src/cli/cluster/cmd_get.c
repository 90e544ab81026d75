/* `pawl get`: values of a vector, and the list of vectors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/filter.h>
#include <pawl/session.h>
#include <pawl/task.h>
#include <pawl/vector.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/session_options.h"
#include "cli/cluster/values.h"

#define LETTER_LIST 300
#define LETTER_LIMIT 301
#define DEFAULT_LIMIT 1000
#define BATCH_BYTES ((size_t)4 << 20)
#define BATCH_ROWS 65536

struct get {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json, list;
  uint64_t limit; /* maximum of rows; UINT64_MAX: all */
  const char *name, *which;

  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_vector_info info;
  size_t row_bytes, batch; /* `batch`: rows pulled at a time */
  uint64_t *keys;          /* `batch` keys, and as many rows of values */
  unsigned char *values;
  uint64_t printed;
};

/* --- printing --------------------------------------------------------------------------------------------------------- */

static void print_row(struct get *get, uint64_t key, const unsigned char *row) {
  const struct pawl_vector_options *is = &get->info.options;
  size_t bytes = pawl_type_size(is->type);
  printf(get->json ? "{\"key\":\"%" PRIu64 "\",\"values\":[" : "%" PRIu64, key);
  for (uint32_t i = 0; i < get->info.pulled_width; i++) {
    if (!get->json || i > 0) putchar(get->json ? ',' : ' ');
    pwi_value_print(stdout, is->type, row + i * bytes, get->json);
  }
  puts(get->json ? "]}" : "");
  get->printed++;
}

static int fail(const struct get *get, pawl_status status) { return pwi_session_failure(get->command, status); }

static void say_more(const struct get *get) {
  fflush(stdout);
  fprintf(stderr,
          "pawl get: there may be more rows: printed %" PRIu64 " rows; print more with --limit N, all with --limit 0\n",
          get->printed);
}

/* --- by key and by range ---------------------------------------------------------------------------------------------- */

static pawl_status pull(struct get *get, struct pawl_where where) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_pull(get->vector, where, get->values, &task);
  return status ? status : pawl_task_finish(task, get->choice.timeout_ns);
}

static int get_list(struct get *get, const uint64_t *keys, size_t count) {
  for (size_t at = 0; at < count; at += get->batch) {
    size_t some = count - at < get->batch ? count - at : get->batch;
    pawl_status status = pull(get, pawl_at_keys(keys + at, some));
    if (status) return fail(get, status);
    for (size_t i = 0; i < some; i++) print_row(get, keys[at + i], get->values + i * get->row_bytes);
  }
  return PWI_EXIT_OK;
}

/* Prints every key of a range of a dense vector. */
static int get_dense(struct get *get, struct pawl_range range) {
  while (range.begin < range.end && get->printed < get->limit) {
    uint64_t some = range.end - range.begin, left = get->limit - get->printed;
    if (some > get->batch) some = get->batch;
    if (some > left) some = left;
    pawl_status status = pull(get, pawl_at_range(range.begin, range.begin + some));
    if (status) return fail(get, status);
    for (uint64_t i = 0; i < some; i++) print_row(get, range.begin + i, get->values + i * get->row_bytes);
    range.begin += some;
  }
  if (range.begin < range.end) say_more(get);
  return PWI_EXIT_OK;
}

/* Prints the written keys of a range of a sparse vector. Keys with mixed placement have no order, so all keys
 * are walked and those of the range are printed. */
static int get_sparse(struct get *get, struct pawl_range wanted) {
  bool is_mixed = get->info.options.placement == PAWL_PLACE_MIXED;
  struct pawl_range range = is_mixed ? pawl_range_of(0, get->info.options.size) : wanted;
  while (range.begin < range.end) {
    size_t count;
    uint64_t next;
    pawl_status status =
        pawl_vector_scan(get->vector, range, get->batch, get->keys, get->values, get->choice.timeout_ns, &count, &next);
    if (status) return fail(get, status);
    for (size_t i = 0; i < count; i++) {
      if (!pawl_range_has(wanted, get->keys[i])) continue;
      if (get->printed == get->limit) {
        say_more(get);
        return PWI_EXIT_OK;
      }
      print_row(get, get->keys[i], get->values + i * get->row_bytes);
    }
    range.begin = next;
  }
  return PWI_EXIT_OK;
}

static int get_range(struct get *get, struct pawl_range range) {
  if (range.end > get->info.options.size)
    return pwi_cli_failure(get->command, "key out of range: %s has keys 0 to %" PRIu64, get->name,
                           get->info.options.size - 1);
  return get->info.options.layout == PAWL_LAYOUT_DENSE ? get_dense(get, range) : get_sparse(get, range);
}

/* --- which keys ------------------------------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b) {
  uint64_t left, right;
  memcpy(&left, a, sizeof left);
  memcpy(&right, b, sizeof right);
  return (left > right) - (left < right);
}

static size_t sort_keys(uint64_t *keys, size_t count) {
  size_t kept = 0;
  qsort(keys, count, sizeof *keys, compare_keys);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || keys[i] != keys[kept - 1]) keys[kept++] = keys[i];
  return kept;
}

/* Parses "begin:end"; either may be omitted. */
static bool read_range(const char *text, uint64_t size, struct pawl_range *range_out) {
  char begin[32];
  const char *colon = strchr(text, ':');
  size_t length = (size_t)(colon - text);
  *range_out = pawl_range_of(0, size);
  if (length >= sizeof begin) return false;
  memcpy(begin, text, length);
  begin[length] = '\0';
  if (length > 0 && !pwi_cli_number(begin, &range_out->begin)) return false;
  return !colon[1] || pwi_cli_number(colon + 1, &range_out->end);
}

static int get_keys(struct get *get) {
  size_t count = 1;
  for (const char *at = get->which; (at = strchr(at, ',')); at++) count++;
  char *text = pwi_copy_string(get->which), *rest = text, *word;
  uint64_t *keys = pwi_alloc_zero(count, sizeof *keys);
  int exit_code = text && keys ? PWI_EXIT_OK : pwi_cli_failure(get->command, "out of memory");
  for (size_t i = 0; exit_code == PWI_EXIT_OK && i < count; i++) {
    word = strsep(&rest, ",");
    if (!word || !pwi_cli_number(word, &keys[i]))
      exit_code =
          pwi_cli_usage(get->command, "'%s' is not a key; expected KEY, KEY,KEY,... or BEGIN:END", word ? word : "");
  }
  if (exit_code == PWI_EXIT_OK) exit_code = get_list(get, keys, sort_keys(keys, count));
  pwi_free(text);
  pwi_free(keys);
  return exit_code;
}

static int get_values(struct get *get) {
  struct pawl_range range = pawl_range_of(0, get->info.options.size);
  if (get->which && !strchr(get->which, ':')) return get_keys(get);
  if (get->which && !read_range(get->which, get->info.options.size, &range))
    return pwi_cli_usage(get->command, "'%s' is not a range; expected BEGIN:END, two whole numbers", get->which);
  return get_range(get, range);
}

static int get_vector(struct get *get) {
  pawl_status status = pawl_vector_open(get->session, get->name, get->choice.timeout_ns, &get->vector);
  if (status == PAWL_NOT_FOUND)
    return pwi_cli_failure(get->command, "vector %s not found; list the vectors with 'pawl get --list'", get->name);
  if (!status) status = pawl_vector_filter(get->vector, "none", NULL); /* print exact values */
  if (status) return fail(get, status);
  pawl_vector_info(get->vector, &get->info);
  get->row_bytes = pawl_type_size(get->info.options.type) * get->info.pulled_width;
  get->batch = BATCH_BYTES / get->row_bytes;
  if (get->batch == 0) get->batch = 1;
  if (get->batch > BATCH_ROWS) get->batch = BATCH_ROWS;
  get->keys = pwi_alloc_zero(get->batch, sizeof *get->keys);
  get->values = pwi_alloc_zero(get->batch, get->row_bytes);
  int exit_code = get->keys && get->values ? get_values(get) : pwi_cli_failure(get->command, "out of memory");
  pawl_vector_close(get->vector);
  return exit_code;
}

/* --- the list --------------------------------------------------------------------------------------------------------- */

static void print_info(const struct get *get, const struct pawl_vector_info *info) {
  const struct pawl_vector_options *is = &info->options;
  char size[24] = "64 bits";
  if (get->json || is->size != PAWL_KEY_END) snprintf(size, sizeof size, "%" PRIu64, is->size);
  printf(get->json ? "{\"name\":\"%s\",\"type\":\"%s\",\"width\":%" PRIu32
                     ",\"size\":\"%s\",\"function\":\"%s\",\"placement\":\"%s\",\"layout\":\"%s\"}\n"
                   : "%-32s %-4s %7" PRIu32 " %20s %-8s %-9s %s\n",
         info->name, pwi_value_type_name(is->type), is->width, size, pwi_value_function_text(is),
         pwi_value_placement_name(is->placement), pwi_value_layout_name(is->layout));
}

static int list_vectors(struct get *get) {
  struct pawl_vector_info *infos;
  size_t count;
  pawl_status status = pawl_vector_list(get->session, get->name, get->choice.timeout_ns, &infos, &count);
  if (status) return fail(get, status);
  if (!get->json && count > 0)
    printf("%-32s %-4s %7s %20s %-8s %-9s %s\n", "vector", "type", "width", "keys", "function", "placement", "layout");
  for (size_t i = 0; i < count; i++) print_info(get, &infos[i]);
  pawl_vector_list_free(infos);
  if (count == 0)
    fprintf(stderr, "pawl get: there are no vectors%s%s\n", get->name ? " in " : "", get->name ? get->name : "");
  return PWI_EXIT_OK;
}

/* --- running ---------------------------------------------------------------------------------------------------------- */

static int run_get(struct get *get) {
  int exit_code = pwi_session_start(&get->choice, get->command, &get->session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  exit_code = get->list ? list_vectors(get) : get_vector(get);
  pawl_status status = pwi_session_end(&get->choice, get->session, exit_code);
  (void)status;        /* the result, or an error, has been printed */
  pwi_free(get->keys); /* only after the close: a pull that timed out may still write */
  pwi_free(get->values);
  return exit_code;
}

static bool read_limit(const char *text, uint64_t *limit_out) {
  if (!pwi_cli_number(text, limit_out)) return false;
  if (*limit_out == 0) *limit_out = UINT64_MAX;
  return true;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct get get = {.command = command, .limit = DEFAULT_LIMIT};
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&get.choice, "get", true);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) get.json = true;
    if (letter == LETTER_LIST) get.list = true;
    if (letter == LETTER_LIMIT && !read_limit(args.value, &get.limit))
      return pwi_cli_bad_value(command, args.value, "a whole number");
    if (!pwi_session_option(&get.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, get.list ? 0 : 1, get.list ? 1 : 2)) return args.exit_code;
  if (args.rest < argc) get.name = argv[args.rest];
  if (args.rest + 1 < argc) get.which = argv[args.rest + 1];
  return run_get(&get);
}

static const struct pwi_cli_option options[] = {
    {LETTER_LIST, "list", NULL, "list the vectors, of one SPACE or of all spaces"},
    {LETTER_LIMIT, "limit", "N", "print at most N rows of a range (default: 1000; 0: all)"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_get = {
    .name = "get",
    .arguments = "SPACE/NAME [KEY | KEY,KEY,... | BEGIN:END]",
    .summary = "print values of a vector",
    .text = "Prints one key per line, followed by its values, in the form that 'pawl put\n"
            "--file' reads. For a range, prints all keys of a dense vector, or the keys of\n"
            "a sparse vector that were written. A key given by name is always printed; its\n"
            "values are zero if it was never written.\n\n"
            "  pawl get --list\n"
            "  pawl get ads/weights 17\n"
            "  pawl get ads/weights 17,4,1000\n"
            "  pawl get ads/weights 0:10 --json\n",
    .options = options,
    .run = run,
};
