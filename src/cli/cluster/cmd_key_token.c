/* `pawl key token`: creates a token for the HTTP pages. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "cli/cli.h"
#include "cli/cluster/cmd_key.h"

#define TOKEN_BYTES 32
#define TOKEN_SIZE (2 * TOKEN_BYTES + 1)

static bool make_token(char text[TOKEN_SIZE]) {
  unsigned char bytes[TOKEN_BYTES];
  if (RAND_priv_bytes(bytes, sizeof bytes) != 1) return false;
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  OPENSSL_cleanse(bytes, sizeof bytes);
  return true;
}

/* Creates a new file. Returns 0 or an errno. */
static int write_token(const char *path, const char *token) {
  char text[TOKEN_SIZE + 64];
  int length = snprintf(text, sizeof text, "# pawl: token for the pages of --http\n%s\n", token);
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  int problem = file < 0 ? errno : 0;
  if (!problem && write(file, text, (size_t)length) != (ssize_t)length) problem = errno ? errno : ENOSPC;
  if (!problem && fsync(file) != 0) problem = errno;
  if (file >= 0) close(file);
  if (file >= 0 && problem) unlink(path);
  OPENSSL_cleanse(text, sizeof text);
  return problem;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  char token[TOKEN_SIZE];
  bool json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) json = true;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  const char *path = argv[args.rest];
  if (!make_token(token)) return pwi_cli_failure(command, "the system's random source failed");
  int problem = write_token(path, token);
  OPENSSL_cleanse(token, sizeof token);
  if (problem == EEXIST)
    return pwi_cli_failure(command, "%s already exists and its token may be in use; choose another name", path);
  if (problem) return pwi_cli_failure(command, "cannot write %s: %s", path, strerror(problem));
  if (json) return pwi_cli_print_json(command, json_pack("{s:s}", "file", path));
  printf("wrote a token to %s; only you can read it\n\n"
         "  pawl manager --http 0.0.0.0:7296 --http-token %s …\n"
         "  curl -H \"Authorization: Bearer $(tail -n 1 %s)\" http://HOST:7296/metrics\n",
         path, path, path);
  return PWI_EXIT_OK;
}

static const struct pwi_cli_option options[] = {PWI_CLI_JSON, {0}};

const struct pwi_command pwi_command_key_token = {
    .name = "key token",
    .arguments = "FILE",
    .summary = "create a token for the pages of --http",
    .text = "Writes a new token to FILE, readable only by its owner. Where other machines\n"
            "can reach the pages of a manager or server (--http), /metrics requires one of\n"
            "the tokens in the file that --http-token names, one per line. A token is not a\n"
            "key: it gives access to nothing else, and over plain HTTP it can be\n"
            "eavesdropped.\n",
    .options = options,
    .run = run,
};
