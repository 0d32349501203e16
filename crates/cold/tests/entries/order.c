// Functions entered in a known order by a process, its threads and its children. `order ROLE`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FN(name) __attribute__((noinline)) void name(void) { __asm__ volatile("" ::: "memory"); }
FN(one) FN(two) FN(three) FN(never)
FN(in_child) FN(after_child) FN(in_vfork) FN(after_exec) FN(last)

static pthread_barrier_t barrier;
__attribute__((noinline)) void together(void) { __asm__ volatile("" ::: "memory"); }
static void *arrive(void *unused) {
    pthread_barrier_wait(&barrier);
    together();
    return unused;
}

static int plain(void) {
    one();
    three();
    two();
    one();
    return 0;
}

static int threads(void) {
    enum { N = 16 };
    pthread_t t[N];
    pthread_barrier_init(&barrier, 0, N);
    for (int i = 0; i < N; i++) pthread_create(&t[i], 0, arrive, 0);
    for (int i = 0; i < N; i++) pthread_join(t[i], 0);
    last();
    return 0;
}

static int wait_for(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int children(const char *self) {
    one();
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            in_child();
            one();
            _exit(3);
        }
        if (wait_for(pid) != 3 << 8) return 1;
    }
    after_child();
    pid_t pid = vfork();
    if (pid == 0) {
        in_vfork();
        execl(self, self, "execed", (char *)0);
        _exit(1);
    }
    if (wait_for(pid) != 7 << 8) return 2;
    last();
    return 0;
}

static char *me;
static void *exec_here(void *unused) {
    one();
    execl(me, me, "execed", (char *)0);
    return unused;
}

static int thread_exec(void) {
    pthread_t t, busy;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&busy, 0, arrive, 0);
    pthread_create(&t, 0, exec_here, 0);
    pause();
    return 1;
}

static volatile int trapped, others;
static void on_trap(int s) { trapped += s == SIGTRAP; }
static void on_other(int s) { others += s; }

// Its own SIGTRAP, its own breakpoint, and signals that arrive between.
static int signals(void) {
    signal(SIGTRAP, on_trap);
    signal(SIGUSR1, on_other);
    raise(SIGTRAP);
#ifdef __x86_64__
    __asm__ volatile("int3");
#else
    raise(SIGTRAP);
#endif
    one();
    raise(SIGUSR1);
    two();
    printf("%d %d\n", trapped, others == SIGUSR1);
    fflush(stdout);
    raise(SIGKILL);
    return 0;
}

// A handler of SIGTRAP that works, and then a function that is entered while the signal is blocked.
static int handles(void) {
    signal(SIGTRAP, on_trap);
    one();
    raise(SIGTRAP);
    printf("%d\n", trapped);
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    sigprocmask(SIG_BLOCK, &trap, 0);
    two();
    sigprocmask(SIG_UNBLOCK, &trap, 0);
    three();
    return 0;
}

static int stopping(void) {
    pid_t pid = fork();
    if (pid == 0) {
        one();
        raise(SIGSTOP);
        two();
        _exit(9);
    }
    int status = 0;
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status)) return 1;
    kill(pid, SIGCONT);
    return wait_for(pid) == 9 << 8 ? 0 : 2;
}

static int library(const char *path) {
    one();
    void *h = dlopen(path, RTLD_NOW);
    if (!h) return puts(dlerror());
    int (*f)(int) = (int (*)(int))dlsym(h, "of_library");
    printf("%d\n", f(20));
    two();
    return 0;
}

// Code that is copied, and code that is looked at.
static int copies(void) {
    unsigned char *to = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(to, (void *)in_child, 64);
    ((void (*)(void))to)();
    puts("ran a copy");
    return 0;
}

static int checks(void) {
    const unsigned char *code = (const unsigned char *)after_child;
    if (code[0] == 0xcc) abort();
    puts("unchanged");
    return 0;
}

static int undumpable(void) {
    one();
    prctl(PR_SET_DUMPABLE, 0);
    pid_t pid = fork();
    if (pid == 0) {
        two();
        _exit(5);
    }
    return wait_for(pid) == 5 << 8 ? 0 : 1;
}

int main(int argc, char **argv) {
    const char *role = argc > 1 ? argv[1] : "plain";
    me = argv[0];
    if (!strcmp(role, "plain")) return plain();
    if (!strcmp(role, "threads")) return threads();
    if (!strcmp(role, "children")) return children(argv[0]);
    if (!strcmp(role, "thread_exec")) return thread_exec();
    if (!strcmp(role, "execed")) { after_exec(); return 7; }
    if (!strcmp(role, "signals")) return signals();
    if (!strcmp(role, "handles")) return handles();
    if (!strcmp(role, "stopping")) return stopping();
    if (!strcmp(role, "library")) return library(argv[2]);
    if (!strcmp(role, "copies")) return copies();
    if (!strcmp(role, "checks")) return checks();
    if (!strcmp(role, "undumpable")) return undumpable();
    if (!strcmp(role, "never")) never();
    return 99;
}
