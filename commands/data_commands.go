package commands

import "strings"

// dataCommands are the commands of Redis for data, channels and scripts, which a proxy has not. Those
// that it answers are not among them.
var dataCommands = wordSet(`
	append bitcount bitfield bitfield_ro bitop bitpos blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin copy
	decr decrby dump eval eval_ro evalsha evalsha_ro exists expire expireat expiretime fcall fcall_ro flushall flushdb
	function geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch
	geosearchstore get getbit getdel getex getrange getset hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget
	hmset hrandfield hscan hset hsetnx hstrlen hvals incr incrby incrbyfloat keys lcs lindex linsert llen lmove lmpop lpop
	lpos lpush lpushx lrange lrem lset ltrim mget migrate monitor move mset msetnx object persist pexpire pexpireat
	pexpiretime pfadd pfcount pfmerge psetex psubscribe pttl publish pubsub punsubscribe randomkey rename renamenx restore
	rpop rpoplpush rpush rpushx sadd scan scard script sdiff sdiffstore set setbit setex setnx setrange sinter sintercard
	sinterstore sismember smembers smismember smove sort sort_ro spop spublish srandmember srem sscan ssubscribe strlen
	subscribe substr sunion sunionstore sunsubscribe swapdb touch ttl type unsubscribe wait xack xadd xautoclaim xclaim
	xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore
	save shutdown bgsave bgrewriteaof lastsave module replicaof slaveof failover debug psync sync
	zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex
	zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex
	zrevrangebyscore zrevrank zscan zscore zunion zunionstore`)

// noData returns the end of the error for a command of dataCommands.
func noData(command string) string {
	own := "RL.CHECK tenant op ip asks for a decision"
	if strings.HasPrefix(command, "flush") {
		own = "RL.RESET tenant deletes the counters of a tenant"
	}
	return "; Limitgate keeps no data, channels or scripts: " + own + ", and RL.HELP lists the commands"
}

// wordSet returns the words of a text.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}
