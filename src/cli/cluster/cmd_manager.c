/* `pawl manager`: runs the manager of a cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/role_options.h"
#include "host/run/manager.h"
#include "host/run/process.h"
#include "manager/manager.h"

#define DEFAULT_LISTEN "127.0.0.1:7295"
#define DEFAULT_HTTP "127.0.0.1:7296"
#define SERVERS_MAX 1000000

#define DEFAULT_REPLICAS 1

enum {
  LETTER_FIRST_SERVERS = 300,
  LETTER_CLIENT_GRACE,
  LETTER_REPLICAS,
  LETTER_DATA,
  LETTER_NEW,
  LETTER_META,
  LETTER_META_AUTHORITY,
  LETTER_META_CERTIFICATE,
  LETTER_META_PRIVATE_KEY,
  LETTER_CHECKPOINT_DIR,
  LETTER_CHECKPOINT_EVERY,
  LETTER_CHECKPOINT_KEEP,
  LETTER_CHECKPOINT_INCREMENTAL,
  LETTER_CHECKPOINT_RATE,
};

static void stop(void *context, int times) {
  (void)times; /* a manager has nothing to hand over */
  pwi_run_manager_stop(context);
}

static void reload(void *context) { pwi_run_manager_reload(context); }

/* Prints where the log is, and the cluster that it continues, if any. */
static void greet_log(const struct pwi_run_manager *manager) {
  const char *path = pwi_run_manager_log(manager);
  struct pwi_manager_figures figures;
  pwi_run_manager_figures(manager, &figures);
  if (!path) {
    printf("  its log:       none (in memory); a restarted manager begins a new cluster\n");
    return;
  }
  printf("  its log:       %s\n", path);
  uint64_t nodes = figures.nodes_up + figures.nodes_down + figures.nodes_draining;
  if (figures.epoch <= 1 && nodes == 0) return;
  printf("                 continues cluster %016llx with %llu known servers, which rejoin by themselves, and\n"
         "                 %llu vectors; start with --new for a new cluster\n",
         (unsigned long long)figures.cluster, (unsigned long long)figures.processes,
         (unsigned long long)figures.vectors);
}

static void greet(const struct pwi_run_manager *manager, const struct pwi_role_options *options,
                  const struct pwi_run_store *store) {
  const char *address = pwi_role_short(pwi_run_manager_address(manager));
  char page[512];
  bool is_secured = options->net.keys || options->net.certificate;
  printf("the manager listens on %s%s\n", pwi_run_manager_address(manager),
         is_secured ? "" : ", without a key: reachable from this machine only");
  printf("  add a server:  pawl server --join %s\n", address);
  printf("  show it:       pawl status --cluster %s\n", address);
  if (store->place)
    printf("  its log:       %s (shared with standby managers)\n", store->place);
  else
    greet_log(manager);
  if (options->http) {
    pwi_role_page(options->http, pwi_run_manager_http_is_encrypted(manager), pwi_run_manager_http_port(manager), page,
                  sizeof page);
    printf("  monitor it:    %smetrics and %shealthz\n", page, page);
  }
  fflush(stdout);
}

static int serve(const struct pwi_command *command, const struct pwi_role_options *options,
                 const struct pwi_run_store *store, struct pwi_run_manager *manager) {
  struct pwi_run_problem problem;
  greet(manager, options, store);
  pawl_status status = pwi_run_process_ready(pwi_run_manager_address(manager));
  if (status) return pwi_cli_failure(command, "cannot report to the parent process: %s", pawl_status_text(status));
  return pwi_run_manager_loop(manager, &problem) ? pwi_cli_failure(command, "%s", problem.text) : PWI_EXIT_OK;
}

static int run_manager(const struct pwi_command *command, const struct pwi_role_options *options,
                       const struct pwi_run_manager_config *config) {
  struct pwi_run_manager *manager;
  struct pwi_run_problem problem;
  if (pwi_run_manager_open(config, &manager, &problem)) return pwi_cli_failure(command, "%s", problem.text);
  struct pwi_run_process_config process = {
      .parent = options->parent, .ready_fd = options->ready_fd, .stop = stop, .reload = reload, .context = manager};
  pawl_status status = pwi_run_process_open(&process);
  int exit_code = status ? pwi_cli_failure(command, "cannot watch the parent process: %s", pawl_status_text(status))
                         : serve(command, options, &config->store, manager);
  pwi_run_process_close();
  pwi_run_manager_close(manager);
  return exit_code;
}

static void read_store(int letter, const char *value, struct pwi_run_store *store) {
  if (letter == LETTER_META) store->place = value;
  if (letter == LETTER_META_AUTHORITY) store->authority = value;
  if (letter == LETTER_META_CERTIFICATE) store->certificate = value;
  if (letter == LETTER_META_PRIVATE_KEY) store->private_key = value;
}

