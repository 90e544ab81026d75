/* `pawl key add` and `pawl key revoke`: edit key files atomically, and keep them readable only by their
 * owner. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "cli/cluster/cmd_key.h"
#include "host/key_source.h"

#define PATH_SIZE 4096
#define LINE_SIZE 1024
#define FILE_MAX ((size_t)4 << 20)

/* A key file in memory, line by line. */
struct line {
  char text[LINE_SIZE]; /* with its newline */
  bool is_key, is_gone;
  char name[PWI_KEY_NAME_SIZE + 1];
  struct pwi_key_limits limits;
};

struct lines {
  struct line *lines;
  size_t count;
};

static void forget(struct lines *lines) {
  if (lines->lines) OPENSSL_cleanse(lines->lines, lines->count * sizeof *lines->lines);
  pwi_free(lines->lines);
  *lines = (struct lines){0};
}

/* Copies to a new block instead of realloc, which could leave secrets in the old block. */
static bool insert(struct lines *lines, size_t at, const struct line *line) {
  struct line *grown = pwi_alloc_zero(lines->count + 1, sizeof *grown);
  if (!grown) return false;
  size_t count = lines->count;
  if (at > 0) memcpy(grown, lines->lines, at * sizeof *grown);
  grown[at] = *line;
  if (count > at) memcpy(grown + at + 1, lines->lines + at, (count - at) * sizeof *grown);
  forget(lines);
  *lines = (struct lines){grown, count + 1};
  return true;
}

static void look_at(struct line *line) {
  struct pwi_key key;
  line->is_key = pwi_key_parse_line(line->text, &key, &line->limits) == PAWL_OK;
  if (!line->is_key) return;
  memcpy(line->name, key.name, sizeof line->name);
  OPENSSL_cleanse(&key, sizeof key);
}

/* A comment may be longer than LINE_SIZE. The rest of it is not a key, even if it looks like one. */
static bool read_lines(FILE *file, struct lines *lines) {
  struct line line = {0};
  bool good = true, is_rest = false;
  while (good && fgets(line.text, sizeof line.text, file)) {
    size_t size = strlen(line.text);
    bool is_whole = size > 0 && line.text[size - 1] == '\n';
    bool is_last = !is_whole && size + 1 < sizeof line.text;
    if (is_last) memcpy(line.text + size, "\n", 2);
    line.is_key = false;
    if (!is_rest && (is_whole || is_last)) look_at(&line);
    is_rest = !is_whole;
    good = insert(lines, lines->count, &line);
  }
  OPENSSL_cleanse(&line, sizeof line);
  return good && !ferror(file);
}

/* Checks the file before the edit: its mode, and each line. */
static int check(const struct pwi_command *command, const char *path) {
  struct pwi_keyring *ring;
  char text[PATH_SIZE + 256];
  size_t line = 0;
  pawl_status status = pwi_keyring_create(&ring);
  if (status) return pwi_cli_failure(command, "%s", pawl_status_text(status));
  status = pwi_keyring_load(ring, path, &line);
  pwi_keyring_destroy(ring);
  if (!status) return PWI_EXIT_OK;
  pwi_key_file_error(path, line, status, text, sizeof text);
  return pwi_cli_failure(command, "%s", text);
}

static int load(const struct pwi_command *command, const char *path, struct lines *lines) {
  *lines = (struct lines){0};
  int exit_code = check(command, path);
  if (exit_code) return exit_code;
  FILE *file = fopen(path, "re");
  bool good = file && read_lines(file, lines);
  if (file) fclose(file);
  if (good) return PWI_EXIT_OK;
  forget(lines);
  return pwi_cli_failure(command, "cannot read %s: %s", path, strerror(errno));
}

/* --- writing -------------------------------------------------------------------------------------------------------- */

static int write_all(int file, const struct lines *lines) {
  for (size_t i = 0; i < lines->count; i++) {
    const struct line *line = &lines->lines[i];
    size_t size = strlen(line->text);
    if (line->is_gone) continue;
    ssize_t written = write(file, line->text, size);
    if (written != (ssize_t)size) return written < 0 ? errno : ENOSPC;
  }
  return fsync(file) == 0 ? 0 : errno;
}

/* Keeps the owner of the file, if permitted: root may edit the file of another user. */
static void keep_owner(int file, const char *path) {
  struct stat about;
  if (stat(path, &about) == 0 && (about.st_uid != geteuid() || about.st_gid != getegid()))
    (void)!fchown(file, about.st_uid, about.st_gid);
}

