/**
 * Configures Vitest: every `*.test.ts` below test/. `npm test` runs each file with SQLite and the newest PostgreSQL, as
 * far as its result depends on the store. `npm run test:long` and `npm run test:contract` also run the suites with the
 * oldest supported PostgreSQL and behind a pooler (CONTRIBUTING.md).
 */
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

/** `long`: every test with its full number of cases. `contract`: the contract suites with every store. */
const extent = process.env.TEST_EXTENT ?? 'default';

/**
 * The scenarios whose result depends on the store. They also run with PostgreSQL. Scenarios that select their stores
 * themselves are not in this list.
 */
const POSTGRES_SCENARIOS = ['feedback', 'limits', 'shutdown', 'webhooks'];
/** These scenarios select their stores themselves, so the long run does not repeat them. */
const SELF_SELECTING_SCENARIOS = ['backup-and-transfer', 'nodes', 'demo', 'upgrade', 'webhook-kills'];

const scenario = (name: string) => `test/scenarios/${name}.test.ts`;

export default defineConfig({
  test: {
    pool: 'forks',
    // The files of a worker share one process, because starting a process and loading src takes longer than most files.
    isolate: false,
    // More workers than processor cores, because a test waits a part of its time for a process or a disk.
    maxWorkers: 3,
    // The time limits are long, because the tests use real processes and databases on slow machines, and check
    // guarantees, not durations.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    // Node runs the TypeScript files directly, as for the service. No test replaces a module.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    setupFiles: ['test/rig/property-seeds.ts'],
    globalSetup: ['test/rig/postgres-setup.ts', 'test/rig/dashboard-setup.ts'],
    // The test command lists the slowest files.
    slowTestThreshold: 10_000,
    watch: false,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          // These tests take hours, so only `npm run test:long` runs them.
          exclude: extent === 'long' ? [] : ['test/long/**'],
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [
            ...(extent === 'long' ? [scenario('*')] : POSTGRES_SCENARIOS.map(scenario)),
            'test/faults/kill.test.ts',
          ],
          exclude: SELF_SELECTING_SCENARIOS.map(scenario),
          env: { TEST_STORE: 'postgres' },
        },
      },
      ...(extent === 'default'
        ? []
        : [
            {
              extends: true as const,
              test: {
                name: 'postgres-15',
                include: ['test/contract/*.test.ts', 'test/unit/store/postgres-*.test.ts'],
                // The transport tests use no store, and the short suite selects its stores itself.
                exclude: ['test/contract/{transport,short}.test.ts'],
                env: { TEST_POSTGRES_VERSION: 'oldest' },
              },
            },
            {
              extends: true as const,
              test: {
                name: 'pooler',
                include: ['test/contract/*.test.ts'],
                // These suites connect to PostgreSQL without the pooler, or use no store.
                exclude: ['test/contract/{audit,feedback-nodes,short,transport}.test.ts'],
                env: { TEST_POOLER: 'transaction' },
              },
            },
          ]),
    ],
  },
});
