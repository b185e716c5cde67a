/** Stores what all nodes share about routes: policies, pauses, messages of the day, and which senders were accepted. */
import type { Actor } from '../model/audit.ts';
import type { RoutePause, RouteSender, RouteUse, Routing, StoredPolicy } from '../model/route.ts';
import { writeAudit } from './audit.ts';
import * as rows from './rules/rows.ts';
import { incrementRevision, type Transaction } from './transaction.ts';

/** Null if nothing has changed since `revision`. A cleared policy and a resumed route keep their rows for this. */
export async function readRoutingSince(tx: Transaction, revision: number): Promise<Routing | null> {
  const [changed = {}] = await tx.query(
    `SELECT (SELECT count(*) FROM route WHERE revision > $1) + (SELECT count(*) FROM routing_policy WHERE revision > $1) AS count`,
    [revision],
  );
  return rows.readInteger(changed, 'count') === 0 ? null : readRouting(tx);
}

export async function readRouting(tx: Transaction): Promise<Routing> {
  const [routes, policies] = await Promise.all([
    tx.query('SELECT * FROM route ORDER BY name'),
    tx.query('SELECT * FROM routing_policy WHERE list IS NOT NULL ORDER BY account_id, domain'),
  ]);
  return {
    policies: policies.map(toPolicy),
    pauses: routes.flatMap((row) => toPause(row) ?? []),
    firstUses: routes.flatMap((row) => {
      const at = rows.readIntegerOrNull(row, 'first_used_at');
      return at === null ? [] : [{ route: rows.readText(row, 'name'), at }];
    }),
  };
}

function toPolicy(row: rows.Row): StoredPolicy {
  return {
    accountId: rows.readIntegerOrNull(row, 'account_id'),
    domain: rows.readTextOrNull(row, 'domain'),
    list: rows.readText(row, 'list'),
  };
}

function toPause(row: rows.Row): RoutePause | null {
  const at = rows.readIntegerOrNull(row, 'paused_at');
  if (at === null) return null;
  const until = rows.readIntegerOrNull(row, 'paused_until');
  return { route: rows.readText(row, 'name'), at, until, reason: rows.readTextOrNull(row, 'pause_reason') };
}

export interface PolicyScope {
  readonly account: string | null;
  readonly domain: string | null;
}

/** `list` is null to clear the policy. The value is the former list. `missing`: the account does not exist. */
export async function setRoutingPolicy(
  tx: Transaction,
  { account, domain }: PolicyScope,
  list: string | null,
  actor?: Actor,
): Promise<{ readonly kind: 'done'; readonly value: string | null } | { readonly kind: 'missing' }> {
  const [accountRow] = account === null ? [] : await tx.query('SELECT id FROM account WHERE name = $1', [account]);
  if (account !== null && accountRow === undefined) return { kind: 'missing' };
  const revision = await incrementRevision(tx);
  const accountId = accountRow === undefined ? null : rows.readInteger(accountRow, 'id');
  const scope = [accountId, domain];
  const where = `coalesce(account_id, 0) = coalesce($1::int, 0) AND coalesce(domain, '') = coalesce($2::text, '')`;
  const [before] = await tx.query(`SELECT list FROM routing_policy WHERE ${where}`, scope);
  const former = before === undefined ? null : rows.readTextOrNull(before, 'list');
  if (list === null && former === null) return { kind: 'done', value: null };
  if (before === undefined)
    await tx.query('INSERT INTO routing_policy (account_id, domain, list, revision) VALUES ($1, $2, $3, $4)', [
      ...scope,
      list,
      revision,
    ]);
  else await tx.query(`UPDATE routing_policy SET list = $3, revision = $4 WHERE ${where}`, [...scope, list, revision]);
  const toAudited = (value: string | null) => (value === null ? null : { list: value });
  const action = list === null ? 'routing.clear' : 'routing.set';
  await writeAudit(tx, actor, action, domain ?? account ?? '*', toAudited(former), toAudited(list));
  return { kind: 'done', value: former };
}

