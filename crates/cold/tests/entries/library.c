__attribute__((noinline)) static int inner(int n) { return n * 2 + 2; }
int of_library(int n) { return inner(n); }
int never_called(int n) { return n; }