/* Parses "10m", "1h", "30s", or a number of seconds. */
static bool read_duration(const char *text, int64_t *duration_out) {
  char number[32];
  size_t size = strlen(text);
  int64_t unit = 1;
  if (size == 0 || size >= sizeof number) return false;
  memcpy(number, text, size + 1);
  char last = number[size - 1];
  if (last == 's' || last == 'm' || last == 'h') {
    unit = last == 'h' ? 3600 : last == 'm' ? 60 : 1;
    number[size - 1] = '\0';
  }
  if (!pwi_role_seconds(number, duration_out) || *duration_out <= 0 || *duration_out > INT64_MAX / unit) return false;
  *duration_out *= unit;
  return true;
}

static bool read_checkpoint(const struct pwi_command *command, int letter, const char *value,
                            struct pwi_run_manager_config *config, int *exit_out) {
  uint64_t number;
  if (letter == LETTER_CHECKPOINT_DIR) config->checkpoint_directory = value;
  if (letter == LETTER_CHECKPOINT_INCREMENTAL) config->checkpoint_incremental = true;
  if (letter == LETTER_CHECKPOINT_DIR && value[0] != '/') {
    *exit_out = pwi_cli_bad_value(command, value, "an absolute path");
    return false;
  }
  if (letter == LETTER_CHECKPOINT_EVERY && !read_duration(value, &config->checkpoint_every_ns)) {
    *exit_out = pwi_cli_bad_value(command, value, "a duration, e.g. 30s, 10m or 1h");
    return false;
  }
  if (letter == LETTER_CHECKPOINT_KEEP) {
    if (!pwi_cli_number(value, &number) || number == 0 || number > UINT32_MAX) {
      *exit_out = pwi_cli_bad_value(command, value, "a number of checkpoints, at least 1");
      return false;
    }
    config->checkpoint_keep = (uint32_t)number;
  }
  if (letter == LETTER_CHECKPOINT_RATE && !pwi_role_size(value, &config->checkpoint_rate)) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of bytes per second, e.g. 200M");
    return false;
  }
  return true;
}

static bool read_own(const struct pwi_command *command, int letter, const char *value,
                     struct pwi_run_manager_config *config, int *exit_out) {
  uint64_t number;
  if (letter == LETTER_DATA) {
    if (!*value) {
      *exit_out = pwi_cli_bad_value(command, value, "a directory, or 'none'");
      return false;
    }
    config->data = value;
  }
  if (letter == LETTER_NEW) config->anew = true;
  read_store(letter, value, &config->store);
  if (letter == LETTER_FIRST_SERVERS) {
    if (!pwi_cli_number(value, &number) || number == 0 || number > SERVERS_MAX) {
      *exit_out = pwi_cli_bad_value(command, value, "a number of servers, at least 1");
      return false;
    }
    config->first_servers = (uint32_t)number;
  }
  if (letter == LETTER_REPLICAS) {
    if (!pwi_cli_number(value, &number) || number > PWI_REPLICAS_MAX) {
      *exit_out = pwi_cli_bad_value(command, value, "a number from 0 to %d", PWI_REPLICAS_MAX);
      return false;
    }
    config->replicas = (uint32_t)number;
  }
  if (letter == LETTER_CLIENT_GRACE &&
      (!pwi_role_seconds(value, &config->client_grace_ns) || !config->client_grace_ns)) {
    *exit_out = pwi_cli_bad_value(command, value, "a number of seconds above 0");
    return false;
  }
  return read_checkpoint(command, letter, value, config, exit_out);
}

/* Whether only processes on this machine can reach the manager. */
static bool is_local(const char *listen) {
  static const char *const local[] = {"127.", "localhost:", "[::1]:", "unix:"};
  const char *address = pwi_role_short(listen);
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (strncmp(address, local[i], strlen(local[i])) == 0) return true;
  return false;
}

/* The directories in which clients may request checkpoints: those given with --checkpoints. If there are
 * none, any directory, provided that only clients on this machine can connect. */
