/* Texts, names and groups of the statuses; the list itself is in <pawl/status.h>. */
#include <pawl/status.h>

const char *pawl_status_text(pawl_status status) {
  switch (status) {
#define TEXT(name, number, text)                                                                                       \
  case PAWL_##name:                                                                                                    \
    return text;
    PAWL_STATUS_MAP(TEXT)
#undef TEXT
  }
  return "unknown status";
}

const char *pawl_status_name(pawl_status status) {
  switch (status) {
#define NAME(name, number, text)                                                                                       \
  case PAWL_##name:                                                                                                    \
    return #name;
    PAWL_STATUS_MAP(NAME)
#undef NAME
  }
  return "UNKNOWN";
}

const char *pawl_status_group(pawl_status status) {
  static const char *const groups[] = {"none", "argument", "operation", "link", "node", "cluster"};
  if (status == PAWL_OK) return groups[0];
  int group = -((int)status / 100); /* divide before negating: the negation of INT_MIN overflows */
  return group > 0 && group < 6 ? groups[group] : "unknown";
}
