/* What a benchmark costs: the processor time of this process and of its children. Where others keep the machine busy this
 * tells more than the clock on the wall: whoever waits for a processor does not use it. */
#ifndef BENCH_COMMAND_CPU_H
#define BENCH_COMMAND_CPU_H

/* In seconds, since they began; of children that are there now. Looks through /proc: some milliseconds. */
double pwi_bench_cpu(void);

#endif
