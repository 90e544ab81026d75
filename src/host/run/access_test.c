
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/testing.h"
#include "host/run/access.h"

#define FULL "pawl1-0000000000000000000000000000000000000000000000000000000000000000"
#define READER "pawl1-1111111111111111111111111111111111111111111111111111111111111111"
#define ADS "pawl1-2222222222222222222222222222222222222222222222222222222222222222"
#define BOTH "pawl1-3333333333333333333333333333333333333333333333333333333333333333"
#define STRANGER "pawl1-4444444444444444444444444444444444444444444444444444444444444444"

static struct pwi_keyring *ring_of(const char *const *lines) {
  struct pwi_keyring *ring;
  assert_int_equal(pwi_keyring_create(&ring), PAWL_OK);
  for (; *lines; lines++) assert_int_equal(pwi_keyring_add(ring, *lines), PAWL_OK);
  return ring;
}

static struct pwi_run_access *access_of(struct pwi_keyring *ring, const char *rights_file) {
  struct pwi_run_problem problem;
  struct pwi_run_access *access;
  struct pwi_run_access_config config = {.keys = ring, .rights_file = rights_file};
  assert_int_equal(pwi_run_access_open(&config, &access, &problem), PAWL_OK);
  return access;
}

static struct pwi_rights ask(struct pwi_keyring *ring, const char *identity) {
  struct pwi_run_access *access = access_of(ring, NULL);
  struct pwi_rights rights = pwi_run_access_rights(access, identity);
  pwi_run_access_close(access);
  return rights;
}

/* The rights of a peer with the key of this text. */
static struct pwi_rights rights_of(struct pwi_keyring *ring, const char *text) {
  struct pwi_key key;
  char identity[64];
  assert_int_equal(pwi_key_parse(text, &key), PAWL_OK);
  snprintf(identity, sizeof identity, "key:%s", key.name);
  return ask(ring, identity);
}

static void test_each_key_permits_what_its_limits_leave(void **state) {
  (void)state;
  struct pwi_keyring *ring =
      ring_of((const char *[]){FULL, READER " read-only", ADS " space=ads", BOTH " space=ads read-only", NULL});
  struct pwi_rights rights = rights_of(ring, FULL);
  assert_true(rights.write);
  assert_string_equal(rights.space, "");
  rights = rights_of(ring, READER);
  assert_false(rights.write);
  assert_string_equal(rights.space, "");
  rights = rights_of(ring, ADS);
  assert_true(rights.write);
  assert_string_equal(rights.space, "ads");
  rights = rights_of(ring, BOTH);
  assert_false(rights.write);
  assert_string_equal(rights.space, "ads");
  pwi_keyring_destroy(ring);
}

static void test_a_key_that_is_not_known_permits_nothing(void **state) {
  (void)state;
  struct pwi_keyring *ring = ring_of((const char *[]){FULL, NULL});
  struct pwi_rights rights = rights_of(ring, STRANGER);
  assert_false(rights.write);
  assert_false(pwi_name_is_in("ads/w", rights.space));
  rights = ask(ring, "key:");
  assert_false(rights.write);
  rights = ask(NULL, "key:0123456789abcdef");
  assert_false(rights.write);
  pwi_keyring_destroy(ring);
}

static void test_other_identities_may_do_everything(void **state) {
  (void)state;
  static const char *const identities[] = {"", "user:0", "user:1000", "cert:node-a", "cert:key:x"};
  struct pwi_keyring *ring = ring_of((const char *[]){READER " read-only", NULL});
  for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
    struct pwi_rights rights = ask(i % 2 ? ring : NULL, identities[i]);
    assert_true(rights.write);
    assert_string_equal(rights.space, "");
  }
  pwi_keyring_destroy(ring);
}

