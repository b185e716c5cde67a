/** The methods of the store that are written once for both databases. Each takes the transaction first. */
import * as accounts from './accounts.ts';
import { listAudit } from './audit.ts';
import * as credentials from './credentials.ts';
import * as deliveries from './deliveries.ts';
import { findKeys } from './directory.ts';
import * as domains from './domains.ts';
import * as holds from './holds.ts';
import * as inboxRules from './inbox-rules.ts';
import * as messages from './messages.ts';
import * as nodes from './nodes.ts';
import * as notifications from './notifications.ts';
import * as overview from './overview.ts';
import * as parking from './parking.ts';
import { recover } from './recovery.ts';
import * as reports from './reports.ts';
import * as retention from './retention.ts';
import * as routes from './routes.ts';
import * as senders from './senders.ts';
import * as suppressions from './suppressions.ts';
import { takeTokens } from './token-buckets.ts';
import * as traffic from './traffic.ts';
import * as webhooks from './webhooks.ts';

const { readWindow: _, ...accountMethods } = accounts;
const { readRoutingSince: ______, ...routeMethods } = routes;
const { readDomainsSince: __, ...domainMethods } = domains;
const { findMessageIds: ___, ...reportMethods } = reports;
const { readHoldsSince: ____, ...holdMethods } = holds;
const { QUEUE_SQL: _____, ...parkingMethods } = parking;
const { findOldestEnd: _______, ...retentionMethods } = retention;
const { readSuppressions: ________, ON_LISTED: _________, ...suppressionMethods } = suppressions;

export const NOUNS = {
  ...accountMethods,
  ...credentials,
  ...deliveries,
  ...domainMethods,
  ...holdMethods,
  ...inboxRules,
  ...messages,
  ...notifications,
  ...nodes,
  ...overview,
  ...parkingMethods,
  ...reportMethods,
  ...retentionMethods,
  ...routeMethods,
  ...senders,
  ...suppressionMethods,
  ...traffic,
  ...webhooks,
  findKeys,
  listAudit,
  recover,
  takeTokens,
};

/** The methods of a module without the transaction. */
export type Bound<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (tx: never, ...args: infer Args) => infer Answer
    ? (...args: Args) => Answer
    : never;
};
export type Nouns = Bound<typeof NOUNS>;
export type NounMethod = keyof Nouns;
