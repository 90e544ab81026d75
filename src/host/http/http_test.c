/* The endpoint over plain sockets: requests, unsupported methods, and malformed input. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "host/clock.h"
#include "host/http/http.h"
#include "host/http/http_crowd.h"
#include "host/metrics.h"

#define PATIENCE_MS 200000

static atomic_int health_code;
static atomic_int renders;
static atomic_bool signals_blocked;

static pawl_status render_figures(void *context, struct pwi_text *text, unsigned *code) {
  (void)code;
  atomic_fetch_add(&renders, 1);
  pwi_text_print(text, "figure %s\n", (const char *)context);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  atomic_store(&signals_blocked, sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGCHLD) == 1);
  return PAWL_OK;
}

static pawl_status render_health(void *context, struct pwi_text *text, unsigned *code) {
  (void)context;
  *code = (unsigned)atomic_load(&health_code);
  pwi_text_add(text, *code == 200 ? "ok\n" : "arc 3 has lost its head\n");
  return PAWL_OK;
}

static pawl_status render_nothing(void *context, struct pwi_text *text, unsigned *code) {
  (void)context, (void)code;
  pwi_text_add(text, "half a page");
  return PAWL_TIMED_OUT;
}

static pawl_status render_too_much(void *context, struct pwi_text *text, unsigned *code) {
  (void)context, (void)code;
  for (int i = 0; i < 100; i++) pwi_text_print(text, "%01000000d", 1);
  return PAWL_OK;
}

static pawl_status render_long(void *context, struct pwi_text *text, unsigned *code) {
  (void)context, (void)code;
  for (int i = 0; i < 300000; i++) pwi_text_print(text, "%09d\n", i);
  return PAWL_OK;
}

static char figure[] = "42";
static const struct pwi_http_route routes[] = {
    {"/metrics", PWI_METRICS_CONTENT_TYPE, render_figures, figure, false},
    {"/healthz", "text/plain; charset=utf-8", render_health, NULL, true},
    {"/broken", "text/html", render_nothing, NULL, false},
    {"/too-much", "text/html", render_too_much, NULL, false},
    {"/long", "text/plain", render_long, NULL, false},
};

static const struct pwi_http_config usual = {NULL, routes, sizeof routes / sizeof *routes, NULL};
static struct pwi_http *http;

/* --- a client ------------------------------------------------------------------------------------------- */

static int dial(void) {
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(pwi_http_port(http))};
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)&where, sizeof where), 0);
  return fd;
}

/* Sends as much as possible: the other side may have hung up. */
static void say(int fd, const void *bytes, size_t size) {
  const char *at = bytes;
  while (size > 0) {
    ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += sent;
    size -= (size_t)sent;
  }
}

/* Reads until the other side hangs up. */
static void hear_all(int fd, struct pwi_text *heard) {
  for (;;) {
    char piece[4096];
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wanted, 1, PATIENCE_MS), 1);
    ssize_t got = recv(fd, piece, sizeof piece, 0);
    if (got <= 0) break;
    pwi_text_add_bytes(heard, piece, (size_t)got);
  }
  assert_int_equal(pwi_text_status(heard), PAWL_OK);
}

static struct pwi_text answer;

/* A request that takes PWI_HTTP_REQUEST_SECONDS is hung up on. If that was so because the machine stood still, it is repeated. */
static const char *ask_bytes(const void *bytes, size_t size) {
  int64_t since;
  do {
    pwi_text_clear(&answer);
    since = pwi_host_now();
    int fd = dial();
    say(fd, bytes, size);
    shutdown(fd, SHUT_WR);
    hear_all(fd, &answer);
    close(fd);
  } while (!*pwi_text_view(&answer) && pwi_host_now() - since > (PWI_HTTP_REQUEST_SECONDS - 1) * PWI_HOST_SECOND);
  return pwi_text_view(&answer);
}

