/* Cluster keys: the secret that lets a node in.
 *
 * A key is 32 random bytes, written `pawl1-` and 64 hexadecimal digits. Links prove possession of it by TLS 1.3 with a
 * pre-shared key; the key itself never travels. Several keys may be accepted at once, so that a cluster can change its
 * key without stopping: add the new one everywhere, make it first everywhere, take the old one away.
 *
 * A key may be *limited*. The limits stand behind the key, on its line, each at most once and in any order:
 *
 *   pawl1-… read-only space=ads memory=4G rate=100M connections=50
 *
 *   read-only      it reads values and changes nothing
 *   operator       it operates the cluster, and neither reads nor writes values; not together with read-only
 *   space=NAME     all this in one space of names
 *   memory=SIZE    so many bytes of tables on each server, for that space; only with a space
 *   rate=SIZE      so many bytes of requests a second on each shard
 *   connections=N  so many links to the manager, and to each shard
 *
 * They count where they are written, that is for whoever comes to this node with that key: the manager and the servers
 * hold them. In the file of the one who comes they mean nothing. What a limit forbids is the roles' business; here it is
 * read and remembered.
 */
#ifndef PWI_NET_KEY_H
#define PWI_NET_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_KEY_SIZE 32
#define PWI_KEY_TEXT_MAX 72  /* the text of a key with its final zero */
#define PWI_KEY_NAME_SIZE 16 /* hexadecimal digits that name a key without giving it away */
#define PWI_KEY_SPACE_MAX 63 /* characters of a space's name */
#define PWI_KEY_LINE_MAX                                                                                               \
  256 /* a key with its limits, the final zero included, if nothing stands between but one space */

struct pwi_key {
  uint8_t secret[PWI_KEY_SIZE];
  char name[PWI_KEY_NAME_SIZE + 1]; /* from a hash of the secret */
};

/* A struct of zeros limits nothing. */
struct pwi_key_limits {
  bool read_only, is_operator;
  char space[PWI_KEY_SPACE_MAX + 1];  /* "": all spaces */
  uint64_t memory, rate, connections; /* 0: no limit */
};

/* The keys a node accepts; the first is the one it uses itself.
 *
 * Threads: keys may be swapped in one thread while others copy keys and ask for limits. */
struct pwi_keyring;

/* A new key from the system's random source. PAWL_IO if it has none. */
pawl_status pwi_key_new(char text[PWI_KEY_TEXT_MAX]);

/* Read a key from its text; white space around it is skipped. PAWL_INVALID. */
pawl_status pwi_key_parse(const char *text, struct pwi_key *key_out);

/* Read limits, the words behind a key. PAWL_UNSUPPORTED. */
pawl_status pwi_key_limits_parse(const char *text, struct pwi_key_limits *limits_out);

/* True if there are any. */
bool pwi_key_limits_are_any(const struct pwi_key_limits *limits);

/* Read a key with its limits. PAWL_INVALID if
 * the first word is no key, PAWL_UNSUPPORTED if it is one and the rest cannot be read: better no key than one without
 * the limit that was meant. */
pawl_status pwi_key_parse_line(const char *text, struct pwi_key *key_out, struct pwi_key_limits *limits_out);

/* The limits as they stand behind a key, such as " read-only space=ads"; "" for none. Returns `text`. */
const char *pwi_key_limits_print(const struct pwi_key_limits *limits, char text[PWI_KEY_LINE_MAX]);

/* A word of letters, digits, '.', '_' and '-' that is not too long. */
bool pwi_key_space_is_valid(const char *space);

pawl_status pwi_keyring_create(struct pwi_keyring **keyring_out);
void pwi_keyring_destroy(struct pwi_keyring *keyring); /* the secrets are overwritten; NULL is fine */

/* Keys are kept in memory that is left out of core dumps (base/secret.h). */

/* Append a key, with its limits if any. Errors as pwi_key_parse_line, PAWL_EXISTS (whatever its limits: those that came
 * first stay), PAWL_NO_MEMORY. */
pawl_status pwi_keyring_add(struct pwi_keyring *keyring, const char *text);

/* Append all keys of a file: one a line with its limits, blank lines and lines that begin with # skipped. On failure `*line_out` is the
 * line at fault, 0 if the file could not be read; the keys before that line have been appended. PAWL_NOT_FOUND,
 * PAWL_FORBIDDEN (also if others may read the file), PAWL_IO, PAWL_INVALID, PAWL_UNSUPPORTED,
 * PAWL_NO_MEMORY. */
pawl_status pwi_keyring_load(struct pwi_keyring *keyring, const char *path, size_t *line_out);

/* Another ring's keys take the place of this one's, which the other has afterwards. Links that are up are not touched. */
void pwi_keyring_swap(struct pwi_keyring *keyring, struct pwi_keyring *other);

/* The first key, and the key of a name, copied. False if there is none. Overwrite the copy after use. */
bool pwi_keyring_copy_first(const struct pwi_keyring *keyring, struct pwi_key *key_out);
bool pwi_keyring_copy(const struct pwi_keyring *keyring, const char *name, size_t name_size, struct pwi_key *key_out);

/* Both of these point into the ring, until it is changed. */
size_t pwi_keyring_count(const struct pwi_keyring *keyring);
const struct pwi_key *pwi_keyring_first(const struct pwi_keyring *keyring); /* NULL if empty */
const struct pwi_key *pwi_keyring_find(const struct pwi_keyring *keyring, const char *name, size_t name_size);

/* The limits of the key of that name; false if there is no such key. */
bool pwi_keyring_limits(const struct pwi_keyring *keyring, const char *name, size_t name_size,
                        struct pwi_key_limits *limits_out);

#endif
