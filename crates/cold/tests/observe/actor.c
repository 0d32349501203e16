// One program that behaves in the ways an observer finds hard. Usage: actor ROLE [FILE …]
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void die(const char *what) { perror(what); _exit(99); }
static void use(const char *path) {
    int fd = open(path, O_RDONLY);
    if (fd < 0) die(path);
    close(fd);
}
static void *use_in_thread(void *path) { use(path); return NULL; }
static void *exec_in_thread(void *args) { execv(((char **)args)[0], args); die("execv"); return NULL; }
static const char *wanted;
static void on_signal(int sig) { (void)sig; use(wanted); }
static int reap(pid_t pid) {
    int status;
    if (waitpid(pid, &status, 0) != pid) die("waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// posix_spawn (vfork semantics) of "actor open FILE"
static int role_spawn(char **a) {
    char *args[] = {"/proc/self/exe", "open", a[0], NULL};
    pid_t pid;
    if (posix_spawn(&pid, args[0], NULL, NULL, args, environ)) die("posix_spawn");
    return reap(pid);
}
static int role_threads(char **a) {
    pthread_t t[64];
    int n = 0;
    for (; a[n] && n < 64; n++)
        if (pthread_create(&t[n], NULL, use_in_thread, a[n])) die("pthread_create");
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    return 0;
}
// A thread that is not the first replaces the whole process, while others still run.
static int role_thread_exec(char **a) {
    static char *args[] = {"/proc/self/exe", "open", NULL, NULL};
    args[2] = a[0];
    pthread_t t;
    for (int i = 0; i < 4; i++) pthread_create(&t, NULL, (void *(*)(void *))(void *)pause, NULL);
    pthread_create(&t, NULL, exec_in_thread, args);
    pthread_join(t, NULL);
    return 97;
}
static int role_signal(char **a) {
    wanted = a[0];
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    return 0;
}
// The child stops itself; the parent sees the stop as without a tracer, wakes it, and it goes on.
static int role_job_control(char **a) {
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGSTOP);
        use(a[0]);
        _exit(7);
    }
    int status;
    if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) return 50;
    usleep(50000);
    if (waitpid(pid, &status, WNOHANG) != 0) return 51;
    kill(pid, SIGCONT);
    return reap(pid) == 7 ? 0 : 52;
}
// Writes the daemon's pid into FILE once it stands.
static int role_daemon(char **a) {
    if (a[1]) signal(SIGTERM, SIG_IGN);
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.new", a[0]);
    FILE *f = fopen(temporary, "w");
    fprintf(f, "%d", getpid());
    fclose(f);
    rename(temporary, a[0]);
    for (;;) pause();
}
// COUNT failed lookups by each of seven calls below DIR; three that succeed and fstat, which is none.
static int role_miss(char **a) {
    int count = atoi(a[1]);
    char path[4096];
    struct stat st;
    struct statx sx;
    snprintf(path, sizeof path, "%s/absent", a[0]);
    for (int i = 0; i < count; i++) {
        open(path, O_RDONLY);
        stat(path, &st);
        lstat(path, &st);
        statx(AT_FDCWD, path, 0, STATX_SIZE, &sx);
        access(path, F_OK);
        readlink(path, path + 2048, 10);
        execv(path, (char *[]){path, NULL});
    }
    for (int i = 0; i < 3; i++) stat(a[0], &st);
    fstat(0, &st);
    return 0;
}
// A mapped memfd, a file that is deleted while open and then opened again through /proc.
static int role_nameless(char **a) {
    int fd = memfd_create("nameless", 0);
    if (ftruncate(fd, 8192) || mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) die("memfd");
    char again[64];
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    use(again);
    fd = open(a[0], O_RDONLY);
    if (fd < 0 || unlink(a[0])) die(a[0]);
    if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) die("mmap");
    return 0;
}
// Its own filter forbids openat: that wins over the observer's.
static int role_sandbox(char **a) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
    return open(a[0], O_RDONLY) < 0 && errno == EACCES ? 0 : 60;
}
static int role_debugger(char **a) {
    (void)a;
    pid_t pid = fork();
    if (pid == 0) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM ? 0 : 61);
    return reap(pid);
}
static int role_hide(char **a) {
    prctl(PR_SET_DUMPABLE, 0);
    use(a[0]);
    return 0;
}
static int role_open(char **a) {
    for (; *a; a++) use(*a);
    return 0;
}
// Children that die at any moment of an open, an exec, or a fork.
static int role_massacre(char **a) {
    for (int i = 0; i < 150; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t t;
            pthread_create(&t, NULL, use_in_thread, a[0]);
            if (i % 3 == 0) execv("/proc/self/exe", (char *[]){"actor", "open", a[0], a[0], a[0], NULL});
            for (;;) use(a[0]);
        }
        usleep(i * 20);
        kill(pid, SIGKILL);
        reap(pid);
    }
    return 0;
}

static const struct { const char *name; int (*run)(char **); } roles[] = {
    {"open", role_open}, {"spawn", role_spawn}, {"threads", role_threads}, {"thread_exec", role_thread_exec},
    {"signal", role_signal}, {"job_control", role_job_control}, {"daemon", role_daemon}, {"miss", role_miss},
    {"nameless", role_nameless}, {"sandbox", role_sandbox}, {"debugger", role_debugger}, {"hide", role_hide},
    {"massacre", role_massacre},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(argv[1], roles[i].name)) return roles[i].run(argv + 2);
    return 98;
}
