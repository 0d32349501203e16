/* main -> first -> second -> third -> (inlined) -> deepest, which writes its registers, its stack and
 * its mappings. The callers keep something on the stack of a size that is not known at compile time,
 * so that no fixed offset finds the return addresses. */
#include <alloca.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void all(const void *from, size_t bytes)
{
    const char *p = from;
    while (bytes > 0) {
        ssize_t n = write(1, p, bytes);
        if (n <= 0)
            _exit(3);
        p += n;
        bytes -= (size_t)n;
    }
}

__attribute__((noinline)) int deepest(volatile char *keep, int n)
{
    uint64_t r[4] = {0, 0, 0, 0};
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]));
#elif defined(__aarch64__)
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]));
#endif
    uint64_t bytes = (uint64_t)(uintptr_t)environ - r[1];
    all(r, sizeof r);
    all(&bytes, sizeof bytes);
    all((void *)(uintptr_t)r[1], bytes);
    char buffer[4096];
    int maps = open("/proc/self/maps", O_RDONLY);
    for (ssize_t got; (got = read(maps, buffer, sizeof buffer)) > 0;)
        all(buffer, (size_t)got);
    return keep[0] + n;
}

static inline __attribute__((always_inline)) int inlined(volatile char *keep, int n)
{
    int result = deepest(keep, n + 1);
    keep[1] = (char)result;
    return result + 1;
}

__attribute__((noinline)) int third(int n)
{
    volatile char *keep = alloca((size_t)n * 16 + 24);
    keep[0] = (char)n;
    return inlined(keep, n) + keep[1];
}

__attribute__((noinline)) int second(int n)
{
    char text[100];
    snprintf(text, sizeof text, "%d", n);
    return third((int)strlen(text) + n) * 2;
}

__attribute__((noinline)) int first(int n)
{
    return second(n + 3) * 3;
}

int main(int argc, char **argv)
{
    (void)argv;
    return first(argc) == 1;
}
