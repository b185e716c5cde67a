/** Source of docs/log-events.md. Names and fields are stable: scripts and alerts depend on them. Null: not logged. */
import type { Settings } from '../config/settings.ts';
import type { EventType } from '../model/events.ts';

export type LogLevel = Settings['logLevel'];
export type LineLevel = Exclude<LogLevel, 'silent'>;

/** The content of each field. No field contains the subject or body of a message, or a credential. */
export const LOG_FIELDS = {
  id: 'the id of the message',
  accountId: 'the number of the account',
  keyId: 'the number of the API key; `key_12` has the number 12',
  node: 'the name of the node that writes the line',
  domain: 'the sending domain',
  to: 'the recipient, as `POSTRIDER_LOG_RECIPIENTS` shows it',
  state: 'the state of the message, see [states.md](states.md)',
  attemptCount: 'the number of delivery attempts up to the event',
  nextHop: 'the address of the next hop, such as `relay.example:587`',
  smtpCode: 'the SMTP reply code, such as `550`',
  enhancedCode: 'the enhanced status code, such as `5.1.1` (RFC 3463)',
  replyText: 'the reply of the next hop; untrusted text',
  returnPath: 'the return path of a sending domain',
  reason: 'a code, or the reason why an account was locked or received a warning, or why a report was not understood',
  class: 'the class of a failed delivery: `hard`, `soft` or `block`',
  category: 'the cause of a failed delivery, see [feedback.md](feedback.md#classes-and-categories-of-failures)',
  reportSource: 'the channel through which the report arrived: `smtp`, `sns`, `sqs` or the name of a provider',
  reportType: 'the type of the report, such as `soft-bounced`',
  feedbackId: 'the number of the stored report, for `postrider feedback show ID`',
  durationMs: 'a duration in milliseconds',
  retryAt: 'the time at which the next attempt is due',
  webhookId: 'the id of the endpoint',
  deliveryId: 'the id of the delivery, which is the header `webhook-id`',
  eventType: 'the type of the event of a webhook, such as `message.bounced`',
  notificationId: 'the id of the notification to operators, which is the header `webhook-id` of its requests',
  target: 'the target of a notification: `mailto:ADDRESS`, or the origin of a URL',
  beganCount: 'the number of problems that began',
  endedCount: 'the number of problems that ended',
  httpStatus: 'the HTTP status of the response of an endpoint',
  count: 'a number of messages or lines',
  route: 'the name of the route, such as `default`',
  transport: 'the kind of the transport, such as `smtp`',
  url: 'the address of the public listener',
  operation: 'the operation that failed',
  names: 'the names of environment variables, separated by commas',
  detail: 'a description for the operator, in one sentence',
  remedy: 'the remedy for the operator',
  error: 'the text of the error',
} as const;

export type LogField = keyof typeof LOG_FIELDS;

export interface LogEvent {
  readonly level: LineLevel;
  /** The fields of a line, in the order of the line. A field without a value is omitted or null. */
  readonly fields: readonly LogField[];
  readonly meaning: string;
}

const WEBHOOK_FIELDS = ['node', 'webhookId', 'deliveryId', 'eventType', 'httpStatus', 'durationMs'] as const;
const REPLY_FIELDS = ['nextHop', 'smtpCode', 'enhancedCode', 'replyText', 'durationMs'] as const;
const ATTEMPT_FIELDS = ['id', 'accountId', 'to', 'attemptCount', ...REPLY_FIELDS] as const;
const SETTLED_FIELDS = [...ATTEMPT_FIELDS, 'reason', 'reportSource', 'detail'] as const;
const FAILED_FIELDS = [...SETTLED_FIELDS, 'class', 'category'] as const;

function at(level: LineLevel) {
  return <const Fields extends readonly LogField[]>(fields: Fields, meaning: string) => ({ level, fields, meaning });
}
const [debug, info, warn, error] = [at('debug'), at('info'), at('warn'), at('error')];

