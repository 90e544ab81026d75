#include "host/run/access.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/memory.h"

static_assert(PWI_KEY_SPACE_MAX == PWI_SPACE_MAX, "the space of a key must fit the space of rights");

#define KEY "key:"
#define KEY_SIZE (sizeof KEY - 1)
#define CERTIFICATE "cert:"
#define CERTIFICATE_SIZE (sizeof CERTIFICATE - 1)
#define NAME_MAX_SIZE 128
#define LINE_SIZE (NAME_MAX_SIZE + PWI_KEY_LINE_MAX)
#define BLANKS " \t\r\n"
#define ANYBODY "*"
#define NONE "none"

static const struct pwi_rights nobody = {.is_nobody = true,
                                         .space = "/"}; /* no vector name has a slash in its first word */

struct rule {
  char name[NAME_MAX_SIZE];
  struct pwi_rights rights;
};

struct rules {
  struct rule *rules;
  size_t count;
};

struct pwi_run_access {
  struct pwi_keyring *keys;
  char *key, *key_name, *key_file, *rights_file; /* any of them may be NULL */
  bool is_server;
  pthread_mutex_t mutex;
  struct rules rules; /* guarded by the mutex */
};

static struct pwi_rights rights_from(const struct pwi_key_limits *limits) {
  struct pwi_rights rights = {.write = !limits->read_only && !limits->is_operator,
                              .is_operator = limits->is_operator,
                              .memory = limits->memory,
                              .rate = limits->rate,
                              .connections = limits->connections,
                              .priority = limits->priority};
  memcpy(rights.space, limits->space, sizeof rights.space);
  return rights;
}

/* --- rights for certificates ---------------------------------------------------------------------------- */

/* Parses a line. Returns NULL, or what is wrong with it. */
static const char *read_rule(char *line, struct rule *rule) {
  struct pwi_key_limits limits;
  size_t size = strcspn(line, BLANKS);
  if (size >= sizeof rule->name) return "the name is too long";
  if (strncmp(line, "pawl1-", 6) == 0) return "this is a key, but rights are given to names of certificates";
  memcpy(rule->name, line, size);
  rule->name[size] = '\0';
  char *rest = line + size;
  rest += strspn(rest, BLANKS);
  size_t length = strlen(rest);
  while (length > 0 && strchr(BLANKS, rest[length - 1])) rest[--length] = '\0';
  if (strcmp(rest, NONE) == 0) {
    rule->rights = nobody;
    return NULL;
  }
  if (pwi_key_limits_parse(rest, &limits)) return "after a name " PWI_KEY_WHAT_MAY_FOLLOW ", or 'none'";
  rule->rights = rights_from(&limits);
  return NULL;
}

static const char *add_rule(struct rules *rules, char *line) {
  struct rule rule = {0};
  bool is_cut = !strchr(line, '\n') && strlen(line) == LINE_SIZE - 1;
  line += strspn(line, BLANKS);
  if (*line == '#' || *line == '\0') return NULL;
  const char *wrong = is_cut ? "the line is too long" : read_rule(line, &rule);
  if (wrong) return wrong;
  struct rule *grown = pwi_resize_array(rules->rules, rules->count + 1, sizeof *grown);
  if (!grown) return pawl_status_text(PAWL_NO_MEMORY);
  grown[rules->count++] = rule;
  rules->rules = grown;
  return NULL;
}

static pawl_status read_lines(FILE *file, const char *path, struct rules *rules, struct pwi_run_problem *problem) {
  char line[LINE_SIZE];
  const char *wrong = NULL;
  size_t number = 0;
  while (!wrong && fgets(line, sizeof line, file)) {
    number++;
    wrong = add_rule(rules, line);
  }
  if (wrong) pwi_run_problem_set(problem, "%s:%zu: %s", path, number, wrong);
  if (!wrong && ferror(file)) pwi_run_problem_set(problem, "%s: %s", path, pawl_status_text(PAWL_IO));
  return wrong || ferror(file) ? PAWL_INVALID : PAWL_OK;
}

static pawl_status read_rules(const char *path, struct rules *rules, struct pwi_run_problem *problem) {
  struct stat about;
  *rules = (struct rules){0};
  FILE *file = fopen(path, "re");
  if (!file) {
    pwi_run_problem_set(problem, "%s: cannot be opened: %s", path, strerror(errno));
    return PAWL_NOT_FOUND;
  }
  bool is_known = fstat(fileno(file), &about) == 0;
  pawl_status status = PAWL_FORBIDDEN;
  if (is_known && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 && (about.st_uid == geteuid() || about.st_uid == 0))
    status = read_lines(file, path, rules, problem);
  else
    pwi_run_problem_set(problem, "%s: the file must not be writable by others: chmod go-w %s", path, path);
  fclose(file);
  if (status) pwi_free(rules->rules);
  return status;
}

/* `names` is separated by commas; no name contains one. */
static bool has_name(const char *names, const char *name) {
  size_t size = strlen(name);
  while (*names) {
    size_t here = strcspn(names, ",");
    if (here == size && strncmp(names, name, size) == 0) return true;
    names += here;
    names += *names == ',';
  }
  return false;
}