static const char *ask(const char *request) { return ask_bytes(request, strlen(request)); }

static const char *get(const char *path) {
  char request[256];
  snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", path);
  return ask(request);
}

static int code_of(const char *whole) {
  if (strncmp(whole, "HTTP/1.", 7) != 0) return 0;
  return (int)strtol(whole + 9, NULL, 10);
}

static const char *body_of(const char *whole) {
  const char *end = strstr(whole, "\r\n\r\n");
  assert_non_null(end);
  return end + 4;
}

static void assert_header(const char *whole, const char *line) {
  const char *at = strcasestr(whole, line);
  if (!at || at > body_of(whole)) fail_msg("no '%s' in '%s'", line, whole);
}

#define TOKEN "0123456789abcdefghij"
#define SECOND "another-token-0123456789"
static char folder[] = "/tmp/pawl-http-XXXXXX";

static const char *file_of(const char *name, const char *text, mode_t mode) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  chmod(path, mode);
  return path;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

static int open_http(void **state) {
  (void)state;
  atomic_store(&health_code, 200);
  assert_non_null(mkdtemp(folder));
  return pwi_http_open(&usual, &http);
}

static int close_http(void **state) {
  (void)state;
  static const char *const files[] = {"tokens", "bad", "outside"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(file_of(files[i], "", 0600));
  rmdir(folder);
  pwi_http_close(http);
  pwi_text_fini(&answer);
  return pwi_memory_counts().live != 0;
}

static void test_a_page_comes_with_its_type_and_is_not_cached(void **state) {
  (void)state;
  const char *whole = get("/metrics");
  assert_int_equal(code_of(whole), 200);
  assert_header(whole, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
  assert_header(whole, "\r\nCache-Control: no-store\r\n");
  assert_header(whole, "\r\nContent-Length: 10\r\n");
  assert_string_equal(body_of(whole), "figure 42\n");
  assert_true(atomic_load(&signals_blocked));
}

static void test_the_query_is_no_part_of_the_path(void **state) {
  (void)state;
  assert_int_equal(code_of(get("/metrics?a=b&c")), 200);
}

static void test_head_gives_the_headers_only(void **state) {
  (void)state;
  const char *whole = ask("HEAD /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
  assert_int_equal(code_of(whole), 200);
  assert_header(whole, "\r\nContent-Length: 10\r\n");
  assert_string_equal(body_of(whole), "");
}

static void test_a_render_chooses_its_code(void **state) {
  (void)state;
  const char *whole = get("/healthz");
  assert_int_equal(code_of(whole), 200);
  assert_string_equal(body_of(whole), "ok\n");
  atomic_store(&health_code, 503);
  whole = get("/healthz");
  atomic_store(&health_code, 200);
  assert_int_equal(code_of(whole), 503);
  assert_string_equal(body_of(whole), "arc 3 has lost its head\n");
}

static void test_a_render_that_fails_is_unavailable(void **state) {
  (void)state;
  const char *whole = get("/broken");
  assert_int_equal(code_of(whole), 503);
  assert_string_equal(body_of(whole), "deadline passed\n");
  whole = get("/too-much");
  assert_int_equal(code_of(whole), 503);
  assert_string_equal(body_of(whole), "larger than the configured limit\n");
}

static void test_other_paths_are_not_found(void **state) {
  (void)state;
  static const char *const paths[] = {"/", "/metric", "/metrics/", "/metricsx", "/METRICS", "/../metrics", "//metrics"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) assert_int_equal(code_of(get(paths[i])), 404);
}

static void test_other_methods_are_not_allowed(void **state) {
  (void)state;
  static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "BREW"};
  int before = atomic_load(&renders);
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    char request[128];
    snprintf(request, sizeof request, "%s /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody", methods[i]);
    const char *whole = ask(request);
    assert_int_equal(code_of(whole), 405);
    assert_header(whole, "\r\nAllow: GET, HEAD\r\n");
  }
  assert_int_equal(atomic_load(&renders), before);
}

static void test_a_get_with_a_body_is_hung_up_on(void **state) {
  (void)state;
  int before = atomic_load(&renders);
  const char *whole = ask("GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody");
  assert_int_equal(code_of(whole), 0);
  assert_int_equal(atomic_load(&renders), before);
}

static void test_bytes_that_are_no_request_are_refused(void **state) {
  (void)state;
  int before = atomic_load(&renders);
  const char *const bad[] = {
      "\r\n\r\n\r\n\r\n",
      "GET\r\n\r\n",
      "GET /metrics HTTP/9.9\r\nHost: here\r\n\r\n",
      "GET /metrics HTTP/1.1\r\n\r\n", /* without a host */
      "POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
      "POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: he",    /* truncated */
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", /* TLS */
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int code = code_of(ask(bad[i]));
    if (code != 0 && (code < 400 || code > 505)) fail_msg("request %zu: code %d", i, code);
  }
  assert_int_equal(atomic_load(&renders), before);
  assert_int_equal(code_of(get("/metrics")), 200);
}

static void test_a_header_without_end_is_refused(void **state) {
  (void)state;
  struct pwi_text request = {0};
  pwi_text_add(&request, "GET /metrics HTTP/1.1\r\nHost: here\r\nX: ");
  for (int i = 0; i < 20000; i++) pwi_text_add(&request, "0123456789");
  int code = code_of(ask(pwi_text_view(&request)));
  assert_true(code == 0 || (code >= 400 && code < 500));
  pwi_text_fini(&request);
  assert_int_equal(code_of(get("/metrics")), 200);
}

static void test_garbage_does_no_harm(void **state) {
  (void)state;
  struct pwi_random random;
  pwi_random_init(&random, 21, 1);
  for (int i = 0; i < 200; i++) {
    unsigned char bytes[512];
    size_t size = (size_t)pwi_random_below(&random, sizeof bytes) + 1;
    for (size_t k = 0; k < size; k++) bytes[k] = (unsigned char)pwi_random_u64(&random);
    assert_int_not_equal(code_of(ask_bytes(bytes, size)), 200);
  }
  assert_int_equal(code_of(get("/metrics")), 200);
}

static void test_a_connection_can_be_used_again(void **state) {
  (void)state;
  const char *whole = ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"
                          "GET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n"
                          "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
  assert_int_equal(code_of(whole), 200);
  const char *second = strstr(whole + 1, "HTTP/1.1 ");
  assert_non_null(second);
  assert_int_equal(code_of(second), 404);
  const char *third = strstr(second + 1, "HTTP/1.1 ");
  assert_non_null(third);
  assert_string_equal(body_of(third), "ok\n");
}

static void test_long_pages_arrive_whole(void **state) {
  (void)state;
  const char *body = body_of(get("/long"));
  assert_int_equal(strlen(body), 3000000);
  for (int i = 0; i < 300000; i++) {
    char line[16];
    snprintf(line, sizeof line, "%09d\n", i);
    assert_memory_equal(body + 10 * (size_t)i, line, 10);
  }
}

static void test_a_full_endpoint_serves_again_when_others_go(void **state) {
  (void)state;
  int idle[PWI_HTTP_CONNECTIONS];
  for (size_t i = 0; i < PWI_HTTP_CONNECTIONS; i++) {
    idle[i] = dial();
    say(idle[i], "GET /metrics HTTP/1.1\r\n", 23);
  }
  for (size_t i = 0; i < PWI_HTTP_CONNECTIONS; i++) close(idle[i]);
  const char *whole = "";
  for (int tries = 0; tries < 100 && code_of(whole) == 0; tries++) {
    whole = get("/metrics");
    if (code_of(whole) == 0) usleep(100000);
  }
  assert_int_equal(code_of(whole), 200);
}

/* More connections than there are places, each with an unfinished request. */
static void test_slow_connections_do_not_keep_others_out(void **state) {
  (void)state;
  static const char *const beginnings[] = {"", "GET /metrics HTTP/1.1\r\nHost: here\r\nX: ",
                                           "GET /metrics HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nhalf",
                                           "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n"};
  int slow[4 * PWI_HTTP_CONNECTIONS];
  for (size_t i = 0; i < 4 * PWI_HTTP_CONNECTIONS; i++) {
    slow[i] = dial();
    say(slow[i], beginnings[i % 4], strlen(beginnings[i % 4]));
    if (i % 8 == 7) assert_int_equal(code_of(get("/healthz")), 200);
  }
  for (int i = 0; i < 10; i++) assert_int_equal(code_of(get("/metrics")), 200);
  for (size_t i = 0; i < 4 * PWI_HTTP_CONNECTIONS; i++) close(slow[i]);
}

/* Connections of a crowd whose other ends the test has. */
struct seats {
  struct pwi_http_crowd *crowd;
  struct pwi_http_guest *guests[PWI_HTTP_CONNECTIONS + 1];
  int ends[PWI_HTTP_CONNECTIONS + 1][2];
};

static void take_seat(struct seats *seats, size_t i, uint32_t address) {
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, seats->ends[i]), 0);
  seats->guests[i] = pwi_http_crowd_enter(seats->crowd, seats->ends[i][0], (const struct sockaddr *)&from);
  assert_non_null(seats->guests[i]);
}

