/** Tests the folder of the embedded database. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFolder } from '../../../src/folder.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { runCommand } from '../../rig/service.ts';

test('only the user of the process can access a created folder, and an existing folder is not changed', () => {
  const folder = join(createTemporaryFolder(), 'a', 'b');
  createFolder(folder);
  createFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('if the folder of the database cannot be created, the command exits with a one-line error', async () => {
  // On Linux, creating a folder in /proc fails with ENOENT, and a recursive `mkdir` of Node never returns after this
  // error. Other systems do not allow the creation of /proc.
  const { code, stderr } = await runCommand(createTemporaryFolder(), ['key', 'create', 'default'], {
    POSTRIDER_DATABASE: 'sqlite:/proc/postrider/a.db',
  });
  expect(stderr).toMatch(/^postrider: .*\/proc\/postrider\/a\.db.*\n$/);
  expect(code).toBe(1);
});