export const LOG_EVENTS = {
  'message.accepted': debug(
    ['id', 'accountId', 'keyId', 'to', 'state', 'durationMs'],
    'The message is stored, and the client receives a 201.',
  ),
  'message.replayed': debug(
    ['id', 'accountId', 'keyId', 'durationMs'],
    'A request repeated an idempotency key and received the answer to the first request.',
  ),
  'message.suppressed': info(
    ['id', 'accountId', 'to'],
    'The recipient is on a suppression list. The message is not sent.',
  ),
  'message.delivered': info(ATTEMPT_FIELDS, 'The next hop accepted the message.'),
  'message.deferred': info(
    [...FAILED_FIELDS, 'retryAt'],
    'The attempt failed temporarily. The next attempt is due at `retryAt`.',
  ),
  'message.bounced': info(
    FAILED_FIELDS,
    'Delivery failed permanently: the next hop refused the message, or an asynchronous bounce reported the failure.',
  ),
  'message.complained': info(SETTLED_FIELDS, 'The recipient reported the message as spam.'),
  'message.expired': info(FAILED_FIELDS, 'The message reached its maximum age before it was delivered.'),
  'message.uncertain': warn(
    SETTLED_FIELDS,
    'The reply to the final dot was lost. The message is not sent again unless an operator retries it.',
  ),
  'message.confirmed': info(
    ['id', 'accountId', 'to', 'durationMs', 'reportSource', 'detail'],
    'The provider reported that it delivered the message. `durationMs` is the time since acceptance. The state does not change.',
  ),
  'message.cancelled': null,
  'message.retried': null,
  'message.reported': info(
    ['id', 'reportType', 'reportSource', 'class', 'category'],
    'A report was added to the history of a message. The state did not change.',
  ),
  'message.signing_failed': error(['node', 'error'], 'A message could not be signed. The message is deferred.'),
  'attempt.ended': null,
  'attempt.alarm_raised': warn(
    [...ATTEMPT_FIELDS, 'reason', 'detail'],
    'The next hop refuses this service, not only this message. An operator must act.',
  ),
  'node.lease_lost': warn(
    ['node', 'id', 'accountId', 'to', 'attemptCount'],
    'The lease was lost during an attempt. The outcome of the attempt was not recorded.',
  ),
  'request.refused': debug(
    ['reason', 'accountId', 'keyId'],
    'A request was refused. `reason` is a code of [errors.md](errors.md).',
  ),
  'request.fields_ignored': null,
  'connection.dropped': null,
  'certificate.reloaded': info(['node'], 'The TLS certificate was reloaded and is in use.'),
  'certificate.refused': warn(
    ['node', 'error'],
    'The new TLS certificate cannot be used. The previous certificate remains in use.',
  ),
  'report.repeated': null,
  'report.unrelated': null,
  'report.not_understood': warn(
    ['feedbackId', 'reason', 'detail'],
    'A report was not understood, or it names no known message. `postrider feedback show ID` shows the report.',
  ),
  'report.refused': null,
  'subscription.changed': info(
    ['node', 'detail'],
    'The subscription to an SNS topic of Amazon SES was confirmed or cancelled.',
  ),
  'account.changed': null,
  'account.locked': warn(
    ['node', 'accountId', 'reason'],
    'The account is locked. Requests of the account are refused, and its messages wait.',
  ),
  'account.warned': warn(
    ['node', 'accountId', 'reason'],
    'The account has reached half of a threshold at which it is locked.',
  ),
  'domain.changed': null,
  'domain.authenticated': info(
    ['node', 'domain'],
    'The DKIM record of the domain was found. Messages from the domain are accepted.',
  ),
  'domain.recovered': info(['node', 'domain'], 'The DKIM record of a failing domain was found again.'),
  'domain.failing': warn(
    ['node', 'domain'],
    'The DKIM record of the domain is missing or has another value. After 72 hours messages from the domain are refused.',
  ),
  'domain.blocked': warn(
    ['node', 'domain'],
    'The DKIM record of the domain has been missing or has had another value for 72 hours. Messages from the domain are refused.',
  ),
  'domain.return_path_verified': info(
    ['node', 'domain', 'returnPath'],
    'The records of the return path of the domain were found. Messages from the domain use the return path.',
  ),
  'domain.return_path_failing': warn(
    ['node', 'domain', 'returnPath'],
    'A record of the return path of the domain is missing or has another value. Messages from the domain use POSTRIDER_RETURN_PATH_DOMAIN.',
  ),
  'operator.changed': null,
  'webhook.attempt_succeeded': debug(WEBHOOK_FIELDS, 'An endpoint accepted a webhook.'),
  'webhook.attempt_failed': info(
    [...WEBHOOK_FIELDS, 'error', 'retryAt'],
    'An attempt to send a webhook failed. Another attempt is due at `retryAt`.',
  ),
  'webhook.delivery_failed': warn(
    [...WEBHOOK_FIELDS, 'error'],
    'The last attempt to send a webhook failed. `postrider webhook replay ID` sends the webhook again.',
  ),
  'webhook.disabled': error(
    ['node', 'webhookId', 'reason'],
    'The endpoint was disabled. `reason` is `gone` after the response 410, or `failing` after five days without success. Correct it, then run `postrider webhook enable ID`.',
  ),
  'notification.recorded': info(
    ['node', 'notificationId', 'beganCount', 'endedCount'],
    'Problems that need attention began or ended. The notification is delivered to every target.',
  ),
  'notification.delivered': info(
    ['node', 'notificationId', 'target', 'id', 'durationMs'],
    'A target accepted a notification. For a notification by mail, `id` is the id of its message.',
  ),
  'notification.attempt_failed': warn(
    ['node', 'notificationId', 'target', 'error', 'retryAt'],
    'An attempt to deliver a notification failed. Another attempt is due at `retryAt`.',
  ),
  'notification.failed': error(
    ['node', 'notificationId', 'target', 'error'],
    'The last attempt to deliver a notification failed. `postrider doctor` names the cause and the remedy.',
  ),
  'node.started': info(['node', 'transport', 'url'], 'The node is ready.'),
  'node.draining': info(
    ['node'],
    'The node is shutting down. It completes the running attempts and starts no new attempt.',
  ),
  'node.leases_recovered': info(
    ['node', 'count'],
    'The leases of `count` messages had expired, or their node had ended. The messages were queued again, or became `uncertain`.',
  ),
  'node.warned': warn(
    ['node', 'detail'],
    'The node reports a condition that an operator should correct, such as a low limit on open files.',
  ),
  'store.standby': info(
    ['node', 'reason', 'detail'],
    'At startup, the node reports the standby of the PostgreSQL server, see [postgresql.md](postgresql.md#replication).',
  ),
  'node.variables_ignored': debug(
    ['node', 'names'],
    'At startup, the node ignored environment variables that Kubernetes or Docker sets for a Service named `postrider`.',
  ),
  'node.operation_failed': error(['node', 'operation', 'error'], 'An operation failed. The node continues to run.'),
  'api.started': null,
  'store.committed': null,
  'store.files_lost': error(
    ['node', 'reason', 'detail', 'remedy'],
    'Files of the embedded database were removed or replaced. No message is accepted. `reason` is `database-files`.',
  ),
  'store.files_restored': info(['node'], 'The files of the embedded database were restored.'),
  'circuit_breaker.opened': warn(
    ['node', 'route', 'retryAt'],
    'Attempts failed because of the route. It gets no message before `retryAt`.',
  ),
  'circuit_breaker.half_opened': debug(['node', 'route'], 'One probe of the route is running.'),
  'circuit_breaker.closed': info(
    ['node', 'route'],
    'The probe succeeded. The messages of the route return within a minute.',
  ),
  /** The log itself writes this event. */
  'log.lines_dropped': warn(
    ['count'],
    'The reader of standard output stalled, and `count` lines are missing. This event is written at every level except `silent`.',
  ),
} as const satisfies Readonly<Record<EventType | 'log.lines_dropped', LogEvent | null>>;