static bool is_hung_up(const struct seats *seats, size_t i) {
  struct pollfd about = {.fd = seats->ends[i][1], .events = POLLIN};
  return poll(&about, 1, 0) == 1;
}

static void leave_seats(struct seats *seats) {
  for (size_t i = 0; i <= PWI_HTTP_CONNECTIONS; i++) {
    pwi_http_crowd_leave(seats->crowd, seats->guests[i]);
    close(seats->ends[i][0]);
    close(seats->ends[i][1]);
  }
  pwi_http_crowd_close(seats->crowd);
}

/* All places are taken: one connection of an address that has few, which came first, and many of another. The
 * oldest of the many gives way at once, and not only at its deadline. */
static void test_a_new_connection_takes_the_place_of_the_oldest_of_the_largest_crowd(void **state) {
  (void)state;
  struct seats seats;
  assert_int_equal(pwi_http_crowd_open(&seats.crowd), PAWL_OK);
  for (size_t i = 0; i <= PWI_HTTP_CONNECTIONS; i++)
    take_seat(&seats, i, i > 0 && i < PWI_HTTP_CONNECTIONS ? 0x0a000001 : 0x0a000002);
  for (size_t i = 0; i <= PWI_HTTP_CONNECTIONS; i++) assert_int_equal(is_hung_up(&seats, i), i == 1);
  leave_seats(&seats);
}

