/* The themes of the conformance suite. Each runs its tests in scene_kind and returns how many failed. */
#ifndef PWI_CONFORMANCE_SUITE_H
#define PWI_CONFORMANCE_SUITE_H

int suite_links(void);
int suite_messages(void);
int suite_receiving(void);
int suite_one_sided(void);
int suite_puts(void);
int suite_regions(void);
int suite_windows(void);
int suite_broken(void);
int suite_timers(void);
int suite_limits(void);
int suite_closing(void);
int suite_holds(void);
int suite_memory(void);

#endif
