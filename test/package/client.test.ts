/**
 * Tests the client library as a program uses it: packed, installed in an empty folder, and connected to the real
 * service.
 */
import { execFile, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { loadSettings } from '../../src/config/load.ts';
import { type Service, startService } from '../../src/main.ts';
import { ROOT } from '../house/source.ts';
import { type InstalledClient, installClient } from '../rig/installed-client.ts';

const runFile = promisify(execFile);
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MAX_MINIFIED_BYTES = 5_000;

const suiteFolder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
let installation: InstalledClient;
/** The package as one minified script, which sets the variable `postriderClient`. */
let bundle: string;
let service: Service;
let baseUrl: string;

beforeAll(async () => {
  installation = await installClient(suiteFolder);
  bundle = await bundleClient(installation.main);
  const path = join(suiteFolder, 'postrider.db');
  const settings = loadSettings(
    {
      POSTRIDER_DATABASE: `sqlite:${path}`,
      POSTRIDER_LISTEN: '127.0.0.1:0',
      POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
      POSTRIDER_LOG: 'silent',
    },
    null,
  );
  service = await startService(settings, { drainMs: 500 });
  baseUrl = service.publicUrl ?? '';
}, 300_000);

afterAll(async () => {
  await service.stop();
  rmSync(suiteFolder, { recursive: true, force: true });
});

/** Bundles and minifies the package like the build of a program for an edge runtime. */
async function bundleClient(main: string): Promise<string> {
  const output = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: true,
      target: 'es2024',
      lib: { entry: main, formats: ['iife'], name: 'postriderClient', fileName: 'client' },
    },
  });
  const [result] = [output].flat();
  if (result === undefined || !('output' in result)) throw new Error('the build has no output');
  return result.output[0].code;
}

describe('the package', () => {
  test('contains the compiled library with its declarations, the license and nothing else, and has the version of the service', () => {
    const paths = installation.packResult.files.map(({ path }) => path);
    const allowedPathPattern = /^(package\.json|README\.md|LICENSE|dist\/\w+\.(js|d\.ts))$/;
    expect(paths.filter((path) => !allowedPathPattern.test(path))).toEqual([]);
    expect(paths).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'dist/index.js', 'dist/index.d.ts']));
    const readManifest = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    const manifest = readManifest(join(installation.folder, 'node_modules/postrider-client/package.json'));
    const rootManifest = readManifest(join(ROOT, 'package.json'));
    expect([manifest.version, manifest.license]).toEqual([rootManifest.version, rootManifest.license]);
    expect(manifest.dependencies).toBeUndefined();
    expect(readdirSync(join(installation.folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'postrider-client',
    ]);
  });

  test(`is smaller than ${MAX_MINIFIED_BYTES} bytes when minified`, () => {
    const bytes = Buffer.byteLength(bundle);
    process.stderr.write(`client library: ${bytes} bytes minified\n`);
    expect(bytes).toBeLessThan(MAX_MINIFIED_BYTES);
  });

  test('describes every public name in its declarations, and each option and each kind of error in its README', () => {
    const folder = join(installation.folder, 'node_modules/postrider-client');
    const declarations = readdirSync(join(folder, 'dist'))
      .filter((file) => file.endsWith('.d.ts') && file !== 'index.d.ts')
      .map((file) => readFileSync(join(folder, 'dist', file), 'utf8'))
      .join('\n');
    const exportedNames = [
      ...declarations.matchAll(/(\*\/\n)?export (?:declare )?(?:async )?(?:function|class|interface|type) (\w+)/g),
    ];
    expect(exportedNames.length).toBeGreaterThan(20);
    expect(exportedNames.filter(([, comment]) => comment === undefined).map(([, , name]) => name)).toEqual([]);
    const readme = readFileSync(join(folder, 'README.md'), 'utf8');
    const kinds = [...declarations.matchAll(/\| '([a-z-]+)'/g)].map(([, kind]) => kind ?? '');
    const errorDeclarations = readFileSync(join(folder, 'dist/errors.d.ts'), 'utf8');
    const documentedKinds = kinds.filter((kind) => errorDeclarations.includes(`'${kind}'`));
    expect(documentedKinds.length).toBeGreaterThan(12);
    const options = [
      'baseUrl',
      'apiKey',
      'timeoutMs',
      'maxTotalMs',
      'maxAttempts',
      'fetch',
      'clock',
      'random',
      'signal',
    ];
    for (const name of [...documentedKinds, ...options, 'toleranceMs', 'now']) expect(readme).toContain(name);
  });

  test('has declarations that compile in strict programs for Node and for edge runtimes, and that cause a compile error for an unknown member', () => {
    const program = `
      import { type Client, createClient, SendError, verifyWebhook, type WebhookEvent } from 'postrider-client';
      const client: Client = createClient({ baseUrl: 'https://mail.example.org', apiKey: 'pr_x', fetch });
      export async function send(headers: Headers): Promise<string | null> {
        const event: WebhookEvent = await verifyWebhook(new Uint8Array(), headers, ['a', 'b']);
        if (event.type === 'message.bounced') return event.data.category;
        if (event.type === 'domain.failing') return event.data.domain;
        try {
          return (await client.send({ to: 'a', from: 'b', subject: 'c', message: 'd' })).id;
        } catch (error) {
          return error instanceof SendError && error.kind === 'forbidden' ? error.reason : null;
        }
      }
    `;
    symlinkSync(join(ROOT, 'node_modules/@types'), join(installation.folder, 'node_modules/@types'));
    expect(compileProgram(program, ['es2024'], ['node'])).toEqual({ output: '', status: 0 });
    expect(compileProgram(program, ['es2024', 'webworker'], [])).toEqual({ output: '', status: 0 });
    const wrongProgram = program.replace("message: 'd'", "message: 'd', cc: 'e'");
    expect(compileProgram(wrongProgram, ['es2024', 'webworker'], []).output).toContain('TS2353');
  });
});