/* A client that sends requests without end is always the last that began to wait. It does not outlast one that waits for
 * its first answer. */
static void test_a_connection_that_was_answered_gives_way_first(void **state) {
  (void)state;
  struct seats seats;
  assert_int_equal(pwi_http_crowd_open(&seats.crowd), PAWL_OK);
  for (size_t i = 0; i < PWI_HTTP_CONNECTIONS; i++) take_seat(&seats, i, 0x0a000001);
  for (size_t i = 1; i < PWI_HTTP_CONNECTIONS; i++) {
    pwi_http_guest_is_answered(seats.crowd, seats.guests[i]);
    pwi_http_guest_is_done(seats.crowd, seats.guests[i]);
  }
  take_seat(&seats, PWI_HTTP_CONNECTIONS, 0x0a000001);
  for (size_t i = 0; i <= PWI_HTTP_CONNECTIONS; i++) assert_int_equal(is_hung_up(&seats, i), i == 1);
  leave_seats(&seats);
}

/* A byte now and then does not reset the deadline of a request. */
static void test_a_request_that_trickles_is_hung_up_on(void **state) {
  (void)state;
  int fd = dial();
  bool is_over = false;
  say(fd, "GET /metrics HTTP/1.1\r\n", 23);
  for (int i = 0; i < 10 * PATIENCE_MS / 1000 && !is_over; i++) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    say(fd, "X", 1);
    is_over = poll(&wanted, 1, 100) == 1;
  }
  close(fd);
  assert_true(is_over);
}

