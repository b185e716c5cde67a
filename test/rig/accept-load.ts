import { expect, onTestFinished } from 'vitest';
import type { Store } from '../../src/store/contract.ts';
import { StoreError } from '../../src/store/error.ts';
import { openStore } from '../../src/store/open.ts';
import { createMessage, NO_LIMITS } from './messages.ts';
import { parsePostgresUrl } from './stores.ts';

export const SENDER_COUNT = 6;

export async function openStoreAt(url: string): Promise<Store> {
  const store = await openStore(parsePostgresUrl(url), { exclusive: true });
  onTestFinished(() => store.close());
  await store.createAccount('default', NO_LIMITS, 1);
  return store;
}

export function startAccepting(accept: Store['accept']) {
  const acknowledgedIds: string[] = [];
  const errors: unknown[] = [];
  let hasEnded = false;
  const send = async () => {
    while (!hasEnded) {
      const batch = [createMessage(), createMessage()];
      try {
        await accept(batch);
        acknowledgedIds.push(...batch.map(({ id }) => id));
      } catch (error) {
        errors.push(error);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const senders = Array.from({ length: SENDER_COUNT }, send);
  return {
    acknowledgedIds,
    errors,
    async waitForAcknowledgements(count: number): Promise<void> {
      const targetCount = acknowledgedIds.length + count;
      await expect.poll(() => acknowledgedIds.length).toBeGreaterThanOrEqual(targetCount);
    },
    async end(): Promise<void> {
      hasEnded = true;
      await Promise.all(senders);
    },
  };
}

export async function findMissingIds(
  acceptLoad: ReturnType<typeof startAccepting>,
  url: string,
): Promise<readonly string[]> {
  const store = await openStore(parsePostgresUrl(url), { exclusive: false });
  try {
    const foundMessages = await Promise.all(acceptLoad.acknowledgedIds.map((id) => store.findMessage(id)));
    return acceptLoad.acknowledgedIds.filter(
      (_, index) => foundMessages[index]?.state !== 'queued' || foundMessages[index]?.message === null,
    );
  } finally {
    await store.close();
  }
}

export function expectOneLineErrors(errors: readonly unknown[]): void {
  for (const storeError of errors) {
    expect(storeError).toBeInstanceOf(StoreError);
    expect(String(storeError)).not.toMatch(/[\r\n]/);
  }
}
