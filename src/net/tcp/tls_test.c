/* TLS with keys: admission, data that is not TLS, closing, large transfers, and failing allocations. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "net/tcp/tls_testing.h"

#define MANY ((size_t)10 << 20)
#define SEED UINT64_C(8446)

/* --- keys ----------------------------------------------------------------------------------------------- */

static void test_the_same_key_lets_both_in(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends("any.host");
  assert_joined();
  char name[32];
  snprintf(name, sizeof name, "key:%s", pwi_keyring_first(acceptor.keys)->name);
  assert_string_equal(pwi_tls_peer(acceptor.tls), name);
  assert_string_equal(pwi_tls_peer(connector.tls), name);
  write_all(&connector, "hello", 5);
  assert_reads(&acceptor, "hello");
  write_all(&acceptor, "and welcome", 11);
  assert_reads(&connector, "and welcome");
}

static void test_bytes_on_the_wire_are_encrypted(void **state) {
  (void)state;
  static const char secret[] = "a line that must not be seen";
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  write_all(&connector, secret, sizeof secret);
  char wire[512];
  ssize_t size = recv(acceptor.socket, wire, sizeof wire, MSG_PEEK);
  assert_true(size > (ssize_t)sizeof secret);
  assert_null(memmem(wire, (size_t)size, secret, sizeof secret - 1));
  assert_null(memmem(wire, (size_t)size, "must not", 8));
}

static void test_another_key_is_refused_on_both_sides(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_B, KEY_C, NULL);
  join_ends(NULL);
  shake();
  assert_int_equal(connector.status, PAWL_LINK_KEY);
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
  assert_false(connector.finished || acceptor.finished);
  assert_true(strlen(pwi_tls_error(acceptor.tls)) > 0);
}

/* A cluster can change its key without stopping: a node that accepts both keys admits old and new nodes. */
static void test_any_of_several_keys_is_accepted(void **state) {
  static const char *const offered[] = {KEY_A, KEY_B, KEY_C};
  for (size_t i = 0; i < 3; i++) {
    use_keys(&connector, offered[i], NULL, NULL);
    use_keys(&acceptor, KEY_A, KEY_B, KEY_C);
    join_ends(NULL);
    assert_joined();
    assert_non_null(strstr(pwi_tls_peer(acceptor.tls), pwi_keyring_first(connector.keys)->name));
    tear_down(state);
  }
}

/* A connector offers only its first key, which all nodes should know already. */
static void test_only_the_first_key_is_offered(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, KEY_B, NULL);
  use_keys(&acceptor, KEY_B, NULL, NULL);
  join_ends(NULL);
  shake();
  assert_int_equal(connector.status, PAWL_LINK_KEY);
  assert_int_equal(acceptor.status, PAWL_LINK_KEY);
}

/* --- what is no TLS ------------------------------------------------------------------------------------- */

static void test_plain_text_to_an_acceptor_is_no_protocol(void **state) {
  static const char *const texts[] = {"pawlink\n\1\0\1\0 and more to come", "GET / HTTP/1.1\r\n\r\n",
                                      "\1\2\3\4\5\6\7\7"};
  for (size_t i = 0; i < 3; i++) {
    use_keys(&connector, KEY_A, NULL, NULL);
    use_keys(&acceptor, KEY_A, NULL, NULL);
    join_ends(NULL);
    assert_true(send(connector.socket, texts[i], strlen(texts[i]), 0) > 0);
    for (int round = 0; round < ROUNDS; round++) shake_one(&acceptor);
    assert_int_equal(acceptor.status, PAWL_LINK_PROTOCOL);
    tear_down(state);
  }
}

static void test_plain_text_to_a_connector_is_no_protocol(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  shake_one(&connector);
  assert_int_equal(send(acceptor.socket, "pawlink\n and more to come", 25, 0), 25);
  for (int round = 0; round < ROUNDS; round++) shake_one(&connector);
  assert_int_equal(connector.status, PAWL_LINK_PROTOCOL);
}

static void test_a_changed_byte_ends_the_link(void **state) {
  (void)state;
  char wire[256];
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  write_all(&connector, "hello", 5);
  ssize_t size = recv(acceptor.socket, wire, sizeof wire, 0);
  assert_true(size > 10);
  wire[size - 8] ^= 1;
  assert_int_equal(send(connector.socket, wire, (size_t)size, 0), size);
  assert_int_equal(read_to_the_end(&acceptor), PAWL_LINK_PROTOCOL);
}

