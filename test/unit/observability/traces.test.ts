import { context, trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import { createEvents } from '../../../src/observability/events.ts';
import { createTraceHandlers } from '../../../src/observability/traces.ts';
import { createAttempt } from '../../rig/messages.ts';

afterEach(() => {
  trace.disable();
  context.disable();
});

function recordSpans(): InMemorySpanExporter {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  return exporter;
}

const toMs = ([seconds, nanos]: readonly [number, number]) => seconds * 1_000 + nanos / 1e6;

test('no trace is created without an SDK', () => {
  expect(createTraceHandlers('1')).toBeNull();
});

test('request, attempts and reports of a message form one trace, whose id is the id of the message', () => {
  const exporter = recordSpans();
  const { publish, subscribe } = createEvents({ now: Date.now });
  subscribe(createTraceHandlers('1.2.3') ?? {});
  exporter.reset();
  const at = Date.now();
  const message = { id: '01890a5d-ac96-774b-bcce-b302099a8057', accountId: 1, to: 'ada@example.com' };
  const from = 'shop@example.org';
  const settled = {
    ...{ ...message, from, acceptedAt: at, dueAt: null, reportedBy: null, detail: null, failure: null },
    ...{ suppresses: false, at: at + 35 },
  };
  const reply = { stage: 'rcpt', code: 451, enhanced: '4.3.2', text: 'later' } as const;
  const deferred = createAttempt({ kind: 'deferred', reply, reason: 'unavailable', scope: 'message' });
  publish({ type: 'message.accepted', ...message, from, keyId: 1, state: 'sending', acceptedAt: at, at, tookMs: 12 });
  const [first, second] = [
    { ...deferred, startedAt: at + 5, tookMs: 30 },
    { ...createAttempt(), startedAt: at + 60_000, tookMs: 40 },
  ];
  publish({ type: 'message.deferred', ...settled, attempts: 1, attempt: first });
  publish({ type: 'message.delivered', ...settled, attempts: 2, attempt: second });
  const report = { attempts: null, attempt: null, reportedBy: 'smtp', at: at + 90_000 } as const;
  publish({ type: 'message.bounced', ...settled, ...report });
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
