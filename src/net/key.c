#include "net/key.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/secret.h"

#define PREFIX "pawl1-"
#define PREFIX_SIZE (sizeof PREFIX - 1)

#define FILE_BUFFER 4000
#define BLANKS " \t\r\n\v\f"
#define READ_ONLY "read-only"
#define OPERATOR "operator"
#define SPACE "space="
#define SPACE_SIZE (sizeof SPACE - 1)
#define MEMORY "memory="
#define RATE "rate="
#define CONNECTIONS "connections="
#define PRIORITY "priority="
#define PRIORITY_MAX 9

struct keyring_entry {
  struct pwi_key key;
  struct pwi_key_limits limits;
};

struct pwi_keyring {
  pthread_mutex_t mutex;
  struct keyring_entry *entries;
  size_t count;
};

static void print_hex(const uint8_t *bytes, size_t size, char *text) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < size; i++) {
    text[2 * i] = digits[bytes[i] >> 4];
    text[2 * i + 1] = digits[bytes[i] & 15];
  }
  text[2 * size] = '\0';
}

static int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

pawl_status pwi_key_new(char text[PWI_KEY_TEXT_MAX]) {
  uint8_t secret[PWI_KEY_SIZE];
  if (RAND_priv_bytes(secret, sizeof secret) != 1) return PAWL_IO;
  memcpy(text, PREFIX, PREFIX_SIZE);
  print_hex(secret, sizeof secret, text + PREFIX_SIZE);
  OPENSSL_cleanse(secret, sizeof secret);
  return PAWL_OK;
}

/* Reads the word at `text`, which must end there or before a blank. */
static pawl_status parse_word(const char *text, struct pwi_key *key_out) {
  if (strncmp(text, PREFIX, PREFIX_SIZE) != 0) return PAWL_INVALID;
  text += PREFIX_SIZE;
  struct pwi_key key;
  for (size_t i = 0; i < PWI_KEY_SIZE; i++) {
    int high = hex_digit(text[2 * i]);
    int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
    if (low < 0) return PAWL_INVALID;
    key.secret[i] = (uint8_t)(high << 4 | low);
  }
  text += 2 * PWI_KEY_SIZE;
  if (*text && !isspace((unsigned char)*text)) return PAWL_INVALID;

  uint8_t digest[SHA256_DIGEST_LENGTH];
  SHA256(key.secret, sizeof key.secret, digest);
  print_hex(digest, PWI_KEY_NAME_SIZE / 2, key.name);
  *key_out = key;
  OPENSSL_cleanse(&key, sizeof key);
  return PAWL_OK;
}

bool pwi_key_space_is_valid(const char *space) {
  size_t size = strlen(space);
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return size > 0 && size <= PWI_KEY_SPACE_MAX && strspn(space, letters) == size;
}

static bool is_word(const char *word, size_t size, const char *wanted) {
  return size == strlen(wanted) && strncmp(word, wanted, size) == 0;
}

/* A flag, which may be given once. */
static bool read_flag(bool *flag) {
  bool first = !*flag;
  *flag = true;
  return first;
}

static bool read_space(const char *word, size_t size, struct pwi_key_limits *limits) {
  if (size <= SPACE_SIZE || size - SPACE_SIZE > PWI_KEY_SPACE_MAX || limits->space[0]) return false;
  memcpy(limits->space, word + SPACE_SIZE, size - SPACE_SIZE);
  return pwi_key_space_is_valid(limits->space);
}

/* Parses digits, optionally followed by k, M, G or T (powers of 1024). */
static bool read_amount(const char *text, const char *end, uint64_t *amount) {
  static const char units[] = "kmgt";
  uint64_t value = 0;
  if (*amount != 0 || text == end) return false;
  for (; text < end && *text >= '0' && *text <= '9'; text++)
    if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
      return false;
  if (text < end) {
    const char *unit = strchr(units, *text | 0x20);
    unsigned shift = unit && *unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (shift == 0 || ++text != end || value > UINT64_MAX >> shift) return false;
    value <<= shift;
  }
  *amount = value;
  return value > 0;
}

static bool read_limit(const char *word, size_t size, struct pwi_key_limits *limits) {
  const struct {
    const char *name;
    uint64_t *amount;
  } amounts[] = {{MEMORY, &limits->memory},
                 {RATE, &limits->rate},
                 {CONNECTIONS, &limits->connections},
                 {PRIORITY, &limits->priority}};
  if (is_word(word, size, READ_ONLY)) return read_flag(&limits->read_only);
  if (is_word(word, size, OPERATOR)) return read_flag(&limits->is_operator);
  if (strncmp(word, SPACE, SPACE_SIZE) == 0) return read_space(word, size, limits);
  for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++) {
    size_t name = strlen(amounts[i].name);
    if (size > name && strncmp(word, amounts[i].name, name) == 0)
      return read_amount(word + name, word + size, amounts[i].amount);
  }
  return false;
}