type LogEventTable = typeof LOG_EVENTS;
export type LogEventName = {
  [Name in keyof LogEventTable]: LogEventTable[Name] extends null ? never : Name;
}[keyof LogEventTable];
export type LoggedType = Extract<LogEventName, EventType>;
export type LogValue = string | number | boolean | null;
export type LogFieldOf<Name extends LogEventName> = NonNullable<LogEventTable[Name]>['fields'][number];
export type LogFields<Name extends LogEventName> = {
  readonly [Field in LogFieldOf<Name>]?: LogValue | undefined;
};

export function formatLogEventsPage(): string {
  const rows = Object.entries(LOG_EVENTS).flatMap(([name, event]) => {
    if (event === null) return [];
    const fields = event.fields.filter((field) => field !== 'node').map((field) => `\`${field}\``);
    return [`| \`${name}\` | ${event.level} | ${fields.join(', ')} | ${event.meaning} |`];
  });
  const fields = Object.entries(LOG_FIELDS).map(([name, content]) => `| \`${name}\` | ${content} |`);
  return `# Log events

This page lists all log events, for operators who search the log or write alerts. \`npm run docs\` generates the page from
\`src/observability/log-events.ts\`.

The service writes the log to standard output, one JSON object per line. Every line contains \`level\`, \`time\`
(ISO 8601, UTC) and \`event\`, then the fields of the event; lines of a node also contain \`node\`. The names of events and fields are stable. \`POSTRIDER_LOG\` sets the lowest level that is logged. \`POSTRIDER_LOG_RECIPIENTS\` applies to every mail address in a line. No line contains a subject.

## Events

| event | level | fields | meaning |
|---|---|---|---|
${rows.join('\n')}

## Fields

| field | content |
|---|---|
${fields.join('\n')}
`;
}
