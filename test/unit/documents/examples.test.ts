/** A client whose interpreter is not installed is not run; an annotation of the test lists it. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startService } from '../../../src/main.ts';
import { ROOT } from '../../house/source.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { listenOnFreePort } from '../../rig/free-port.ts';
import { IS_LONG_RUN } from '../../rig/sample.ts';
import { loadServiceSettings, spawnProgram } from '../../rig/service.ts';

const FOLDER = join(ROOT, 'docs/examples');
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const INTERPRETERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  'send.sh': ['sh'],
  'send.mjs': [process.execPath],
  'send.py': ['python3'],
  'send.go': ['go', 'run'],
  'send.php': ['php'],
  'send.rb': ['ruby'],
  'SendMail.java': ['java'],
};

function isInstalled(program: string): boolean {
  const versionRun = spawnSync(program, [program === 'go' ? 'version' : '--version'], { stdio: 'ignore' });
  return versionRun.error === undefined && versionRun.status === 0;
}

/** Programs that compile an example at each run, which takes seconds. `npm run test:long` runs these examples. */
const COMPILERS = ['go', 'java'];

const EXAMPLES = Object.entries(INTERPRETERS).map(([file, command]) => ({ file, command }));
// `sh` may have no --version option. send.sh also needs curl, so the check for send.sh is whether curl is installed.
const RUNNABLE_EXAMPLES = EXAMPLES.filter(({ command }) => IS_LONG_RUN || !COMPILERS.includes(command[0])).filter(
  ({ file, command }) => isInstalled(file === 'send.sh' ? 'curl' : command[0]),
);
const NOT_RUNNABLE_FILES = EXAMPLES.filter((example) => !RUNNABLE_EXAMPLES.includes(example)).map(({ file }) => file);

async function runExample(
  example: (typeof EXAMPLES)[number],
  message: Readonly<Record<'to' | 'from' | 'subject' | 'message', string>>,
  idempotencyKey: string,
  environment: Readonly<Record<string, string>>,
) {
  const folder = createTemporaryFolder();
  const [program, ...commandArgs] = example.command;
  const body = join(folder, 'message.json');
  writeFileSync(body, JSON.stringify(message));
  const args = example.file === 'send.sh' ? [body] : [message.to, message.from, message.subject, message.message];
  const exampleRun = spawnProgram(program, [...commandArgs, join(FOLDER, example.file), ...args, idempotencyKey], {
    env: { ...process.env, ...environment },
  });
  onTestFinished(() => void exampleRun.child.kill('SIGKILL'));
  const code = await exampleRun.exitPromise;
  return { code, stdout: exampleRun.stdout().trim(), stderr: exampleRun.stderr().trim() };
}

/** Returns the id that an example prints; send.sh prints the whole response. */
function readId(stdout: string): string {
  return stdout.startsWith('{') ? (JSON.parse(stdout) as { result: { id: string } }).result.id : stdout;
}

test('docs/sending.md links to each client of docs/examples, and prints send.sh unchanged', () => {
  const page = readFileSync(join(ROOT, 'docs/sending.md'), 'utf8');
  const linkedFiles = new Set([...page.matchAll(/\]\(examples\/([^)]+)\)/g)].map(([, file]) => file));
  const files = readdirSync(FOLDER).filter((file) => !file.startsWith('receive.'));
  expect(linkedFiles).toEqual(new Set(files));
  expect(files.sort()).toEqual(Object.keys(INTERPRETERS).sort());
  expect(page).toContain(`\`\`\`sh\n${readFileSync(join(FOLDER, 'send.sh'), 'utf8')}\`\`\``);
});

test('docs/webhooks.md links to both receivers of docs/examples, and prints receive.mjs unchanged', () => {
  const page = readFileSync(join(ROOT, 'docs/webhooks.md'), 'utf8');
  const files = readdirSync(FOLDER).filter((file) => file.startsWith('receive.'));
  expect(files.filter((file) => !page.includes(`](examples/${file})`))).toEqual([]);
  expect(page).toContain(`\`\`\`js\n${readFileSync(join(FOLDER, 'receive.mjs'), 'utf8')}\`\`\``);
});