static void sync_folder(const char *path) {
  char folder[PATH_SIZE];
  const char *slash = strrchr(path, '/');
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

/* Writes a file beside the key file, then renames it over the key file. The file beside it is also the lock
 * of the editor. Returns 0 or an errno. */
static int replace(const char *path, const char *beside, const struct lines *lines) {
  int file = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (file < 0) return errno;
  keep_owner(file, path);
  int problem = write_all(file, lines);
  if (close(file) != 0 && !problem) problem = errno;
  if (!problem && rename(beside, path) != 0) problem = errno;
  if (problem) unlink(beside);
  if (!problem) sync_folder(path);
  return problem;
}

static int store(const struct pwi_command *command, const char *path, const struct lines *lines) {
  char real[PATH_SIZE], beside[PATH_SIZE + 8];
  if (!realpath(path, real)) return pwi_cli_failure(command, "%s: %s", path, strerror(errno));
  snprintf(beside, sizeof beside, "%s.edit", real);
  int problem = replace(real, beside, lines);
  if (problem == EEXIST)
    return pwi_cli_failure(
        command,
        "%s exists: another edit of the keys is running or was interrupted; if none is running, remove the file",
        beside);
  if (problem) return pwi_cli_failure(command, "cannot write %s: %s", path, strerror(problem));
  return PWI_EXIT_OK;
}

static const struct line *first_key(const struct lines *lines) {
  for (size_t i = 0; i < lines->count; i++)
    if (lines->lines[i].is_key && !lines->lines[i].is_gone) return &lines->lines[i];
  return NULL;
}

/* Refuses an edit after which nodes could not use the file. */
static int check_first(const struct pwi_command *command, const char *path, const struct lines *lines) {
  const struct line *first = first_key(lines);
  if (!first) return pwi_cli_failure(command, "%s would have no key left; it was not changed", path);
  const struct pwi_key_limits *limits = &first->limits;
  if (!limits->read_only && !limits->is_operator && !limits->space[0]) return PWI_EXIT_OK;
  return pwi_cli_failure(
      command,
      "%s would begin with the limited key %s, but nodes need a key without limits first; the file was not changed",
      path, first->name);
}

static void explain_reload(void) {
  printf("\n"
         "Managers and servers reload their key file on SIGHUP:\n\n"
         "  kill -HUP PID\n");
}

/* Removes a key, and the comment that names it. Returns the number of keys removed. */
static size_t strike(struct lines *lines, const char *name) {
  size_t struck = 0;
  for (size_t i = 0; i < lines->count; i++) {
    struct line *line = &lines->lines[i];
    bool is_it = line->is_key && strcmp(line->name, name) == 0;
    bool is_about_it = !line->is_key && strncmp(line->text, "# pawl key ", 11) == 0 && strstr(line->text, name);
    if (is_it && !line->is_gone) struck++;
    if (is_it || is_about_it) line->is_gone = true;
  }
  return struck;
}

/* --- add ------------------------------------------------------------------------------------------------------------ */

struct addition {
  const struct pwi_command *command;
  const char *path, *from;
  bool is_first, has_limits, json;
  struct pwi_key_limits limits;
};

/* The key with the limits given as options, or with its own. */
static void set_limits(struct line *line, const struct pwi_key_limits *limits) {
  char printed[PWI_KEY_LINE_MAX], key[PWI_KEY_TEXT_MAX];
  const char *text = line->text + strspn(line->text, " \t");
  snprintf(key, sizeof key, "%.*s", (int)strcspn(text, " \t\r\n"), text);
  snprintf(line->text, sizeof line->text, "%s%s\n", key, pwi_key_limits_print(limits, printed));
  line->limits = *limits;
  OPENSSL_cleanse(key, sizeof key);
}

static int add_lines(const struct addition *addition, struct lines *lines, struct lines *more, size_t *added_out) {
  size_t at = addition->is_first ? 0 : lines->count;
  for (size_t i = 0; i < more->count; i++) {
    struct line *line = &more->lines[i];
    if (!line->is_key) continue;
    if (addition->has_limits) set_limits(line, &addition->limits);
    strike(lines, line->name);
    struct line comment = {0};
    snprintf(comment.text, sizeof comment.text, "# pawl key %s\n", line->name);
    if (!insert(lines, at++, &comment) || !insert(lines, at++, line))
      return pwi_cli_failure(addition->command, "%s", pawl_status_text(PAWL_NO_MEMORY));
    ++*added_out;
  }
  if (*added_out == 0) return pwi_cli_failure(addition->command, "%s: no key found in the file", addition->from);
  return check_first(addition->command, addition->path, lines);
}

static int show_added(const struct addition *addition, const struct lines *more) {
  for (size_t i = 0; i < more->count; i++) {
    const struct line *line = &more->lines[i];
    char printed[PWI_KEY_LINE_MAX];
    if (!line->is_key) continue;
    pwi_key_limits_print(&line->limits, printed);
    if (!addition->json)
      printf("%s now accepts key %s%s%s\n", addition->path, line->name, printed[0] ? "," : "", printed);
    else if (pwi_cli_print_json(addition->command, json_pack("{s:s, s:s, s:b}", "name", line->name, "file",
                                                             addition->path, "used", (int)addition->is_first)))
      return PWI_EXIT_FAILURE;
  }
  if (!addition->json) explain_reload();
  return PWI_EXIT_OK;
}

static int add(const struct addition *addition) {
  struct lines lines, more;
  size_t added = 0;
  int exit_code = load(addition->command, addition->path, &lines);
  if (exit_code) return exit_code;
  exit_code = load(addition->command, addition->from, &more);
  if (!exit_code) exit_code = add_lines(addition, &lines, &more, &added);
  if (!exit_code) exit_code = store(addition->command, addition->path, &lines);
  if (!exit_code) exit_code = show_added(addition, &more);
  forget(&lines);
  forget(&more);
  return exit_code;
}

static int run_add(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct addition addition = {.command = command};
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!pwi_key_limit_option(command, letter, args.value, &addition.limits, &args.exit_code)) return args.exit_code;
    if (letter == PWI_KEY_LETTER_FIRST) addition.is_first = true;
    if (letter == PWI_CLI_LETTER_JSON) addition.json = true;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, 2)) return args.exit_code;
  if (!pwi_key_limits_settle(command, &addition.limits, &args.exit_code)) return args.exit_code;
  addition.has_limits = pwi_key_limits_are_any(&addition.limits);
  addition.path = argv[args.rest];
  addition.from = argv[args.rest + 1];
  return add(&addition);
}

