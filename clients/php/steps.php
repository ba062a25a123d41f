<?php
// What every PHP client is made to do; see ../go/steps, which does the same.
declare(strict_types=1);

const CHECKS = 100;
const BURST = 60;

// A client library. A method that the library has nothing for returns null.
interface Client
{
    public function version(): string;

    public function call(array $words): mixed;

    public function pipeline(array $commands): ?array;

    /** What the error reply to these words says, in the library's own way. */
    public function refusal(array $words): string;
}

function check(string $tenant, string $cost = '1'): array
{
    return ['RL.CHECK', $tenant, '-', '-', $cost];
}

function expect(bool $good, string $complaint): void
{
    if (!$good) {
        throw new LogicException($complaint);
    }
}

function in_order(int $i, mixed $reply): void
{
    $want = $i < BURST ? [1, BURST, BURST - 1 - $i] : [0, BURST, 0];
    expect(is_array($reply) && count($reply) === 7 && array_slice($reply, 0, 3) === $want
        && array_slice($reply, 5) === ['daily', 'store'], 'check ' . ($i + 1) . ' answers ' . json_encode($reply));
}

function admitted(Client $client): void
{
    $reply = $client->call(check('other'));
    expect(is_array($reply) && $reply[0] === 1 && $reply[6] === 'store', 'answers ' . json_encode($reply));
}

function steps(): array
{
    return [
        'check' => function (Client $client) {
            for ($i = 0; $i < CHECKS; $i++) {
                in_order($i, $client->call(check('alone')));
            }
        },
        'pipeline' => function (Client $client) {
            $replies = $client->pipeline(array_fill(0, CHECKS, check('piped')));
            if ($replies === null) {
                return '-';
            }
            expect(count($replies) === CHECKS, count($replies) . ' replies');
            array_map('in_order', array_keys($replies), $replies);
        },
        'denial' => function (Client $client) {
            $reply = $client->call(check('alone'));
            expect($reply[0] === 0 && $reply[3] > 0, 'answers ' . json_encode($reply));
        },
        'error' => function (Client $client) {
            $says = $client->refusal(check('other', 'bad'));
            expect(str_contains($says, 'cost must be an integer between 1 and 2147483647'), "says $says");
            admitted($client);
        },
        'dialect' => function (Client $client) {
            $reply = $client->call(['CL.THROTTLE', 'key', '5', '10', '60', '1']);
            expect($reply === [0, 6, 5, -1, 6], 'answers ' . json_encode($reply));
        },
        'reconnect' => function (Client $client) {
            echo "kill\n";
            $answer = trim((string) fgets(STDIN));
            expect($answer === 'killed', "told $answer");
            try {
                admitted($client);
            } catch (LogicException $wrong) {
                throw $wrong;
            } catch (Throwable) { // one call may fail
                admitted($client);
            }
        },
    ];
}

/** tls returns PHP's options of TLS from the environment, or null without TLS. */
function tls(): ?array
{
    if (!getenv('CLIENT_CA')) {
        return null;
    }
    $own = getenv('CLIENT_CERT') ? ['local_cert' => getenv('CLIENT_CERT'), 'local_pk' => getenv('CLIENT_KEY')] : [];
    return ['cafile' => getenv('CLIENT_CA')] + $own;
}

/** login returns user and password of the environment, or null. */
function login(): ?array
{
    return getenv('CLIENT_USER') ? [getenv('CLIENT_USER'), getenv('CLIENT_PASSWORD')] : null;
}

/** main takes the steps with what open(host, port, cluster) returns. */
function main(callable $open, array $argv): void
{
    [, $host, $port, $mode] = $argv;
    $saw = [];
    $version = '';
    try {
        $client = $open($host, (int) $port, $mode === 'cluster');
        $version = $client->version();
        foreach (steps() as $name => $step) {
            try {
                $saw[$name] = $step($client) ?? 'ok';
            } catch (Throwable $wrong) {
                $saw[$name] = get_class($wrong) . ': ' . $wrong->getMessage();
            }
        }
    } catch (Throwable $wrong) {
        $saw['check'] = 'connect: ' . get_class($wrong) . ': ' . $wrong->getMessage();
    }
    echo json_encode(['version' => $version, 'steps' => $saw]), "\n";
}