/* --- guards --------------------------------------------------------------------------------------------- */

static int get_with(const char *header) {
  char request[512];
  snprintf(request, sizeof request, "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n%s\r\n", header);
  return code_of(ask(request));
}

static void test_a_guard_asks_for_a_token(void **state) {
  (void)state;
  struct pwi_run_problem problem;
  struct pwi_http *open = http;
  struct pwi_http_config config = usual;
  const char *path = file_of("tokens", "# of tests\n\n" TOKEN "\n", 0600);
  struct pwi_http_guard_config guarded = {.token_file = path};
  assert_int_equal(pwi_http_guard_open(&guarded, &config.guard, &problem), PAWL_OK);
  assert_int_equal(pwi_http_open(&config, &http), PAWL_OK);
  assert_int_equal(code_of(get("/healthz")), 200);
  int before = atomic_load(&renders);
  assert_int_equal(get_with(""), 401);
  assert_header(get("/metrics"), "\r\nWWW-Authenticate: Bearer\r\n");
  assert_int_equal(get_with("Authorization: Bearer\r\n"), 401);
  assert_int_equal(get_with("Authorization: Bearer " TOKEN "x\r\n"), 401);
  assert_int_equal(get_with("Authorization: Bearer 0123456789abcdefghi\r\n"), 401);
  assert_int_equal(get_with("Authorization: Basic " TOKEN "\r\n"), 401);
  assert_int_equal(get_with("Authorization: " TOKEN "\r\n"), 401);
  assert_int_equal(atomic_load(&renders), before);
  assert_int_equal(get_with("Authorization: Bearer " TOKEN "\r\n"), 200);
  assert_int_equal(get_with("authorization: bearer " TOKEN "\r\n"), 200);

  /* Reload with another token, and then with an invalid file, which changes nothing. */
  file_of("tokens", SECOND "\n", 0600);
  assert_int_equal(pwi_http_guard_reload(config.guard, &problem), PAWL_OK);
  assert_int_equal(get_with("Authorization: Bearer " TOKEN "\r\n"), 401);
  assert_int_equal(get_with("Authorization: Bearer " SECOND "\r\n"), 200);
  file_of("tokens", "short\n", 0600);
  assert_int_not_equal(pwi_http_guard_reload(config.guard, &problem), PAWL_OK);
  assert_non_null(strstr(problem.text, "tokens:1:"));
  assert_int_equal(get_with("Authorization: Bearer " SECOND "\r\n"), 200);
  pwi_http_close(http);
  pwi_http_guard_close(config.guard);
  http = open;
}

static void test_files_without_good_tokens_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text;
    mode_t mode;
    const char *said;
  } cases[] = {
      {TOKEN "\n", 0644, "chmod 600"},
      {TOKEN "\n", 0640, "chmod 600"},
      {"# nothing\n", 0600, "the file contains no token"},
      {"", 0600, "the file contains no token"},
      {"\n\ntoo-short\n", 0600, ":3: a token has 16"},
      {"two words of a token\n", 0600, ":1: a token must be one word"},
      {"pawl1-0000000000000000000000000000000000000000000000000000000000000000\n", 0600, "a cluster key"},
  };
  struct pwi_run_problem problem;
  struct pwi_http_guard *guard = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pwi_http_guard_config config = {.token_file = file_of("bad", cases[i].text, cases[i].mode)};
    assert_int_not_equal(pwi_http_guard_open(&config, &guard, &problem), PAWL_OK);
    if (!strstr(problem.text, cases[i].said)) fail_msg("case %zu: %s", i, problem.text);
  }
  struct pwi_http_guard_config none = {.token_file = "/nowhere/at/all"};
  assert_int_equal(pwi_http_guard_open(&none, &guard, &problem), PAWL_NOT_FOUND);
  assert_null(guard);
}