static struct pwi_rights rights_of_certificate(struct pwi_run_access *access, const char *names) {
  struct pwi_rights rights = nobody;
  if (!access->rights_file) return (struct pwi_rights){.write = true};
  pthread_mutex_lock(&access->mutex);
  for (size_t i = 0; i < access->rules.count; i++) {
    const struct rule *rule = &access->rules.rules[i];
    if (strcmp(rule->name, ANYBODY) != 0 && !has_name(names, rule->name)) continue;
    rights = rule->rights;
    break;
  }
  pthread_mutex_unlock(&access->mutex);
  return rights;
}

/* --- rights --------------------------------------------------------------------------------------------- */

struct pwi_rights pwi_run_access_rights(void *context, const char *identity) {
  struct pwi_run_access *access = context;
  struct pwi_key_limits limits;
  if (strncmp(identity, CERTIFICATE, CERTIFICATE_SIZE) == 0)
    return rights_of_certificate(access, identity + CERTIFICATE_SIZE);
  if (strncmp(identity, KEY, KEY_SIZE) != 0) return (struct pwi_rights){.write = true};
  const char *name = identity + KEY_SIZE;
  if (!access->keys || !pwi_keyring_limits(access->keys, name, strlen(name), &limits)) return nobody;
  return rights_from(&limits);
}

bool pwi_run_access_is_limited(const struct pwi_keyring *keys) {
  const struct pwi_key *first = keys ? pwi_keyring_first(keys) : NULL;
  struct pwi_key_limits limits;
  if (!first || !pwi_keyring_limits(keys, first->name, PWI_KEY_NAME_SIZE, &limits)) return false;
  return limits.read_only || limits.is_operator || limits.space[0];
}

/* --- reloading ------------------------------------------------------------------------------------------ */

static pawl_status read_keys(const struct pwi_run_access *access, struct pwi_keyring **keys_out,
                             struct pwi_run_problem *problem) {
  char text[PWI_KEY_ERROR_MAX] = "";
  struct pwi_key_source source = {.key = access->key, .name = access->key_name, .file = access->key_file};
  pawl_status status = pwi_key_source_read(&source, keys_out, text);
  if (status) pwi_run_problem_set(problem, "%s", text);
  if (status || !access->is_server || !pwi_run_access_is_limited(*keys_out)) return status;
  pwi_keyring_destroy(*keys_out);
  *keys_out = NULL;
  pwi_run_problem_set(problem, "%s: the first key has limits, but a server needs a key without limits",
                      access->key_file ? access->key_file : access->key_name);
  return PAWL_FORBIDDEN;
}

pawl_status pwi_run_access_reload(struct pwi_run_access *access, struct pwi_run_problem *problem) {
  struct pwi_keyring *keys = NULL;
  struct rules rules = {0};
  bool has_source = access->keys && (access->key || access->key_file);
  pawl_status status = has_source ? read_keys(access, &keys, problem) : PAWL_OK;
  if (!status && access->rights_file) status = read_rules(access->rights_file, &rules, problem);
  if (!status && keys) pwi_keyring_swap(access->keys, keys);
  pwi_keyring_destroy(keys);
  if (status || !access->rights_file) return status;
  pthread_mutex_lock(&access->mutex);
  struct rules old = access->rules;
  access->rules = rules;
  pthread_mutex_unlock(&access->mutex);
  pwi_free(old.rules);
  return PAWL_OK;
}

/* --- life ----------------------------------------------------------------------------------------------- */

static bool copy(const char *text, char **copy_out) {
  if (!text || !*text) return true;
  *copy_out = pwi_copy_string(text);
  return *copy_out != NULL;
}

pawl_status pwi_run_access_open(const struct pwi_run_access_config *config, struct pwi_run_access **access_out,
                                struct pwi_run_problem *problem) {
  struct pwi_run_access *access = pwi_alloc_zero(1, sizeof *access);
  pawl_status status = access ? PAWL_OK : PAWL_NO_MEMORY;
  pwi_run_problem_set(problem, "%s", pawl_status_text(PAWL_NO_MEMORY));
  if (status) return status;
  pthread_mutex_init(&access->mutex, NULL);
  access->keys = config->keys;
  access->is_server = config->is_server;
  bool copied = copy(config->source.key, &access->key) && copy(config->source.name, &access->key_name) &&
                copy(config->source.file, &access->key_file) && copy(config->rights_file, &access->rights_file);
  if (!copied) status = PAWL_NO_MEMORY;
  if (!status && access->rights_file) status = read_rules(access->rights_file, &access->rules, problem);
  if (!status)
    *access_out = access;
  else
    pwi_run_access_close(access);
  return status;
}

void pwi_run_access_close(struct pwi_run_access *access) {
  if (!access) return;
  if (access->key) OPENSSL_cleanse(access->key, strlen(access->key));
  pwi_free(access->key);
  pwi_free(access->key_name);
  pwi_free(access->key_file);
  pwi_free(access->rights_file);
  pwi_free(access->rules.rules);
  pthread_mutex_destroy(&access->mutex);
  pwi_free(access);
}
