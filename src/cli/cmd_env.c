/* `pawl env`: the machine, the transports and the settings in effect.
 *
 * Each fact is added once to a report, which prints it as a line or collects it into one JSON object.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/version.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "cli/parts.h"
#include "cli/ranks.h"
#include "net/tcp/tcp.h"

/* --- the report --------------------------------------------------------------------------------------------------- */

struct report {
  bool json;
  struct pwi_paint paint;
  json_t *whole, *section; /* for JSON only */
  bool failed;             /* out of memory */
};

static void begin_section(struct report *report, const char *name) {
  if (!report->json) {
    printf("%s%s%s\n", pwi_paint_ink(&report->paint, PWI_INK_BOLD), name, pwi_paint_ink(&report->paint, PWI_INK_PLAIN));
    return;
  }
  report->section = json_object();
  if (json_object_set_new(report->whole, name, report->section)) report->failed = true;
}

/* Names of facts have underscores, which are printed as blanks. Names of environment variables are in
 * capitals and printed unchanged. */
static void print_label(const char *name) {
  char label[32];
  snprintf(label, sizeof label, "%s", name);
  if (islower((unsigned char)*label))
    for (char *at = label; (at = strchr(at, '_'));) *at = ' ';
  printf("  %-14s ", label);
}

/* Adds a fact: its JSON value, which this function takes over, and its text. */
static void say(struct report *report, const char *name, json_t *value, const char *format, ...) PAWL_PRINTF(4, 5);

static void say(struct report *report, const char *name, json_t *value, const char *format, ...) {
  if (report->json) {
    if (json_object_set_new(report->section, name, value)) report->failed = true;
    return;
  }
  json_decref(value);
  va_list arguments;
  va_start(arguments, format);
  print_label(name);
  vprintf(format, arguments);
  putchar('\n');
  va_end(arguments);
}

static json_t *string_or_null(const char *text) {
  json_t *string = text && *text ? pwi_json_string(text) : NULL;
  return string ? string : json_null();
}

static void say_text(struct report *report, const char *name, const char *text) {
  say(report, name, string_or_null(text), "%s", *text ? text : "unknown");
}

static double in_gb(uint64_t bytes) { return (double)bytes / 1e9; }

/* --- sections ----------------------------------------------------------------------------------------------------- */

static void report_pawl(struct report *report) {
  begin_section(report, "pawl");
  say_text(report, "version", pawl_version());
  say_text(report, "compiler", pwi_parts_compiler());
}

static void report_machine(struct report *report) {
  struct pwi_machine machine;
  pwi_machine_look(&machine);
  begin_section(report, "machine");
  say_text(report, "kernel", machine.kernel);
  say_text(report, "architecture", pwi_parts_architecture());
  say_text(report, "processor", machine.processor);
  say(report, "cores", json_pack("{s:i, s:i}", "usable", machine.cores_usable, "online", machine.cores_online),
      "%d usable of %d", machine.cores_usable, machine.cores_online);
  say(report, "memory",
      json_pack("{s:I, s:I, s:o}", "total", (json_int_t)machine.memory_total, "available",
                (json_int_t)machine.memory_available, "limit",
                machine.memory_limit ? json_integer((json_int_t)machine.memory_limit) : json_null()),
      machine.memory_limit ? "%.1f GB, %.1f GB available, limited to %.1f GB for this process group"
                           : "%.1f GB, %.1f GB available",
      in_gb(machine.memory_total), in_gb(machine.memory_available), in_gb(machine.memory_limit));
  say(report, "huge_pages",
      json_pack("{s:o, s:o, s:I}", "transparent", string_or_null(machine.huge_pages), "shared",
                string_or_null(machine.huge_pages_shared), "reserved", (json_int_t)machine.huge_pages_reserved),
      "transparent: %s; in shared memory: %s; reserved: %llu", *machine.huge_pages ? machine.huge_pages : "unknown",
      *machine.huge_pages_shared ? machine.huge_pages_shared : "unknown",
      (unsigned long long)machine.huge_pages_reserved);
  say(report, "open_files",
      json_pack("{s:I, s:I}", "soft", (json_int_t)machine.files_soft, "hard", (json_int_t)machine.files_hard),
      "limit %llu, can be raised to %llu", (unsigned long long)machine.files_soft,
      (unsigned long long)machine.files_hard);
  say(report, "shared_memory",
      json_pack("{s:I, s:I}", "total", (json_int_t)machine.shm_total, "free", (json_int_t)machine.shm_free),
      "%.1f GB free of %.1f GB", in_gb(machine.shm_free), in_gb(machine.shm_total));
  say_text(report, "rdma_devices", *machine.rdma ? machine.rdma : "none");
}

static void report_transport(struct report *report, const char *name, bool available, const char *why) {
  const char *ink = pwi_paint_ink(&report->paint, available ? PWI_INK_GREEN : PWI_INK_YELLOW);
  say(report, name, json_pack("{s:b, s:s}", "available", (int)available, "why", why), "%s%-3s%s  %s", ink,
      available ? "yes" : "no", pwi_paint_ink(&report->paint, PWI_INK_PLAIN), why);
}

