/* Drives hiredis; see ../go/steps, which does the same. hiredis leaves it to the
 * program to connect again. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECKS = 100, BURST = 60 };

static redisContext *client;
static char wrong[512];

/* decided says whether a reply is a decision that begins with these numbers. */
static int decided(redisReply *r, int i, int allowed, int left) {
    int good = r && r->type == REDIS_REPLY_ARRAY && r->elements == 7 && r->element[0]->integer == allowed &&
               r->element[1]->integer == BURST && r->element[2]->integer == left &&
               strcmp(r->element[5]->str, "daily") == 0 && strcmp(r->element[6]->str, "store") == 0;
    if (!good) snprintf(wrong, sizeof wrong, "check %d is not as it should be: %s", i + 1, r ? "another reply" : client->errstr);
    if (r) freeReplyObject(r);
    return good;
}

static int in_order(redisReply *r, int i) { return i < BURST ? decided(r, i, 1, BURST - 1 - i) : decided(r, i, 0, 0); }

static int check_step(void) {
    for (int i = 0; i < CHECKS; i++)
        if (!in_order(redisCommand(client, "RL.CHECK alone - - 1"), i)) return 0;
    return 1;
}

static int pipeline_step(void) {
    for (int i = 0; i < CHECKS; i++) redisAppendCommand(client, "RL.CHECK piped - - 1");
    for (int i = 0; i < CHECKS; i++) {
        void *r = NULL;
        redisGetReply(client, &r);
        if (!in_order(r, i)) return 0;
    }
    return 1;
}

static int denial_step(void) {
    redisReply *r = redisCommand(client, "RL.CHECK alone - - 1");
    int good = r && r->elements == 7 && r->element[0]->integer == 0 && r->element[3]->integer > 0;
    if (r) freeReplyObject(r);
    return good;
}

static int error_step(void) {
    redisReply *r = redisCommand(client, "RL.CHECK other - - bad");
    int good = r && r->type == REDIS_REPLY_ERROR && strstr(r->str, "ERR cost must be an integer between 1 and 2147483647");
    if (r) freeReplyObject(r);
    return good && decided(redisCommand(client, "RL.CHECK other - - 1"), 0, 1, BURST - 1);
}

static int dialect_step(void) {
    const int want[5] = {0, 6, 5, -1, 6};
    redisReply *r = redisCommand(client, "CL.THROTTLE key 5 10 60 1");
    int good = r && r->type == REDIS_REPLY_ARRAY && r->elements == 5;
    for (int i = 0; good && i < 5; i++) good = r->element[i]->type == REDIS_REPLY_INTEGER && r->element[i]->integer == want[i];
    if (r) freeReplyObject(r);
    return good;
}

static int reconnect_step(void) {
    char answer[64] = "";
    puts("kill");
    fflush(stdout);
    if (!fgets(answer, sizeof answer, stdin) || strcmp(answer, "killed\n") != 0) return 0;
    redisReply *r = redisCommand(client, "RL.CHECK other - - 1");
    if (r || !client->err || redisReconnect(client) != REDIS_OK) return 0;
    return decided(redisCommand(client, "RL.CHECK other - - 1"), 0, 1, BURST - 2);
}

int main(int argc, char **argv) {
    const struct { const char *name; int (*run)(void); const char *good; } steps[] = {
        {"check", check_step, "ok"},     {"pipeline", pipeline_step, "ok"}, {"denial", denial_step, "ok"},
        {"error", error_step, "ok"},     {"dialect", dialect_step, "ok"},   {"reconnect", reconnect_step, "by hand"},
    };
    if (argc < 3 || !(client = redisConnect(argv[1], atoi(argv[2]))) || client->err) return 1;
    char saw[4096] = "";
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        strcpy(wrong, "another reply");
        const char *how = steps[i].run() ? steps[i].good : wrong;
        snprintf(saw + strlen(saw), sizeof saw - strlen(saw), "%s\"%s\":\"%s\"", i ? "," : "", steps[i].name, how);
    }
    printf("{\"version\":\"%d.%d.%d\",\"steps\":{%s}}\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH, saw);
    redisFree(client);
    return 0;
}
