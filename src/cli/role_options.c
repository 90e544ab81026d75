#include "cli/role_options.h"
#include "host/key_source.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1e9
#define SECONDS_MAX 1e9

void pwi_role_options_init(struct pwi_role_options *options) {
  *options = (struct pwi_role_options){.ready_fd = -1, .function_directory = getenv("PAWL_FUNCTIONS")};
  pwi_tcp_config_init(&options->net);
}

void pwi_role_options_fini(struct pwi_role_options *options) {
  pwi_host_functions_fini(&options->functions);
  pwi_cli_keys_fini(&options->keys);
}

bool pwi_role_size(const char *text, uint64_t *bytes_out) {
  static const char units[] = "kmgt";
  size_t digits = strspn(text, "0123456789");
  char number[24];
  uint64_t bytes;
  unsigned shift = 0;
  if (digits == 0 || digits >= sizeof number) return false;
  memcpy(number, text, digits);
  number[digits] = '\0';
  if (text[digits]) {
    const char *unit = strchr(units, text[digits] | 0x20);
    if (!unit || text[digits + 1]) return false;
    shift = 10 * (unsigned)(unit - units + 1);
  }
  if (!pwi_cli_number(number, &bytes) || bytes == 0 || bytes > UINT64_MAX >> shift) return false;
  *bytes_out = bytes << shift;
  return true;
}

bool pwi_role_seconds(const char *text, int64_t *nanoseconds_out) {
  char *end;
  if (*text < '0' || *text > '9') return false; /* strtod would skip blanks and accept inf and a sign */
  double seconds = strtod(text, &end);
  if (*end || !(seconds >= 0) || seconds > SECONDS_MAX) return false;
  *nanoseconds_out = (int64_t)llround(seconds * SECOND_NS);
  return true;
}

const char *pwi_role_short(const char *address) { return strncmp(address, "tcp://", 6) == 0 ? address + 6 : address; }

void pwi_role_page(const char *http, bool is_encrypted, uint16_t port, char *text, size_t size) {
  const char *colon = strrchr(http, ':');
  int length = colon ? (int)(colon - http) : 0;
  snprintf(text, size, "http%s://%.*s:%u/", is_encrypted ? "s" : "", length > 0 ? length : 9,
           length > 0 ? http : "127.0.0.1", (unsigned)port);
}

/* --- reading -------------------------------------------------------------------------------------------------------- */

static bool read_whole(const char *text, uint64_t most, uint64_t *number_out) {
  uint64_t number;
  if (!pwi_cli_number(text, &number) || number > most) return false;
  *number_out = number;
  return true;
}

static bool read_ready_fd(struct pwi_role_options *options, const char *value) {
  uint64_t number;
  if (!read_whole(value, INT_MAX, &number) || fcntl((int)number, F_GETFD) < 0) return false;
  options->ready_fd = (int)number;
  return true;
}

static bool read_parent(struct pwi_role_options *options, const char *value) {
  uint64_t number;
  if (!read_whole(value, INT_MAX, &number) || number == 0) return false;
  options->parent = (pid_t)number;
  return true;
}

static bool read_transport(struct pwi_role_options *options, const char *value) {
  bool is_tcp = strcmp(value, "tcp") == 0, is_rdma = strcmp(value, "rdma") == 0;
  if (!is_tcp && !is_rdma && strcmp(value, "auto") != 0) return false;
  options->net.plane = is_tcp ? PWI_PLANE_OFF : PWI_PLANE_AUTO;
  options->net.rdma = is_rdma;
  return true;
}

static bool read_dscp(struct pwi_role_options *options, const char *value) {
  uint64_t number;
  if (!read_whole(value, PWI_DSCP_MAX, &number) || number == 0) return false;
  options->net.dscp = (unsigned)number;
  return true;
}

static bool read_place(struct pwi_disk_queue_places *places, const char *value) {
  if (value[0] != '/' || places->count == PWI_DISK_QUEUE_PLACES_MAX) return false;
  places->items[places->count++] = value;
  return true;
}

static bool refuse(int *exit_out, int exit_code) {
  *exit_out = exit_code;
  return false;
}