static void settle_places(const struct pwi_role_options *options, struct pwi_run_manager_config *config) {
  struct pwi_disk_queue_places *places = &config->checkpoint_places;
  *places = options->checkpoints;
  if (places->count == 0 && is_local(options->listen)) return;
  if (config->checkpoint_directory && places->count < PWI_DISK_QUEUE_PLACES_MAX)
    places->items[places->count++] = config->checkpoint_directory;
  places->none = places->count == 0;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct pwi_role_options options;
  struct pwi_run_manager_config config = {.replicas = DEFAULT_REPLICAS, .data = getenv("PAWL_DATA")};
  int letter, exit_code = PWI_EXIT_OK;
  pwi_role_options_init(&options);
  options.listen = DEFAULT_LISTEN;
  options.http = DEFAULT_HTTP;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!pwi_role_option(&options, command, letter, args.value, &exit_code)) return exit_code;
    if (!read_own(command, letter, args.value, &config, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (config.checkpoint_every_ns > 0 && !config.checkpoint_directory) {
    pwi_role_options_fini(&options);
    return pwi_cli_usage(command, "--checkpoint-every needs --checkpoint-dir");
  }
  if (pwi_role_options_settle(&options, command, &exit_code)) {
    config.net = options.net;
    config.listen = options.listen;
    config.http = options.http;
    config.http_token = options.http_token;
    config.access = options.access;
    config.audit = options.audit;
    config.functions = &options.functions.set;
    settle_places(&options, &config);
    exit_code = run_manager(command, &options, &config);
  }
  pwi_role_options_fini(&options);
  return exit_code;
}

static const struct pwi_cli_option options[] = {
    {PWI_ROLE_LISTEN, "listen", "ADDRESS",
     "listen for servers and clients on host:port, host:first-last, 0.0.0.0:port or unix:/path "
     "(default: " DEFAULT_LISTEN ")"},
    {PWI_ROLE_ADVERTISE, "advertise", "HOST[:PORT]", "address that others connect to, if it differs from --listen"},
    {PWI_ROLE_HTTP, "http", "ADDRESS", "serve /metrics and /healthz on ADDRESS, or none (default: " DEFAULT_HTTP ")"},
    {LETTER_DATA, "data", "DIR",
     "directory of the manager's log, or none to keep the log in memory (default: PAWL_DATA, or "
     "~/.local/state/pawl/PORT; with port 0: none)"},
    {LETTER_NEW, "new", NULL, "begin a new cluster; an existing log is renamed"},
    {LETTER_FIRST_SERVERS, "first-servers", "N", "assign the ring once N servers have joined (default: 1)"},
    {LETTER_REPLICAS, "replicas", "K", "keep K further copies of every key on other servers (default: 1)"},
    {LETTER_CLIENT_GRACE, "client-grace", "SECONDS", "drop a client that is silent for SECONDS (default: 2)"},
    {LETTER_META, "meta", "PLACE",
     "keep the log in etcd, so that several managers can stand by for one another: etcd://host:port,host:port/prefix "
     "(etcds:// for TLS)"},
    {LETTER_META_AUTHORITY, "meta-authority", "FILE", "PEM file of the authority that signed etcd's certificate"},
    {LETTER_META_CERTIFICATE, "meta-certificate", "FILE", "PEM file of the client certificate that etcd asks for"},
    {LETTER_META_PRIVATE_KEY, "meta-private-key", "FILE", "PEM file of the private key of --meta-certificate"},
    {LETTER_CHECKPOINT_DIR, "checkpoint-dir", "DIR",
     "directory for checkpoints, an absolute path that all servers share"},
    {LETTER_CHECKPOINT_EVERY, "checkpoint-every", "TIME", "save a checkpoint every TIME, e.g. 30s, 10m or 1h"},
    {LETTER_CHECKPOINT_KEEP, "checkpoint-keep", "N", "keep the last N of these checkpoints (default: all)"},
    {LETTER_CHECKPOINT_INCREMENTAL, "checkpoint-incremental", NULL,
     "save only rows that changed since the last checkpoint"},
    {LETTER_CHECKPOINT_RATE, "checkpoint-rate", "BYTES", "write at most BYTES per second in total, e.g. 200M"},
    PWI_ROLE_OPTIONS,
    {0},
};

const struct pwi_command pwi_command_manager = {
    .name = "manager",
    .summary = "run the manager of a cluster",
    .text = "Runs a manager in the foreground. A cluster has one manager: it knows the\n"
            "servers, which server has which keys, the vectors, and the rights of clients.\n"
            "Data does not pass through it.\n\n"
            "  pawl manager                                  # for this machine\n"
            "  pawl key new cluster.key\n"
            "  pawl manager --listen 0.0.0.0:7295 --key-file cluster.key   # for others too\n"
            "  pawl manager --listen 0.0.0.0:7295 --key-file cluster.key \\\n"
            "    --meta etcd://e1:2379,e2:2379,e3:2379/training   # on two or more machines\n\n"
            "The manager writes each decision to a log on disk before it announces it.\n"
            "SIGTERM or SIGINT ends the manager. Servers and clients keep working without\n"
            "it. A manager that is restarted with the same log continues the cluster, and\n"
            "they reconnect to it. With --meta the log is in etcd: one of several managers\n"
            "leads, and if it is lost, another one takes over within seconds.\n",
    .options = options,
    .run = run,
};
