/* A hint to the processor that this thread waits for a word of memory. */
#ifndef PWI_HOST_PAUSE_H
#define PWI_HOST_PAUSE_H

static inline void pwi_host_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

#endif
