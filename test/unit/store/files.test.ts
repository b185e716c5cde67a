import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFolder } from '../../../src/folder.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

test('only the user of the process can access a created folder, and an existing folder is not changed', () => {
  const folder = join(createTemporaryFolder(), 'a', 'b');
  createFolder(folder);
  createFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});
