<?php
// Calls the PHP code of docs/clients.md, which has no opening tag. It connects with TLS if the
// environment has a password.
eval(file_get_contents(__DIR__ . '/snippet.php'));
eval(file_get_contents(__DIR__ . '/connection.php'));
eval(file_get_contents(__DIR__ . '/limited.php'));

if (getenv('CLIENT_PASSWORD')) {
    $client = connect($argv[1], (int) $argv[2], getenv('CLIENT_PASSWORD'));
} else {
    $client = new Redis();
    $client->connect($argv[1], (int) $argv[2]);
}
echo "take\n";
fgets(STDIN);
foreach (['later', 'never', 'GET /hourly'] as $op) {
    echo json_encode(admit($client, 'snippet', $op, '-')), ' ';
}
foreach (['GET /hourly', 'GET /free'] as $op) {
    [$allowed, $headers] = check($client, 'snippet', $op, '127.0.0.1');
    echo $allowed ? 200 : 429, ' ', $headers['Retry-After'] ?? '', ' ';
}
try {
    check($client, 'snippet', str_repeat('long', 300), '127.0.0.1');
} catch (UnexpectedValueException $e) {
    echo 500;
}
echo "\n";
