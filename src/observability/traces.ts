/**
 * Each message has one trace, to which all nodes add spans after the events, with the original times. Its id is the id
 * of the message without hyphens (both have 128 bits), so the store contains no trace context.
 */
import { ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { EventOf, Handlers } from '../model/events.ts';
import { RECORDED_EVENTS, type SettledEventType } from '../model/message.ts';

/** Returns the event handlers of the traces, or null if no SDK is registered, so that traces cost nothing. */
export function createTraceHandlers(version: string): Handlers | null {
  const tracer = trace.getTracer('postrider', version);
  const probeSpan = tracer.startSpan('postrider.start');
  const isRecording = probeSpan.isRecording();
  probeSpan.end();
  if (!isRecording) return null;

  function startSpan(
    name: string,
    kind: SpanKind,
    id: string,
    startTime: number,
    attributes: Readonly<Record<string, string | number | null>>,
  ): Span {
    const set = Object.entries(attributes).filter((entry): entry is [string, string | number] => entry[1] !== null);
    const allAttributes = { 'postrider.message.id': id, ...Object.fromEntries(set) };
    return tracer.startSpan(name, { kind, startTime, attributes: allAttributes }, createMessageContext(id));
  }

  const traceReport = (id: string, type: string, at: number) =>
    startSpan('feedback', SpanKind.CONSUMER, id, at, { 'postrider.feedback': type }).end(at);

  const traceSettlement = (event: EventOf<SettledEventType>) => {
    const { type, id, accountId, attempts, attempt, reportedBy, at } = event;
    const { verb, state } = RECORDED_EVENTS[type];
    if (reportedBy !== null) traceReport(id, verb, at);
    if (attempt === null || accountId === null || attempts === null) return;
    const { outcome, startedAt, tookMs, remote } = attempt;
    const span = startSpan('attempt', SpanKind.CLIENT, id, startedAt, {
      'postrider.account.id': accountId,
      'postrider.attempt': attempts,
      'postrider.outcome': outcome.kind,
      'postrider.state': state,
      'server.address': remote,
      'smtp.reply.code': outcome.reply.code,
      'smtp.reply.enhanced_code': outcome.reply.enhanced,
    });
    if (outcome.kind !== 'delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.reply.text });
    span.end(startedAt + tookMs);
  };

  return {
    'message.accepted': ({ id, accountId, state, at, tookMs }) =>
      startSpan('send-mail', SpanKind.SERVER, id, at - tookMs, {
        'postrider.account.id': accountId,
        'postrider.state': state,
        'http.response.status_code': 201,
      }).end(at),
    'message.delivered': traceSettlement,
    'message.deferred': traceSettlement,
    'message.bounced': traceSettlement,
    'message.complained': traceSettlement,
    'message.expired': traceSettlement,
    'message.uncertain': traceSettlement,
    'message.confirmed': ({ id, at }) => traceReport(id, 'confirmed', at),
    'message.reported': ({ id, verb, at }) => traceReport(id, verb, at),
  };
}

/** Returns the parent context of every span of a message. The context represents the message, which has no span. */
function createMessageContext(id: string) {
  const traceId = id.replaceAll('-', '');
  // A span id of zero is invalid. The last 64 bits of a message id begin with the variant bits of the UUID, so they are
  // never zero.
  const spanId = traceId.slice(16);
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true });
}
