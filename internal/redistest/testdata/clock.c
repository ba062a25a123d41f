/* The clock of the day for one program, off by the seconds in a file that its
 * memory is mapped to: who writes the file steps the clock of all who map it, at
 * once. Loaded ahead of the C library. It allocates nothing: memory allocators
 * that look at the clock themselves come here before they are ready. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long none, *seconds = &none;

__attribute__((constructor)) static void attach(void)
{
	const char *name = getenv("CLOCK_OFFSET");
	int file = name ? open(name, O_RDONLY) : -1;
	void *at = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		_exit(127);
	close(file);
	seconds = at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = syscall(SYS_clock_gettime, clock, now);
	if (result == 0 && clock == CLOCK_REALTIME)
		now->tv_sec += *seconds;
	return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &precise);
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now)
{
	struct timespec precise;
	clock_gettime(CLOCK_REALTIME, &precise);
	if (now)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
