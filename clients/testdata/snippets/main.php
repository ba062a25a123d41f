<?php
// Calls the README's PHP snippet, which has no opening tag.
eval(file_get_contents(__DIR__ . '/snippet.php'));

$client = new Redis();
$client->connect($argv[1], (int) $argv[2]);
echo "take\n";
fgets(STDIN);
echo json_encode(admit($client, 'snippet', 'later', '-')), ' ', json_encode(admit($client, 'snippet', 'never', '-')), "\n";