static bool are_sound(const struct pwi_key_limits *limits) {
  return !(limits->is_operator && limits->read_only) && (limits->memory == 0 || limits->space[0]) &&
         limits->priority <= PRIORITY_MAX;
}

pawl_status pwi_key_limits_parse(const char *text, struct pwi_key_limits *limits_out) {
  struct pwi_key_limits limits = {0};
  while (*(text += strspn(text, BLANKS))) {
    size_t size = strcspn(text, BLANKS);
    if (!read_limit(text, size, &limits)) return PAWL_UNSUPPORTED;
    text += size;
  }
  if (!are_sound(&limits)) return PAWL_UNSUPPORTED;
  *limits_out = limits;
  return PAWL_OK;
}

bool pwi_key_limits_are_any(const struct pwi_key_limits *limits) {
  return limits->read_only || limits->is_operator || limits->space[0] || limits->memory || limits->rate ||
         limits->connections || limits->priority;
}

pawl_status pwi_key_parse_line(const char *text, struct pwi_key *key_out, struct pwi_key_limits *limits_out) {
  struct pwi_key key;
  text += strspn(text, BLANKS);
  pawl_status status = parse_word(text, &key);
  if (status == PAWL_OK) status = pwi_key_limits_parse(text + strcspn(text, BLANKS), limits_out);
  if (status == PAWL_OK) *key_out = key;
  OPENSSL_cleanse(&key, sizeof key);
  return status;
}

pawl_status pwi_key_parse(const char *text, struct pwi_key *key_out) {
  text += strspn(text, BLANKS);
  size_t size = strcspn(text, BLANKS);
  if (text[size + strspn(text + size, BLANKS)]) return PAWL_INVALID;
  return parse_word(text, key_out);
}

static size_t print_amount(char *text, size_t at, const char *name, uint64_t amount) {
  if (amount == 0) return at;
  return at + (size_t)snprintf(text + at, PWI_KEY_LINE_MAX - at, " %s%llu", name, (unsigned long long)amount);
}

const char *pwi_key_limits_print(const struct pwi_key_limits *limits, char text[PWI_KEY_LINE_MAX]) {
  size_t at =
      (size_t)snprintf(text, PWI_KEY_LINE_MAX, "%s%s%s%s", limits->read_only ? " " READ_ONLY : "",
                       limits->is_operator ? " " OPERATOR : "", limits->space[0] ? " " SPACE : "", limits->space);
  at = print_amount(text, at, MEMORY, limits->memory);
  at = print_amount(text, at, RATE, limits->rate);
  at = print_amount(text, at, CONNECTIONS, limits->connections);
  print_amount(text, at, PRIORITY, limits->priority);
  return text;
}

pawl_status pwi_keyring_create(struct pwi_keyring **keyring_out) {
  struct pwi_keyring *keyring = pwi_alloc_zero(1, sizeof *keyring);
  if (!keyring) return PAWL_NO_MEMORY;
  pthread_mutex_init(&keyring->mutex, NULL);
  *keyring_out = keyring;
  return PAWL_OK;
}

void pwi_keyring_destroy(struct pwi_keyring *keyring) {
  if (!keyring) return;
  pwi_secret_free(keyring->entries, keyring->count * sizeof *keyring->entries);
  pthread_mutex_destroy(&keyring->mutex);
  pwi_free(keyring);
}

static const struct keyring_entry *find(const struct pwi_keyring *keyring, const char *name, size_t name_size) {
  if (name_size != PWI_KEY_NAME_SIZE) return NULL;
  for (size_t i = 0; i < keyring->count; i++)
    if (memcmp(keyring->entries[i].key.name, name, name_size) == 0) return &keyring->entries[i];
  return NULL;
}

static pawl_status append(struct pwi_keyring *keyring, const struct keyring_entry *entry) {
  if (find(keyring, entry->key.name, PWI_KEY_NAME_SIZE)) return PAWL_EXISTS;
  /* The array is not resized in place: the allocator would leave secrets in the old block. */
  size_t size;
  if (!pwi_mul_size(keyring->count + 1, sizeof *entry, &size)) return PAWL_NO_MEMORY;
  struct keyring_entry *grown = pwi_secret_alloc(size);
  if (!grown) return PAWL_NO_MEMORY;
  if (keyring->entries) {
    memcpy(grown, keyring->entries, keyring->count * sizeof *grown);
    pwi_secret_free(keyring->entries, keyring->count * sizeof *grown);
  }
  grown[keyring->count++] = *entry;
  keyring->entries = grown;
  return PAWL_OK;
}

