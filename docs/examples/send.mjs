// Submits one message: node send.mjs TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY
import { setTimeout as sleep } from 'node:timers/promises';

const API_URL = `${process.env.MAIL_API_URL ?? 'http://127.0.0.1:8080'}/api/v1/send-mail`;
const MAX_ATTEMPTS = 5;

/** Returns the id of the accepted message. Throws if the request is refused or no response arrives. */
async function sendMail(fields, idempotencyKey) {
  let failure;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    let retryAfterSeconds = 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
    try {
      const response = await fetch(API_URL, {
        method: 'POST',
        headers: {
          Authorization: process.env.POSTRIDER_API_KEY,
          'Content-Type': 'application/json',
          'Idempotency-Key': idempotencyKey,
        },
        body: JSON.stringify(fields),
        signal: AbortSignal.timeout(10_000),
      });
      const responseBody = await response.text();
      if (response.status === 201) return JSON.parse(responseBody).result.id;
      const reason = response.headers.get('Postrider-Reason');
      failure = new Error(`${response.status} ${responseBody}${reason === null ? '' : ` (${reason})`}`);
      if (![408, 429].includes(response.status) && response.status < 500) break;
      retryAfterSeconds = Number(response.headers.get('Retry-After') ?? retryAfterSeconds);
    } catch (error) {
      failure = error; // No response: the message may have been accepted. The key makes the repetition safe.
    }
    if (attempt < MAX_ATTEMPTS) await sleep(retryAfterSeconds * 1000);
  }
  throw failure;
}

const [to, from, subject, message, idempotencyKey] = process.argv.slice(2);
try {
  console.log(await sendMail({ to, from, subject, message }, idempotencyKey));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