static void test_the_first_key_decides_what_a_node_can_do(void **state) {
  (void)state;
  struct pwi_keyring *good = ring_of((const char *[]){FULL, READER " read-only", NULL});
  struct pwi_keyring *reader = ring_of((const char *[]){READER " read-only", FULL, NULL});
  struct pwi_keyring *ads = ring_of((const char *[]){ADS " space=ads", NULL});
  assert_false(pwi_run_access_is_limited(NULL));
  assert_false(pwi_run_access_is_limited(good));
  assert_true(pwi_run_access_is_limited(reader));
  assert_true(pwi_run_access_is_limited(ads));
  pwi_keyring_destroy(good);
  pwi_keyring_destroy(reader);
  pwi_keyring_destroy(ads);
}

static void test_an_unknown_key_has_no_rights(void **state) {
  (void)state;
  struct pwi_keyring *ring = ring_of((const char *[]){FULL, NULL});
  assert_true(rights_of(ring, STRANGER).is_nobody);
  assert_false(rights_of(ring, FULL).is_nobody);
  pwi_keyring_destroy(ring);
}

static void test_an_operator_may_operate_and_do_nothing_with_values(void **state) {
  (void)state;
  struct pwi_keyring *ring = ring_of((const char *[]){FULL, READER " operator", ADS " operator space=ads", NULL});
  struct pwi_rights rights = rights_of(ring, READER);
  assert_true(pwi_rights_may_operate(&rights));
  assert_false(pwi_rights_are_full(&rights));
  assert_false(pwi_rights_may_read(&rights, "ads/w"));
  assert_false(pwi_rights_may_change(&rights, "ads/w"));
  assert_true(pwi_rights_may_delete(&rights, "ads/w"));
  rights = rights_of(ring, ADS);
  assert_false(pwi_rights_may_operate(&rights));
  assert_true(pwi_rights_may_delete(&rights, "ads/w"));
  assert_false(pwi_rights_may_delete(&rights, "news/w"));
  assert_true(pwi_run_access_is_limited(ring) == false);
  pwi_keyring_destroy(ring);
}

/* --- certificates --------------------------------------------------------------------------------------- */

static char path[] = "/tmp/pawl-rights-XXXXXX";

static void write_rights(const char *text, mode_t mode) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  chmod(path, mode);
}

static void test_certificates_have_the_rights_of_the_first_line_that_names_them(void **state) {
  (void)state;
  write_rights("# of tests\n\nnode-1\n ads-trainer  space=ads memory=4G \ndashboard.example.org read-only\n"
               "ops operator\nthief none\n",
               0644);
  struct pwi_run_access *access = access_of(NULL, path);
  struct pwi_rights rights = pwi_run_access_rights(access, "cert:node-1");
  assert_true(pwi_rights_are_full(&rights));
  rights = pwi_run_access_rights(access, "cert:ads-trainer,spiffe://x/y");
  assert_string_equal(rights.space, "ads");
  assert_int_equal(rights.memory, UINT64_C(4) << 30);
  rights = pwi_run_access_rights(access, "cert:7,dashboard.example.org");
  assert_true(!rights.write && !rights.is_nobody);
  assert_true(pwi_run_access_rights(access, "cert:ops").is_operator);
  static const char *const strangers[] = {"cert:thief", "cert:",        "cert:node-11", "cert:node-", "cert:Node-1",
                                          "cert:*",     "cert:thief,x", "cert:,",       "cert:#",     "cert:none"};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
    if (!pwi_run_access_rights(access, strangers[i]).is_nobody) fail_msg("%s is somebody", strangers[i]);
  assert_false(pwi_run_access_rights(access, "user:0").is_nobody);
  pwi_run_access_close(access);
}

