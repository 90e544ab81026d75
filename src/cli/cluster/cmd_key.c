/* `pawl key new` and `pawl key show`: create keys, and print the names of keys. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/cluster/cmd_key.h"
#include "cli/role_options.h"
#include "host/key_source.h"
#include "wire/hello.h"

#define PATH_SIZE 4096

/* --- limits ------------------------------------------------------------------------------------------------------- */

static bool set_space(struct pwi_key_limits *limits, const char *space) {
  if (!pwi_key_space_is_valid(space)) return false;
  snprintf(limits->space, sizeof limits->space, "%s", space);
  return true;
}

bool pwi_key_limit_option(const struct pwi_command *command, int letter, const char *value,
                          struct pwi_key_limits *limits, int *exit_out) {
  uint64_t *amount = letter == PWI_KEY_LETTER_MEMORY        ? &limits->memory
                     : letter == PWI_KEY_LETTER_RATE        ? &limits->rate
                     : letter == PWI_KEY_LETTER_CONNECTIONS ? &limits->connections
                     : letter == PWI_KEY_LETTER_PRIORITY    ? &limits->priority
                                                            : NULL;
  if (letter == PWI_KEY_LETTER_READ_ONLY) limits->read_only = true;
  if (letter == PWI_KEY_LETTER_OPERATOR) limits->is_operator = true;
  if (letter == PWI_KEY_LETTER_SPACE && !set_space(limits, value)) {
    *exit_out = pwi_cli_bad_value(command, value, "at most %d letters, digits, '.', '_' and '-'", PWI_KEY_SPACE_MAX);
    return false;
  }
  if (!amount || pwi_role_size(value, amount)) return true;
  *exit_out = pwi_cli_bad_value(command, value, "an amount, e.g. 50, 512M or 4G");
  return false;
}

bool pwi_key_limits_settle(const struct pwi_command *command, const struct pwi_key_limits *limits, int *exit_out) {
  const char *wrong = NULL;
  if (limits->read_only && limits->is_operator) wrong = "--read-only and --operator exclude each other";
  if (limits->memory && !limits->space[0])
    wrong = "--memory limits the tables of one space; name the space with --space";
  if (limits->priority > PWI_PRIORITY_HIGHEST) wrong = "--priority is a number from 1 to 9";
  if (wrong) *exit_out = pwi_cli_usage(command, "%s", wrong);
  return !wrong;
}

/* --- new ---------------------------------------------------------------------------------------------------------- */

struct new_key {
  char text[PWI_KEY_TEXT_MAX];
  char name[PWI_KEY_NAME_SIZE + 1];
  char limits[PWI_KEY_LINE_MAX]; /* text of the limits after the key; "" for none */
};

static pawl_status make_key(struct new_key *key) {
  struct pwi_key parsed;
  pawl_status status = pwi_key_new(key->text);
  if (!status) status = pwi_key_parse(key->text, &parsed);
  if (status) return status;
  memcpy(key->name, parsed.name, sizeof key->name);
  OPENSSL_cleanse(&parsed, sizeof parsed);
  return PAWL_OK;
}

static size_t print_file(const struct new_key *key, char *text, size_t size) {
  char day[32] = "";
  const char *can = key->limits[0] ? "be a client of the cluster, within its limits" : "join the cluster";
  time_t now = time(NULL);
  struct tm parts;
  if (gmtime_r(&now, &parts)) strftime(day, sizeof day, " of %Y-%m-%d", &parts);
  int length = snprintf(text, size,
                        "# pawl key %s%s. Anyone who has this key can %s.\n"
                        "%s%s\n",
                        key->name, day, can, key->text, key->limits);
  return length > 0 ? (size_t)length : 0;
}

/* 0 or an errno. */
static int write_durably(int file, const struct new_key *key) {
  char text[PWI_KEY_TEXT_MAX + PWI_KEY_LINE_MAX + 128];
  size_t size = print_file(key, text, sizeof text);
  ssize_t written = write(file, text, size);
  int problem = written < 0 ? errno : (size_t)written == size ? 0 : ENOSPC;
  if (!problem && fsync(file) != 0) problem = errno;
  OPENSSL_cleanse(text, sizeof text);
  return problem;
}

/* Creates a new file, so that no other process can have it open. Returns 0 or an errno. */
static int write_new(const char *path, const struct new_key *key) {
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return errno;
  int problem = write_durably(file, key);
  if (close(file) != 0 && !problem) problem = errno;
  if (problem) unlink(path);
  return problem;
}

static int replace(const char *path, const struct new_key *key) {
  char beside[PATH_SIZE];
  int length = snprintf(beside, sizeof beside, "%s.new", path);
  if (length < 0 || (size_t)length >= sizeof beside) return ENAMETOOLONG;
  unlink(beside);
  int problem = write_new(beside, key);
  if (!problem && rename(beside, path) != 0) {
    problem = errno;
    unlink(beside);
  }
  return problem;
}

