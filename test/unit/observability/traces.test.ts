/**
 * Tests traces. Each message has one trace with the original times, and any node can create the trace.
 * Without an SDK there are no traces.
 */
import { context, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import type { StateChange } from '../../../src/model/message.ts';
import { createTraces } from '../../../src/observability/traces.ts';
import { createAttempt, createMessage } from '../../rig/messages.ts';

afterEach(() => {
  trace.disable();
  context.disable();
});

function recordSpans(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  return exporter;
}

const DELIVERED_CHANGE: StateChange = {
  to: 'delivered',
  dueAt: null,
  suppress: null,
  event: { at: 1, verb: 'delivered', by: 'node', detail: null, failure: null, attempt: null },
};
const toMs = ([seconds, nanos]: readonly [number, number]) => seconds * 1_000 + nanos / 1e6;

test('no trace is created without an SDK', () => {
  expect(createTraces('1')).toBeNull();
});

test('request, attempts and reports of a message form one trace, whose id is the id of the message', () => {
  const exporter = recordSpans();
  const traces = createTraces('1.2.3');
  exporter.reset();
  const at = Date.now();
  const message = createMessage({ acceptedAt: at });
  const leasedMessage = { ...message, attempts: 1, lease: { owner: 'node', until: at + 1 } };
  const reply = { stage: 'rcpt', code: 451, enhanced: '4.3.2', text: 'later' } as const;
  const deferredAttempt = createAttempt({ kind: 'deferred', reply, reason: 'unavailable', scope: 'message' });
  traces?.traceAcceptance(message, 'sending', at, 12);
  traces?.traceAttempt(
    leasedMessage,
    { ...deferredAttempt, startedAt: at + 5, tookMs: 30 },
    { ...DELIVERED_CHANGE, to: 'queued' },
  );
  traces?.traceAttempt(
    { ...leasedMessage, attempts: 2 },
    { ...createAttempt(), startedAt: at + 60_000, tookMs: 40 },
    DELIVERED_CHANGE,
  );
  traces?.traceReport(message.id, 'bounced', at + 90_000);
  const spans = exporter.getFinishedSpans();
  expect(spans.map(({ name }) => name)).toEqual(['send-mail', 'attempt', 'attempt', 'feedback']);
  expect(new Set(spans.map((span) => span.spanContext().traceId))).toEqual(new Set([message.id.replaceAll('-', '')]));
  expect(
    spans.map(({ startTime, endTime }) => [Math.round(toMs(startTime) - at), Math.round(toMs(endTime) - at)]),
  ).toEqual([
    [-12, 0],
    [5, 35],
    [60_000, 60_040],
    [90_000, 90_000],
  ]);
  expect(spans[1]).toMatchObject({
    status: { code: 2, message: 'later' },
    attributes: { 'smtp.reply.code': 451, 'postrider.outcome': 'deferred', 'postrider.state': 'queued' },
  });
  expect(spans[3]?.attributes).toMatchObject({ 'postrider.feedback': 'bounced', 'postrider.message.id': message.id });
  expect(JSON.stringify(spans.map(({ attributes }) => attributes))).not.toContain(message.to);
});
