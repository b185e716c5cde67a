/**
 * The log as a subscriber: the line of each event. Every event of the union stands here; null says that it has no line. Lines of
 * a level that is off are not subscribed to.
 */
import type { EventOf, EventType } from '../model/events.ts';
import { SIGNING } from '../model/runtime-status.ts';
import type { Handlers } from './events.ts';
import type { Log, LogFields } from './log.ts';

type Lines = { readonly [Type in EventType]: ((event: EventOf<Type>) => void) | null };

/** An event that an attempt or a report caused. */
type Ended = EventOf<
  | 'message.delivered'
  | 'message.deferred'
  | 'message.bounced'
  | 'message.complained'
  | 'message.expired'
  | 'message.uncertain'
>;

export function logLines(log: Log, node: string): Handlers {
  const lines: Lines = {
    'message.accepted': ({ id, accountId, keyId, to, state, tookMs }) =>
      log.accepted({ id, accountId, keyId, to, state, tookMs }),
    'message.replayed': ({ id, accountId, keyId, tookMs }) => log.replayed({ id, accountId, keyId, tookMs }),
    'message.suppressed': ({ id, accountId, to }) => log.suppressed({ id, accountId, to }),
    'message.delivered': (event) => log.delivered(endedFields(event)),
    'message.deferred': (event) => log.deferred({ ...endedFields(event), dueAt: event.dueAt }),
    'message.bounced': (event) => log.bounced(endedFields(event)),
    'message.complained': (event) => log.complained(endedFields(event)),
    'message.expired': (event) => log.expired(endedFields(event)),
    'message.uncertain': (event) => log.uncertain(endedFields(event)),
    'message.cancelled': null,
    'message.retried': null,
    'message.reported': ({ id, verb, reportedBy }) => log.noted({ id, detail: verb, reason: `feedback:${reportedBy}` }),
    'message.unsigned': ({ error }) => failed(SIGNING, error),
    'attempt.ended': null,
    'attempt.alarming': (event) =>
      log.warned({
        ...attemptFields(event, event.attempt),
        reason: event.reason,
        detail: 'the next hop refuses this service itself, not this message: an operator has to look',
      }),
    'attempt.unrecorded': ({ id }) =>
      log.warned({ id, detail: 'the lease was lost; what came of the attempt was not recorded' }),
    'request.refused': ({ code, accountId, keyId }) => log.refused({ reason: code, accountId, keyId }),
    'request.fields-ignored': null,
    'connection.dropped': null,
    'certificate.renewed': () => log.reloaded({ detail: 'TLS certificate' }),
    'certificate.refused': ({ fault }) => log.warned({ detail: 'TLS certificate', error: fault }),
    'report.repeated': null,
    'report.foreign': null,
    'report.kept': ({ feedbackId, reason, summary }) =>
      log.kept({ detail: `${summary} (\`postrider feedback show ${feedbackId}\`)`, reason }),
    'report.refused': null,
    'report.subscription': ({ detail }) => log.reloaded({ detail }),
    'account.changed': null,
    'account.locked': ({ accountId, reason }) =>
      log.warned({ node, accountId, detail: 'the account is locked', reason }),
    'account.warned': ({ accountId, reason }) =>
      log.warned({ node, accountId, detail: 'the account is half way to being locked', reason }),
    'domain.changed': null,
    'domain.authenticated': ({ domain }) => log.reloaded({ node, domain, detail: 'the domain is authenticated' }),
    'domain.recovered': ({ domain }) => log.reloaded({ node, domain, detail: 'the domain has its DNS records again' }),
    'domain.failing': ({ domain }) =>
      log.warned({
        node,
        domain,
        detail: 'the domain has lost its DNS records; its mail is refused once that has lasted 72 hours',
      }),
    'domain.blocked': ({ domain }) =>
      log.warned({
        node,
        domain,
        detail: 'the domain has been without its DNS records for 72 hours; its mail is refused',
      }),
    'operator.changed': null,
    'node.started': ({ transport, url }) => log.started({ node, transport, url }),
    'node.draining': () => log.draining({ node }),
    'api.started': null,
    'node.leases-recovered': ({ count }) => log.recovered({ node, count }),
    'node.warning': ({ detail }) => log.warned({ node, detail }),
    'node.fault': ({ what, error }) => failed(what, error),
    'store.committed': null,
    'store.files-lost': ({ reason, remedy }) =>
      log.failed({ node, reason: 'database-files', detail: `${reason}. Nothing is accepted.`, error: remedy }),
    'store.files-back': () =>
      log.resumed({ node, detail: 'the files of the database are those that were opened again' }),
    'breaker.changed': ({ state, retryAt }) => {
      if (state === 'open') log.paused({ node, until: retryAt });
      else if (state === 'closed') log.resumed({ node });
    },
  };

  function failed(what: string, error: unknown): void {
    log.failed({ node, detail: what, error: error instanceof Error ? error.message : String(error) });
  }

  const quiet: Partial<Record<EventType, boolean>> = {
    'message.accepted': !log.enabled('accepted'),
    'message.replayed': !log.enabled('replayed'),
    'message.delivered': !log.enabled('delivered'),
    'message.deferred': !log.enabled('deferred'),
    'request.refused': !log.enabled('refused'),
  };
  return Object.fromEntries(
    Object.entries(lines).filter(([type, line]) => line !== null && quiet[type as EventType] !== true),
  );
}

function attemptFields(
  { id, accountId, to, attempts }: Pick<Ended, 'id' | 'accountId' | 'to' | 'attempts'>,
  { outcome, remote, tookMs }: NonNullable<Ended['attempt']>,
): LogFields {
  const { code, enhanced, text } = outcome.reply;
  return { id, accountId, to, attempts, remote, code, enhanced, text, tookMs };
}

/** What a line says of a message whose state changed: of the attempt, or of the report, or only which message it is. */
function endedFields(event: Ended): LogFields {
  const { id, accountId, to, attempts, attempt, reportedBy, detail, type } = event;
  if (attempt !== null) {
    const fields = attemptFields(event, attempt);
    if (type === 'message.delivered') return fields;
    return { ...fields, reason: 'reason' in attempt.outcome ? attempt.outcome.reason : attempt.outcome.kind };
  }
  if (reportedBy !== null) return { id, accountId, to, detail, reason: `feedback:${reportedBy}` };
  if (type !== 'message.expired') return { id, accountId, to, detail };
  // The sweep knows the id alone.
  return accountId === null ? { id } : { id, accountId, to, attempts };
}