pawl_status pwi_keyring_add(struct pwi_keyring *keyring, const char *text) {
  struct keyring_entry entry;
  pawl_status status = pwi_key_parse_line(text, &entry.key, &entry.limits);
  if (status != PAWL_OK) return status;
  status = append(keyring, &entry);
  OPENSSL_cleanse(&entry, sizeof entry);
  return status;
}

/* Skips the rest of a line. True if there was any. */
static bool skip_line(FILE *file) {
  bool skipped = false;
  for (int c = getc(file); c != EOF && c != '\n'; c = getc(file)) skipped = true;
  return skipped;
}

static pawl_status load_line(struct pwi_keyring *keyring, const char *line, bool is_cut) {
  const char *text = line + strspn(line, " \t\r\n");
  if (*text == '#' || (*text == '\0' && !is_cut)) return PAWL_OK;
  if (is_cut) return PAWL_INVALID;
  pawl_status status = pwi_keyring_add(keyring, text);
  return status == PAWL_EXISTS ? PAWL_OK : status;
}

static pawl_status load_lines(struct pwi_keyring *keyring, FILE *file, size_t *line_out) {
  char line[2 * PWI_KEY_LINE_MAX];
  pawl_status status = PAWL_OK;
  for (*line_out = 1; fgets(line, sizeof line, file); ++*line_out) {
    bool is_cut = !strchr(line, '\n') && skip_line(file);
    status = load_line(keyring, line, is_cut);
    if (status != PAWL_OK) break;
  }
  OPENSSL_cleanse(line, sizeof line);
  if (status == PAWL_OK && ferror(file)) {
    *line_out = 0;
    status = PAWL_IO;
  }
  return status;
}

pawl_status pwi_keyring_load(struct pwi_keyring *keyring, const char *path, size_t *line_out) {
  *line_out = 0;
  FILE *file = fopen(path, "re");
  if (!file) return errno == EACCES ? PAWL_FORBIDDEN : PAWL_NOT_FOUND;
  struct stat about;
  pawl_status status = PAWL_FORBIDDEN;
  char *buffer = pwi_secret_alloc(FILE_BUFFER); /* the buffer of the C library would keep the secrets */
  if (!buffer)
    status = PAWL_NO_MEMORY;
  else if (setvbuf(file, buffer, _IOFBF, FILE_BUFFER) == 0 && fstat(fileno(file), &about) == 0 &&
           (about.st_mode & (S_IRWXG | S_IRWXO)) == 0)
    status = load_lines(keyring, file, line_out);
  fclose(file);
  pwi_secret_free(buffer, FILE_BUFFER);
  return status;
}

size_t pwi_keyring_count(const struct pwi_keyring *keyring) { return keyring->count; }

const struct pwi_key *pwi_keyring_first(const struct pwi_keyring *keyring) {
  return keyring->count ? &keyring->entries[0].key : NULL;
}

const struct pwi_key *pwi_keyring_find(const struct pwi_keyring *keyring, const char *name, size_t name_size) {
  const struct keyring_entry *entry = find(keyring, name, name_size);
  return entry ? &entry->key : NULL;
}

static void lock(const struct pwi_keyring *keyring) {
  pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&keyring->mutex);
}

static void unlock(const struct pwi_keyring *keyring) {
  pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&keyring->mutex);
}

void pwi_keyring_swap(struct pwi_keyring *keyring, struct pwi_keyring *other) {
  lock(keyring);
  struct keyring_entry *entries = keyring->entries;
  size_t count = keyring->count;
  keyring->entries = other->entries;
  keyring->count = other->count;
  other->entries = entries;
  other->count = count;
  unlock(keyring);
}

bool pwi_keyring_copy_first(const struct pwi_keyring *keyring, struct pwi_key *key_out) {
  lock(keyring);
  bool is_there = keyring->count > 0;
  if (is_there) *key_out = keyring->entries[0].key;
  unlock(keyring);
  return is_there;
}

bool pwi_keyring_copy(const struct pwi_keyring *keyring, const char *name, size_t name_size, struct pwi_key *key_out) {
  lock(keyring);
  const struct keyring_entry *entry = find(keyring, name, name_size);
  if (entry) *key_out = entry->key;
  unlock(keyring);
  return entry != NULL;
}

bool pwi_keyring_limits(const struct pwi_keyring *keyring, const char *name, size_t name_size,
                        struct pwi_key_limits *limits_out) {
  lock(keyring);
  const struct keyring_entry *entry = find(keyring, name, name_size);
  if (entry) *limits_out = entry->limits;
  unlock(keyring);
  return entry != NULL;
}
