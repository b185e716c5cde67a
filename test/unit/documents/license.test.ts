import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../house/source.ts';

const readRootFile = (name: string) => readFileSync(join(ROOT, name), 'utf8');

test('LICENSE is the complete standard text of the license in package.json', () => {
  const { license } = JSON.parse(readRootFile('package.json')) as { license: string };
  expect(license).toBe('Apache-2.0');
  // The digest of LICENSE-2.0.txt as published by the Apache Software Foundation.
  expect(createHash('sha256').update(readRootFile('LICENSE')).digest('hex')).toBe(
    'cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30',
  );
});

test('CHANGELOG.md, CONTRIBUTING.md and SECURITY.md exist, and each file that they link to exists', () => {
  expect(readRootFile('CHANGELOG.md')).toMatch(/^# Changelog\n[\s\S]*\n## Unreleased\n/);
  for (const name of ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'README.md']) {
    const links = [...readRootFile(name).matchAll(/\]\(([^)#:]+)\)/g)].map((link) => link[1] ?? '');
    for (const link of links) expect([name, link, readRootFile(link).length > 0]).toEqual([name, link, true]);
  }
});
