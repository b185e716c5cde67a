import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../house/source.ts';

const runFile = promisify(execFile);

/** Files and folders of a checkout that a copy must not contain. */
const EXCLUDED_PATHS: ReadonlySet<string> = new Set([
  '.git',
  'node_modules',
  'data',
  'dist',
  'dashboard/dist',
  'bench/tmp',
]);

export interface PackResult {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

export interface InstalledPackage {
  readonly packResult: PackResult;
  /** The folder that contains only the installed package. */
  readonly folder: string;
  readonly command: string;
}

/** Packs the checkout and installs the package below `parent`, which the caller removes. */
export async function installPackage(parent: string): Promise<InstalledPackage> {
  const copy = join(parent, 'checkout');
  cpSync(ROOT, copy, { recursive: true, filter: (path) => !EXCLUDED_PATHS.has(relative(ROOT, path)) });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { packResult, folder } = await packAndInstall(copy, parent, '--prefer-offline');
  return { packResult, folder, command: join(folder, 'node_modules', 'postrider', 'bin', 'postrider.js') };
}

export async function packAndInstall(source: string, parent: string, option: '--offline' | '--prefer-offline') {
  const { stdout } = await runNpm(source, ['pack', '--json']);
  const [packResult] = JSON.parse(stdout) as readonly PackResult[];
  if (packResult === undefined) throw new Error('npm pack reported no package');
  const folder = join(parent, 'installation');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  await runNpm(folder, ['install', option, '--no-audit', '--no-fund', join(source, packResult.filename)]);
  return { packResult, folder };
}

/** Runs npm with the Node executable of this process, so that the result does not depend on the Node in PATH. */
export function runNpm(folder: string, args: readonly string[]) {
  const PATH = `${dirname(process.execPath)}:${process.env.PATH ?? ''}`;
  return runFile('npm', [...args], { cwd: folder, env: { ...process.env, PATH }, maxBuffer: 1 << 26 });
}
