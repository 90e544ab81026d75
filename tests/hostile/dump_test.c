/* A core dump of a node contains no key: neither the keys that it was given nor keys that OpenSSL derived
 * from them.
 *
 * The test reads the contents of such a dump in place: all writable mappings of this process that are not
 * marked as excluded ("dd" in /proc/self/smaps). The test itself keeps the key in excluded memory only.
 */
/* labels: nosan */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "../faults/node.h"
#include "base/secret.h"

/* Bytes that must not be found, as such and as digits of text. */
struct needle {
  uint8_t bytes[PWI_KEY_SIZE];
  char digits[2 * PWI_KEY_SIZE];
  char text[PWI_KEY_TEXT_MAX];
};

struct mapping {
  uintptr_t begin, end;
  bool is_written, is_left_out;
};

#define MAPPINGS_MAX 4096

static size_t read_mappings(struct mapping *mappings) {
  char line[512], mode[8];
  size_t count = 0;
  unsigned long begin, end;
  FILE *file = fopen("/proc/self/smaps", "re");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) == 3) {
      assert_true(count < MAPPINGS_MAX);
      mappings[count++] = (struct mapping){begin, end, mode[0] == 'r' && mode[1] == 'w', false};
    } else if (strncmp(line, "VmFlags:", 8) == 0) {
      mappings[count - 1].is_left_out = strstr(line, " dd") != NULL;
    }
  }
  fclose(file);
  return count;
}

/* Reads through a system call, so that a page that is unmapped meanwhile is an error and not a crash. */
static size_t count_in(int memory, const struct mapping *mapping, const struct needle *needle, char *page,
                       size_t room) {
  size_t found = 0;
  for (uintptr_t at = mapping->begin; at < mapping->end; at += room / 2) { /* overlapping, so that nothing
                                                                              is cut */
    size_t size = mapping->end - at < room ? mapping->end - at : room;
    ssize_t got = pread(memory, page, size, (off_t)at);
    if (got <= 0) continue;
    if (memmem(page, (size_t)got, needle->bytes, sizeof needle->bytes)) found++;
    if (memmem(page, (size_t)got, needle->digits, sizeof needle->digits)) found++;
  }
  return found;
}

static size_t count_in_dump(const struct needle *needle) {
  static struct mapping mappings[MAPPINGS_MAX];
  size_t count = read_mappings(mappings), found = 0, room = (size_t)1 << 20;
  char *page = pwi_secret_alloc(room);
  int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  assert_true(page && memory >= 0);
  for (size_t i = 0; i < count; i++)
    if (mappings[i].is_written && !mappings[i].is_left_out) found += count_in(memory, &mappings[i], needle, page, room);
  close(memory);
  pwi_secret_free(page, room);
  return found;
}

/* Writes a key to a file; the only other copy is the needle. */
static struct needle *make_key(const char *path) {
  struct needle *needle = pwi_secret_alloc(sizeof *needle);
  struct pwi_key *key = pwi_secret_alloc(sizeof *key);
  assert_true(needle && key);
  assert_int_equal(pwi_key_new(needle->text), PAWL_OK);
  assert_int_equal(pwi_key_parse(needle->text, key), PAWL_OK);
  memcpy(needle->bytes, key->secret, sizeof needle->bytes);
  memcpy(needle->digits, needle->text + 6, sizeof needle->digits);
  pwi_secret_free(key, sizeof *key);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_int_equal(write(file, needle->text, strlen(needle->text)), (ssize_t)strlen(needle->text));
  close(file);
  return needle;
}

static void test_the_search_finds_what_is_there(void **state) {
  (void)state;
  char folder[64], path[80];
  kit_folder_make(folder);
  snprintf(path, sizeof path, "%s/key", folder);
  struct needle *needle = make_key(path);
  assert_int_equal(count_in_dump(needle), 0);
  char *copy = malloc(sizeof needle->bytes);
  memcpy(copy, needle->bytes, sizeof needle->bytes);
  assert_true(count_in_dump(needle) > 0);
  explicit_bzero(copy, sizeof needle->bytes);
  free(copy);
  assert_int_equal(count_in_dump(needle), 0);
  pwi_secret_free(needle, sizeof *needle);
  kit_folder_remove(folder);
}

static void test_a_node_at_work_has_no_key_in_its_dump(void **state) {
  (void)state;
  char folder[64], path[80];
  size_t line;
  struct pwi_keyring *keys;
  struct node_plan plan;
  kit_folder_make(folder);
  snprintf(path, sizeof path, "%s/key", folder);
  struct needle *needle = make_key(path);
  assert_int_equal(pwi_keyring_create(&keys), PAWL_OK);
  assert_int_equal(pwi_keyring_load(keys, path, &line), PAWL_OK);
  assert_int_equal(count_in_dump(needle), 0);
  node_plan_init(&plan, "host");
  plan.config.keys = keys;
  plan.config.limits.silence_ns = INT64_C(5000000000);
  plan.listen = "tcp://127.0.0.1:0";
  struct node *host = node_open(&plan);
  node_plan_init(&plan, "peer");
  plan.config.keys = keys;
  plan.config.limits.silence_ns = INT64_C(5000000000);
  plan.connect = node_address(host);
  struct node *peer = node_open(&plan);
  assert_true(node_wait_pongs(peer, 20));
  assert_int_equal(count_in_dump(needle), 0); /* both ends of a link are here, and it is up */
  node_close(peer);
  node_close(host);
  pwi_keyring_destroy(keys);
  assert_int_equal(count_in_dump(needle), 0);
  pwi_secret_free(needle, sizeof *needle);
  kit_folder_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_search_finds_what_is_there),
      cmocka_unit_test(test_a_node_at_work_has_no_key_in_its_dump),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
