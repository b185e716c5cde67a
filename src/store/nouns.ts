/** The methods of the store that are written once for both databases. Each takes the transaction first. */
import * as accounts from './accounts.ts';
import { listAudit } from './audit.ts';
import { METHODS, type MethodKind, type MethodName, type StoreMethods } from './contract.ts';
import * as credentials from './credentials.ts';
import { findKeys } from './directory.ts';
import * as domains from './domains.ts';
import * as inboxRules from './inbox-rules.ts';
import * as messages from './messages.ts';
import * as notifications from './notifications.ts';
import * as overview from './overview.ts';
import * as reports from './reports.ts';
import * as suppressions from './suppressions.ts';
import * as traffic from './traffic.ts';

const { readWindow: _, ...accountMethods } = accounts;
const { readDomainsSince: __, ...domainMethods } = domains;

export const NOUNS = {
  ...accountMethods,
  ...credentials,
  ...domainMethods,
  ...inboxRules,
  ...messages,
  ...notifications,
  ...overview,
  ...reports,
  ...suppressions,
  ...traffic,
  findKeys,
  listAudit,
} satisfies {
  [Name in MethodName]?: (
    tx: messages.MessageTransaction,
    ...args: Parameters<StoreMethods[Name]>
  ) => ReturnType<StoreMethods[Name]>;
};

export type NounMethod = keyof typeof NOUNS;

type Work = (tx: messages.MessageTransaction) => Promise<unknown>;

/** Binds each method to `run`, which runs it in a transaction, or on a connection if it only reads. */
export function bindNouns(run: (kind: MethodKind, work: Work) => Promise<unknown>): Pick<StoreMethods, NounMethod> {
  const methods = (Object.keys(NOUNS) as NounMethod[]).map((name) => {
    const method = NOUNS[name] as (tx: messages.MessageTransaction, ...args: readonly unknown[]) => Promise<unknown>;
    return [name, (...args: readonly unknown[]) => run(METHODS[name], (tx) => method(tx, ...args))] as const;
  });
  return Object.fromEntries(methods) as unknown as Pick<StoreMethods, NounMethod>;
}
