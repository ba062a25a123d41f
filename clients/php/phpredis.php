<?php
// Drives the extension phpredis: Redis and RedisCluster.
declare(strict_types=1);
require __DIR__ . '/steps.php';

final class Single implements Client
{
    public function __construct(private Redis $redis)
    {
    }

    public function version(): string
    {
        return phpversion('redis');
    }

    public function call(array $words): mixed
    {
        return $this->redis->rawCommand(...$words);
    }

    public function pipeline(array $commands): ?array
    {
        $pipe = $this->redis->pipeline();
        foreach ($commands as $words) {
            $pipe->rawCommand(...$words);
        }
        return $pipe->exec();
    }

    // An error reply is false, and getLastError tells.
    public function refusal(array $words): string
    {
        $reply = $this->call($words);
        expect($reply === false, 'answers ' . json_encode($reply));
        return (string) $this->redis->getLastError();
    }
}

final class Cluster implements Client
{
    public function __construct(private RedisCluster $redis)
    {
    }

    public function version(): string
    {
        return phpversion('redis');
    }

    // The first argument is the key by whose slot it finds the node.
    public function call(array $words): mixed
    {
        return $this->redis->rawCommand($words[1], ...$words);
    }

    public function pipeline(array $commands): ?array
    {
        return null;
    }

    public function refusal(array $words): string
    {
        $reply = $this->call($words);
        expect($reply === false, 'answers ' . json_encode($reply));
        return (string) $this->redis->getLastError();
    }
}

main(function (string $host, int $port, bool $cluster): Client {
    if ($cluster) {
        // Without a context the extension does not use TLS.
        return new Cluster(new RedisCluster(null, ["$host:$port"], 0, 0, false, login(), tls()));
    }
    $redis = new Redis();
    if (tls()) {
        $redis->connect("tls://$host", $port, 0, null, 0, 0, ['stream' => tls()]);
    } else {
        $redis->connect($host, $port);
    }
    if (login()) {
        $redis->auth(login());
    }
    return new Single($redis);
}, $argv);
