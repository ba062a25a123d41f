<?php
// Calls the PHP code of docs/clients.md, which has no opening tag. It connects with TLS if the
// environment has a password.
eval(file_get_contents(__DIR__ . '/snippet.php'));
eval(file_get_contents(__DIR__ . '/connection.php'));

if (getenv('CLIENT_PASSWORD')) {
    $client = connect($argv[1], (int) $argv[2], getenv('CLIENT_PASSWORD'));
} else {
    $client = new Redis();
    $client->connect($argv[1], (int) $argv[2]);
}
echo "take\n";
fgets(STDIN);
echo json_encode(admit($client, 'snippet', 'later', '-')), ' ', json_encode(admit($client, 'snippet', 'never', '-')), "\n";
