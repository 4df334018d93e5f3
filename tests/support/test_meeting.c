/* Threads that wait for each other. */
#include "test_thread.h"

#include <stdlib.h>

struct test_meeting {
    test_lock *lock;
    int32_t count, came;
    uint64_t round;
};

test_meeting *test_meeting_make(int32_t count)
{
    test_meeting *made = malloc(sizeof *made);
    if (!made) abort();
    *made = (test_meeting){.lock = test_lock_make(), .count = count};
    return made;
}

void test_meeting_free(test_meeting *meeting)
{
    test_lock_free(meeting->lock);
    free(meeting);
}

bool test_meeting_come(test_meeting *meeting)
{
    test_lock_enter(meeting->lock);
    const bool last = ++meeting->came == meeting->count;
    const uint64_t round = meeting->round;
    if (last) {
        meeting->came = 0;
        meeting->round++;
        test_lock_wake(meeting->lock);
    }
    while (meeting->round == round) test_lock_wait(meeting->lock);
    test_lock_leave(meeting->lock);
    return last;
}