static void test_rights_are_read_anew_or_stay_as_they_were(void **state) {
  (void)state;
  struct pwi_run_problem problem;
  write_rights("a\n* read-only\n", 0600);
  struct pwi_run_access *access = access_of(NULL, path);
  assert_true(pwi_run_access_rights(access, "cert:a").write);
  assert_false(pwi_run_access_rights(access, "cert:b").write);
  write_rights("b\n", 0600);
  assert_int_equal(pwi_run_access_reload(access, &problem), PAWL_OK);
  assert_true(pwi_run_access_rights(access, "cert:a").is_nobody);
  assert_true(pwi_run_access_rights(access, "cert:b").write);
  static const struct {
    const char *text;
    mode_t mode;
    const char *said;
  } bad[] = {{"a\nb readonly\n", 0600, ":2: after a name only"},
             {"a read-only operator\n", 0600, ":1: after a name only"},
             {"a memory=1G\n", 0600, ":1: after a name only"},
             {"a none space=x\n", 0600, ":1: after a name only"},
             {FULL "\n", 0600, ":1: this is a key"},
             {"a\n", 0620, "chmod go-w"},
             {"a\n", 0602, "chmod go-w"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_rights(bad[i].text, bad[i].mode);
    assert_int_not_equal(pwi_run_access_reload(access, &problem), PAWL_OK);
    if (!strstr(problem.text, bad[i].said)) fail_msg("case %zu: %s", i, problem.text);
    assert_true(pwi_run_access_rights(access, "cert:b").write);
  }
  unlink(path);
  assert_int_equal(pwi_run_access_reload(access, &problem), PAWL_NOT_FOUND);
  pwi_run_access_close(access);
}

static void test_keys_are_read_anew_or_stay_as_they_were(void **state) {
  (void)state;
  struct pwi_run_problem problem;
  struct pwi_keyring *ring = ring_of((const char *[]){FULL, ADS " space=ads", NULL});
  write_rights(FULL "\n" ADS " space=ads read-only\n" READER " read-only\n", 0600);
  struct pwi_run_access_config config = {.keys = ring, .source = {.file = path}, .is_server = true};
  struct pwi_run_access *access;
  assert_int_equal(pwi_run_access_open(&config, &access, &problem), PAWL_OK);
  assert_true(rights_of(ring, ADS).write);
  assert_int_equal(pwi_run_access_reload(access, &problem), PAWL_OK);
  assert_false(rights_of(ring, ADS).write);
  assert_false(rights_of(ring, READER).is_nobody);
  static const char *const bad[] = {"", "# nothing\n", "nonsense\n", READER " read-only\n" FULL "\n",
                                    FULL " nonsense\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    write_rights(bad[i], 0600);
    assert_int_not_equal(pwi_run_access_reload(access, &problem), PAWL_OK);
    assert_null(strstr(problem.text, "pawl1-1")); /* secrets are never repeated */
    assert_false(rights_of(ring, READER).is_nobody);
  }
  write_rights(STRANGER "\n", 0600);
  assert_int_equal(pwi_run_access_reload(access, &problem), PAWL_OK);
  assert_true(rights_of(ring, FULL).is_nobody);
  struct pwi_key first;
  assert_true(pwi_keyring_copy_first(ring, &first));
  assert_int_equal(first.secret[0], 0x44);
  pwi_run_access_close(access);
  pwi_keyring_destroy(ring);
  unlink(path);
}

static int make_path(void **state) {
  (void)state;
  int file = mkstemp(path);
  return file < 0 || close(file) != 0;
}

static int leave_nothing(void **state) {
  (void)state;
  return pwi_memory_counts().live != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_key_permits_what_its_limits_leave),
      cmocka_unit_test(test_a_key_that_is_not_known_permits_nothing),
      cmocka_unit_test(test_other_identities_may_do_everything),
      cmocka_unit_test(test_the_first_key_decides_what_a_node_can_do),
      cmocka_unit_test(test_an_unknown_key_has_no_rights),
      cmocka_unit_test(test_an_operator_may_operate_and_do_nothing_with_values),
      cmocka_unit_test(test_certificates_have_the_rights_of_the_first_line_that_names_them),
      cmocka_unit_test(test_rights_are_read_anew_or_stay_as_they_were),
      cmocka_unit_test(test_keys_are_read_anew_or_stay_as_they_were),
  };
  return cmocka_run_group_tests(tests, make_path, leave_nothing);
}
