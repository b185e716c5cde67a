<?php
// Submits one message: php send.php TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY

const MAX_ATTEMPTS = 5;

/** Returns the id of the accepted message. Throws if the request is refused or no response arrives. */
function sendMail(array $fields, string $idempotencyKey): string
{
    $url = (getenv('MAIL_API_URL') ?: 'http://127.0.0.1:8080') . '/api/v1/send-mail';
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => [
            'Authorization: ' . getenv('POSTRIDER_API_KEY'),
            'Content-Type: application/json',
            "Idempotency-Key: $idempotencyKey",
            'Connection: close',
        ],
        'content' => json_encode($fields, JSON_THROW_ON_ERROR),
        'timeout' => 10,
        'ignore_errors' => true,
    ]]);
    $failure = 'no response';
    for ($attempt = 1; $attempt <= MAX_ATTEMPTS; $attempt++) {
        $delay = 2 ** ($attempt - 1) * (0.5 + mt_rand() / mt_getrandmax() / 2);
        $stream = @fopen($url, 'r', false, $context);
        $responseBody = $stream === false ? false : stream_get_contents($stream);
        // Without a response the message may have been accepted. The key makes the repetition safe.
        if ($responseBody !== false) {
            $lines = stream_get_meta_data($stream)['wrapper_data'];
            preg_match('~^HTTP/\S+ (\d+)~', $lines[0], $match);
            $status = (int) $match[1];
            if ($status === 201) {
                return json_decode($responseBody, true, 512, JSON_THROW_ON_ERROR)['result']['id'];
            }
            $failure = "$status $responseBody";
            if (!in_array($status, [408, 429], true) && $status < 500) {
                break;
            }
            foreach ($lines as $line) {
                if (preg_match('~^Retry-After: (\d+)~i', $line, $match)) {
                    $delay = (int) $match[1];
                }
            }
        }
        if ($attempt < MAX_ATTEMPTS) {
            usleep((int) ($delay * 1_000_000));
        }
    }
    throw new RuntimeException($failure);
}

[, $to, $from, $subject, $message, $key] = $argv;
try {
    echo sendMail(['to' => $to, 'from' => $from, 'subject' => $subject, 'message' => $message], $key), "\n";
} catch (RuntimeException $failure) {
    fwrite(STDERR, $failure->getMessage() . "\n");
    exit(1);
}