/** `pause` is null to resume. Resolves to the former pause. */
export async function pauseRoute(
  tx: Transaction,
  route: string,
  pause: Omit<RoutePause, 'route'> | null,
  actor?: Actor,
): Promise<RoutePause | null> {
  const revision = await incrementRevision(tx);
  const [before] = await tx.query('SELECT * FROM route WHERE name = $1', [route]);
  const former = before === undefined ? null : toPause(before);
  if (pause === null && former === null) return null;
  await tx.query(
    `INSERT INTO route (name, paused_at, paused_until, pause_reason, revision) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (name) DO UPDATE SET paused_at = excluded.paused_at, paused_until = excluded.paused_until,
       pause_reason = excluded.pause_reason, revision = excluded.revision`,
    [route, pause?.at ?? null, pause?.until ?? null, pause?.reason ?? null, revision],
  );
  const toAudited = (value: Omit<RoutePause, 'route'> | null) =>
    value === null ? null : { until: value.until, reason: value.reason };
  const action = pause === null ? 'route.resume' : 'route.pause';
  await writeAudit(tx, actor, action, route, toAudited(former), toAudited(pause));
  return former;
}

/** Adds what this node has handed over. Resolves to the totals of the days, of all nodes. Old days are purged. */
export async function recordRouteUse(
  tx: Transaction,
  uses: readonly RouteUse[],
  now: number,
): Promise<readonly RouteUse[]> {
  const totals: RouteUse[] = [];
  const newRoutes: string[] = [];
  for (const { route, day, count } of uses.toSorted((a, b) => (a.route < b.route ? -1 : 1))) {
    const [row = {}] = await tx.query(
      `INSERT INTO route_use (route, day, count) VALUES ($1, $2, $3)
       ON CONFLICT (route, day) DO UPDATE SET count = route_use.count + excluded.count RETURNING count`,
      [route, day, count],
    );
    const total = rows.readInteger(row, 'count');
    totals.push({ route, day, count: total });
    if (total > count) continue;
    await tx.query('DELETE FROM route_use WHERE route = $1 AND day < $2', [route, day - 7]);
    newRoutes.push(route);
  }
  // The first day of all begins the ramp. Every transaction locks the revision after all routes: no deadlock.
  for (const route of newRoutes) await recordFirstUse(tx, route, now);
  return totals;
}

async function recordFirstUse(tx: Transaction, route: string, now: number): Promise<void> {
  const [row] = await tx.query('SELECT first_used_at FROM route WHERE name = $1', [route]);
  if (row !== undefined && rows.readIntegerOrNull(row, 'first_used_at') !== null) return;
  await tx.query(
    `INSERT INTO route (name, first_used_at, revision) VALUES ($1, $2, $3)
     ON CONFLICT (name) DO UPDATE SET first_used_at = excluded.first_used_at, revision = excluded.revision`,
    [route, now, await incrementRevision(tx)],
  );
}

/** The messages of the days that are kept. */
export async function listRouteUses(tx: Transaction): Promise<readonly RouteUse[]> {
  return (await tx.query('SELECT * FROM route_use ORDER BY route, day')).map((row) => ({
    route: rows.readText(row, 'route'),
    day: rows.readInteger(row, 'day'),
    count: rows.readInteger(row, 'count'),
  }));
}

/** Of a refused sender, the former acceptance stays known. `actor`: an operator has tested the route. */
export async function recordRouteSenders(
  tx: Transaction,
  senders: readonly RouteSender[],
  actor?: Actor,
): Promise<void> {
  for (const { route, domain, acceptedAt, refusedAt, refusal } of senders.toSorted((a, b) =>
    `${a.route} ${a.domain}` < `${b.route} ${b.domain}` ? -1 : 1,
  )) {
    await tx.query(
      `INSERT INTO route_sender (route, domain, accepted_at, refused_at, refusal) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (route, domain) DO UPDATE SET accepted_at = coalesce(excluded.accepted_at, route_sender.accepted_at),
         refused_at = excluded.refused_at, refusal = excluded.refusal`,
      [route, domain, acceptedAt, refusedAt, refusal],
    );
    await writeAudit(tx, actor, 'route.test', route, null, { domain, refusal });
  }
}

export async function listRouteSenders(tx: Transaction): Promise<readonly RouteSender[]> {
  return (await tx.query('SELECT * FROM route_sender ORDER BY route, domain')).map((row) => ({
    route: rows.readText(row, 'route'),
    domain: rows.readText(row, 'domain'),
    acceptedAt: rows.readIntegerOrNull(row, 'accepted_at'),
    refusedAt: rows.readIntegerOrNull(row, 'refused_at'),
    refusal: rows.readTextOrNull(row, 'refusal'),
  }));
}
