/** A temporary folder for the files of one test. */
import { rmSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { createDataFolder } from './memory-folder.ts';

/** Creates an empty folder and removes it after the current test. */
export function createTemporaryFolder(): string {
  const folder = createDataFolder('postrider-test-');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
