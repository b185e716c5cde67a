/** Vitest: every `*.test.ts` under test/, each file in a process of its own, two at a time. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Real processes, synced disks and slow machines: a test fails on a broken promise, not on time.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    watch: false,
    passWithNoTests: false,
  },
});
