/**
 * The body of notifications to HTTPS targets. Above `MAX_NOTIFICATION_BYTES` it contains only the first items, and the
 * counts include all. Pure.
 */
import type { Static, TUnsafe } from 'typebox';
import { ATTENTION_CODE_NAMES, ATTENTION_CODES, getAttentionCommand } from './attention.ts';
import type { AttentionChange, NotifiedItem } from './notification.ts';
import { Type } from './schema.ts';

export const NOTIFICATION_TYPE = 'attention.changed';

/** Bytes of JSON. The body is at most 20 kB. */
export const MAX_NOTIFICATION_BYTES = 18_000;

const createNullable = (schema: ReturnType<typeof Type.String>) => Type.Union([schema, Type.Null()]);

function createEnum<const T extends string>(values: readonly T[], description: string): TUnsafe<T> {
  return Type.Unsafe<T>({ type: 'string', enum: [...values], description });
}

const NotificationItem = Type.Object({
  code: createEnum(ATTENTION_CODE_NAMES, 'The kind of the problem. Codes are stable.'),
  subject: createNullable(
    Type.String({ description: 'The object with the problem, such as `example.com`; null for the installation.' }),
  ),
  level: createEnum(['warning', 'failure'], 'The severity.'),
  text: Type.String({
    description: 'The cause in one sentence. It may contain text of a next hop, which is untrusted.',
  }),
  consequence: Type.String({ description: 'The consequence in one or two sentences.' }),
  remedy: Type.String({ description: 'The remedy in one sentence.' }),
  command: Type.String({ description: 'The command that shows the details or is the remedy.' }),
  url: createNullable(Type.String({ description: 'The page of the dashboard. Null if the dashboard has no URL.' })),
  beganAt: Type.String({ format: 'date-time', description: 'The time when the problem was found, ISO 8601, UTC.' }),
  endedAt: createNullable(
    Type.String({
      format: 'date-time',
      description: 'The time when the problem ended, ISO 8601, UTC. Null in `began`.',
    }),
  ),
});

export const NotificationPayload = Type.Object({
  type: Type.Literal(NOTIFICATION_TYPE),
  timestamp: Type.String({ format: 'date-time', description: 'The time of the notification, ISO 8601, UTC.' }),
  data: Type.Object({
    began: Type.Array(NotificationItem, { description: 'The problems that began, failures first.' }),
    ended: Type.Array(NotificationItem, { description: 'The problems that ended, failures first.' }),
    beganCount: Type.Integer({
      description: 'The number of problems that began. It may exceed the number of items in `began`.',
    }),
    endedCount: Type.Integer({
      description: 'The number of problems that ended. It may exceed the number of items in `ended`.',
    }),
    ongoing: Type.Integer({ description: 'The number of problems that need attention now.' }),
  }),
});
export type NotificationPayload = Static<typeof NotificationPayload>;
type Item = Static<typeof NotificationItem>;

/** `operatorUrl` has no slash at its end. */
export function buildNotificationPayload(change: AttentionChange, operatorUrl: string | null): NotificationPayload {
  let remainingBytes = MAX_NOTIFICATION_BYTES;
  const selectFittingItems = (notified: readonly NotifiedItem[]): Item[] => {
    const items: Item[] = [];
    for (const item of notified) {
      const payloadItem = buildItem(item, operatorUrl);
      remainingBytes -= Buffer.byteLength(JSON.stringify(payloadItem)) + 1;
      if (remainingBytes < 0) break;
      items.push(payloadItem);
    }
    return items;
  };
  const began = selectFittingItems(change.began);
  const ended = selectFittingItems(change.ended);
  return {
    type: NOTIFICATION_TYPE,
    timestamp: toIsoTime(change.at),
    data: {
      began,
      ended,
      beganCount: change.began.length,
      endedCount: change.ended.length,
      ongoing: change.ongoingCount,
    },
  };
}

function buildItem(item: NotifiedItem, operatorUrl: string | null): Item {
  const { code, subject, level, text, remedy, page, beganAt, endedAt } = item;
  return {
    ...{ code, subject, level, text, consequence: ATTENTION_CODES[code].consequence, remedy },
    command: getAttentionCommand(item),
    url: operatorUrl === null ? null : `${operatorUrl}${page ?? '/'}`,
    beganAt: toIsoTime(beganAt),
    endedAt: endedAt === null ? null : toIsoTime(endedAt),
  };
}

function toIsoTime(ms: number): string {
  return new Date(ms).toISOString();
}