/** Compiles a program in the folder of the installation. Returns the output and the exit code of the compiler. */
function compileProgram(program: string, lib: readonly string[], types: readonly string[]) {
  const { folder } = installation;
  writeFileSync(join(folder, 'program.ts'), program);
  const compilerOptions = { module: 'nodenext', target: 'es2024', lib, strict: true, noEmit: true, types };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { encoding: 'utf8' });
  return { output: stdout, status };
}

describe('the examples of the README', () => {
  const readme = readFileSync(join(ROOT, 'clients/typescript/README.md'), 'utf8');
  const [sendExample = '', receiveExample = ''] = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(
    ([, code]) => code ?? '',
  );

  test('the first example is also in docs/sending.md, and submits a message', async () => {
    expect(readFileSync(join(ROOT, 'docs/sending.md'), 'utf8')).toContain(`\`\`\`ts\n${sendExample}\`\`\``);
    const program = sendExample.replace('https://mail.example.org', baseUrl);
    writeFileSync(join(installation.folder, 'send.ts'), program);
    const { stdout, stderr } = await runFile(process.execPath, ['send.ts'], {
      cwd: installation.folder,
      env: { ...process.env, NODE_NO_WARNINGS: '1', POSTRIDER_API_KEY: service.firstKey ?? '' },
    });
    expect(stderr).toBe('');
    expect(stdout.trim()).toMatch(UUID);
  });

  test('the second example responds with 204 to a signed event and with 400 to a forged event', async () => {
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    process.env.WEBHOOK_SECRET = secret;
    onTestFinished(() => {
      delete process.env.WEBHOOK_SECRET;
    });
    const file = join(installation.folder, 'receive.ts');
    writeFileSync(file, receiveExample);
    const { receive } = (await import(pathToFileURL(file).href)) as {
      receive: (request: Request) => Promise<Response>;
    };
    const body = '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{"id":"1"}}';
    const now = new Date();
    const headers = {
      'webhook-id': 'a',
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('a', now, body),
    };
    const postEvent = (text: string) =>
      receive(new Request('http://localhost/', { method: 'POST', headers, body: text }));
    expect((await postEvent(body)).status).toBe(204);
    expect((await postEvent(`${body} `)).status).toBe(400);
  });
});
