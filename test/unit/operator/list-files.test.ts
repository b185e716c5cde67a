/** Suppression lists as files over HTTP. */
import Fastify from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { BodyTimeouts } from '../../../src/operator/body-timeouts.ts';
import { addListFiles } from '../../../src/operator/list-files.ts';
import { StoreError } from '../../../src/store/error.ts';
import { connectionsFor } from '../../rig/connections.ts';
import { type OperationRig, operationRig } from '../operations/operation-rig.ts';

const EXPORT = '/accounts/acme/suppressions/export';
const IMPORT = '/accounts/acme/suppressions/import';
const CSV = { 'Content-Type': 'text/csv' };

/** The routes over the store of `rig`, some of whose methods are replaced. */
function routesOver({ context }: OperationRig, store: Partial<OperationRig['context']['store']> = {}) {
  const app = Fastify();
  onTestFinished(() => app.close());
  addListFiles(app, {
    base: '',
    clock: systemClock,
    bodyTimeouts: new BodyTimeouts(systemClock, connectionsFor()),
    contextFor: () => ({ ...context, store: { ...context.store, ...store } }),
    onChange: () => undefined,
    admit: () => Promise.resolve({ kind: 'authenticated', actor: 'page' }),
  });
  return app;
}

test('HEAD of an export has no body and reads at most one page of the list', async () => {
  const rig = await operationRig();
  const entry = (n: number) => ({ address: `u${n}@example.com`, reason: 'manual' as const, source: null, at: 1 });
  await rig.store.addSuppressions(
    'acme',
    Array.from({ length: 5_001 }, (_, n) => entry(n)),
  );
  let read = 0;
  const app = routesOver(rig, {
    listSuppressions(...given) {
      read += 1;
      return rig.store.listSuppressions(...given);
    },
  });
  const ask = async (method: 'GET' | 'HEAD') => {
    const { statusCode, headers, body } = await app.inject({ method, url: EXPORT });
    return [statusCode, headers['content-type'], headers['content-length'], body.split('\n').length, read];
  };
  expect(await ask('HEAD')).toEqual([200, 'text/csv; charset=utf-8', undefined, 1, 1]);
  expect(await ask('GET')).toEqual([200, 'text/csv; charset=utf-8', undefined, 5_003, 3]);
});

test('import and export answer 503 with Retry-After while the store does not answer', async () => {
  const rig = await operationRig();
  const app = routesOver(rig, { listSuppressions: () => Promise.reject(new StoreError('no server listens there.')) });
  for (const asked of [
    { method: 'GET', url: EXPORT } as const,
    { method: 'POST', url: IMPORT, headers: CSV, body: 'ada@example.com\n' } as const,
  ]) {
    const answer = await app.inject(asked);
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5']);
    expect(answer.json()).toEqual({ result: 'error', code: 'unavailable', message: 'no server listens there.' });
  }
});

test('an import that a store error ends has the error and its code in the last line', async () => {
  const rig = await operationRig();
  const app = routesOver(rig, { importSuppressions: () => Promise.reject(new StoreError('the disk is full.')) });
  const { statusCode, body } = await app.inject({
    method: 'POST',
    url: IMPORT,
    headers: CSV,
    body: 'ada@example.com\n',
  });
  expect([statusCode, JSON.parse(body.trim().split('\n').at(-1) ?? '')]).toEqual([
    200,
    { result: 'error', code: 'unavailable', message: 'the import of the upload stopped: the disk is full.' },
  ]);
});
