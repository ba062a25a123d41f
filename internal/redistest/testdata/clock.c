/* The clock of the day for one program, by two numbers in a file that its memory is
 * mapped to: the seconds that the clock is off, and the instant at which it stands, in
 * microseconds since the epoch, or 0 while it runs. A write to the file changes the
 * clock of all programs that map it, at once. Loaded ahead of the C library. It
 * allocates nothing: memory allocators that look at the clock themselves come here
 * before they are ready. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct clock {
	long long off, stands;
};

static const volatile struct clock real, *set = &real;

__attribute__((constructor)) static void attach(void)
{
	const char *name = getenv("CLOCK_OFFSET");
	int file = name ? open(name, O_RDONLY) : -1;
	void *at = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *set, PROT_READ, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		_exit(127);
	close(file);
	set = at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long long stands = set->stands;
	if (clock == CLOCK_REALTIME && stands != 0) {
		now->tv_sec = stands / 1000000;
		now->tv_nsec = stands % 1000000 * 1000;
		return 0;
	}
	int result = syscall(SYS_clock_gettime, clock, now);
	if (result == 0 && clock == CLOCK_REALTIME)
		now->tv_sec += set->off;
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
