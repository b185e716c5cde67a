/**
 * Creates the traces. Each message has one trace, to which all nodes add spans: one for the request, one for each
 * attempt and one for each feedback report. Spans are created through `@opentelemetry/api` after the event, with the
 * original times, so that no operation waits for them. Without an SDK, traces have no cost.
 *
 * The trace id is the id of the message without hyphens (both have 128 bits), so the store does not need to contain a
 * trace context.
 */

import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { EventOf, Handlers } from '../model/events.ts';
import type { LeasedMessage, NewMessage, StateChange } from '../model/message.ts';
import { RECORDED_EVENTS, type SettledEventType } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';

export interface Traces {
  traceAcceptance(message: Pick<NewMessage, 'id' | 'accountId'>, state: string, at: number, tookMs: number): void;
  traceAttempt(
    message: Pick<LeasedMessage, 'id' | 'accountId' | 'attempts'>,
    attempt: Attempt,
    change: Pick<StateChange, 'to'>,
  ): void;
  /** Records a feedback report that changed a message or its history. `type` is the type of the history entry. */
  traceReport(id: string, type: string, at: number): void;
}

const TRACER_NAME = 'postrider';

/** Creates the traces. Returns null if no SDK is registered at the start. */
export function createTraces(version: string): Traces | null {
  const tracer = trace.getTracer(TRACER_NAME, version);
  const probeSpan = tracer.startSpan('postrider.start');
  const isRecording = probeSpan.isRecording();
  probeSpan.end();
  if (!isRecording) return null;

  return {
    traceAcceptance({ id, accountId }, state, at, tookMs) {
      const span = tracer.startSpan(
        'send-mail',
        {
          kind: SpanKind.SERVER,
          startTime: at - tookMs,
          attributes: createMessageAttributes(id, {
            'postrider.account.id': accountId,
            'postrider.state': state,
            'http.response.status_code': 201,
          }),
        },
        createMessageContext(id),
      );
      span.end(at);
    },
    traceAttempt({ id, accountId, attempts }, { outcome, startedAt, tookMs, remote }, change) {
      const { code, enhanced, text } = outcome.reply;
      const span = tracer.startSpan(
        'attempt',
        {
          kind: SpanKind.CLIENT,
          startTime: startedAt,
          attributes: createMessageAttributes(id, {
            'postrider.account.id': accountId,
            'postrider.attempt': attempts,
            'postrider.outcome': outcome.kind,
            'postrider.state': change.to,
            'server.address': remote,
            'smtp.reply.code': code,
            'smtp.reply.enhanced_code': enhanced,
          }),
        },
        createMessageContext(id),
      );
      if (outcome.kind !== 'delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: text });
      span.end(startedAt + tookMs);
    },
    traceReport(id, type, at) {
      const span = tracer.startSpan(
        'feedback',
        {
          kind: SpanKind.CONSUMER,
          startTime: at,
          attributes: createMessageAttributes(id, { 'postrider.feedback': type }),
        },
        createMessageContext(id),
      );
      span.end(at);
    },
  };
}

/** Returns the attributes of a span. Null attributes are omitted. */
function createMessageAttributes(
  id: string,
  nullableAttributes: Readonly<Record<string, string | number | null>>,
): Attributes {
  const attributes: Attributes = { 'postrider.message.id': id };
  for (const [name, value] of Object.entries(nullableAttributes)) if (value !== null) attributes[name] = value;
  return attributes;
}

/** Returns the parent context of every span of a message. The context represents the message, which has no span. */
function createMessageContext(id: string) {
  const traceId = id.replaceAll('-', '');
  // A span id of zero is invalid. The last 64 bits of a message id begin with the variant bits of the UUID, so they are
  // never zero.
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

/** Returns the event handlers of the traces. */
export function createTraceHandlers(traces: Traces): Handlers {
  const traceSettlement = (event: EventOf<SettledEventType>) => {
    const { type, id, accountId, attempts, attempt, reportedBy, at } = event;
    const { verb, state: to } = RECORDED_EVENTS[type];
    if (reportedBy !== null) traces.traceReport(id, verb, at);
    if (attempt !== null && accountId !== null && attempts !== null)
      traces.traceAttempt({ id, accountId, attempts }, attempt, { to });
  };
  return {
    'message.accepted': (event) => traces.traceAcceptance(event, event.state, event.at, event.tookMs),
    'message.delivered': traceSettlement,
    'message.deferred': traceSettlement,
    'message.bounced': traceSettlement,
    'message.complained': traceSettlement,
    'message.expired': traceSettlement,
    'message.uncertain': traceSettlement,
    'message.confirmed': ({ id, at }) => traces.traceReport(id, 'confirmed', at),
    'message.reported': ({ id, verb, at }) => traces.traceReport(id, verb, at),
  };
}