bool pwi_role_option(struct pwi_role_options *options, const struct pwi_command *command, int letter, const char *value,
                     int *exit_out) {
  switch (letter) {
  case PWI_ROLE_LISTEN:
    options->listen = value;
    break;
  case PWI_ROLE_ADVERTISE:
    options->net.advertise = value;
    break;
  case PWI_ROLE_HTTP:
    options->http = strcmp(value, "none") == 0 ? NULL : value;
    break;
  case PWI_ROLE_HTTP_TOKEN:
    options->http_token = value;
    break;
  case PWI_ROLE_RIGHTS:
    options->rights_file = value;
    break;
  case PWI_ROLE_AUDIT:
    options->audit = value;
    break;
  case PWI_ROLE_KEY_FILE:
    options->key_file = value;
    break;
  case PWI_ROLE_CERTIFICATE:
    options->net.certificate = value;
    break;
  case PWI_ROLE_PRIVATE_KEY:
    options->net.private_key = value;
    break;
  case PWI_ROLE_AUTHORITY:
    options->net.authority = value;
    break;
  case PWI_ROLE_REQUIRE_ENCRYPTION:
    options->net.require_encryption = true;
    break;
  case PWI_ROLE_TRANSPORT:
    if (read_transport(options, value)) break;
    return refuse(exit_out, pwi_cli_bad_value(command, value, "auto, tcp or rdma"));
  case PWI_ROLE_DSCP:
    if (read_dscp(options, value)) break;
    return refuse(exit_out, pwi_cli_bad_value(command, value, "a number from 1 to 63"));
  case PWI_ROLE_FUNCTIONS:
    options->function_directory = value;
    break;
  case PWI_ROLE_CHECKPOINTS:
    if (read_place(&options->checkpoints, value)) break;
    return refuse(exit_out, pwi_cli_bad_value(command, value, "an absolute path, given at most %d times",
                                              PWI_DISK_QUEUE_PLACES_MAX));
  case PWI_ROLE_READY_FD:
    if (read_ready_fd(options, value)) break;
    return refuse(exit_out, pwi_cli_bad_value(command, value, "an open file descriptor"));
  case PWI_ROLE_PARENT:
    if (read_parent(options, value)) break;
    return refuse(exit_out, pwi_cli_bad_value(command, value, "a process ID"));
  default:
    break;
  }
  return true;
}

/* --- keys ----------------------------------------------------------------------------------------------------------- */

static void load_file(struct pwi_cli_keys *keys, const char *path) {
  size_t line = 0;
  pawl_status status = pwi_keyring_create(&keys->ring);
  if (!status) status = pwi_keyring_load(keys->ring, path, &line);
  if (status)
    pwi_key_file_error(path, line, status, keys->error, sizeof keys->error);
  else if (pwi_keyring_count(keys->ring) == 0)
    snprintf(keys->error, sizeof keys->error, "%s: no key found in the file", path);
}

/* The source of the keys, for reloading them. */
static struct pwi_key_source source_of(const struct pwi_role_options *options) {
  if (options->key_file) return (struct pwi_key_source){.file = options->key_file};
  return (struct pwi_key_source){.key = getenv(PWI_CLI_KEY), .name = PWI_CLI_KEY, .file = getenv(PWI_CLI_KEY_FILE)};
}

bool pwi_role_options_settle(struct pwi_role_options *options, const struct pwi_command *command, int *exit_out) {
  const char *dscp = getenv("PAWL_DSCP");
  if (options->net.dscp == 0 && dscp && *dscp && !read_dscp(options, dscp))
    return refuse(exit_out, pwi_cli_failure(command, "PAWL_DSCP is '%.20s'; a number from 1 to %d is wanted", dscp,
                                            PWI_DSCP_MAX));
  struct pwi_tcp_config *net = &options->net;
  int files = (net->certificate != NULL) + (net->private_key != NULL) + (net->authority != NULL);
  if (files != 0 && files != 3)
    return refuse(exit_out,
                  pwi_cli_usage(command, "--certificate, --private-key and --authority must be given together"));
  if (files == 3 && options->key_file)
    return refuse(exit_out, pwi_cli_usage(command, "--key-file and --certificate exclude each other"));
  if (options->key_file)
    load_file(&options->keys, options->key_file);
  else if (files == 0)
    pwi_cli_keys_init(&options->keys);
  if (options->keys.error[0]) return refuse(exit_out, pwi_cli_failure(command, "%s", options->keys.error));
  net->keys = options->keys.ring;
  options->access.keys = options->keys.ring;
  if (options->keys.ring) options->access.source = source_of(options);
  options->access.rights_file = options->rights_file;
  if (options->rights_file && files == 0)
    return refuse(exit_out,
                  pwi_cli_usage(command, "--rights needs --certificate; the limits of keys are in the key file"));
  if (net->require_encryption && !net->keys && files == 0)
    return refuse(
        exit_out,
        pwi_cli_usage(command, "--require-encryption needs a key or certificates; create a key with 'pawl key new'"));
  struct pwi_run_problem problem;
  if (pwi_host_functions_init(&options->functions, options->function_directory, &problem))
    return refuse(exit_out, pwi_cli_failure(command, "%s", problem.text));
  return true;
}
