import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { readBody } from '../../../../src/feedback/provider/body.ts';
import { createBodyReader } from '../../../../src/feedback/provider/body-reader.ts';
import { unpackReports } from '../../../../src/model/feedback.ts';
import type { ProviderRequest } from '../../../../src/providers/event-reader.ts';
import { getFormat } from '../../../rig/event-format.ts';

const SPARKPOST_EVENTS = getFormat('sparkpost');
const BODY_CONTEXT = { provider: 'sparkpost', now: 1_800_000_000_000, usesReferences: true } as const;

function createReader() {
  const faults: string[] = [];
  const reader = createBodyReader({
    clock: systemClock,
    prepareThread: () => undefined,
    onError: (_, error) => faults.push(String(error)),
  });
  onTestFinished(() => reader.close());
  return { reader, faults };
}

function createRequest(body: string): ProviderRequest {
  return { method: 'POST', headers: {}, url: null, body: Buffer.from(body) };
}

function formatEvents(count: number): string {
  const events = Array.from({ length: count }, (_, at) => ({
    msys: {
      message_event: {
        type: 'bounce',
        bounce_class: '10',
        event_id: String(at),
        message_id: `m${at}`,
        rcpt_to: `r${at}@example.com`,
        raw_reason: '550 5.1.1 no such user',
        timestamp: '1794242033',
      },
    },
  }));
  return JSON.stringify([...events, { msys: {} }, 7]);
}

test('the thread returns the reports of a body in the same order as the main thread', async () => {
  const { reader, faults } = createReader();
  const request = createRequest(formatEvents(600));
  const result = await reader.read(request, BODY_CONTEXT, null);
  if (result.kind !== 'read' || result.value.kind !== 'reports') throw new Error(result.kind);
  const { parts, ...counts } = result.value;
  expect(parts.length).toBeGreaterThan(1);
  expect({ ...counts, reports: parts.flatMap(unpackReports) }).toEqual(
    readBody(SPARKPOST_EVENTS, request, BODY_CONTEXT),
  );
  expect(counts).toEqual({ kind: 'reports', keyReports: [], ignored: 1, broken: 1 });
  expect(faults).toEqual([]);
});
