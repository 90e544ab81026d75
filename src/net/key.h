/* Cluster keys: the secret that lets a node in.
 *
 * A key is 32 random bytes, written `pawl1-` and 64 hexadecimal digits. Links prove possession of it by TLS 1.3 with a
 * pre-shared key; the key itself never travels. Several keys may be accepted at once, so that a cluster can change its
 * key without stopping: add the new one everywhere, make it first everywhere, take the old one away.
 */
#ifndef PWI_NET_KEY_H
#define PWI_NET_KEY_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_KEY_SIZE 32
#define PWI_KEY_TEXT_MAX 72  /* the text of a key with its final zero */
#define PWI_KEY_NAME_SIZE 16 /* hexadecimal digits that name a key without giving it away */

struct pwi_key {
  uint8_t secret[PWI_KEY_SIZE];
  char name[PWI_KEY_NAME_SIZE + 1]; /* from a hash of the secret */
};

struct pwi_keyring; /* the keys a node accepts; the first is the one it uses itself */

/* A new key from the system's random source. PAWL_IO if it has none. */
pawl_status pwi_key_new(char text[PWI_KEY_TEXT_MAX]);

/* Read a key from its text; white space around it is skipped. PAWL_INVALID. */
pawl_status pwi_key_parse(const char *text, struct pwi_key *key_out);

pawl_status pwi_keyring_create(struct pwi_keyring **keyring_out);
void pwi_keyring_destroy(struct pwi_keyring *keyring); /* the secrets are overwritten; NULL is fine */

/* Append a key. PAWL_INVALID for a text that is not one, PAWL_EXISTS, PAWL_NO_MEMORY. */
pawl_status pwi_keyring_add(struct pwi_keyring *keyring, const char *text);

/* Append all keys of a file: one a line, blank lines and lines that begin with # skipped. On failure `*line_out` is the
 * line at fault, 0 if the file could not be read; the keys before that line have been appended. PAWL_NOT_FOUND,
 * PAWL_FORBIDDEN (also if others may read the file), PAWL_IO, PAWL_INVALID, PAWL_NO_MEMORY. */
pawl_status pwi_keyring_load(struct pwi_keyring *keyring, const char *path, size_t *line_out);

size_t pwi_keyring_count(const struct pwi_keyring *keyring);
const struct pwi_key *pwi_keyring_first(const struct pwi_keyring *keyring); /* NULL if empty */
const struct pwi_key *pwi_keyring_find(const struct pwi_keyring *keyring, const char *name, size_t name_size);

#endif
