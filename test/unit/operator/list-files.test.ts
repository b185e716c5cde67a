/** Suppression lists as files over HTTP. */
import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { BodyTime } from '../../../src/operator/body-time.ts';
import { addListFiles } from '../../../src/operator/list-files.ts';
import { connectionsFor } from '../../rig/connections.ts';

test('who asks only for the head of an export makes nobody read the list', async () => {
  let read = 0;
  async function* text(): AsyncGenerator<string> {
    for (const page of ['address,reason,at,source\n', 'ada@example.com,manual,,\n']) {
      read += 1;
      yield page;
    }
  }
  const app = Fastify();
  addListFiles(app, {
    base: '',
    clock: systemClock,
    files: {
      receive: () => Promise.reject(new Error('not asked for')),
      read: () => Promise.resolve({ ok: true, text: text() }),
      stop: () => Promise.resolve(),
    },
    bodyTime: new BodyTime(systemClock, connectionsFor()),
    changed: () => undefined,
    admit: () => Promise.resolve({ kind: 'known', who: 'page' }),
  });
  const ask = async (method: 'GET' | 'HEAD') => {
    const { statusCode, headers, body } = await app.inject({ method, url: '/accounts/acme/suppressions/export' });
    return [statusCode, headers['content-type'], headers['content-length'], body, read];
  };
  expect(await ask('HEAD')).toEqual([200, 'text/csv; charset=utf-8', undefined, '', 0]);
  expect((await ask('GET')).slice(3)).toEqual(['address,reason,at,source\nada@example.com,manual,,\n', 2]);
});
