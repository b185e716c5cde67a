import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FeedbackReport } from '../../../src/model/feedback.ts';
import { packSettlements } from '../../../src/store/rules/messages.ts';
import { openDatabase } from '../../../src/store/sqlite/database.ts';
import { createEngine } from '../../../src/store/sqlite/thread.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createMessage, createSettlement, NO_LIMITS } from '../../rig/messages.ts';

const AT = Date.now();

function createDeliveryEvent(id: string, at: number, recordsDigestAlways: boolean): FeedbackReport {
  const evidence = { status: '2.0.0', diagnostic: 'accepted', reportingHost: 'mx.example.com' };
  return {
    ...{ messageRef: { id }, events: [{ kind: 'confirmed', recipient: null, alias: null, evidence }] },
    ...{ source: 'postmark', digest: `${id}:${at}`, at, summary: 'delivery', raw: new Uint8Array() },
    ...{ isFinal: false, isProviderEvent: true, recordsDigestAlways },
  };
}

function createStoreWithDeliveredMessages(messageCount: number) {
  const database = openDatabase(join(createTemporaryFolder(), 'postrider.db'));
  onTestFinished(() => database.close());
  const { operations: store } = createEngine(database);
  store.createAccount('shop', NO_LIMITS, 1);
  const lease = { owner: 'node-a', until: AT + 600_000 };
  const messages = Array.from({ length: messageCount }, () => createMessage({ lease }));
  store.accept(messages);
  store.settle(packSettlements(messages.map((message) => createSettlement({ ...message, attempts: 1, lease }))));
  return { database, store, messages };
}

test.each([
  ['at most one row a second', false, 2],
  ['a row for each event, if the signature covers only the digest', true, 4],
])('delivery events of a provider add %s to the table of reports', (_name, recordsDigestAlways, rowCount) => {
  const { database, store, messages } = createStoreWithDeliveredMessages(4);
  const [first, second, third, fourth] = messages.map(({ id }) => id);
  const record = (at: number, ...ids: readonly (string | undefined)[]) =>
    store.recordFeedback(ids.map((id = '') => createDeliveryEvent(id, at, recordsDigestAlways)));
  const results = [record(AT, first, second), record(AT + 500, third), record(AT + 1_000, fourth)].flat();
  expect(results.map(({ kind }) => kind)).toEqual(['confirmed', 'confirmed', 'confirmed', 'confirmed']);
  expect(database.prepare('SELECT count(*) AS row_count FROM feedback').get()).toEqual({ row_count: rowCount });
  expect(store.listLastFeedback()).toEqual([{ source: 'postmark', at: AT + 1_000 }]);
});
