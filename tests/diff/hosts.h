/* hosts.h — the host functions that random programs call. */
#ifndef WEFT_TESTS_DIFF_HOSTS_H
#define WEFT_TESTS_DIFF_HOSTS_H

struct WeftVM;
void define_hosts(void *context, struct WeftVM *vm); /* as HostSetup.made */

#endif
