import { describe, expect, test } from 'vitest';
import type { RecordedFailure } from '../../src/model/failure.ts';
import type { StateChange } from '../../src/model/message.ts';
import type { Store } from '../../src/store/contract.ts';
import { ALL_FIELDS, type MessageSearch, parseReplyWords, parseSearchText } from '../../src/store/search/query.ts';
import { ANY_SEARCH, createMessage, createMessageIdAt, createSettlement } from '../rig/messages.ts';
import { STORES } from '../rig/stores.ts';

const START = Date.UTC(2026, 0, 1);
const LEASE = { owner: 'node-a', until: START + 600_000_000 };
const ANY_MESSAGE: MessageSearch = { ...ANY_SEARCH, limit: 2 };
const HARD_FAILURE: RecordedFailure = { class: 'hard', category: 'mailbox-unknown', status: '5.1.1', diagnostic: null };
const SOFT_FAILURE: RecordedFailure = { class: 'soft', category: 'throttled', status: '4.7.500', diagnostic: null };
const HOSTILE_REPLY = '550 5.7.1 <script>alert(1)</script> \u001b[31mbl\u0007ocked\u202e';

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  async function createStoreWithMessages() {
    const store = await openWithAccounts({}, 'other');
    const ids: Record<string, string> = {};
    let at = START;
    const settleMessage = async (
      name: string,
      to: StateChange['to'],
      verb: string,
      detail: string,
      failure: RecordedFailure | null,
    ) => {
      at += 1;
      const message = createMessage({
        acceptedAt: at,
        lease: LEASE,
        to: `${name}@example.com`,
        accountId: name === 'busy' ? 2 : 1,
      });
      await store.accept([message]);
      const recordedFailure = failure === null ? null : { ...failure, diagnostic: detail };
      const event = { at: at + 5, verb, by: 'node-a', detail, failure: recordedFailure, attempt: null };
      const dueAt = to === 'queued' ? START + 60_000 : null;
      await store.settle([createSettlement(message, { to, dueAt, event })]);
      ids[name] = message.id;
    };
    await settleMessage(
      'unknown',
      'bounced',
      'bounced',
      "550 5.1.1 <unknown@example.com>: user doesn't have an account",
      HARD_FAILURE,
    );
    await settleMessage('busy', 'queued', 'deferred', '451-4.7.500 Server busy. Please try again later', SOFT_FAILURE);
    await settleMessage('fine', 'delivered', 'delivered', '250 2.0.0 Ok: queued as 4XyzR12Kz2', null);
    await settleMessage('hostile', 'bounced', 'bounced', HOSTILE_REPLY, {
      ...HARD_FAILURE,
      category: 'policy',
      class: 'block',
    });
    const waitingMessage = createMessage({ acceptedAt: at + 10, to: 'waiting@example.com' });
    await store.accept([waitingMessage]);
    ids.waiting = waitingMessage.id;
    return { store, ids };
  }

  async function indexAll(store: Store): Promise<void> {
    const step = { horizon: createMessageIdAt(START + 9_000), minMessages: 1, unindexedCount: null, now: START };
    while ((await store.indexMessages(step)).hasChanged);
  }

  async function findNames(
    { store, ids }: { store: Store; ids: Record<string, string> },
    search: Partial<MessageSearch>,
    budgetMs = 5_000,
  ): Promise<readonly (string | undefined)[]> {
    const names = new Map(Object.entries(ids).map(([name, id]) => [id, name]));
    const foundNames: (string | undefined)[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < 100; page += 1) {
      const result = await store.searchMessages({ ...ANY_MESSAGE, ...search, before: cursor }, budgetMs);
      foundNames.push(...result.messages.map(({ id }) => names.get(id)));
      if (result.searchedTo === null) return foundNames;
      cursor = result.searchedTo;
    }
    throw new Error('the search does not end');
  }

  const createReplySearch = (text: string, code: string | null = null) => ({
    words: parseReplyWords(text) ?? [],
    code,
  });

  test.each([false, true])('messages are found by several states and by `deferred` (indexed: %s)', async (indexed) => {
    const preparedStore = await createStoreWithMessages();
    if (indexed) await indexAll(preparedStore.store);
    const cases: readonly (readonly [Partial<MessageSearch>, readonly string[]])[] = [
      [{ states: ['bounced', 'deferred'] }, ['hostile', 'busy', 'unknown']],
      [{ states: ['deferred'] }, ['busy']],
      [{ states: ['queued'] }, ['waiting', 'busy']],
      [{ states: ['queued', 'deferred', 'delivered'] }, ['waiting', 'fine', 'busy']],
      [{ states: ['deferred', 'delivered'] }, ['fine', 'busy']],
      [{ states: ['bounced', 'deferred'], failureCategories: ['policy', 'throttled'] }, ['hostile', 'busy']],
      [{ failureClasses: ['hard', 'soft'] }, ['busy', 'unknown']],
      [{ states: ['bounced', 'deferred'], accountIds: [2, 1] }, ['hostile', 'busy', 'unknown']],
      [{ accountIds: [2] }, ['busy']],
    ];
    for (const [search, names] of cases) {
      for (const text of ['', 'receipt', '@example.com']) {
        const criteria = parseSearchText(text, ALL_FIELDS) ?? [];
        expect([search, text, await findNames(preparedStore, { ...search, criteria })]).toEqual([search, text, names]);
      }
    }
  });

  test.each([false, true])(
    'messages are found by the words and the code of the last reply (indexed: %s)',
    async (indexed) => {
      const preparedStore = await createStoreWithMessages();
      if (indexed) await indexAll(preparedStore.store);
      const cases: readonly (readonly [Partial<MessageSearch>, readonly string[]])[] = [
        [{ reply: createReplySearch('try again') }, ['busy']],
        [{ reply: createReplySearch('ACCOUNT') }, ['unknown']],
        [{ reply: createReplySearch('acc') }, ['unknown']],
        [{ reply: createReplySearch('"acc"') }, []],
        [{ reply: createReplySearch('', '550') }, ['hostile', 'unknown']],
        [{ reply: createReplySearch('', '5.1.1') }, ['unknown']],
        [{ reply: createReplySearch('', '451') }, ['busy']],
        [{ reply: createReplySearch('', '4.7.500') }, ['busy']],
        [{ reply: createReplySearch('script alert') }, ['hostile']],
        // The reply to a delivered message is searched only if the search names the state `delivered`.
        [{ reply: createReplySearch('4XyzR12Kz2') }, []],
        [{ reply: createReplySearch('4XyzR12Kz2'), states: ['delivered'] }, ['fine']],
        [{ reply: createReplySearch('', '550'), failureClasses: ['block'] }, ['hostile']],
        [{ reply: createReplySearch('', '550'), criteria: parseSearchText('unknown', ALL_FIELDS) ?? [] }, ['unknown']],
        [{ reply: createReplySearch('nothing') }, []],
      ];
      for (const [search, names] of cases) {
        for (const budgetMs of [0, 5_000])
          expect([search, await findNames(preparedStore, search, budgetMs)]).toEqual([search, names]);
      }
    },
  );

  test('a found message contains the number of its attempts, the time of its last history entry and its last outcome', async () => {
    const { store, ids } = await createStoreWithMessages();
    const findMessage = async (id = '') =>
      (await store.searchMessages({ ...ANY_MESSAGE, criteria: [{ kind: 'id', id }] }, 1_000)).messages[0];
    expect(await findMessage(ids.busy)).toMatchObject({
      ...{ state: 'queued', deferred: true, attempts: 1, updatedAt: START + 7 },
      lastOutcome: { verb: 'deferred', by: 'node-a', failure: { class: 'soft', category: 'throttled' } },
    });
    expect(await findMessage(ids.waiting)).toMatchObject({
      state: 'queued',
      deferred: false,
      attempts: 0,
      lastOutcome: null,
    });
    expect((await findMessage(ids.hostile))?.lastOutcome?.detail).toBe(HOSTILE_REPLY);
    // A retry by an operator and a resend are not outcomes.
    await store.retryMessage(ids.busy ?? '', START + 99);
    expect(await findMessage(ids.busy)).toMatchObject({ updatedAt: START + 99, lastOutcome: { verb: 'deferred' } });
    await store.resendMessage({ id: ids.unknown ?? '', newId: createMessageIdAt(START + 100) }, START + 100);
    expect(await findMessage(ids.unknown)).toMatchObject({ updatedAt: START + 100, lastOutcome: { verb: 'bounced' } });
  });
});
