/* Does what its arguments say, and as little else as a program can: linked statically. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* touch FILE PAGE…: faults exactly these pages of a mapping, no read-around. */
static int touch(int argc, char **argv)
{
	int fd = open(argv[0], O_RDONLY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return 2;
	volatile char *map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || madvise((void *)map, st.st_size, MADV_RANDOM))
		return 3;
	for (int i = 1; i < argc; i++)
		(void)map[atol(argv[i]) * 4096];
	return 0;
}

/* read FILE: all of it, in 64 KiB. */
static int read_all(const char *path)
{
	static char buffer[65536];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 2;
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	return 0;
}

/* opens N: of a name that does not exist. */
static int opens(long n)
{
	for (long i = 0; i < n; i++)
		(void)!open("/nonexistent/storm", O_RDONLY);
	return 0;
}

/* faults FILE N: N private faults on the file's first 512 pages, dropped and faulted again. */
static int faults(const char *path, long n)
{
	int fd = open(path, O_RDONLY);
	size_t bytes = 512 * 4096;
	struct timespec a, b;
	if (fd < 0)
		return 2;
	volatile char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 3;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (long done = 0; done < n; done += 512) {
		for (int page = 0; page < 512; page++)
			map[page * 4096] = 1;
		madvise((void *)map, bytes, MADV_DONTNEED);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	double s = (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9;
	printf("%.0f faults/s\n", n / s);
	return 0;
}

/* paths FILE: by name from its directory, as a child would; then deleted; then a memfd. */
static int paths(char *path)
{
	char *slash = strrchr(path, '/');
	*slash = 0;
	if (chdir(path))
		return 2;
	int fd = open(slash + 1, O_RDONLY), memory = memfd_create("storm", 0);
	if (fd < 0 || memory < 0 || ftruncate(memory, 4096))
		return 3;
	pid_t child = fork();
	if (child == 0) {
		int twice = openat(AT_FDCWD, slash + 1, O_RDONLY);
		_exit(twice < 0);
	}
	int status;
	waitpid(child, &status, 0);
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", memory);
	int again = open(link, O_RDONLY);
	return again < 0 || status ? 4 : 0;
}

/* A path that ends within the address and one that does not; an abstract name and a network, which are none. */
static int sockets(void)
{
	struct sockaddr_un address = {AF_UNIX, "nine, and what follows"};
	struct sockaddr_in network = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {0}};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), other = socket(AF_UNIX, SOCK_STREAM, 0);
	int net = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || other < 0 || net < 0)
		return 8;
	if (bind(fd, (void *)&address, offsetof(struct sockaddr_un, sun_path) + 4) || listen(fd, 1))
		return 9;
	strcpy(address.sun_path, "nine");
	if (connect(other, (void *)&address, sizeof(address)) || connect(net, (void *)&network, sizeof(network)))
		return 10;
	address.sun_path[0] = 0;
	close(other);
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	return connect(other, (void *)&address, sizeof(address)) ? 0 : 11;
}

/* changes DIR: makes, names, renames, links and removes things in it; some by descriptor alone. */
static int changes(const char *dir)
{
	struct stat st;
	int at = open(dir, O_RDONLY | O_DIRECTORY), fd;
	if (at < 0 || chdir(dir))
		return 2;
	fd = open("one", O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd))
		return 3;
	if (fstat(fd, &st) || fstatat(fd, "", &st, AT_EMPTY_PATH))
		return 4;
	if (rename("one", "two") || renameat(at, "two", AT_FDCWD, "three") || linkat(at, "three", at, "four", 0))
		return 5;
	if (symlink("nowhere", "five") || symlinkat("nowhere", at, "six") || mkdir("seven", 0700))
		return 6;
	if (unlink("four") || unlinkat(at, "seven", AT_REMOVEDIR) || !rename("absent", "eight"))
		return 7;
	return sockets();
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "touch"))
		return touch(argc - 2, argv + 2);
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_all(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "opens"))
		return opens(atol(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "faults"))
		return faults(argv[2], atol(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "paths"))
		return paths(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "changes"))
		return changes(argv[2]);
	return 1;
}
