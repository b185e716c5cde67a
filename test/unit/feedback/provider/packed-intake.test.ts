import { expect, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { createFeedbackIntake } from '../../../../src/feedback/intake.ts';
import type { ServiceEvent } from '../../../../src/model/events.ts';
import {
  type FeedbackReport,
  type FeedbackResult,
  packReports,
  unpackReports,
} from '../../../../src/model/feedback.ts';
import { StoreError } from '../../../../src/store/error.ts';
import { createMessageIdAt } from '../../../rig/messages.ts';

const ORIGIN = { source: 'sparkpost', at: 1_800_000_000_000 } as const;

function createReport(digest: string): FeedbackReport {
  return {
    ...{ messageRef: null, events: [], ...ORIGIN, digest, summary: 'sparkpost delivery', raw: new Uint8Array() },
    ...{ isFinal: false, isProviderEvent: true },
  };
}

const createPart = (...digests: readonly string[]) => packReports(digests.map(createReport));

test('at most `maxConcurrentParts` parts are recorded at the same time, in their order', async () => {
  const startedParts: string[] = [];
  const commits: PromiseWithResolvers<readonly FeedbackResult[]>[] = [];
  const { recordParts } = createFeedbackIntake({
    store: {
      recordPackedFeedback(part) {
        startedParts.push(...unpackReports(part).map(({ digest }) => digest));
        const commit = Promise.withResolvers<readonly FeedbackResult[]>();
        commits.push(commit);
        return commit.promise;
      },
    },
    clock: systemClock,
    record: () => Promise.reject(new Error('no report is recorded separately')),
    publish: () => undefined,
    onPending: () => undefined,
    maxConcurrentParts: 2,
    listOtherRoutes: () => undefined,
    keepHistoryMs: 90 * 86_400_000,
  });
  const requests = [
    recordParts([createPart('1'), createPart('2'), createPart('3')], ORIGIN),
    recordParts([createPart('4')], ORIGIN),
  ];
  expect(startedParts).toEqual(['1', '2']);
  for (const [index, expected] of [
    ['1', '2', '3'],
    ['1', '2', '3', '4'],
  ].entries()) {
    commits[index]?.resolve([{ kind: 'repeated' }]);
    await expect.poll(() => startedParts).toEqual(expected);
  }
  for (const commit of commits) commit.resolve([{ kind: 'repeated' }]);
  expect(await Promise.all(requests)).toEqual([
    { recordedCount: 3, unmatchedCount: 0, failures: [] },
    { recordedCount: 1, unmatchedCount: 0, failures: [] },
  ]);
});

test('if a part cannot be recorded, its reports are recorded one by one, and only reports that fail again are returned as failures', async () => {
  const events: ServiceEvent[] = [];
  const fullDiskError = new StoreError('the disk is full');
  let pendingReportCount = 0;
  const { recordParts } = createFeedbackIntake({
    store: {
      recordPackedFeedback: (part) =>
        part.text.includes('"bad"')
          ? Promise.reject(fullDiskError)
          : Promise.resolve([{ kind: 'pending' }, { kind: 'unrelated' }, { kind: 'repeated' }]),
    },
    clock: systemClock,
    record: ({ digest }) =>
      digest === 'bad'
        ? Promise.reject(fullDiskError)
        : Promise.resolve({ kind: digest === 'foreign' ? 'unrelated' : 'pending' }),
    publish: (event) => void events.push(event),
    onPending: () => {
      pendingReportCount += 1;
    },
    maxConcurrentParts: 1,
    listOtherRoutes: () => undefined,
    keepHistoryMs: 90 * 86_400_000,
  });
  const parts = [createPart('good', 'bad', 'foreign'), createPart('1', '2', '3')];
  expect(await recordParts(parts, ORIGIN)).toEqual({ recordedCount: 3, unmatchedCount: 2, failures: [fullDiskError] });
  expect(pendingReportCount).toBe(2);
  expect(events).toEqual([
    { type: 'report.unrelated', at: ORIGIN.at, source: 'sparkpost' },
    { type: 'report.repeated', at: ORIGIN.at },
  ]);
});

test('a report about a message that may have been purged is marked, and one about a newer message is not', async () => {
  const recorded: FeedbackReport[] = [];
  const { recordReport } = createFeedbackIntake({
    store: { recordPackedFeedback: async () => [] },
    clock: systemClock,
    async record(report) {
      recorded.push(report);
      return { kind: 'unrelated' };
    },
    publish: () => undefined,
    onPending: () => undefined,
    maxConcurrentParts: 1,
    listOtherRoutes: () => undefined,
    keepHistoryMs: 1_000,
  });
  const at = Date.now();
  for (const acceptedAt of [at - 1_000, at - 999])
    await recordReport({ ...createReport('d'), at, messageRef: { id: createMessageIdAt(acceptedAt) } });
  expect(recorded.map(({ mayBePurged }) => mayBePurged)).toEqual([true, undefined]);
});
