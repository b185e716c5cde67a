import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createFirstCurlCommand } from '../../../src/http/curl.ts';
import { getFirstRecipient } from '../../../src/model/outcome.ts';

function readArguments(command: string): readonly string[] {
  const script = `curl() { for one in "$@"; do printf '%s\\0' "$one"; done; }\n${command}\n`;
  return execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

test.each([
  ['http://127.0.0.1:8080', '-i'],
  ['https://mail.example', '-ik'],
])('for %s the shell passes the URL, the key and the complete message to curl', (publicUrl, option) => {
  const fields = { key: 'pr_-_x', from: `o'brien$HOME\`id\`"\\@bücher.example`, to: 'ada@example.com' };
  expect(readArguments(createFirstCurlCommand({ publicUrl, ...fields }))).toEqual([
    option,
    `${publicUrl}/api/v1/send-mail`,
    '-H',
    'Authorization: pr_-_x',
    '-H',
    'Content-Type: application/json',
    '-d',
    JSON.stringify({ to: fields.to, from: fields.from, subject: 'Hello', message: 'It works.' }),
  ]);
});

test('the recipient of the first message is a simulator address if the transport sends messages', () => {
  expect(getFirstRecipient('capture')).toBe('ada@example.com');
  for (const transport of ['smtp', 'ses'])
    expect(getFirstRecipient(transport)).toBe('success@simulator.postrider.test');
});
