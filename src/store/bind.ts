import { getMethodKind, type MethodKind } from './contract.ts';
import type { MessageTransaction } from './messages.ts';
import { NOUNS, type NounMethod, type Nouns } from './nouns.ts';

export type Work = (tx: MessageTransaction) => Promise<unknown>;

/** Binds each method to `run`, which runs it in a transaction, or on a connection if it only reads. */
export function bindNouns(run: (kind: MethodKind, work: Work) => Promise<unknown>): Nouns {
  const methods = (Object.keys(NOUNS) as NounMethod[]).map((name) => {
    const method = NOUNS[name] as (tx: MessageTransaction, ...args: readonly unknown[]) => Promise<unknown>;
    return [name, (...args: readonly unknown[]) => run(getMethodKind(name), (tx) => method(tx, ...args))] as const;
  });
  return Object.fromEntries(methods) as unknown as Nouns;
}
