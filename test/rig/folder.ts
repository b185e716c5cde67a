/** A temporary folder for the files of one test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates an empty folder and removes it after the current test. */
export function createTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postrider-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
