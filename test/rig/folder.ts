import { rmSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { createDataFolder } from './memory-folder.ts';

export function createTemporaryFolder(): string {
  const folder = createDataFolder('postrider-test-');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
