/**
 * Creates the traces. Each message has one trace, with spans for the request, for each attempt and for each feedback
 * report, on any node. Spans are created through `@opentelemetry/api` after the event, with the original times, so that
 * no operation waits for them. Without an SDK, traces have no cost.
 *
 * The trace id is the id of the message without hyphens (both have 128 bits), so the store does not have to carry a
 * trace context.
 */

import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import type { EventOf } from '../model/events.ts';
import type { LeasedMessage, NewMessage, StateChange } from '../model/message.ts';
import { RECORDED_EVENTS, type SettledEventType } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import type { Handlers } from './events.ts';

export interface Traces {
  accepted(message: Pick<NewMessage, 'id' | 'accountId'>, state: string, at: number, tookMs: number): void;
  attempted(
    message: Pick<LeasedMessage, 'id' | 'accountId' | 'attempts'>,
    attempt: Attempt,
    change: Pick<StateChange, 'to'>,
  ): void;
  /** Records a feedback report that changed a message or its history. `type` is the type of the history entry. */
  reported(id: string, type: string, at: number): void;
}

const TRACER_NAME = 'postrider';

/** Creates the traces. Returns null if no SDK is registered at the start. */
export function createTraces(version: string): Traces | null {
  const tracer = trace.getTracer(TRACER_NAME, version);
  const probe = tracer.startSpan('postrider.start');
  const recording = probe.isRecording();
  probe.end();
  if (!recording) return null;

  return {
    accepted({ id, accountId }, state, at, tookMs) {
      const span = tracer.startSpan(
        'send-mail',
        {
          kind: SpanKind.SERVER,
          startTime: at - tookMs,
          attributes: messageAttributes(id, {
            'postrider.account.id': accountId,
            'postrider.state': state,
            'http.response.status_code': 201,
          }),
        },
        messageContext(id),
      );
      span.end(at);
    },
    attempted({ id, accountId, attempts }, { outcome, startedAt, tookMs, remote }, change) {
      const { code, enhanced, text } = outcome.reply;
      const span = tracer.startSpan(
        'attempt',
        {
          kind: SpanKind.CLIENT,
          startTime: startedAt,
          attributes: messageAttributes(id, {
            'postrider.account.id': accountId,
            'postrider.attempt': attempts,
            'postrider.outcome': outcome.kind,
            'postrider.state': change.to,
            'server.address': remote,
            'smtp.reply.code': code,
            'smtp.reply.enhanced_code': enhanced,
          }),
        },
        messageContext(id),
      );
      if (outcome.kind !== 'delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: text });
      span.end(startedAt + tookMs);
    },
    reported(id, type, at) {
      const span = tracer.startSpan(
        'feedback',
        { kind: SpanKind.CONSUMER, startTime: at, attributes: messageAttributes(id, { 'postrider.feedback': type }) },
        messageContext(id),
      );
      span.end(at);
    },
  };
}

/** Returns the attributes of a span. Omits attributes that are null. */
function messageAttributes(id: string, known: Readonly<Record<string, string | number | null>>): Attributes {
  const attributes: Attributes = { 'postrider.message.id': id };
  for (const [name, value] of Object.entries(known)) if (value !== null) attributes[name] = value;
  return attributes;
}

/** Returns the parent context of every span of a message. The context represents the message, which has no span. */
function messageContext(id: string) {
  const traceId = id.replaceAll('-', '');
  // The last 64 bits are random, so the span id is not zero (zero is invalid).
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

/** Returns the event handlers of the traces. */
export function traceHandlers(traces: Traces): Handlers {
  const settled = (event: EventOf<SettledEventType>) => {
    const { type, id, accountId, attempts, attempt, reportedBy, at } = event;
    const { verb, state: to } = RECORDED_EVENTS[type];
    if (reportedBy !== null) traces.reported(id, verb, at);
    if (attempt !== null && accountId !== null && attempts !== null)
      traces.attempted({ id, accountId, attempts }, attempt, { to });
  };
  return {
    'message.accepted': (event) => traces.accepted(event, event.state, event.at, event.tookMs),
    'message.delivered': settled,
    'message.deferred': settled,
    'message.bounced': settled,
    'message.complained': settled,
    'message.expired': settled,
    'message.uncertain': settled,
    'message.reported': ({ id, verb, at }) => traces.reported(id, verb, at),
  };
}