static void explain_limited(const char *path, const struct new_key *key) {
  printf("wrote key %s to %s; only you can read it\n\n"
         "The key is limited:%s. To accept it, add it to the key file of the manager and of every server,\n"
         "then let them reload the file:\n\n"
         "  pawl key add cluster.key %s\n"
         "  kill -HUP PID\n\n"
         "A client needs only this file; set %s to its path.\n",
         key->name, path, key->limits, path, PWI_CLI_KEY_FILE);
}

static void explain_file(const char *path, const struct new_key *key) {
  printf("wrote key %s to %s; only you can read it\n\n"
         "Every node of the cluster needs this file. Copy it over a trusted channel, then on each node:\n\n"
         "  export %s=%s\n"
         "  pawl env                 # shows which keys are in use\n\n"
         "To change the key of a running cluster, see 'pawl key --help'.\n",
         key->name, path, PWI_CLI_KEY_FILE, path);
}

static int save_key(const struct pwi_command *command, const char *path, bool force, bool json,
                    const struct new_key *key) {
  int problem = force ? replace(path, key) : write_new(path, key);
  if (problem == EEXIST)
    return pwi_cli_failure(command, "%s already exists and its key may be in use; replace it with --force", path);
  if (problem) return pwi_cli_failure(command, "cannot write %s: %s", path, strerror(problem));
  if (json)
    return pwi_cli_print_json(command, json_pack("{s:s, s:o}", "name", key->name, "file", pwi_json_string(path)));
  if (key->limits[0])
    explain_limited(path, key);
  else
    explain_file(path, key);
  return PWI_EXIT_OK;
}

static int show_key(const struct pwi_command *command, bool json, const struct new_key *key) {
  if (json) return pwi_cli_print_json(command, json_pack("{s:s, s:s}", "name", key->name, "key", key->text));
  printf("%s%s\n", key->text, key->limits);
  fflush(stdout);
  if (isatty(STDERR_FILENO))
    fprintf(stderr,
            "\n"
            "This is key %s. To write a key to a file that only you can read, use 'pawl key new -o FILE'.\n",
            key->name);
  return PWI_EXIT_OK;
}

static int run_new(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  const char *path = NULL;
  struct pwi_key_limits limits = {0};
  bool force = false, json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!pwi_key_limit_option(command, letter, args.value, &limits, &args.exit_code)) return args.exit_code;
    if (letter == 'o') path = args.value;
    if (letter == PWI_CLI_LETTER_JSON) json = true;
    if (letter == PWI_KEY_LETTER_FORCE) force = true;
  }
  if (letter == PWI_CLI_STOP) return args.exit_code;
  if (args.rest < argc && !path) path = argv[args.rest++];
  if (!pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!pwi_key_limits_settle(command, &limits, &args.exit_code)) return args.exit_code;
  if (path && !*path) return pwi_cli_usage(command, "the file name is empty");
  struct new_key key;
  pawl_status status = make_key(&key);
  if (status) return pwi_cli_failure(command, "cannot create a key: %s", pawl_status_text(status));
  pwi_key_limits_print(&limits, key.limits);
  int exit_code = path ? save_key(command, path, force, json, &key) : show_key(command, json, &key);
  OPENSSL_cleanse(&key, sizeof key);
  return exit_code;
}

