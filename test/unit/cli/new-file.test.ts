import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CommandFailure } from '../../../src/cli/context.ts';
import { writeNewFile } from '../../../src/cli/new-file.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';

const createLinkFailure = (code: string) => ({
  link: () => Promise.reject(Object.assign(new Error('no links'), { code })),
});

test('an output file gets its name only when it is complete, only its owner can read it, and no temporary file remains', async () => {
  const folder = createTemporaryFolder();
  const file = join(folder, 'out');
  await writeNewFile(file, async (temporaryFile) => {
    expect(existsSync(file)).toBe(false);
    expect([statSync(temporaryFile).mode & 0o777, statSync(join(temporaryFile, '..')).mode & 0o777]).toEqual([
      0o600, 0o700,
    ]);
    await writeFile(temporaryFile, 'whole');
  });
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777, statSync(file).nlink]).toEqual(['whole', 0o600, 1]);
  expect(readdirSync(folder)).toEqual(['out']);
});

test.each(['link', 'EPERM', 'EOPNOTSUPP'])(
  'no existing file is overwritten and no symbolic link is followed, even if the link is created during the write (result of the hard link: %s)',
  async (failure) => {
    const folder = createTemporaryFolder();
    const fileOperations = failure === 'link' ? undefined : createLinkFailure(failure);
    const linkTarget = join(folder, 'victim');
    writeFileSync(linkTarget, 'untouched');
    const [existingFile, danglingLink, lateLink] = [
      join(folder, 'there'),
      join(folder, 'dangling'),
      join(folder, 'late'),
    ];
    symlinkSync(linkTarget, existingFile);
    symlinkSync(join(folder, 'nowhere'), danglingLink);
    const write = (temporaryFile: string) => writeFile(temporaryFile, 'new');
    for (const file of [linkTarget, existingFile, danglingLink])
      await expect(writeNewFile(file, write, fileOperations)).rejects.toThrow(
        /already exists; give the name of a new file/,
      );
    const writeAndCreateLink = async (temporaryFile: string) => {
      await write(temporaryFile);
      symlinkSync(linkTarget, lateLink);
    };
    await expect(writeNewFile(lateLink, writeAndCreateLink, fileOperations)).rejects.toThrow(CommandFailure);
    expect(readFileSync(linkTarget, 'utf8')).toBe('untouched');
    expect([lstatSync(lateLink).isSymbolicLink(), existsSync(join(folder, 'nowhere'))]).toEqual([true, false]);
    expect(readdirSync(folder).sort()).toEqual(['dangling', 'late', 'there', 'victim']);
  },
);

test('without hard links, the output file is a complete copy that only its owner can read', async () => {
  const file = join(createTemporaryFolder(), 'out');
  await writeNewFile(file, (temporaryFile) => writeFile(temporaryFile, 'whole'), createLinkFailure('EPERM'));
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777]).toEqual(['whole', 0o600]);
});

test.each([
  ['ENOSPC', /^cannot write .*\(ENOSPC\); free space/],
  ['EACCES', /^cannot write .*\(EACCES\); give a file in an existing folder/],
])('the error %s is reported in one line, and no file remains', async (code, output) => {
  const folder = createTemporaryFolder();
  const write = () => Promise.reject(Object.assign(new Error('no'), { code }));
  await expect(writeNewFile(join(folder, 'out'), write)).rejects.toThrow(output);
  expect(readdirSync(folder)).toEqual([]);
});

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends the process, and no temporary file remains',
  async (signal) => {
    const folder = createTemporaryFolder();
    const module = new URL('../../../src/cli/new-file.ts', import.meta.url).href;
    const script = `import { writeNewFile } from ${JSON.stringify(module)};
    await writeNewFile(${JSON.stringify(join(folder, 'out'))}, () => new Promise(() => {
      process.stdout.write('writing');
      setInterval(() => undefined, 60_000);
    }));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    expect(readdirSync(folder)).toHaveLength(1);
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([null, signal]);
    expect(readdirSync(folder)).toEqual([]);
  },
);
