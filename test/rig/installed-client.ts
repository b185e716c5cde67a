import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../house/source.ts';
import type { PackResult } from './installed-package.ts';

const runFile = promisify(execFile);
const SOURCE_FILES = ['bin/build-client.js', 'LICENSE', 'tsconfig.json', 'package.json'];
const CLIENT_FOLDER = 'clients/typescript';

export interface InstalledClient {
  readonly packResult: PackResult;
  /** The folder that contains only the installed package. */
  readonly folder: string;
  readonly main: string;
}

/** Packs and installs the client library. The copy and the installation are in `parent`, which the caller removes. */
export async function installClient(parent: string): Promise<InstalledClient> {
  const copy = join(parent, 'checkout');
  for (const file of SOURCE_FILES) cpSync(join(ROOT, file), join(copy, file));
  for (const name of ['src', 'README.md', 'package.json', 'tsconfig.json', 'tsconfig.build.json'])
    cpSync(join(ROOT, CLIENT_FOLDER, name), join(copy, CLIENT_FOLDER, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await runNpm(join(copy, CLIENT_FOLDER), ['pack', '--json']);
  const [packResult] = JSON.parse(stdout) as readonly PackResult[];
  if (packResult === undefined) throw new Error('npm pack reported no package');
  const folder = join(parent, 'installation');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  await runNpm(folder, [
    'install',
    '--offline',
    '--no-audit',
    '--no-fund',
    join(copy, CLIENT_FOLDER, packResult.filename),
  ]);
  return { packResult, folder, main: join(folder, 'node_modules/postrider-client/dist/index.js') };
}

/** Runs npm with the Node executable of this process, so that the result does not depend on the Node in PATH. */
export function runNpm(folder: string, args: readonly string[]) {
  const PATH = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`;
  return runFile('npm', [...args], { cwd: folder, env: { ...process.env, PATH }, maxBuffer: 1 << 26 });
}
