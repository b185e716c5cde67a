/**
 * Vitest: every `*.test.ts` under test/, each file in a process of its own, four at a time. What runs the whole service
 * runs twice, over either store. The suites of the store run over the oldest supported PostgreSQL as well.
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // More than cores: most of a test is waiting for a process, a disk or a clock. With two, a third of two cores was idle.
    maxWorkers: 4,
    // Real processes, databases and slow machines: a test fails on a broken promise, not on time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    // Node runs the TypeScript itself, as the service does. No test replaces a module.
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
          // Hours of counts: `npm run test:long` alone.
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
          // These test files name their stores themselves.
          exclude: [
            'test/scenarios/backup-and-transfer.test.ts',
            'test/scenarios/nodes.test.ts',
            'test/scenarios/demo.test.ts',
            // test/long/webhook-trial.test.ts runs it with two nodes.
            'test/scenarios/webhook-trial.test.ts',
            // The store has no effect on what these check.
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
          // The tests of the transports use no store.
          exclude: ['test/contract/transport.test.ts'],
          env: { TEST_POSTGRES_VERSION: 'oldest' },
        },
      },
      {
        extends: true,
        test: {
          name: 'pooler',
          // Two tests of the store suite create thousands of accounts, each in a transaction of its own.
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