static void report_transports(struct report *report, bool has_keys) {
  struct pwi_build_part parts[PWI_PARTS];
  char tls[160], ucx[256];
  bool has_plane;
  const char *about = pwi_tcp_plane_about(&has_plane);
  pwi_parts(parts); /* OpenSSL and UCX come first */
  snprintf(tls, sizeof tls, "TLS 1.3 with OpenSSL %s, %s; needs a key or certificates", parts[0].version,
           pwi_parts_has_aes() ? "hardware AES" : "no hardware AES, so slow");
  snprintf(ucx, sizeof ucx, "%s%s%s%s", *parts[1].version ? "UCX " : "", parts[1].version,
           *parts[1].version ? ": " : "", about);
  begin_section(report, "transports");
  report_transport(report, "tcp", true,
                   has_keys ? "between all machines, encrypted with TLS"
                            : "unencrypted, on loopback addresses only, because there is no key");
  report_transport(report, "tls", true, tls);
  report_transport(report, "unix", true, "unencrypted, between processes of one user on this machine");
  report_transport(report, "ucx", has_plane, ucx);
}

static void report_keys(struct report *report, const struct pwi_cli_keys *keys) {
  const struct pwi_key *first = keys->ring ? pwi_keyring_first(keys->ring) : NULL;
  size_t count = keys->ring ? pwi_keyring_count(keys->ring) : 0;
  json_t *value = json_pack("{s:I, s:o, s:o, s:o}", "count", (json_int_t)count, "used",
                            first ? json_string(first->name) : json_null(), "from", string_or_null(keys->from), "error",
                            string_or_null(keys->error));
  if (*keys->error)
    say(report, "keys", value, "cannot be used: %s", keys->error);
  else if (!first)
    say(report, "keys", value, "none; create one with 'pawl key new FILE' and set %s to FILE", PWI_CLI_KEY_FILE);
  else
    say(report, "keys", value, "%zu from %s, using %s", count, keys->from, first->name);
}

static void report_settings(struct report *report, const struct pwi_cli_keys *keys) {
  static const char *const shown[] = {"PAWL_LOG_LEVEL", "PAWL_DATA", "PAWL_RACK",
                                      "PAWL_PRIORITY",  "PAWL_DSCP", "NO_COLOR"};
  begin_section(report, "settings");
  report_keys(report, keys);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    const char *value = getenv(shown[i]);
    if (value && *value)
      say_text(report, shown[i], value);
    else
      say(report, shown[i], json_null(), "not set");
  }
}

/* The launcher of this process and its rank, for commands that run on many machines. */
static void report_launcher(struct report *report) {
  static const char *const shown[] = {
      "SLURM_JOB_ID",         "SLURM_PROCID",       "SLURM_NTASKS",
      "SLURM_STEP_NUM_TASKS", "SLURM_JOB_NODELIST", "OMPI_COMM_WORLD_RANK",
      "OMPI_COMM_WORLD_SIZE", "PMI_RANK",           "PMI_SIZE",
      "PMIX_NAMESPACE",       "PMIX_RANK",
  };
  struct pwi_ranks ranks;
  size_t found = 0;
  begin_section(report, "launcher");
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
    const char *value = getenv(shown[i]);
    if (!value || !*value) continue;
    say(report, shown[i], string_or_null(value), "%s", value);
    found++;
  }
  if (pwi_ranks_find(&ranks)) {
    const char *role = ranks.rank == 0 ? "scheduler" : "worker";
    say(report, "role", json_string(role), "'pawl train' would be the %s: process %u of %u, started by %s", role,
        ranks.rank, ranks.size, ranks.launcher);
  }
  if (!found && !report->json) printf("  none (no variables of Slurm or MPI are set)\n");
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct report report = {0};
  struct pwi_cli_keys keys;
  int exit_code;
  if (!pwi_cli_only_json(command, argc, argv, &report.json, &exit_code)) return exit_code;
  pwi_paint_init(&report.paint);
  if (report.json && !(report.whole = json_object())) return pwi_cli_failure(command, "out of memory");
  pwi_cli_keys_init(&keys);
  report_pawl(&report);
  report_machine(&report);
  report_transports(&report, keys.ring != NULL);
  report_settings(&report, &keys);
  report_launcher(&report);
  pwi_cli_keys_fini(&keys);
  if (!report.json) return PWI_EXIT_OK;
  if (!report.failed) return pwi_cli_print_json(command, report.whole);
  json_decref(report.whole);
  return pwi_cli_failure(command, "out of memory");
}

static const struct pwi_cli_option options[] = {PWI_CLI_JSON, {0}};

const struct pwi_command pwi_command_env = {
    .name = "env",
    .summary = "show the machine, its transports and the settings",
    .text = "Prints the machine (processors, memory, huge pages, limits), the transports\n"
            "that nodes on it can use, with reasons, the settings in effect, and the\n"
            "variables that Slurm or MPI set for this process. Changes nothing. Prints\n"
            "names of keys, never keys.\n",
    .options = options,
    .run = run,
};