/* --- ends ----------------------------------------------------------------------------------------------- */

static void test_bytes_sent_before_a_hang_up_are_read(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  write_all(&connector, "last words", 10);
  close(connector.socket);
  connector.socket = -1;
  assert_reads(&acceptor, "last words");
  assert_int_equal(read_to_the_end(&acceptor), PAWL_LINK_CLOSED);
}

/* Nothing of an incomplete record is delivered. */
static void test_a_record_that_was_cut_off_is_not_read(void **state) {
  (void)state;
  char wire[256], byte;
  size_t moved = 99;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  write_all(&connector, "last words", 10);
  ssize_t size = recv(acceptor.socket, wire, sizeof wire, 0);
  assert_int_equal(send(connector.socket, wire, (size_t)size - 1, 0), size - 1);
  assert_int_equal(pwi_tls_read(acceptor.tls, &byte, 1, &moved), PAWL_OK);
  assert_int_equal(moved, 0);
  shutdown(connector.socket, SHUT_WR);
  assert_int_equal(read_to_the_end(&acceptor), PAWL_LINK_CLOSED);
}

static void test_a_hang_up_during_the_handshake_is_told(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  shake_one(&connector);
  shutdown(connector.socket, SHUT_RDWR);
  for (int i = 0; i < ROUNDS; i++) shake_one(&acceptor);
  assert_false(acceptor.finished);
  assert_true(acceptor.status == PAWL_LINK_CLOSED || acceptor.status == PAWL_LINK_RESET);
}

static void test_writing_to_a_closed_peer_is_a_reset(void **state) {
  (void)state;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  close(acceptor.socket);
  acceptor.socket = -1;
  size_t moved;
  bool empty;
  assert_int_equal(pwi_tls_write(connector.tls, "x", 1, &moved), PAWL_OK);
  assert_int_equal(pwi_tls_flush(connector.tls, &empty), PAWL_LINK_RESET);
}

/* --- large transfers ------------------------------------------------------------------------------------ */

/* One direction of the stream: byte number n is a function of n. */
struct flow {
  struct end *from, *to;
  uint64_t salt;
  size_t written, read;
};

static char byte_of(const struct flow *flow, size_t n) { return (char)((n * 31 + n / 251 + flow->salt) & 0xff); }

static void write_flow(struct flow *flow, struct pwi_random *random) {
  static char bytes[100003];
  bool empty;
  size_t size = 1 + (size_t)pwi_random_below(random, pwi_random_chance(random, 0.3) ? 50 : sizeof bytes), moved;
  if (size > MANY - flow->written) size = MANY - flow->written;
  for (size_t i = 0; i < size; i++) bytes[i] = byte_of(flow, flow->written + i);
  if (size > 0) {
    assert_int_equal(pwi_tls_write(flow->from->tls, bytes, size, &moved), PAWL_OK);
    assert_true(moved <= size);
    flow->written += moved;
  }
  memset(bytes, 0, size); /* accepted bytes are already encrypted */
  assert_int_equal(pwi_tls_flush(flow->from->tls, &empty), PAWL_OK);
}

static void read_flow(struct flow *flow, struct pwi_random *random, bool slowly) {
  static char bytes[70001];
  size_t size = 1 + (size_t)pwi_random_below(random, slowly ? 9000 : sizeof bytes), moved;
  assert_int_equal(pwi_tls_read(flow->to->tls, bytes, size, &moved), PAWL_OK);
  assert_true(moved <= size && moved <= MANY - flow->read);
  for (size_t i = 0; i < moved; i++)
    if (bytes[i] != byte_of(flow, flow->read + i)) fail_msg("byte %zu differs", flow->read + i);
  flow->read += moved;
}

/* Both ways at once; the acceptor reads so slowly that the socket is full most of the time. */
static void test_much_data_passes_both_ways_unchanged(void **state) {
  (void)state;
  struct pwi_random random;
  struct flow out = {&connector, &acceptor, 1, 0, 0}, back = {&acceptor, &connector, 2, 0, 0};
  print_message("seed %llu\n", (unsigned long long)SEED);
  pwi_random_init(&random, SEED, 0);
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  while (out.read < MANY || back.read < MANY) {
    write_flow(&out, &random);
    write_flow(&back, &random);
    read_flow(&out, &random, true);
    read_flow(&back, &random, false);
  }
  assert_false(pwi_tls_has_pending(acceptor.tls) || pwi_tls_has_pending(connector.tls));
  assert_string_equal(pwi_tls_error(acceptor.tls), "");
}