static const struct pwi_cli_option new_options[] = {
    {'o', "output", "FILE", "write the key to FILE, readable only by its owner (default: print it)"},
    {PWI_KEY_LETTER_FORCE, "force", NULL, "replace FILE if it exists"},
    PWI_KEY_LIMIT_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

static const struct pwi_command command_new = {
    .name = "key new",
    .arguments = "[FILE]",
    .summary = "create a key for a cluster",
    .text = "Creates a key from the system's random source: 'pawl1-' and 64 hexadecimal\n"
            "digits. 'pawl key new FILE' is short for 'pawl key new -o FILE'. An existing\n"
            "file is not overwritten, because its key may be in use.\n\n"
            "A key with limits (--read-only, --operator, --space and quotas) is for\n"
            "clients. The limits follow the key on its line. They take effect in the key\n"
            "files of the manager and the servers:\n"
            "  pawl key new --read-only --space ads reader.key\n"
            "  pawl key add cluster.key reader.key     # on the manager and on every server\n"
            "  kill -HUP PID                           # each of them reloads its keys\n",
    .options = new_options,
    .run = run_new,
};

/* --- show --------------------------------------------------------------------------------------------------------- */

struct key_show {
  const struct pwi_command *command;
  const char *path;
  bool json;
  size_t count;
};

static int show_one(struct key_show *show, size_t line, const struct pwi_key *key,
                    const struct pwi_key_limits *limits) {
  char printed[PWI_KEY_LINE_MAX];
  bool first = show->count++ == 0;
  if (show->json)
    return pwi_cli_print_json(
        show->command, json_pack("{s:s, s:o, s:i, s:b, s:b, s:s, s:b, s:I, s:I, s:I, s:I}", "name", key->name, "file",
                                 pwi_json_string(show->path), "line", (int)line, "used", (int)first, "read_only",
                                 (int)limits->read_only, "space", limits->space, "operator", (int)limits->is_operator,
                                 "memory", (json_int_t)limits->memory, "rate", (json_int_t)limits->rate, "connections",
                                 (json_int_t)limits->connections, "priority", (json_int_t)limits->priority));
  printf("%s  %s%s%s\n", key->name, first ? "used and accepted" : "accepted", pwi_key_limits_are_any(limits) ? "," : "",
         pwi_key_limits_print(limits, printed));
  return PWI_EXIT_OK;
}

/* Lines have any length; a line that does not fit can only be a comment. */
static void skip_line(FILE *file) {
  for (int c = getc(file); c != EOF && c != '\n';) c = getc(file);
}

/* The file was parsed before without an error: every line is a key, a comment or blank. */
static int show_lines(struct key_show *show, FILE *file) {
  char line[256];
  struct pwi_key key;
  struct pwi_key_limits limits;
  int exit_code = PWI_EXIT_OK;
  for (size_t number = 1; exit_code == PWI_EXIT_OK && fgets(line, sizeof line, file); number++) {
    if (!strchr(line, '\n')) skip_line(file);
    if (pwi_key_parse_line(line, &key, &limits) == PAWL_OK) exit_code = show_one(show, number, &key, &limits);
  }
  OPENSSL_cleanse(line, sizeof line);
  OPENSSL_cleanse(&key, sizeof key);
  return exit_code;
}

static pawl_status check_file(const char *path, size_t *line_out) {
  struct pwi_keyring *ring;
  pawl_status status = pwi_keyring_create(&ring);
  *line_out = 0;
  if (status) return status;
  status = pwi_keyring_load(ring, path, line_out);
  pwi_keyring_destroy(ring);
  return status;
}

static int show_file(struct key_show *show) {
  size_t line;
  char text[PATH_SIZE + 128];
  pawl_status status = check_file(show->path, &line);
  if (status) {
    pwi_key_file_error(show->path, line, status, text, sizeof text);
    return pwi_cli_failure(show->command, "%s", text);
  }
  FILE *file = fopen(show->path, "re");
  if (!file) return pwi_cli_failure(show->command, "%s: %s", show->path, strerror(errno));
  int exit_code = show_lines(show, file);
  fclose(file);
  if (exit_code == PWI_EXIT_OK && show->count == 0)
    return pwi_cli_failure(show->command, "%s: no key found in the file", show->path);
  return exit_code;
}

static int run_show(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct key_show show = {.command = command};
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) show.json = true;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  show.path = argv[args.rest];
  return show_file(&show);
}

static const struct pwi_cli_option show_options[] = {PWI_CLI_JSON, {0}};

static const struct pwi_command command_show = {
    .name = "key show",
    .arguments = "FILE",
    .summary = "print the names of the keys in a file, not the keys",
    .text = "Prints the name of each key in FILE. A name is a hash of the key: it\n"
            "identifies the key, in logs too, without revealing it. A node uses the first\n"
            "key of its file, and accepts peers that use any key of the file, within that\n"
            "key's limits.\n",
    .options = show_options,
    .run = run_show,
};

/* --- key ---------------------------------------------------------------------------------------------------------- */

static const struct pwi_command *const children[] = {
    &command_new, &command_show, &pwi_command_key_add, &pwi_command_key_revoke, &pwi_command_key_token, NULL};

const struct pwi_command pwi_command_key = {
    .name = "key",
    .summary = "create and manage the keys of a cluster",
    .text = "The nodes of a cluster share a key and prove to each other that they have it;\n"
            "links between them are encrypted with TLS 1.3. A node without a key refuses to\n"
            "listen on an address that other machines can reach.\n\n"
            "A key file has one key per line; blank lines and lines that begin with # are\n"
            "skipped. A node uses the first key and accepts all of them, so that the key of\n"
            "a cluster can be changed while it runs. Managers and servers reload their key\n"
            "file on SIGHUP; finish each step on all of them before the next one:\n"
            "  1. pawl key add cluster.key new.key           # accept the new key\n"
            "  2. pawl key add --first cluster.key new.key   # use the new key\n"
            "  3. pawl key revoke cluster.key OLD            # close links of the old key\n\n"
            "A key may be limited to reading, to operating, to one space of names, and by\n"
            "quotas and a highest priority: see 'pawl key new --help'.\n",
    .children = children,
};
