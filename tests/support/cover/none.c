/* none.c — what every edge of the sanitized library calls where nobody counts: the tests. tests/fuzz has its own. */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {}