static void test_an_address_of_others_needs_a_guard(void **state) {
  (void)state;
  static const char *const addresses[] = {"0.0.0.0:0", "[::]:0"};
  struct pwi_run_problem problem;
  struct pwi_http_guard_config guarded = {.token_file = file_of("outside", TOKEN "\n", 0600)};
  for (size_t i = 0; i < 2; i++) {
    struct pwi_http_config config = usual;
    struct pwi_http *other = NULL;
    config.address = addresses[i];
    assert_int_equal(pwi_http_open(&config, &other), PAWL_LINK_KEY);
    assert_int_equal(pwi_http_guard_open(&guarded, &config.guard, &problem), PAWL_OK);
    pawl_status status = pwi_http_open(&config, &other);
    assert_true(status == PAWL_OK || (i == 1 && status == PAWL_NODE_ADDRESS)); /* a machine without IPv6 */
    if (!status) assert_false(pwi_http_is_encrypted(other));
    pwi_http_close(status ? NULL : other);
    pwi_http_guard_close(config.guard);
  }
}

static void *ask_often(void *argument) {
  atomic_int *served = argument;
  for (int i = 0; i < 25; i++) {
    struct pwi_text heard = {0};
    int fd = dial();
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    say(fd, request, strlen(request));
    hear_all(fd, &heard);
    close(fd);
    if (code_of(pwi_text_view(&heard)) == 200) atomic_fetch_add(served, 1);
    pwi_text_fini(&heard);
  }
  return NULL;
}

static void test_many_clients_are_served_side_by_side(void **state) {
  (void)state;
  pthread_t threads[4];
  atomic_int served = 0;
  for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &served), 0);
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&served), 100);
}

static void test_without_a_host_only_this_machine_is_served(void **state) {
  (void)state;
  static const char *const addresses[] = {NULL, ":0", "127.0.0.1:0", "localhost:0"};
  for (size_t i = 0; i < 4; i++) {
    struct pwi_http_config config = usual;
    config.address = addresses[i];
    struct pwi_http *other;
    assert_int_equal(pwi_http_open(&config, &other), PAWL_OK);
    assert_int_not_equal(pwi_http_port(other), 0);
    /* A listener on all interfaces conflicts with this one. */
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(pwi_http_port(other))};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&where, sizeof where), 0);
    close(fd);
    pwi_http_close(other);
  }
}

static void test_bad_addresses_and_routes_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *address;
    pawl_status expected;
  } cases[] = {
      {"", PAWL_INVALID},       {"127.0.0.1", PAWL_INVALID},      {":", PAWL_INVALID},
      {":65536", PAWL_INVALID}, {"unix:/tmp/x", PAWL_INVALID},    {"198.51.100.7:0", PAWL_LINK_KEY},
      {":x", PAWL_INVALID},     {"no such host:1", PAWL_INVALID}, {"host.invalid:0", PAWL_LINK_RESOLVE},
  };
  struct pwi_http *other = NULL;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct pwi_http_config config = usual;
    config.address = cases[i].address;
    pawl_status status = pwi_http_open(&config, &other);
    if (status != cases[i].expected) fail_msg("'%s': %s", cases[i].address, pawl_status_name(status));
  }
  const struct pwi_http_route bad[] = {
      {NULL, "a/b", render_health, NULL, false},
      {"x", "a/b", render_health, NULL, false},
      {"/x", NULL, render_health, NULL, false},
      {"/x", "a/b", NULL, NULL, false},
  };
  for (size_t i = 0; i < 4; i++) {
    struct pwi_http_config config = {NULL, &bad[i], 1, NULL};
    assert_int_equal(pwi_http_open(&config, &other), PAWL_INVALID);
  }
  assert_null(other);
}

