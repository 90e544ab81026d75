#include "host/http/http_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/memory.h"

#define BEARER "Bearer "
#define BEARER_SIZE (sizeof BEARER - 1)
#define CLUSTER_KEY "pawl1-"
#define PAPER_MAX ((size_t)1 << 20)
#define LINE_MAX_SIZE (PWI_HTTP_TOKEN_MAX + 64)

/* Tokens are stored and compared as hashes, which have equal length and are useless to a reader of our
 * memory. */
struct tokens {
  size_t count;
  unsigned char hashes[PWI_HTTP_TOKENS][SHA256_DIGEST_LENGTH];
};

struct pwi_http_guard {
  char *token_file; /* NULL: none */
  pthread_mutex_t mutex;
  struct tokens tokens; /* guarded by the mutex */
  struct pwi_http_papers papers;
};

/* --- tokens --------------------------------------------------------------------------------------------- */

/* Adds the token of a line, already stripped of blanks. Returns NULL, or what is wrong with it. */
static const char *add_token(struct tokens *tokens, const char *token, size_t size) {
  if (strncmp(token, CLUSTER_KEY, sizeof CLUSTER_KEY - 1) == 0)
    return "this is a cluster key, but tokens may travel unencrypted; create a token with 'pawl key token FILE'";
  if (size < PWI_HTTP_TOKEN_MIN || size > PWI_HTTP_TOKEN_MAX) return "a token has 16 to 256 characters";
  for (size_t i = 0; i < size; i++)
    if (token[i] <= ' ' || token[i] > '~') return "a token must be one word of visible characters";
  if (tokens->count == PWI_HTTP_TOKENS) return "more than 16 tokens";
  SHA256((const unsigned char *)token, size, tokens->hashes[tokens->count++]);
  return NULL;
}

static const char *add_line(struct tokens *tokens, char *line) {
  static const char blanks[] = " \t\r\n";
  const char *token = line + strspn(line, blanks);
  size_t size = strlen(token);
  if (*token == '#' || size == 0) return NULL;
  if (!strchr(line, '\n') && strlen(line) == LINE_MAX_SIZE - 1) return "the line is too long";
  while (size > 0 && strchr(blanks, token[size - 1])) size--;
  return add_token(tokens, token, size);
}

static pawl_status read_lines(FILE *file, const char *path, struct tokens *tokens, struct pwi_run_problem *problem) {
  char line[LINE_MAX_SIZE];
  const char *wrong = NULL;
  size_t number = 0;
  while (!wrong && fgets(line, sizeof line, file)) {
    number++;
    wrong = add_line(tokens, line);
  }
  OPENSSL_cleanse(line, sizeof line);
  if (wrong)
    pwi_run_problem_set(problem, "%s:%zu: %s", path, number, wrong);
  else if (ferror(file))
    pwi_run_problem_set(problem, "%s: %s", path, pawl_status_text(PAWL_IO));
  else if (tokens->count == 0)
    pwi_run_problem_set(problem, "%s: the file contains no token; create one with 'pawl key token %s'", path, path);
  else
    return PAWL_OK;
  return PAWL_INVALID;
}

