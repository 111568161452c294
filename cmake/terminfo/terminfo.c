/* The four functions of libtinfo that LLVM's Support calls to learn whether a terminal has colours.
 *
 * Why not libtinfo: Debian's libtinfo.a is not position independent, so it cannot be inside libfusor.so, and libtinfo.so would
 * be a dependency beyond glibc and libstdc++. Why not nothing: LLVM would never colour a diagnostic. Every terminal of
 * today except "dumb" has at least the eight ANSI colours that LLVM writes. */
#include <stdlib.h>
#include <string.h>

/* 0, or -1 with *error = 0 ("no such terminal"): LLVM then writes no colours. */
int setupterm(const char *terminal, int descriptor, int *error) {
  (void)descriptor;
  const char *name = terminal ? terminal : getenv("TERM");
  int known = name && *name && strcmp(name, "dumb") != 0;
  if (error) *error = known ? 1 : 0;
  return known ? 0 : -1;
}
int tigetnum(const char *capability) { return strcmp(capability, "colors") == 0 ? 8 : -1; }
void *set_curterm(void *terminal) {
  (void)terminal;
  return 0;
}
int del_curterm(void *terminal) {
  (void)terminal;
  return 0;
}
