// A 32-bit program without any library: opens argv[1] with the i386 number of open, fails to open a file
// by openat and access, and exits with 0 if all of it went as it must. Needs no 32-bit libc.
static long call(long nr, long a, long b, long c) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
    return r;
}
__attribute__((used)) void begin(long *stack) {
    const char *path = (const char *)stack[2];
    int ok = call(5, (long)path, 0, 0) >= 0;
    ok &= call(295, -100, (long)"/nonexistent-32/a", 0) == -2;
    ok &= call(33, (long)"/nonexistent-32/b", 0, 0) == -2;
    call(1, ok ? 0 : 70, 0, 0);
}
__asm__(".globl _start\n_start: mov %esp, %eax\n push %eax\n call begin\n");
