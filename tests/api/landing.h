/* ThreadSanitizer and items. Puts land in a region by plain writes of the net while threads read it; readers see by the
 * checksum whether they have one version (src/peer/item/cell.h), and those of views when they release them. These races
 * are meant. The stack of one side is often lost, so both sides are named. */
#ifndef PAWL_TESTS_API_LANDING_H
#define PAWL_TESTS_API_LANDING_H

#if defined(__SANITIZE_THREAD__)
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
  return "race:take_body\nrace:read_into_places\nrace:pwi_item_cell_\nrace:is_version\n";
}
#endif

#endif
