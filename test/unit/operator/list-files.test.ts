import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { addListFiles } from '../../../src/operator/list-files.ts';
import { StoreError } from '../../../src/store/error.ts';
import { createVirtualClock } from '../../rig/clock.ts';
import { createTestServer } from '../http/rig.ts';
import { createOperationRig, type OperationRig } from '../operations/operation-rig.ts';

const EXPORT_PATH = '/accounts/acme/suppressions/export';
const IMPORT_PATH = '/accounts/acme/suppressions/import';
const CSV = { 'Content-Type': 'text/csv' };

function createApp({ context }: OperationRig, store: Partial<OperationRig['context']['store']> = {}) {
  const app = Fastify();
  onTestFinished(() => app.close());
  // An injected request has no socket that the timer for a refused upload could close, so timers never run.
  const clock = createVirtualClock(0);
  addListFiles(app, {
    basePath: '',
    clock,
    http: createTestServer({ clock }),
    createContext: () => ({ ...context, store: { ...context.store, ...store } }),
    onChange: () => undefined,
    admit: () => Promise.resolve({ kind: 'authenticated', actor: 'page', scope: 'all' }),
  });
  return app;
}

test('HEAD of an export has no body and reads at most one page of the list', async () => {
  const rig = await createOperationRig();
  const createEntry = (n: number) => ({ address: `u${n}@example.com`, reason: 'manual' as const, source: null, at: 1 });
  await rig.store.addSuppressions(
    'acme',
    Array.from({ length: 5_001 }, (_, index) => createEntry(index)),
  );
  let readPageCount = 0;
  const app = createApp(rig, {
    listSuppressions(...args) {
      readPageCount += 1;
      return rig.store.listSuppressions(...args);
    },
  });
  const request = async (method: 'GET' | 'HEAD') => {
    const { statusCode, headers, body } = await app.inject({ method, url: EXPORT_PATH });
    return [statusCode, headers['content-type'], headers['content-length'], body.split('\n').length, readPageCount];
  };
  expect(await request('HEAD')).toEqual([200, 'text/csv; charset=utf-8', undefined, 1, 1]);
  expect(await request('GET')).toEqual([200, 'text/csv; charset=utf-8', undefined, 5_003, 3]);
});

test('the last line of an import that fails with a store error contains the error and its code', async () => {
  const rig = await createOperationRig();
  const app = createApp(rig, { importSuppressions: () => Promise.reject(new StoreError('the disk is full.')) });
  const { statusCode, body } = await app.inject({
    method: 'POST',
    url: IMPORT_PATH,
    headers: CSV,
    body: 'ada@example.com\n',
  });
  expect([statusCode, JSON.parse(body.trim().split('\n').at(-1) ?? '')]).toEqual([
    200,
    { result: 'error', code: 'unavailable', message: 'the import of the upload stopped: the disk is full.' },
  ]);
});
