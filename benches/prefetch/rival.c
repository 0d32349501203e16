/* Rival ways of reading ahead: rival MANNER LIST PROGRAM ARGUMENT...
 * A child does it and dies with the program; the program is started at once, which favours the rival
 * over tools that read first and start then. LIST has a line "OFFSET BYTES PATH" per range, in the
 * plan's order.
 *   whole   every page of every file of the list touched in a mapping, as vmtouch -t does
 *   pread   two threads, pread of at most 1 MiB of each range into a scratch buffer
 *   library one readahead call for the whole of each file, as Firefox and Chromium do for a library
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct range { long long offset, bytes; char *path; };
static struct range *ranges;
static size_t count, next_range;

static void read_list(const char *name) {
    FILE *f = fopen(name, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    if (!f) { perror(name); exit(2); }
    while ((n = getline(&line, &room, f)) > 0) {
        struct range r;
        int at;
        line[n - 1] = 0;
        if (sscanf(line, "%lld %lld %n", &r.offset, &r.bytes, &at) < 2) continue;
        r.path = strdup(line + at);
        ranges = realloc(ranges, (count + 1) * sizeof *ranges);
        ranges[count++] = r;
    }
    fclose(f);
}

static int is_first(size_t i) {
    for (size_t j = 0; j < i; j++)
        if (!strcmp(ranges[i].path, ranges[j].path)) return 0;
    return 1;
}

static void whole(void) {
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        int fd = is_first(i) ? open(ranges[i].path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0 || fstat(fd, &st) || !st.st_size) continue;
        volatile char *p = mmap(0, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED)
            for (off_t at = 0; at < st.st_size; at += 4096) (void)p[at];
        close(fd);
    }
}

static void library(void) {
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        int fd = is_first(i) ? open(ranges[i].path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0 || fstat(fd, &st)) continue;
        readahead(fd, 0, st.st_size);
        close(fd);
    }
}

static void *preads(void *unused) {
    char *scratch = malloc(1 << 20);
    size_t i;
    while ((i = __atomic_fetch_add(&next_range, 1, __ATOMIC_RELAXED)) < count) {
        int fd = open(ranges[i].path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        for (long long done = 0; done < ranges[i].bytes; done += 1 << 20) {
            long long left = ranges[i].bytes - done;
            if (pread(fd, scratch, left < 1 << 20 ? left : 1 << 20, ranges[i].offset + done) <= 0) break;
        }
        close(fd);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    pid_t parent = getpid();
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++) dup2(null, fd);
        read_list(argv[2]);
        if (!strcmp(argv[1], "whole")) whole();
        else if (!strcmp(argv[1], "library")) library();
        else {
            pthread_t other;
            pthread_create(&other, NULL, preads, NULL);
            preads(NULL);
            pthread_join(other, NULL);
        }
        _exit(0);
    }
    execv(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
