/* libcurl, loaded when it is needed. Only managers with a store in etcd use it, but it brings twenty libraries (Kerberos,
 * LDAP, SSH and others), and the dynamic linker would spend half of the start of every `pawl` command on them.
 *
 * The fields of pwi_curl are curl's functions under their own names: pwi_curl.easy_init is curl_easy_init.
 */
#ifndef PWI_HOST_ETCD_CURL_H
#define PWI_HOST_ETCD_CURL_H

#include <stddef.h>

#include <curl/curl.h>
#include <pawl/status.h>

/* The functions that pawl calls. */
#define PWI_CURL_CALLS(X)                                                                                              \
  X(global_init)                                                                                                       \
  X(version_info)                                                                                                      \
  X(easy_init)                                                                                                         \
  X(easy_setopt)                                                                                                       \
  X(easy_getinfo)                                                                                                      \
  X(easy_strerror)                                                                                                     \
  X(easy_cleanup)                                                                                                      \
  X(multi_init)                                                                                                        \
  X(multi_add_handle)                                                                                                  \
  X(multi_remove_handle)                                                                                               \
  X(multi_perform)                                                                                                     \
  X(multi_poll)                                                                                                        \
  X(multi_wakeup)                                                                                                      \
  X(multi_info_read)                                                                                                   \
  X(multi_cleanup)                                                                                                     \
  X(slist_append)                                                                                                      \
  X(slist_free_all)

struct pwi_curl {
#define PWI_CURL_FIELD(name) __typeof__(curl_##name) *name;
  PWI_CURL_CALLS(PWI_CURL_FIELD)
#undef PWI_CURL_FIELD
};

extern struct pwi_curl pwi_curl; /* all NULL until pwi_curl_load has succeeded */

/* Loads libcurl at the first call, and keeps it until the process ends. Any thread may call it. PAWL_UNSUPPORTED: it
 * cannot be loaded, or lacks a function; pwi_curl_problem then says why, in a sentence that names the library. */
PAWL_MUST_USE pawl_status pwi_curl_load(void);
const char *pwi_curl_problem(void);

#endif
