/**
 * Configures Vitest: every `*.test.ts` below test/, each file in a separate process, four files at a time. The tests of
 * the whole service run once with each store. The contract suites also run with the oldest supported PostgreSQL.
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // More workers than processor cores, because a test waits most of the time for a process, a disk or a clock. With
    // two workers, two cores were idle for a third of the time.
    maxWorkers: 4,
    // The time limits are long, because the tests use real processes and databases on slow machines, and check
    // guarantees, not durations.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    // Node runs the TypeScript files directly, as for the service. No test replaces a module.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    watch: false,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          // These tests take hours, so only `npm run test:long` runs them.
          exclude: process.env.TEST_EXTENT === 'long' ? [] : ['test/long/**'],
          globalSetup: ['test/rig/postgres-setup.ts', 'test/rig/dashboard-setup.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ['test/scenarios/*.test.ts', 'test/faults/kill.test.ts'],
          globalSetup: ['test/rig/postgres-setup.ts'],
          // These test files select their stores themselves.
          exclude: [
            'test/scenarios/backup-and-transfer.test.ts',
            'test/scenarios/nodes.test.ts',
            'test/scenarios/demo.test.ts',
            // test/long/webhook-trial.test.ts runs the webhook trial with two nodes on PostgreSQL.
            'test/scenarios/webhook-trial.test.ts',
            // The results of these tests do not depend on the store.
            ...(process.env.TEST_EXTENT === 'long'
              ? []
              : ['connections', 'https', 'terminal-output'].map((name) => `test/scenarios/${name}.test.ts`)),
          ],
          env: { TEST_STORE: 'postgres' },
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres-15',
          include: ['test/contract/*.test.ts', 'test/unit/store/postgres-*.test.ts'],
          globalSetup: ['test/rig/postgres-setup.ts'],
          // The transport tests use no store.
          exclude: ['test/contract/transport.test.ts'],
          env: { TEST_POSTGRES_VERSION: 'oldest' },
        },
      },
      {
        extends: true,
        test: {
          name: 'pooler',
          // The store suite runs only with `npm run test:long`, because two of its tests create thousands of accounts,
          // each in a separate transaction.
          include: [
            `test/contract/${process.env.TEST_EXTENT === 'long' ? '{store,feedback,search}' : '{feedback,search}'}.test.ts`,
          ],
          globalSetup: ['test/rig/postgres-setup.ts'],
          env: { TEST_POOLER: 'transaction' },
        },
      },
    ],
  },
});
