import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAILURE_CLASSES, type RecordedFailure } from '../../src/model/failure.ts';
import { type NewMessage, STATES, type State } from '../../src/model/message.ts';
import { getIdTimestamp } from '../../src/model/submission.ts';
import type { Store } from '../../src/store/contract.ts';
import { getMinIdAt } from '../../src/store/rules/messages.ts';
import {
  ALL_FIELDS,
  type Field,
  type MessageSearch,
  matchesCriteria,
  parseSearchText,
  type SearchCriterion,
} from '../../src/store/search/query.ts';
import { ANY_SEARCH, createEntry, createMessage, createMessageIdAt, createSettlement } from '../rig/messages.ts';
import { selectCaseCount } from '../rig/sample.ts';
import { STORES } from '../rig/stores.ts';

const START = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const LEASE = { owner: 'node-a', until: START + 600_000_000 };

const parseCriteria = (text: string, fields: readonly Field[] = ALL_FIELDS): readonly SearchCriterion[] =>
  parseSearchText(text, fields) ?? [];

describe.each(STORES)('the $name store', ({ openWithAccounts }) => {
  async function indexUntil(store: Store, until: number, now = START): Promise<number> {
    let stepCount = 0;
    while (
      (await store.indexMessages({ horizon: getMinIdAt(until), minMessages: 1, unindexedCount: null, now })).hasChanged
    )
      stepCount += 1;
    return stepCount;
  }

  async function readAllPages(store: Store, search: Partial<MessageSearch>, budgetMs = 5_000): Promise<string[]> {
    const ids: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < 2_000; page += 1) {
      const messageSearch: MessageSearch = { ...ANY_SEARCH, ...search, before: cursor };
      const { messages, searchedTo } = await store.searchMessages(messageSearch, budgetMs);
      expect(messages.length).toBeLessThanOrEqual(messageSearch.limit);
      ids.push(...messages.map(({ id }) => id));
      if (searchedTo === null) return ids;
      expect([searchedTo, cursor, searchedTo < (cursor ?? 'g'), search.states]).toEqual([
        searchedTo,
        cursor,
        true,
        search.states,
      ]);
      cursor = searchedTo;
    }
    throw new Error('the search does not end');
  }

  const findMessages = (store: Store, text: string, changes: Partial<MessageSearch> = {}) =>
    readAllPages(store, { criteria: parseCriteria(text), ...changes });

  test.each([false, true])(
    'a message is found by words, prefixes and addresses of every field (indexed: %s)',
    async (indexed) => {
      const store = await openWithAccounts({}, 'other');
      const createAcceptedAt = (offsetMs: number) => ({ acceptedAt: START + offsetMs });
      const ritaMessage = createMessage({
        ...createAcceptedAt(1),
        to: 'Rita.Smith+News@Example.COM',
        recipient: 'rita.smith+news@example.com',
        subject: 'Your receipt 4711',
      });
      const koelnMessage = createMessage({
        ...createAcceptedAt(2),
        to: 'bob@köln.example',
        recipient: 'bob@xn--kln-sna.example',
        from: 'shop@mail.example.org',
        subject: 'GRÜSSE aus der Straße',
      });
      const hanMessage = createMessage({ ...createAcceptedAt(3), to: 'li@example.net', subject: '您的订单已发货 🎉' });
      const annMessage = createMessage({
        ...createAcceptedAt(4),
        accountId: 2,
        to: 'ann@example.com.au',
        from: 'rita@example.org',
        subject: 'Rite of spring',
      });
      await store.accept([ritaMessage, koelnMessage, hanMessage, annMessage]);
      const limit = indexed ? 1 : 50;
      if (indexed) {
        const newer = { to: 'new@other.test', from: 'new@other.test', subject: 'New' };
        await store.accept(
          Array.from({ length: 20 }, (_, n) => createMessage({ ...newer, acceptedAt: START + 500 + n })),
        );
        await indexUntil(store, START + 1_000);
      }
      const cases: readonly (readonly [text: string, fields: readonly Field[], found: readonly NewMessage[]])[] = [
        ['rita', ALL_FIELDS, [annMessage, ritaMessage]],
        ['RIT', ALL_FIELDS, [annMessage, ritaMessage]],
        ['"rit"', ALL_FIELDS, []],
        ['rit receipt', ALL_FIELDS, []],
        ['receipt rit', ALL_FIELDS, [ritaMessage]],
        ['4711 smith', ALL_FIELDS, [ritaMessage]],
        ['rita', ['to'], [ritaMessage]],
        ['rita', ['from'], [annMessage]],
        ['rit', ['subject'], [annMessage]],
        ['rita.smith', ['to'], [ritaMessage]],
        ['rita.smith+news@example.com', ['to'], [ritaMessage]],
        ['rita.smith+news@exa', ALL_FIELDS, [ritaMessage]],
        ['rita.smith@example.com', ALL_FIELDS, []],
        ['@example.com', ['to'], [annMessage, ritaMessage]],
        ['"@example.com"', ['to'], [ritaMessage]],
        ['@mail.example.org', ALL_FIELDS, [koelnMessage]],
        ['@KÖLN.example', ALL_FIELDS, [koelnMessage]],
        ['bob@xn--kln-sna.example', ALL_FIELDS, [koelnMessage]],
        ['grüsse', ALL_FIELDS, [koelnMessage]],
        ['GRUSSE strasse', ALL_FIELDS, [koelnMessage]],
        ['订单', ALL_FIELDS, [hanMessage]],
        ['发货 🎉', ['subject'], [hanMessage]],
        ['example', ALL_FIELDS, [annMessage, hanMessage, koelnMessage, ritaMessage]],
        [ritaMessage.id.toUpperCase(), ALL_FIELDS, [ritaMessage]],
        [createMessageIdAt(START + 9), ALL_FIELDS, []],
        ['nothing', ALL_FIELDS, []],
      ];
      for (const [text, fields, found] of cases) {
        const criteriaList = parseSearchText(text, fields) ?? [];
        expect([text, await readAllPages(store, { criteria: criteriaList, limit })]).toEqual([
          text,
          found.map(({ id }) => id),
        ]);
      }
      expect(await findMessages(store, 'rita', { accountIds: [2], limit })).toEqual([annMessage.id]);
      expect(await findMessages(store, '', { accountIds: [2], limit })).toEqual([annMessage.id]);
      expect(await findMessages(store, '', { since: START + 2, until: START + 4, limit })).toEqual([
        hanMessage.id,
        koelnMessage.id,
      ]);
      expect(await findMessages(store, ritaMessage.id, { accountIds: [2] })).toEqual([]);
    },
  );

  async function moveToState(store: Store, message: NewMessage, state: State): Promise<void> {
    const lease = state === 'queued' || state === 'suppressed' || state === 'cancelled' ? null : LEASE;
    await store.accept([{ ...message, lease, suppressedBy: state === 'suppressed' ? 'simulator' : null }]);
    if (state === 'cancelled') await store.cancelMessage(message.id, START);
    const leasedMessage = { id: message.id, attempts: 1, lease: LEASE };
    if (state === 'delivered' || state === 'bounced' || state === 'expired') {
      await store.settle([createSettlement(leasedMessage, { to: state })]);
    }
    if (state === 'complained') {
      const { changes, ...otherFields } = createSettlement(leasedMessage);
      await store.settle([
        { ...otherFields, changes: [...changes, ...createSettlement(leasedMessage, { to: 'complained' }).changes] },
      ]);
    }
    if (state === 'uncertain') {
      await store.markTransmitting([{ id: message.id, owner: LEASE.owner, attempts: 1 }]);
      const recovery = {
        includeAllLeases: true,
        includeDeadNodes: false,
        onUncertain: 'hold',
        node: 'node-a',
      } as const;
      await store.recover({ ...recovery, now: START });
    }
  }

  test.each([false, true])(
    'messages are found by the class and the category of their last failure, in every state (indexed: %s)',
    async (indexed) => {
      const store = await openWithAccounts({}, 'other');
      const failures = [
        { class: 'hard', category: 'domain' },
        { class: 'soft', category: 'greylisted' },
        { class: 'soft', category: 'unknown' },
        { class: 'block', category: 'unknown' },
      ] as const;
      const evidence = { status: null, diagnostic: null };
      const storedMessages: { id: string; state: State; failure: (typeof failures)[number] | null }[] = [];
      const messages: NewMessage[] = [];
      for (const state of ['queued', 'delivered', 'bounced'] as const) {
        for (const failure of [null, ...failures]) {
          const message = createMessage({ acceptedAt: START + messages.length, lease: LEASE });
          messages.push(message);
          storedMessages.unshift({ id: message.id, state, failure });
        }
      }
      await store.accept(messages);
      for (const { id, state, failure } of storedMessages) {
        let attempts = 1;
        const settleAttempt = (to: State, last: RecordedFailure | null, dueAt = START) =>
          store.settle([
            createSettlement(
              { id, attempts, lease: LEASE },
              { to, dueAt: to === 'queued' ? dueAt : null, event: createEntry(to, { at: START, failure: last }) },
            ),
          ]);
        const retry = async (last: RecordedFailure) => {
          await settleAttempt('queued', last);
          const { messages: claimed } = await store.claim({ maxMessages: 1, maxBytes: 9_000 }, LEASE, START);
          expect(claimed.map((message) => message.id)).toEqual([id]);
          attempts += 1;
        };
        const lastFailure = failure === null ? null : { ...failure, ...evidence };
        // The search must not find this failure, because it is not the last one.
        if (lastFailure !== null) await retry({ class: 'block', category: 'size', ...evidence });
        if (state === 'delivered' && lastFailure !== null) await retry(lastFailure);
        await settleAttempt(state, state === 'delivered' ? null : lastFailure, START + 900_000);
      }
      if (indexed) await indexUntil(store, START + 1_000);
      for (const state of [null, 'queued', 'delivered', 'bounced'] as const) {
        for (const failureClass of [null, ...FAILURE_CLASSES]) {
          for (const failureCategory of [null, 'unknown', 'size'] as const) {
            if (failureClass === null && failureCategory === null) continue;
            const expected = storedMessages.filter(
              ({ state: messageState, failure }) =>
                (state === null || messageState === state) &&
                (failureClass === null || failure?.class === failureClass) &&
                (failureCategory === null || failure?.category === failureCategory),
            );
            const filter = { state, failureClass, failureCategory };
            const searchFilter = {
              states: state === null ? [] : [state],
              failureClasses: failureClass === null ? [] : [failureClass],
              failureCategories: failureCategory === null ? [] : [failureCategory],
            };
            const ids = expected.map(({ id }) => id);
            for (const text of ['', 'receipt']) {
              const foundIds = await findMessages(store, text, { ...searchFilter, limit: 2 });
              expect([filter, text, foundIds]).toEqual([filter, text, ids]);
            }
            const listFilter = { ...filter, accountId: null, to: null, since: null, limit: 50 };
            expect((await store.listMessages(listFilter)).map(({ id }) => id)).toEqual(ids);
          }
        }
      }
      expect(await findMessages(store, '', { failureClasses: ['soft'], accountIds: [2] })).toEqual([]);
      const [first] = storedMessages.filter(({ failure }) => failure?.class === 'hard');
      expect(await findMessages(store, first?.id ?? '', { failureClasses: ['hard'] })).toEqual([first?.id]);
      expect(await findMessages(store, first?.id ?? '', { failureClasses: ['soft'] })).toEqual([]);
    },
  );

  test('messages are found by their route while they wait and after they ended', async () => {
    const store = await openWithAccounts();
    const settlements = [
      { name: 'moved', route: 'backup', to: 'queued', dueAt: START },
      { name: 'sent', route: 'backup', to: 'delivered', dueAt: null },
      { name: 'before', route: null, to: 'delivered', dueAt: null },
      { name: 'new', route: null, to: null, dueAt: null },
    ] as const;
    const messages = settlements.map(({ to }, index) =>
      createMessage({ acceptedAt: START - index, lease: to === null ? null : LEASE }),
    );
    await store.accept(messages);
    for (const [index, { route, to, dueAt }] of settlements.entries()) {
      const message = messages[index];
      if (to === null || message === undefined) continue;
      const event = createEntry(to === 'queued' ? 'deferred' : to, { at: START });
      await store.settle([{ ...createSettlement(message, { to, dueAt, event }), route }]);
    }
    const findNames = async (search: Partial<MessageSearch>) =>
      (await store.searchMessages({ ...ANY_SEARCH, ...search }, 5_000)).messages.map(({ id, route }) => [
        settlements[messages.findIndex((message) => message.id === id)]?.name,
        route,
      ]);
    const moved = ['moved', 'backup'];
    const sent = ['sent', 'backup'];
    expect(await findNames({})).toEqual([moved, sent, ['before', 'default'], ['new', null]]);
    expect(await findNames({ routes: ['backup'] })).toEqual([moved, sent]);
    expect(await findNames({ routes: ['backup'], states: ['queued'] })).toEqual([moved]);
    expect(await findNames({ routes: ['default', 'other'] })).toEqual([['before', 'default']]);
    expect(await findNames({ routes: ['backup'], criteria: parseCriteria('receipt') })).toEqual([moved, sent]);
    expect(await findNames({ routes: ["'x"] })).toEqual([]);
  });

  const WORDS = ['alpha', 'beta', 'Gamma', 'Ärger', 'straße', 'al', 'alphabet', '7', '77', '订', '单'];
  const NAMES = ['rita', 'rita.b', 'bob', 'al+pha', 'ÄNN'];
  const DOMAINS = ['example.com', 'example.org', 'beta.example', 'EXAMPLE.com'];
  const address = fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...DOMAINS)).map((parts) => parts.join('@'));
  const createText = (maxWords: number) =>
    fc.array(fc.constantFrom(...WORDS), { maxLength: maxWords }).map((words) => words.join(' '));
  const messageFields = fc.record({
    to: address,
    from: address,
    subject: createText(4),
    accountId: fc.constantFrom(1, 1, 1, 2),
    after: fc.constantFrom(0, 0, 1, 50),
    state: fc.constantFrom<State>('queued', ...STATES),
  });
  const searchText = fc.oneof(
    createText(2),
    fc.tuple(createText(1), fc.constantFrom(...WORDS, ...NAMES)).map(([words, word]) => `${words} ${word.slice(0, 2)}`),
    address,
    address.map((whole) => whole.slice(0, -2)),
    fc.constantFrom(...DOMAINS).map((domain) => `@${domain}`),
  );
  const search = fc.record({
    q: searchText,
    to: fc.option(searchText, { nil: '' }),
    subject: fc.option(createText(2), { nil: '' }),
    accountIds: fc.constantFrom<readonly number[]>([], [], [1], [2], [1, 2]),
    states: fc.constantFrom<readonly State[]>(
      ...([[], [], ['queued'], ['suppressed'], ['delivered'], ['bounced'], ['expired']] as const),
      ...([
        ['suppressed', 'bounced', 'queued'],
        ['delivered', 'cancelled'],
      ] as const),
    ),
    since: fc.constantFrom(null, null, 200),
    until: fc.constantFrom(null, null, 900),
    limit: fc.constantFrom(1, 3, 50),
    budgetMs: fc.constantFrom(0, 5_000),
  });

  test('a search returns the same messages as a filter over all rows, for every state, any set of indexed messages and every page size', async () => {
    const store = await openWithAccounts({}, 'other');
    const sampledFields = fc.sample(messageFields, { numRuns: selectCaseCount(60, 160), seed: 6 });
    let nextAcceptedAt = START;
    const messages: { message: NewMessage; state: State }[] = [];
    for (const { after, state, ...fields } of sampledFields) {
      nextAcceptedAt += after;
      const message = createMessage({ ...fields, acceptedAt: nextAcceptedAt, recipient: fields.to.toLowerCase() });
      messages.push({ message, state });
    }
    // The messages in the state `uncertain` are stored first, because their creation recovers all leases.
    for (const areUncertain of [true, false])
      for (const { message, state } of messages)
        if ((state === 'uncertain') === areUncertain) await moveToState(store, message, state);
    const anyMessage = {
      to: '',
      subject: '',
      accountIds: [] as readonly number[],
      since: null,
      until: null,
      limit: 3,
      budgetMs: 5_000,
    };
    const sampledSearches = [
      ...fc.sample(search, { numRuns: selectCaseCount(30, 60), seed: 7 }),
      ...STATES.flatMap((state) => ['', 'a'].map((q) => ({ ...anyMessage, q, states: [state] }))),
    ];
    const compareSearches = async () => {
      for (const { q, to, subject, accountIds, states, since, until, limit, budgetMs } of sampledSearches) {
        const criteriaList = [
          ...parseCriteria(q),
          ...parseCriteria(to, ['to']),
          ...parseCriteria(subject, ['subject']),
        ];
        const timeRange = {
          since: since === null ? null : START + since,
          until: until === null ? null : START + until,
        };
        const expected = messages
          .filter(({ message }) => matchesCriteria(criteriaList, message))
          .filter(({ message }) => accountIds.length === 0 || accountIds.includes(message.accountId))
          .filter(({ state }) => states.length === 0 || states.includes(state))
          .filter(({ message }) => timeRange.since === null || getIdTimestamp(message.id) >= timeRange.since)
          .filter(({ message }) => timeRange.until === null || getIdTimestamp(message.id) < timeRange.until)
          .map(({ message }) => message.id)
          .sort()
          .reverse();
        const foundIds = await readAllPages(
          store,
          { criteria: criteriaList, accountIds, states, ...timeRange, limit },
          budgetMs,
        );
        expect([q, to, subject, accountIds, states, foundIds]).toEqual([q, to, subject, accountIds, states, expected]);
      }
    };
    await compareSearches();
    for (const until of [START + 500, START + 700, START + 701, START + 1_200, nextAcceptedAt + 1]) {
      await indexUntil(store, until);
      if (until === START + 500 || until === nextAcceptedAt + 1) await compareSearches();
    }
  });

  test('pages have no gaps and no duplicates while messages are accepted and indexed', async () => {
    const store = await openWithAccounts({}, 'other');
    const messages = Array.from({ length: selectCaseCount(120, 300) }, (_, index) =>
      createMessage({ acceptedAt: START + index, subject: `Number ${index % 3}` }),
    );
    await store.accept(messages);
    const expected = messages
      .filter((_, index) => index % 3 === 1)
      .map(({ id }) => id)
      .reverse();
    const foundIds: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; ; page += 1) {
      const messageSearch = { ...ANY_SEARCH, criteria: parseCriteria('number "1"'), limit: 7, before: cursor };
      const { messages: foundMessages, searchedTo } = await store.searchMessages(
        messageSearch,
        page % 2 === 0 ? 0 : 5_000,
      );
      foundIds.push(...foundMessages.map(({ id }) => id));
      if (searchedTo === null) break;
      cursor = searchedTo;
      await store.accept([createMessage({ acceptedAt: START + 1_000 + page, subject: 'Number 1' })]);
      await store.indexMessages({
        horizon: getMinIdAt(START + 20 * page),
        minMessages: 1,
        unindexedCount: null,
        now: START + page * MINUTE_MS,
      });
    }
    expect(foundIds.filter((id) => getIdTimestamp(id) < START + 1_000)).toEqual(expected);
  });

  test('a message whose commit was delayed is in the index after some minutes', async () => {
    const store = await openWithAccounts({}, 'other');
    await store.accept(Array.from({ length: 60 }, (_, index) => createMessage({ acceptedAt: START + 2 * index })));
    await indexUntil(store, START + 200);
    const lateMessage = createMessage({ acceptedAt: START + 11, to: 'late@example.com' });
    await store.accept([lateMessage]);
    const findLate = () => findMessages(store, 'late@example.com', { limit: 1 });
    expect([await indexUntil(store, START + 200, START + MINUTE_MS), await findLate()]).toEqual([0, []]);
    expect(await indexUntil(store, START + 200, START + 20 * MINUTE_MS)).toBe(1);
    expect(await findLate()).toEqual([lateMessage.id]);
    expect(await findMessages(store, 'receipt', { limit: 1 })).toHaveLength(61);
    expect(await indexUntil(store, START + 200, START + 30 * MINUTE_MS)).toBe(0);
  });

  test('in an empty store no message is indexed, and messages after the horizon are never indexed', async () => {
    const store = await openWithAccounts({}, 'other');
    expect(
      await store.indexMessages({ horizon: getMinIdAt(START), minMessages: 1, unindexedCount: null, now: START }),
    ).toEqual({
      hasChanged: false,
      unindexedCount: 0,
      indexedCount: 0,
    });
    await store.accept([createMessage({ acceptedAt: START })]);
    expect(await indexUntil(store, START)).toBe(0);
    expect(await indexUntil(store, START + 1)).not.toBe(0);
    await store.accept([createMessage({ acceptedAt: START + 1 }), createMessage({ acceptedAt: START + 2 })]);
    expect(
      await store.indexMessages({ horizon: getMinIdAt(START + 9), minMessages: 3, unindexedCount: null, now: START }),
    ).toEqual({
      hasChanged: false,
      unindexedCount: 2,
      indexedCount: 0,
    });
    expect(
      await store.indexMessages({ horizon: getMinIdAt(START + 9), minMessages: 2, unindexedCount: null, now: START }),
    ).toMatchObject({ hasChanged: true });
    expect(await findMessages(store, 'receipt')).toHaveLength(3);
  });
});