static const struct pwi_cli_option add_options[] = {
    {PWI_KEY_LETTER_FIRST, "first", NULL, "put the key first: nodes use the first key when they connect"},
    PWI_KEY_LIMIT_OPTIONS,
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_key_add = {
    .name = "key add",
    .arguments = "FILE KEY-FILE",
    .summary = "start accepting the keys of another file",
    .text = "Adds the keys in KEY-FILE to FILE, the key file of a manager or server, with\n"
            "the limits they have in KEY-FILE or those given as options. A key that FILE\n"
            "already has is moved and gets the new limits. FILE is replaced atomically and\n"
            "keeps mode 0600. Nodes reload it on SIGHUP.\n",
    .options = add_options,
    .run = run_add,
};

/* --- revoke --------------------------------------------------------------------------------------------------------- */

static int revoke_keys(const struct pwi_command *command, const char *path, char **names, int count, bool json) {
  struct lines lines;
  int exit_code = load(command, path, &lines);
  for (int i = 0; i < count && !exit_code; i++)
    if (strike(&lines, names[i]) == 0)
      exit_code =
          pwi_cli_failure(command, "%s has no key %s; list its keys with 'pawl key show %s'; the file was not changed",
                          path, names[i], path);
  if (!exit_code) exit_code = check_first(command, path, &lines);
  if (!exit_code) exit_code = store(command, path, &lines);
  for (int i = 0; i < count && !exit_code; i++) {
    if (json)
      exit_code = pwi_cli_print_json(command, json_pack("{s:s, s:s}", "name", names[i], "file", path));
    else
      printf("%s no longer accepts key %s\n", path, names[i]);
  }
  if (!exit_code && !json) explain_reload();
  forget(&lines);
  return exit_code;
}

static int run_revoke(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  bool json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) json = true;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, argc)) return args.exit_code;
  return revoke_keys(command, argv[args.rest], argv + args.rest + 1, argc - args.rest - 1, json);
}

static const struct pwi_cli_option revoke_options[] = {PWI_CLI_JSON, {0}};

const struct pwi_command pwi_command_key_revoke = {
    .name = "key revoke",
    .arguments = "FILE NAME...",
    .summary = "stop accepting a key",
    .text = "Removes keys from FILE, by their names as 'pawl key show' prints them. FILE is\n"
            "replaced atomically and keeps mode 0600. Nodes reload it on SIGHUP: then they\n"
            "refuse the key and close links that were opened with it.\n",
    .options = revoke_options,
    .run = run_revoke,
};
