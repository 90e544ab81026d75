
#include <sys/un.h>

#include "base/testing.h"
#include "net/address.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static struct pwi_address parse(const char *text) {
  struct pwi_address address;
  pawl_status status = pwi_address_parse(text, &address);
  if (status != PAWL_OK) print_message("refused: %s\n", text);
  assert_int_equal(status, PAWL_OK);
  return address;
}

static void check(const char *text, enum pwi_address_kind kind, const char *host, unsigned first, unsigned last) {
  struct pwi_address address = parse(text);
  assert_int_equal(address.kind, kind);
  assert_string_equal(address.host, host);
  assert_int_equal(address.port_first, first);
  assert_int_equal(address.port_last, last);
}

static void test_every_written_form_is_read(void **state) {
  (void)state;
  check("tcp://host.example:7000", PWI_ADDRESS_TCP, "host.example", 7000, 7000);
  check("host.example:7000", PWI_ADDRESS_TCP, "host.example", 7000, 7000);
  check("tcp://127.0.0.1:0", PWI_ADDRESS_TCP, "127.0.0.1", 0, 0);
  check("tcp://[::1]:65535", PWI_ADDRESS_TCP, "::1", 65535, 65535);
  check("[fe80::1%eth0]:1", PWI_ADDRESS_TCP, "fe80::1%eth0", 1, 1);
  check("tcp://0.0.0.0:7000-7099", PWI_ADDRESS_TCP, "0.0.0.0", 7000, 7099);
  check("tcp://[::]:5-5", PWI_ADDRESS_TCP, "::", 5, 5);
  check("unix:/run/pawl.sock", PWI_ADDRESS_UNIX, "/run/pawl.sock", 0, 0);
  check("unix:///run/pawl.sock", PWI_ADDRESS_UNIX, "/run/pawl.sock", 0, 0);
  check("unix:relative.sock", PWI_ADDRESS_UNIX, "relative.sock", 0, 0);
  check("unix:/with space:80", PWI_ADDRESS_UNIX, "/with space:80", 0, 0);
}

static void test_other_texts_are_refused_and_write_nothing(void **state) {
  (void)state;
  static const char *const texts[] = {
      "",
      ":",
      "host",
      "host:",
      ":80",
      "host:x",
      "host:80x",
      "host: 80",
      "host:-1",
      "host:+80",
      "host:65536",
      "host:99999999999999999999",
      "host:80-",
      "host:80-79",
      "host:0-9",
      "host:1-65536",
      "host:1-2-3",
      "::1:80",
      "[::1]",
      "[::1]80",
      "[]:80",
      "[::1:80",
      "]:80",
      "a b:80",
      "a/b:80",
      "tcp://",
      "tcp:///x:80",
      "unix:",
      "http://h:80",
      "tcp://[[x]]:1",
      "tcp://[x]]:1",
  };
  for (size_t i = 0; i < LENGTH(texts); i++) {
    struct pwi_address address = {.port_first = 4711, .host = "untouched"};
    pawl_status status = pwi_address_parse(texts[i], &address);
    if (status == PAWL_OK) print_message("accepted: %s\n", texts[i]);
    assert_int_equal(status, PAWL_INVALID);
    assert_int_equal(address.port_first, 4711);
    assert_string_equal(address.host, "untouched");
  }
}

static void test_hosts_and_paths_have_a_greatest_length(void **state) {
  (void)state;
  struct pwi_address address;
  char text[512];
  size_t host_max = PWI_ADDRESS_HOST_MAX - 1, path_max = sizeof((struct sockaddr_un *)NULL)->sun_path - 1;
  memset(text, 'h', sizeof text);
  memcpy(text + host_max, ":80", 4);
  assert_int_equal(strlen(parse(text).host), host_max);
  memcpy(text + host_max, "h:80", 5);
  assert_int_equal(pwi_address_parse(text, &address), PAWL_INVALID);

  memset(text, 'p', sizeof text);
  memcpy(text, "unix:", 5);
  text[5 + path_max] = '\0';
  assert_int_equal(strlen(parse(text).host), path_max);
  text[5 + path_max] = 'p';
  text[6 + path_max] = '\0';
  assert_int_equal(pwi_address_parse(text, &address), PAWL_INVALID);
}

static void check_print(const char *text, unsigned port, const char *expected) {
  char printed[PWI_NET_ADDRESS_MAX];
  struct pwi_address address = parse(text), again;
  pwi_address_print(&address, (uint16_t)port, printed);
  assert_string_equal(printed, expected);
  again = parse(printed);
  assert_int_equal(again.kind, address.kind);
  assert_string_equal(again.host, address.host);
}

static void test_a_printed_address_parses_to_the_same(void **state) {
  (void)state;
  check_print("host:0", 7000, "tcp://host:7000");
  check_print("tcp://host:7000-7099", 7042, "tcp://host:7042");
  check_print("[::1]:9", 65535, "tcp://[::1]:65535");
  check_print("[host]:9", 9, "tcp://host:9"); /* brackets are only needed for a colon */
  check_print("unix:/run/x", 7, "unix:/run/x");
  check_print("unix:///run/x", 7, "unix:/run/x");
}

/* Found by fuzzing: two of these slashes were lost on the way. */
static void test_a_path_of_many_slashes_keeps_them(void **state) {
  (void)state;
  check("unix://///x", PWI_ADDRESS_UNIX, "///x", 0, 0);
  check_print("unix://///x", 0, "unix://///x");
  check_print("unix:////x", 0, "unix://x");
  check_print("unix:///////+", 0, "unix:///////+");
}

static void test_the_longest_address_fits_its_text(void **state) {
  (void)state;
  char text[512], printed[PWI_NET_ADDRESS_MAX];
  text[0] = '[';
  memset(text + 1, ':', PWI_ADDRESS_HOST_MAX - 1);
  memcpy(text + PWI_ADDRESS_HOST_MAX, "]:1", 4);
  struct pwi_address address = parse(text);
  memset(printed, 'x', sizeof printed);
  pwi_address_print(&address, 65535, printed);
  assert_int_equal(strlen(printed), strlen("tcp://[]:65535") + PWI_ADDRESS_HOST_MAX - 1);
  assert_string_equal(parse(printed).host, address.host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_written_form_is_read),
      cmocka_unit_test(test_other_texts_are_refused_and_write_nothing),
      cmocka_unit_test(test_hosts_and_paths_have_a_greatest_length),
      cmocka_unit_test(test_a_printed_address_parses_to_the_same),
      cmocka_unit_test(test_a_path_of_many_slashes_keeps_them),
      cmocka_unit_test(test_the_longest_address_fits_its_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