/* A writer cannot run ahead of a reader that has stopped: memory stays bounded. */
static void test_a_writer_waits_for_its_reader(void **state) {
  (void)state;
  static char bytes[1 << 20];
  size_t moved = 1, written = 0;
  bool empty = true;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  for (int i = 0; i < ROUNDS && moved > 0; i++) {
    assert_int_equal(pwi_tls_write(connector.tls, bytes, sizeof bytes, &moved), PAWL_OK);
    assert_int_equal(pwi_tls_flush(connector.tls, &empty), PAWL_OK);
    written += moved;
  }
  assert_int_equal(moved, 0);
  assert_false(empty);
  assert_true(written < (size_t)8 << 20);
}

static void test_bytes_that_were_read_ahead_are_announced(void **state) {
  (void)state;
  char byte;
  size_t moved;
  use_keys(&connector, KEY_A, NULL, NULL);
  use_keys(&acceptor, KEY_A, NULL, NULL);
  join_ends(NULL);
  assert_joined();
  assert_false(pwi_tls_has_pending(acceptor.tls));
  write_all(&connector, "abc", 3);
  write_all(&connector, "def", 3);
  assert_int_equal(pwi_tls_read(acceptor.tls, &byte, 1, &moved), PAWL_OK);
  assert_int_equal(recv(acceptor.socket, &byte, 1, MSG_PEEK), -1); /* the socket has nothing more, */
  assert_true(pwi_tls_has_pending(acceptor.tls));                  /* but there is */
  assert_reads(&acceptor, "bcdef");
  assert_false(pwi_tls_has_pending(acceptor.tls));
}

/* --- memory --------------------------------------------------------------------------------------------- */

static pawl_status join_and_speak(void) {
  size_t moved;
  bool empty;
  const char *why;
  struct end *ends[] = {&connector, &acceptor};
  for (size_t i = 0; i < 2; i++) {
    pawl_status status = pwi_tls_context_create(ends[i]->keys, NULL, NULL, NULL, &ends[i]->context, &why);
    if (status == PAWL_OK) status = pwi_tls_create(ends[i]->context, ends[i]->socket, i == 1, NULL, &ends[i]->tls);
    if (status != PAWL_OK) return status;
  }
  for (int i = 0; i < 20; i++) {
    shake_one(&connector);
    shake_one(&acceptor);
  }
  if (!connector.finished) return connector.status;
  pawl_status status = pwi_tls_write(connector.tls, "hello", 5, &moved);
  return status == PAWL_OK ? pwi_tls_flush(connector.tls, &empty) : status;
}

static void test_no_memory_fails_and_leaks_nothing(void **state) {
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (int failed = 1; failed; n++) {
    int sockets[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    connector.socket = sockets[0];
    acceptor.socket = sockets[1];
    assert_int_equal(pwi_keyring_create(&connector.keys), PAWL_OK);
    assert_int_equal(pwi_keyring_create(&acceptor.keys), PAWL_OK);
    assert_int_equal(pwi_keyring_add(connector.keys, KEY_A), PAWL_OK);
    assert_int_equal(pwi_keyring_add(acceptor.keys, KEY_A), PAWL_OK);
    pwi_memory_fail_after(n);
    pawl_status status = join_and_speak();
    failed = pwi_memory_fail_cancel();
    if (!failed) assert_int_equal(status, PAWL_OK);
    if (failed) assert_true(status != PAWL_OK || acceptor.status != PAWL_OK);
    tear_down(state);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_true(n > 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_the_same_key_lets_both_in),
      TEST(test_bytes_on_the_wire_are_encrypted),
      TEST(test_another_key_is_refused_on_both_sides),
      TEST(test_any_of_several_keys_is_accepted),
      TEST(test_only_the_first_key_is_offered),
      TEST(test_plain_text_to_an_acceptor_is_no_protocol),
      TEST(test_plain_text_to_a_connector_is_no_protocol),
      TEST(test_a_changed_byte_ends_the_link),
      TEST(test_bytes_sent_before_a_hang_up_are_read),
      TEST(test_a_record_that_was_cut_off_is_not_read),
      TEST(test_a_hang_up_during_the_handshake_is_told),
      TEST(test_writing_to_a_closed_peer_is_a_reset),
      TEST(test_much_data_passes_both_ways_unchanged),
      TEST(test_a_writer_waits_for_its_reader),
      TEST(test_bytes_that_were_read_ahead_are_announced),
      TEST(test_no_memory_fails_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