test('curl and Node are installed, so at least two examples run', ({ annotate }) => {
  void annotate(
    `run: ${RUNNABLE_EXAMPLES.map(({ file }) => file).join(', ')}; not run: ${NOT_RUNNABLE_FILES.join(', ') || 'none'}`,
  );
  expect(RUNNABLE_EXAMPLES.map(({ file }) => file)).toEqual(expect.arrayContaining(['send.sh', 'send.mjs']));
});

const MESSAGE = {
  to: 'success@simulator.postrider.test',
  from: 'shop@example.org',
  subject: 'Quittung „4711“ \\ "a"',
  message: 'Thank you.\nTab:\t.',
};

describe('each example', () => {
  test('prints the id of the 201 response, the same id for the same idempotency key, and the documented error for an invalid request', async () => {
    const settings = loadServiceSettings(join(createTemporaryFolder(), 'postrider.db'));
    const service = await startService(settings);
    onTestFinished(() => service.stop());
    const environment = { MAIL_API_URL: service.publicUrl ?? '', POSTRIDER_API_KEY: service.firstKey ?? '' };
    for (const example of RUNNABLE_EXAMPLES) {
      const key = `receipt-${example.file}`;
      const firstRun = await runExample(example, MESSAGE, key, environment);
      expect(firstRun).toMatchObject({ code: 0, stderr: '' });
      const id = readId(firstRun.stdout);
      expect(id).toMatch(UUID);
      const secondRun = await runExample(example, MESSAGE, key, environment);
      expect([secondRun.code, readId(secondRun.stdout)]).toEqual([0, id]);
      const refusedRun = await runExample(example, { ...MESSAGE, to: 'unknown' }, `${key}-2`, environment);
      expect(refusedRun).toMatchObject({ code: 1, stdout: '' });
      expect(refusedRun.stderr).toMatch(/^400 .*"message":"Invalid email address: to"/);
      const wrongKeyRun = await runExample(example, MESSAGE, `${key}-3`, {
        ...environment,
        POSTRIDER_API_KEY: 'pr_wrong',
      });
      expect(wrongKeyRun).toMatchObject({ code: 1, stdout: '' });
      expect(wrongKeyRun.stderr).toMatch(/^401 .*"message":"Invalid API key"/);
    }
  });

  test.each(RUNNABLE_EXAMPLES)(
    '$file repeats the request after a 429 and a 500, with the same idempotency key, and not before the time in Retry-After',
    async (example) => {
      const requests: { readonly key: unknown; readonly at: number }[] = [];
      const id = '0199aaaa-0000-7000-8000-000000000000';
      const server = createServer((request, response) => {
        requests.push({ key: request.headers['idempotency-key'], at: performance.now() });
        const status = [429, 500][requests.length - 1] ?? 201;
        request.resume().on('end', () => {
          response.writeHead(status, { 'Content-Type': 'application/json', 'Retry-After': '1' });
          response.end(JSON.stringify(status === 201 ? { result: { id } } : { result: 'error', message: 'x' }));
        });
      });
      const port = await listenOnFreePort(server);
      onTestFinished(() => void server.close());
      const environment = { MAIL_API_URL: `http://127.0.0.1:${port}`, POSTRIDER_API_KEY: 'pr_x' };
      const exampleRun = await runExample(example, MESSAGE, 'receipt-1', environment);
      expect([exampleRun.code, readId(exampleRun.stdout)]).toEqual([0, id]);
      expect(requests.map(({ key }) => key)).toEqual(['receipt-1', 'receipt-1', 'receipt-1']);
      const delaysMs = requests.slice(1).map(({ at }, previousIndex) => at - (requests[previousIndex]?.at ?? 0));
      for (const delayMs of delaysMs) expect(delayMs).toBeGreaterThan(950);
    },
  );
});
