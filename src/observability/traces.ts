/**
 * Traces: one for each mail request, from the request that brought it to the reply of the next hop and to what comes back days
 * later, whichever nodes had to do with it. Written through `@opentelemetry/api` after the fact, with the times at which things
 * happened, so that nothing on the way waits for it and nothing is paid where no SDK is registered.
 *
 * The trace's id is the mail request's own id without its hyphens (both have 128 bits): who knows the one knows the other, and
 * no context has to travel through the store.
 */

import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { type EventOf, RECORDED, type SettledType } from '../model/events.ts';
import type { Change, LeasedMail, NewMail } from '../model/message.ts';
import type { Attempt } from '../model/outcome.ts';
import type { Handlers } from './events.ts';

export interface Traces {
  accepted(mail: Pick<NewMail, 'id' | 'accountId'>, state: string, at: number, tookMs: number): void;
  attempted(
    mail: Pick<LeasedMail, 'id' | 'accountId' | 'attempts'>,
    attempt: Attempt,
    change: Pick<Change, 'to'>,
  ): void;
  /** A report that changed a message, or stands in its history, by the history's word. */
  heard(id: string, verb: string, at: number): void;
}

const NAME = 'postrider';

/** Null where no SDK is registered at this moment: then nothing of this is ever called. */
export function createTraces(version: string): Traces | null {
  const tracer = trace.getTracer(NAME, version);
  const probe = tracer.startSpan('postrider.start');
  const listening = probe.isRecording();
  probe.end();
  if (!listening) return null;

  return {
    accepted({ id, accountId }, state, at, tookMs) {
      const span = tracer.startSpan(
        'send-mail',
        {
          kind: SpanKind.SERVER,
          startTime: at - tookMs,
          attributes: attributesOf(id, {
            'postrider.account.id': accountId,
            'postrider.state': state,
            'http.response.status_code': 201,
          }),
        },
        contextOf(id),
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
          attributes: attributesOf(id, {
            'postrider.account.id': accountId,
            'postrider.attempt': attempts,
            'postrider.outcome': outcome.kind,
            'postrider.state': change.to,
            'server.address': remote,
            'smtp.reply.code': code,
            'smtp.reply.enhanced_code': enhanced,
          }),
        },
        contextOf(id),
      );
      if (outcome.kind !== 'delivered') span.setStatus({ code: SpanStatusCode.ERROR, message: text });
      span.end(startedAt + tookMs);
    },
    heard(id, verb, at) {
      const span = tracer.startSpan(
        'feedback',
        { kind: SpanKind.CONSUMER, startTime: at, attributes: attributesOf(id, { 'postrider.feedback': verb }) },
        contextOf(id),
      );
      span.end(at);
    },
  };
}

/** Without what is not known. */
function attributesOf(id: string, known: Readonly<Record<string, string | number | null>>): Attributes {
  const attributes: Attributes = { 'postrider.mail_request.id': id };
  for (const [name, value] of Object.entries(known)) if (value !== null) attributes[name] = value;
  return attributes;
}

/** A parent that no span is: the mail request itself. */
function contextOf(id: string) {
  const traceId = id.replaceAll('-', '');
  // The last 64 bits are random, so never the zeros that would be no span's id.
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: traceId.slice(16),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

/** The traces as a subscriber. */
export function traceHandlers(traces: Traces): Handlers {
  const ended = (event: EventOf<SettledType>) => {
    const { type, id, accountId, attempts, attempt, reportedBy, at } = event;
    const { verb, state: to } = RECORDED[type];
    if (reportedBy !== null) traces.heard(id, verb, at);
    if (attempt !== null && accountId !== null && attempts !== null)
      traces.attempted({ id, accountId, attempts }, attempt, { to });
  };
  return {
    'message.accepted': (event) => traces.accepted(event, event.state, event.at, event.tookMs),
    'message.delivered': ended,
    'message.deferred': ended,
    'message.bounced': ended,
    'message.complained': ended,
    'message.expired': ended,
    'message.uncertain': ended,
    'message.reported': ({ id, verb, at }) => traces.heard(id, verb, at),
  };
}
