package cluster

// Rights are the ACL rules of a user with exactly the rights that limitgate needs.
const Rights = "~lg:* +info +role +ping +time +cluster|slots +cluster|info +asking +script|load +evalsha" +
	" +get +mget +set +setrange +getex +strlen +exists +del +unlink +hget +hgetall +hset +hdel +hkeys +hlen +pttl +pexpireat +scan" +
	" +zadd +zcard +zcount +zrangebyscore +zrem +zremrangebyscore +zrevrange +zrevrangebyscore +zscore"