static void test_a_port_in_use_is_refused_and_a_range_goes_on(void **state) {
  (void)state;
  char address[32];
  unsigned port = pwi_http_port(http);
  snprintf(address, sizeof address, ":%u", port);
  struct pwi_http_config config = {address, routes, 1, NULL};
  struct pwi_http *other;
  assert_int_equal(pwi_http_open(&config, &other), PAWL_NODE_ADDRESS);
  if (port > 65000) skip();
  snprintf(address, sizeof address, ":%u-%u", port, port + 100);
  assert_int_equal(pwi_http_open(&config, &other), PAWL_OK);
  assert_in_range(pwi_http_port(other), port + 1, port + 100);
  pwi_http_close(other);
}

static void test_lack_of_memory_and_descriptors_is_an_error(void **state) {
  (void)state;
  struct pwi_http *other;
  for (int64_t i = 0; i < 2; i++) {
    pwi_memory_fail_after((uint64_t)i);
    assert_int_equal(pwi_http_open(&usual, &other), PAWL_NO_MEMORY);
    assert_true(pwi_memory_fail_cancel());
  }
  struct rlimit before, none;
  getrlimit(RLIMIT_NOFILE, &before);
  none = before;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_NOFILE, &none);
  struct pwi_http_config config = {"127.0.0.1:0", routes, 1, NULL};
  pawl_status status = pwi_http_open(&config, &other);
  setrlimit(RLIMIT_NOFILE, &before);
  assert_int_equal(status, PAWL_NODE_LIMIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_page_comes_with_its_type_and_is_not_cached),
      cmocka_unit_test(test_the_query_is_no_part_of_the_path),
      cmocka_unit_test(test_head_gives_the_headers_only),
      cmocka_unit_test(test_a_render_chooses_its_code),
      cmocka_unit_test(test_a_render_that_fails_is_unavailable),
      cmocka_unit_test(test_other_paths_are_not_found),
      cmocka_unit_test(test_other_methods_are_not_allowed),
      cmocka_unit_test(test_a_get_with_a_body_is_hung_up_on),
      cmocka_unit_test(test_bytes_that_are_no_request_are_refused),
      cmocka_unit_test(test_a_header_without_end_is_refused),
      cmocka_unit_test(test_garbage_does_no_harm),
      cmocka_unit_test(test_a_connection_can_be_used_again),
      cmocka_unit_test(test_long_pages_arrive_whole),
      cmocka_unit_test(test_a_full_endpoint_serves_again_when_others_go),
      cmocka_unit_test(test_slow_connections_do_not_keep_others_out),
      cmocka_unit_test(test_a_new_connection_takes_the_place_of_the_oldest_of_the_largest_crowd),
      cmocka_unit_test(test_a_connection_that_was_answered_gives_way_first),
      cmocka_unit_test(test_a_request_that_trickles_is_hung_up_on),
      cmocka_unit_test(test_a_guard_asks_for_a_token),
      cmocka_unit_test(test_files_without_good_tokens_are_refused),
      cmocka_unit_test(test_an_address_of_others_needs_a_guard),
      cmocka_unit_test(test_many_clients_are_served_side_by_side),
      cmocka_unit_test(test_without_a_host_only_this_machine_is_served),
      cmocka_unit_test(test_bad_addresses_and_routes_are_refused),
      cmocka_unit_test(test_a_port_in_use_is_refused_and_a_range_goes_on),
      cmocka_unit_test(test_lack_of_memory_and_descriptors_is_an_error),
  };
  return cmocka_run_group_tests(tests, open_http, close_http);
}
