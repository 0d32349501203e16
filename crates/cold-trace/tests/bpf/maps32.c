/* A 32-bit program without any library: maps two pages of argv[1] from its second one, and makes them code. */
static long call(long nr, long a, long b, long c) {
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}
static long map_second_page(long fd) {
	long r;

	__asm__ volatile("push %%ebp\n mov $1, %%ebp\n int $0x80\n pop %%ebp"
			 : "=a"(r) : "a"(192), "b"(0), "c"(8192), "d"(1), "S"(2), "D"(fd) : "memory");
	return r;
}
__attribute__((used)) void begin(long *stack) {
	long address = map_second_page(call(5, stack[2], 0, 0));
	int ok = (unsigned long)address < -4095ul && call(125, address, 4096, 5) == 0;

	call(1, ok ? 0 : 70, 0, 0);
}
__asm__(".globl _start\n_start: mov %esp, %eax\n push %eax\n call begin\n");
