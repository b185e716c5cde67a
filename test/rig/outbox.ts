import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { MESSAGE_EVENT_TYPES, WEBHOOK_EVENT_TYPES } from '../../src/model/webhook.ts';
import { openStore } from '../../src/store/open.ts';

const QUOTED_VERBS = MESSAGE_EVENT_TYPES.map((type) => `'${type.slice('message.'.length)}'`).join(', ');

/** Select the message, the position in the history and the event type of each history entry that causes an event. */
const HISTORY_QUERIES = {
  sqlite: `SELECT id AS message_id, 0 AS sequence, 'message.accepted' AS type FROM mail_request
    UNION ALL SELECT m.id, e.n, 'message.' || e.verb FROM event e JOIN mail_request m ON m.seq = e.seq WHERE e.verb IN (${QUOTED_VERBS})`,
  postgres: `SELECT id AS message_id, 0 AS sequence, 'message.accepted' AS type FROM mail_request
    UNION ALL SELECT id, sequence, type FROM (
      SELECT id, (row_number() OVER (PARTITION BY id ORDER BY n))::int AS sequence, 'message.' || verb AS type, verb FROM event) e
    WHERE verb IN (${QUOTED_VERBS})`,
};
const RECORDED_QUERIES = {
  sqlite: `SELECT message_id, sequence, type FROM outbox WHERE message_id IS NOT NULL`,
  postgres: `SELECT message_id, coalesce(sequence, (SELECT count(*) FROM event e WHERE e.id = o.message_id AND e.n <= o.n)::int) AS sequence, type
    FROM outbox o WHERE message_id IS NOT NULL`,
};
const DELIVERIES_QUERY =
  'SELECT message_id, sequence, type FROM webhook_delivery WHERE webhook_id > 0 AND message_id IS NOT NULL';

/** The endpoint is disabled immediately, so that its deliveries are stored and nothing is sent. */
export async function createDisabledWebhook(database: Parameters<typeof openStore>[0]): Promise<void> {
  const store = await openStore(database, { exclusive: false });
  try {
    const endpoint = {
      url: 'https://hooks.example.com/',
      sealedUrl: 'sealed-url',
      account: null,
      name: null,
      sealed: 'unused',
    };
    const result = await store.createWebhook({ ...endpoint, events: WEBHOOK_EVENT_TYPES }, Date.now());
    if (result.kind !== 'done') throw new Error(`the endpoint was not created: ${result.kind}`);
    await store.disableWebhook(result.value.id, Date.now());
  } finally {
    await store.close();
  }
}

export interface EventComparison {
  readonly entryCount: number;
  /** Events that are not recorded exactly once, each as `MESSAGE SEQUENCE TYPE: COUNT`. */
  readonly differences: readonly string[];
}

interface EventRow {
  readonly message_id: string;
  readonly sequence: number;
  readonly type: string;
}

function compareEvents(history: readonly EventRow[], recorded: readonly EventRow[]): EventComparison {
  const toKey = ({ message_id: id, sequence, type }: EventRow) => `${id} ${sequence} ${type}`;
  const counts = new Map(history.map((row) => [toKey(row), 0]));
  for (const row of recorded) counts.set(toKey(row), (counts.get(toKey(row)) ?? 0) + (counts.has(toKey(row)) ? 1 : 2));
  const differences = [...counts].filter(([, count]) => count !== 1).map(([key, count]) => `${key}: ${count}`);
  return { entryCount: history.length, differences };
}

export function compareSqliteEvents(path: string): EventComparison {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const select = (text: string) => database.prepare(text).all() as unknown as EventRow[];
    return compareEvents(select(HISTORY_QUERIES.sqlite), [
      ...select(RECORDED_QUERIES.sqlite),
      ...select(DELIVERIES_QUERY),
    ]);
  } finally {
    database.close();
  }
}

export async function comparePostgresEvents(url: string): Promise<EventComparison> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const select = async (text: string) => (await client.query<EventRow>(text)).rows;
    return compareEvents(await select(HISTORY_QUERIES.postgres), [
      ...(await select(RECORDED_QUERIES.postgres)),
      ...(await select(DELIVERIES_QUERY)),
    ]);
  } finally {
    await client.end();
  }
}
