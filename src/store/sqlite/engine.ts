/**
 * The embedded store's synchronous half: every operation over one connection. `commit` runs whatever writes wait in
 * one transaction with one sync at its end (group commit), each behind a savepoint of its own, so that one operation's
 * fault undoes that operation alone; a fault of the commit undoes and fails them all.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { DirectoryChanges } from '../../model/account.ts';
import type { SettleAnswer } from '../../model/message.ts';
import { METHODS, type MethodKind, type MethodName, type StoreMethods } from '../contract.ts';
import type { BuiltStep, IndexChange } from '../search/building.ts';
import type { IndexStep } from '../search.ts';
import { MACHINE } from '../surroundings.ts';
import { prepareAccept } from './accept.ts';
import { prepareAccounts } from './accounts.ts';
import { prepareAudit } from './audit.ts';
import { prepareClaim } from './claim.ts';
import { prepareDirectory } from './directory.ts';
import { prepareDomains } from './domains.ts';
import { prepareFeedback } from './feedback.ts';
import { prepareMail } from './mail.ts';
import { prepareNodes } from './nodes.ts';
import { prepareOperator } from './operator.ts';
import { prepareOverview } from './overview.ts';
import { prepareReputation } from './reputation.ts';
import { prepareSearch } from './search.ts';
import { prepareSearchIndex } from './search-index.ts';
import { type PackedSettlement, prepareSettle } from './settle.ts';
import { prepareSuppressions } from './suppressions.ts';
import { prepareSweep } from './sweep.ts';
import { prepareTraffic } from './traffic.ts';

/** A method of the contract as the store's thread has it: it answers at once. */
type Immediate<Method> = Method extends (...args: infer Args) => Promise<infer Answer>
  ? (...args: Args) => Answer
  : never;

/** The contract's methods, settlements packed for their way to the thread, and what composed methods are made of. */
export type Operations = { readonly [Name in Exclude<MethodName, 'settle'>]: Immediate<StoreMethods[Name]> } & {
  settle(batch: readonly PackedSettlement[]): readonly SettleAnswer[];
  /** What changed after `revision`, or null where nothing did. */
  directorySince(revision: number): DirectoryChanges | null;
  buildIndex(step: IndexStep): BuiltStep;
  changeIndex(change: IndexChange): void;
};
export type OperationName = keyof Operations;

export interface Call {
  readonly number: number;
  readonly name: OperationName;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  | { readonly number: number; readonly ok: false; readonly error: unknown };

/** Operations of this store alone, behind methods that are composed of several. */
const INTERNAL = { directorySince: 'read', buildIndex: 'question', changeIndex: 'change' } as const;

const KINDS: Readonly<Record<OperationName, MethodKind>> = { ...METHODS, ...INTERNAL };

function isRead(name: OperationName): boolean {
  const kind = KINDS[name];
  return kind === 'read' || kind === 'question';
}

/** True for an operation whose answer says that something is kept: it must fail where the files are not those of the path. */
export function needsFiles(name: OperationName): boolean {
  return KINDS[name] === 'change';
}

function prepareOperations(database: DatabaseSync, monotonic: () => number): Operations {
  const audit = prepareAudit(database);
  const probe = database.prepare('UPDATE meta SET probed_at = probed_at + 1');
  const directory = prepareDirectory(database, (revision) => domains.domainsSince(revision));
  const domains = prepareDomains(database, directory.nextRevision, audit);
  const reputation = prepareReputation(database, directory.nextRevision);
  return {
    accept: prepareAccept(database),
    claim: prepareClaim(database),
    ...prepareSettle(database, reputation.count),
    ...prepareSweep(database),
    ...prepareAccounts(database, directory.nextRevision, audit, reputation),
    ...prepareSuppressions(database, audit),
    ...domains,
    directorySince: directory.since,
    findKeys: directory.findKeys,
    ...prepareMail(database, audit),
    ...prepareSearch(database, monotonic),
    ...prepareSearchIndex(database),
    ...prepareNodes(database),
    ...prepareFeedback(database, reputation),
    ...prepareOperator(database, audit),
    ...prepareTraffic(database),
    ...prepareOverview(database),
    probe: (): void => {
      probe.run();
    },
  };
}

export interface Engine {
  readonly operations: Operations;
  /** Runs the calls and answers each, writes first and together. Never throws. */
  run(calls: readonly Call[]): Reply[];
}

/** `monotonic` bounds searches. */
export function createEngine(database: DatabaseSync, monotonic = MACHINE.clock.monotonic): Engine {
  const operations = prepareOperations(database, monotonic);

  function attempt(call: Call): Reply {
    try {
      const operation = operations[call.name] as (...args: readonly unknown[]) => unknown;
      return { number: call.number, ok: true, value: operation(...call.args) };
    } catch (error) {
      return { number: call.number, ok: false, error };
    }
  }

  function attemptAlone(call: Call): Reply {
    database.exec('SAVEPOINT operation');
    const reply = attempt(call);
    if (!reply.ok && database.isTransaction) database.exec('ROLLBACK TO operation');
    if (database.isTransaction) database.exec('RELEASE operation');
    return reply;
  }

  function commit(calls: readonly Call[]): Reply[] {
    try {
      database.exec('BEGIN IMMEDIATE');
      const replies: Reply[] = [];
      for (const call of calls) {
        const reply = attemptAlone(call);
        replies.push(reply);
        // SQLite itself undoes the whole transaction on a full disk or an I/O error: nothing before it stands either.
        if (!database.isTransaction) throw reply.ok ? new Error('the transaction was lost') : reply.error;
      }
      database.exec('COMMIT');
      return replies;
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      return calls.map(({ number }) => ({ number, ok: false, error }));
    }
  }

  return {
    operations,
    run(calls) {
      const writes = calls.filter(({ name }) => !isRead(name));
      const reads = calls.filter(({ name }) => isRead(name));
      return [...(writes.length === 0 ? [] : commit(writes)), ...reads.map(attempt)];
    },
  };
}
