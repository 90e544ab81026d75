/* Measures the processor time of this process and its children. On a busy machine this tells more than
 * wall time: a process that waits for a processor does not use it. */
#ifndef BENCH_COMMAND_CPU_H
#define BENCH_COMMAND_CPU_H

/* Processor seconds since their start, of this process and its current children. Reads /proc, which takes
 * some milliseconds. */
double pwi_bench_cpu(void);

#endif
