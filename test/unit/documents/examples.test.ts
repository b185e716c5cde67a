/**
 * The clients in docs/examples: docs/sending.md prints each as it is, and each does against a running service what the page
 * says. One whose interpreter is not on this machine is printed only; the annotation of the test names it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../../house/source.ts';
import { temporaryFolder } from '../../rig/folder.ts';
import { runJsonCommand, startProcess } from '../../rig/service.ts';

const FOLDER = join(ROOT, 'docs/examples');
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** How each example is started. */
const INTERPRETERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'send.sh': ['sh'],
  'send.mjs': [process.execPath],
  'send.py': ['python3'],
  'send.go': ['go', 'run'],
  'send.php': ['php'],
  'send.rb': ['ruby'],
  'SendMail.java': ['java'],
};

function isHere(program: string): boolean {
  const asked = spawnSync(program, [program === 'go' ? 'version' : '--version'], { stdio: 'ignore' });
  return asked.error === undefined && asked.status === 0;
}

const EXAMPLES = Object.entries(INTERPRETERS).map(([file, command]) => ({ file, command }));
// Every system has a shell that knows no --version; what send.sh needs besides is curl.
const PRESENT = EXAMPLES.filter(({ file, command }) => isHere(file === 'send.sh' ? 'curl' : command[0]));
const ABSENT = EXAMPLES.filter((example) => !PRESENT.includes(example)).map(({ file }) => file);

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs an example with a message and an idempotency key. */
function runExample(
  example: (typeof EXAMPLES)[number],
  mail: Readonly<Record<'to' | 'from' | 'subject' | 'message', string>>,
  idempotencyKey: string,
  environment: Readonly<Record<string, string>>,
): Promise<Ran> {
  const folder = temporaryFolder();
  const [program, ...first] = example.command;
  const body = join(folder, 'message.json');
  writeFileSync(body, JSON.stringify(mail));
  const args = example.file === 'send.sh' ? [body] : [mail.to, mail.from, mail.subject, mail.message];
  const child = spawn(program, [...first, join(FOLDER, example.file), ...args, idempotencyKey], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out: out.trim(), err: err.trim() }));
  });
}

/** The id that an example prints: send.sh prints the whole answer. */
function idIn(out: string): string {
  return out.startsWith('{') ? (JSON.parse(out) as { result: { id: string } }).result.id : out;
}

test('docs/sending.md prints each file of docs/examples as it is, and no other', () => {
  const page = readFileSync(join(ROOT, 'docs/sending.md'), 'utf8');
  const printed = [...page.matchAll(/^\[examples\/([^\]]+)\].*\n\n```\w+\n([\s\S]*?)^```$/gm)];
  const files = readdirSync(FOLDER).sort();
  expect(printed.map(([, file]) => file).sort()).toEqual(files);
  expect(files).toEqual(Object.keys(INTERPRETERS).sort());
  for (const [, file = '', text] of printed)
    expect([file, text]).toEqual([file, readFileSync(join(FOLDER, file), 'utf8')]);
});

test('curl and Node are installed, so at least two examples run', ({ annotate }) => {
  void annotate(
    `run: ${PRESENT.map(({ file }) => file).join(', ')}; no interpreter here for: ${ABSENT.join(', ') || 'none'}`,
  );
  expect(PRESENT.map(({ file }) => file)).toEqual(expect.arrayContaining(['send.sh', 'send.mjs']));
});

const MAIL = {
  to: 'success@simulator.postrider.test',
  from: 'shop@example.org',
  subject: 'Quittung „4711“ \\ "a"',
  message: 'Thank you.\nTab:\t.',
};

describe.each(PRESENT)('$file', (example) => {
  test('prints the id of the 201, the same id on a second run, and the documented error of an invalid request', async () => {
    const folder = temporaryFolder();
    const service = await startProcess(folder);
    const environment = { MAIL_API_URL: service.publicUrl, POSTRIDER_API_KEY: service.key ?? '' };
    const first = await runExample(example, MAIL, 'receipt-4711', environment);
    expect(first).toMatchObject({ code: 0, err: '' });
    const id = idIn(first.out);
    expect(id).toMatch(UUID);
    const again = await runExample(example, MAIL, 'receipt-4711', environment);
    expect([again.code, idIn(again.out)]).toEqual([0, id]);
    const stored = await runJsonCommand<{ to: string; subject: string }>(folder, ['message', 'show', id]);
    expect(stored).toMatchObject({ to: MAIL.to, subject: MAIL.subject });

    const refused = await runExample(example, { ...MAIL, to: 'nobody' }, 'receipt-4712', environment);
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^400 .*"message":"Invalid email address: to"/);
    const keyless = await runExample(example, MAIL, 'receipt-4713', { ...environment, POSTRIDER_API_KEY: 'pr_wrong' });
    expect(keyless).toMatchObject({ code: 1, out: '' });
    expect(keyless.err).toMatch(/^401 .*"message":"Invalid API key"/);
  });

  test('repeats the request after a 429 and a 500, with the same idempotency key, no sooner than Retry-After says', async () => {
    const asked: { readonly key: unknown; readonly at: number }[] = [];
    const id = '0199aaaa-0000-7000-8000-000000000000';
    const server = createServer((request, response) => {
      asked.push({ key: request.headers['idempotency-key'], at: performance.now() });
      const status = [429, 500][asked.length - 1] ?? 201;
      request.resume().on('end', () => {
        response.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': '1' });
        response.end(JSON.stringify(status === 201 ? { result: { id } } : { result: 'error', message: 'x' }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const environment = { MAIL_API_URL: `http://127.0.0.1:${port}`, POSTRIDER_API_KEY: 'pr_x' };
    const ran = await runExample(example, MAIL, 'receipt-1', environment);
    expect([ran.code, idIn(ran.out)]).toEqual([0, id]);
    expect(asked.map(({ key }) => key)).toEqual(['receipt-1', 'receipt-1', 'receipt-1']);
    const pauses = asked.slice(1).map(({ at }, before) => at - (asked[before]?.at ?? 0));
    for (const pause of pauses) expect(pause).toBeGreaterThan(950);
  });
});
