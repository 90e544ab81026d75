/* Cluster keys: the secret by which a node is admitted.
 *
 * A key is 32 random bytes, written as `pawl1-` and 64 hexadecimal digits. A link proves possession of the
 * key by TLS 1.3 with a pre-shared key; the key itself is never sent. A node may accept several keys at once,
 * so that a cluster can change its key without stopping: add the new key everywhere, make it the first
 * everywhere, then remove the old one.
 *
 * A key may be *limited*. The limits follow the key on its line, each at most once and in any order:
 *
 *   pawl1-… read-only space=ads memory=4G rate=100M connections=50
 *
 *   read-only      permits reading values, but no changes
 *   operator       permits operating the cluster, but not reading or writing values; excludes read-only
 *   space=NAME     restricts the key to one space of names
 *   memory=SIZE    maximum bytes of tables of that space on each server; only with a space
 *   rate=SIZE      maximum bytes of requests per second on each shard
 *   connections=N  maximum number of links to the manager, and to each shard
 *   priority=N     highest priority of the work, from 1 to 9
 *
 * Limits take effect at the node that accepts a link with the key: at the manager and the servers. In the key
 * file of a connecting node they have no effect. This module only parses and stores limits; the roles enforce
 * them.
 */
#ifndef PWI_NET_KEY_H
#define PWI_NET_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_KEY_SIZE 32
#define PWI_KEY_TEXT_MAX 72  /* bytes of the text of a key, including the final zero */
#define PWI_KEY_NAME_SIZE 16 /* hexadecimal digits of the public name of a key */
#define PWI_KEY_SPACE_MAX 63 /* characters of the name of a space */
#define PWI_KEY_LINE_MAX 256 /* a key with its limits, separated by single spaces, including the final zero */

struct pwi_key {
  uint8_t secret[PWI_KEY_SIZE];
  char name[PWI_KEY_NAME_SIZE + 1]; /* from a hash of the secret */
};

/* The limits of a key. A struct of zeros means no limits. */
struct pwi_key_limits {
  bool read_only, is_operator;
  char space[PWI_KEY_SPACE_MAX + 1];            /* "": all spaces */
  uint64_t memory, rate, connections, priority; /* 0: no limit */
};

/* The keys that a node accepts; the node itself uses the first.
 *
 * Threads: one thread may swap keys while others copy keys and query limits. */
struct pwi_keyring;

/* Creates a key from the random source of the system. PAWL_IO if there is none. */
pawl_status pwi_key_new(char text[PWI_KEY_TEXT_MAX]);

/* Parses a key; surrounding white space is skipped. PAWL_INVALID. */
pawl_status pwi_key_parse(const char *text, struct pwi_key *key_out);

/* Parses limits, the words after a key. PAWL_UNSUPPORTED. */
pawl_status pwi_key_limits_parse(const char *text, struct pwi_key_limits *limits_out);

/* True if there are any limits. */
bool pwi_key_limits_are_any(const struct pwi_key_limits *limits);

/* Parses a key with its limits. PAWL_INVALID if the first word is not a key. PAWL_UNSUPPORTED if the limits
 * are invalid: a key with a misspelt limit must not become one without it. */
pawl_status pwi_key_parse_line(const char *text, struct pwi_key *key_out, struct pwi_key_limits *limits_out);

/* Writes the limits as they follow a key, such as " read-only space=ads"; "" for none. Returns `text`. */
const char *pwi_key_limits_print(const struct pwi_key_limits *limits, char text[PWI_KEY_LINE_MAX]);

/* True for a word of letters, digits, '.', '_' and '-' that is not too long. */
bool pwi_key_space_is_valid(const char *space);

pawl_status pwi_keyring_create(struct pwi_keyring **keyring_out);
void pwi_keyring_destroy(struct pwi_keyring *keyring); /* the secrets are overwritten; NULL is fine */

/* Keys are kept in memory that is excluded from core dumps (base/secret.h). */

/* Appends a key with its limits. Errors as pwi_key_parse_line, PAWL_EXISTS (even with other limits: the first
 * ones stay), PAWL_NO_MEMORY. */
pawl_status pwi_keyring_add(struct pwi_keyring *keyring, const char *text);

/* Appends all keys of a file: one per line with its limits; blank lines and lines that begin with # are
 * skipped. On failure `*line_out` is the number of the invalid line, or 0 if the file could not be read; the
 * keys before that line have been appended. PAWL_NOT_FOUND, PAWL_FORBIDDEN (also if others may read the
 * file), PAWL_IO, PAWL_INVALID, PAWL_UNSUPPORTED, PAWL_NO_MEMORY. */
pawl_status pwi_keyring_load(struct pwi_keyring *keyring, const char *path, size_t *line_out);

/* Swaps the keys of two rings. Existing links are not affected. */
void pwi_keyring_swap(struct pwi_keyring *keyring, struct pwi_keyring *other);

/* Copy the first key, and the key of a name. False if there is none. Overwrite the copy after use. */
bool pwi_keyring_copy_first(const struct pwi_keyring *keyring, struct pwi_key *key_out);
bool pwi_keyring_copy(const struct pwi_keyring *keyring, const char *name, size_t name_size, struct pwi_key *key_out);

/* Both return pointers into the ring, which are valid until it is changed. */
size_t pwi_keyring_count(const struct pwi_keyring *keyring);
const struct pwi_key *pwi_keyring_first(const struct pwi_keyring *keyring); /* NULL if empty */
const struct pwi_key *pwi_keyring_find(const struct pwi_keyring *keyring, const char *name, size_t name_size);

/* The limits of the key of that name; false if there is no such key. */
bool pwi_keyring_limits(const struct pwi_keyring *keyring, const char *name, size_t name_size,
                        struct pwi_key_limits *limits_out);

#endif
