import { cpSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../house/source.ts';
import { type PackResult, packAndInstall } from './installed-package.ts';

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
  const { packResult, folder } = await packAndInstall(join(copy, CLIENT_FOLDER), parent, '--offline');
  return { packResult, folder, main: join(folder, 'node_modules/postrider-client/dist/index.js') };
}
