<?php
// Drives Predis.
declare(strict_types=1);
require __DIR__ . '/steps.php';
require 'Predis/Autoloader.php';
Predis\Autoloader::register();

final class Single implements Client
{
    public function __construct(private Predis\Client $redis)
    {
    }

    public function version(): string
    {
        return Predis\Client::VERSION;
    }

    public function call(array $words): mixed
    {
        return $this->redis->executeCommand(new Predis\Command\RawCommand($words));
    }

    public function pipeline(array $commands): ?array
    {
        return $this->redis->pipeline(function ($pipe) use ($commands) {
            foreach ($commands as $words) {
                $pipe->executeCommand(new Predis\Command\RawCommand($words));
            }
        });
    }

    public function refusal(array $words): string
    {
        try {
            $reply = $this->call($words);
        } catch (Predis\Response\ServerException $refused) {
            return $refused->getMessage();
        }
        return 'no error but ' . json_encode($reply);
    }
}

main(function (string $host, int $port): Client {
    $secure = tls() ? ['scheme' => 'tls', 'ssl' => tls()] : [];
    $user = login() ? ['username' => login()[0], 'password' => login()[1]] : [];
    return new Single(new Predis\Client(['host' => $host, 'port' => $port] + $secure + $user));
}, $argv);