static pawl_status read_tokens(const char *path, struct tokens *tokens, struct pwi_run_problem *problem) {
  struct stat about;
  FILE *file = fopen(path, "re");
  *tokens = (struct tokens){0};
  if (!file) {
    pwi_run_problem_set(problem, "%s: cannot be opened: %s; create a token with 'pawl key token %s'", path,
                        strerror(errno), path);
    return PAWL_NOT_FOUND;
  }
  pawl_status status = PAWL_FORBIDDEN;
  if (fstat(fileno(file), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0)
    status = read_lines(file, path, tokens, problem);
  else
    pwi_run_problem_set(problem, "%s: the file must be readable by you and nobody else: chmod 600 %s", path, path);
  fclose(file);
  return status;
}

pawl_status pwi_http_guard_reload(struct pwi_http_guard *guard, struct pwi_run_problem *problem) {
  struct tokens tokens;
  if (!guard->token_file) return PAWL_OK;
  pawl_status status = read_tokens(guard->token_file, &tokens, problem);
  if (status) return status;
  pthread_mutex_lock(&guard->mutex);
  guard->tokens = tokens;
  pthread_mutex_unlock(&guard->mutex);
  return PAWL_OK;
}

bool pwi_http_guard_has_tokens(struct pwi_http_guard *guard) { return guard->token_file != NULL; }

bool pwi_http_guard_knows(struct pwi_http_guard *guard, const char *authorization) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  unsigned found = 0;
  if (!authorization || strncasecmp(authorization, BEARER, BEARER_SIZE) != 0) return false;
  const char *token = authorization + BEARER_SIZE;
  token += strspn(token, " ");
  SHA256((const unsigned char *)token, strlen(token), hash);
  pthread_mutex_lock(&guard->mutex);
  for (size_t i = 0; i < guard->tokens.count; i++)
    found |= CRYPTO_memcmp(hash, guard->tokens.hashes[i], sizeof hash) == 0;
  pthread_mutex_unlock(&guard->mutex);
  return found != 0;
}

/* --- certificates --------------------------------------------------------------------------------------- */

static void forget_text(char *text) {
  if (text) OPENSSL_cleanse(text, strlen(text));
  pwi_free(text);
}

static pawl_status read_paper(const char *path, char **text_out, struct pwi_run_problem *problem) {
  FILE *file = fopen(path, "re");
  if (!file) {
    pwi_run_problem_set(problem, "%s: cannot be opened: %s", path, strerror(errno));
    return PAWL_NOT_FOUND;
  }
  char *text = pwi_alloc_zero(1, PAPER_MAX + 1);
  size_t size = text ? fread(text, 1, PAPER_MAX, file) : 0;
  bool is_good = text && !ferror(file) && feof(file) && size > 0;
  fclose(file);
  if (is_good) {
    *text_out = text;
    return PAWL_OK;
  }
  forget_text(text);
  pwi_run_problem_set(problem, "%s: not a valid PEM file", path);
  return PAWL_IO;
}

static pawl_status read_papers(const struct pwi_http_guard_config *config, struct pwi_http_papers *papers,
                               struct pwi_run_problem *problem) {
  pawl_status status = read_paper(config->certificate, &papers->certificate, problem);
  if (!status) status = read_paper(config->private_key, &papers->private_key, problem);
  if (!status) status = read_paper(config->authority, &papers->authority, problem);
  return status;
}

const struct pwi_http_papers *pwi_http_guard_papers(const struct pwi_http_guard *guard) {
  return guard->papers.certificate ? &guard->papers : NULL;
}

/* --- life ----------------------------------------------------------------------------------------------- */

pawl_status pwi_http_guard_open(const struct pwi_http_guard_config *config, struct pwi_http_guard **guard_out,
                                struct pwi_run_problem *problem) {
  *guard_out = NULL;
  if (!config->token_file && !config->certificate) return PAWL_OK;
  struct pwi_http_guard *guard = pwi_alloc_zero(1, sizeof *guard);
  pawl_status status = guard ? PAWL_OK : PAWL_NO_MEMORY;
  pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
  if (!status) pthread_mutex_init(&guard->mutex, NULL);
  if (!status && config->token_file && !(guard->token_file = pwi_copy_string(config->token_file)))
    status = PAWL_NO_MEMORY;
  if (!status) status = pwi_http_guard_reload(guard, problem);
  if (!status && config->certificate) status = read_papers(config, &guard->papers, problem);
  if (!status) *guard_out = guard;
  if (status) pwi_http_guard_close(guard);
  return status;
}

void pwi_http_guard_close(struct pwi_http_guard *guard) {
  if (!guard) return;
  pwi_free(guard->token_file);
  forget_text(guard->papers.certificate);
  forget_text(guard->papers.private_key);
  forget_text(guard->papers.authority);
  pthread_mutex_destroy(&guard->mutex);
  OPENSSL_cleanse(guard, sizeof *guard);
  pwi_free(guard);
}
