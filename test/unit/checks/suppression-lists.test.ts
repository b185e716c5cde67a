import { describe, expect, test } from 'vitest';
import { checkSuppressionLists, type SuppressionListsParts } from '../../../src/checks/suppression-lists.ts';
import type { SesFailureCode, SesSuppressionPage } from '../../../src/domains/ses-suppression-list.ts';
import type { ListedSuppression, SuppressionReason } from '../../../src/model/suppression.ts';

const PAGE_SIZE = 1_000;

interface ListParts {
  readonly provider?: SesSuppressionPage['entries'];
  readonly ownEntries?: readonly ListedSuppression[];
  readonly reasons?: readonly ('BOUNCE' | 'COMPLAINT')[];
  /** The index of the first page that cannot be read. Later pages cannot be read either. -1 if no request succeeds. */
  readonly failsAtPage?: number;
  readonly failure?: SesFailureCode;
  readonly usesSmtpInterface?: boolean;
  readonly requestMs?: number;
}

const createProviderEntry = (address: string, reason: 'BOUNCE' | 'COMPLAINT' = 'BOUNCE') => ({ address, reason });
const createOwnEntry = (address: string, reason: SuppressionReason = 'bounce', list = 'acme'): ListedSuppression => ({
  address,
  reason,
  list,
  source: null,
  at: 0,
});

async function compareLists(lists: ListParts) {
  const { provider = [], ownEntries = [], reasons = ['BOUNCE', 'COMPLAINT'], requestMs = 0 } = lists;
  let nowMs = 0;
  const pageTimes: number[] = [];
  const failedResult = {
    kind: 'failed',
    failure: { code: lists.failure ?? 'unavailable', reason: 'the reason', remedy: 'the remedy' },
  } as const;
  const parts: SuppressionListsParts = {
    list: {
      readReasons: async () => (lists.failsAtPage === -1 ? failedResult : { kind: 'done', value: new Set(reasons) }),
      async readPage(position) {
        pageTimes.push(nowMs);
        nowMs += requestMs;
        if (lists.failsAtPage !== undefined && pageTimes.length > lists.failsAtPage) return failedResult;
        const firstIndex = Number(position ?? 0);
        const nextToken = firstIndex + PAGE_SIZE < provider.length ? String(firstIndex + PAGE_SIZE) : null;
        return {
          kind: 'done',
          value: { entries: provider.slice(firstIndex, firstIndex + PAGE_SIZE), nextPosition: nextToken },
        };
      },
    },
    usesSmtpInterface: lists.usesSmtpInterface ?? false,
    findSuppressed: async (addresses) =>
      addresses.filter((address) => ownEntries.some((entry) => entry.address === address)),
    async *readOwnPages() {
      yield ownEntries;
    },
    clock: { now: () => nowMs, monotonic: () => nowMs, after: () => () => undefined },
    wait: async (ms) => {
      nowMs += ms;
    },
  };
  const finding = await checkSuppressionLists(parts);
  return { finding, pageTimes };
}

describe('the comparison of the lists', () => {
  test('lists that differ only in letter case are ok', async () => {
    const { finding } = await compareLists({
      provider: [createProviderEntry('Ada@example.com'), createProviderEntry('bob@example.com', 'COMPLAINT')],
      ownEntries: [createOwnEntry('ada@example.com'), createOwnEntry('bob@example.com', 'complaint', '*')],
    });
    expect(finding).toMatchObject({ level: 'ok', text: expect.stringContaining('all 2 entries of Amazon SES') });
  });

  test('entries that only one of the lists contains are counted, with examples', async () => {
    const { finding } = await compareLists({
      provider: ['a', 'b', 'c', 'D'].map((name) => createProviderEntry(`${name}@example.com`)),
      ownEntries: [createOwnEntry('x@example.com'), createOwnEntry('y@example.com', 'provider')],
    });
    expect(finding.level).toBe('warning');
    expect(finding.text).toContain(
      '4 addresses are only on the list of Amazon SES: a@example.com, b@example.com, c@example.com, …',
    );
    expect(finding.text).toContain('2 addresses are only on lists of Postrider: x@example.com (acme), y@example.com');
  });

  test('entries whose reason Amazon SES does not record are not differences', async () => {
    const manualResult = await compareLists({
      ownEntries: [createOwnEntry('a@example.com', 'manual'), createOwnEntry('b@example.com', 'unsubscribed')],
    });
    expect(manualResult.finding.level).toBe('ok');
    const differentLists = {
      provider: [createProviderEntry('c@example.com')],
      ownEntries: [createOwnEntry('b@example.com', 'bounce')],
    };
    expect((await compareLists({ ...differentLists, reasons: ['COMPLAINT'] })).finding.level).toBe('ok');
    expect((await compareLists(differentLists)).finding.level).toBe('warning');
    expect(await compareLists({ ...differentLists, reasons: [] })).toMatchObject({
      finding: { level: 'ok' },
      pageTimes: [],
    });
  });
});

describe('a list of 1,000,000 entries', () => {
  const provider = Array.from({ length: 1_000_000 }, (_, n) => createProviderEntry(`a${n}@example.com`));

  test('is compared only partly, with one request per second, and the finding states the number of compared entries', async () => {
    const { finding, pageTimes } = await compareLists({
      provider,
      ownEntries: [createOwnEntry('a0@example.com'), createOwnEntry('x@example.com')],
    });
    expect(pageTimes).toEqual(Array.from({ length: 12 }, (_, n) => n * 1_000));
    expect(finding.text).toContain('compared 12,000 entries of Amazon SES; its list has further entries');
    expect(finding.text).toContain('11,999 addresses are only on the list of Amazon SES');
    expect(finding.text).not.toContain('x@example.com');
  });

  test('a failure after the first page does not discard the entries that were read', async () => {
    const { finding } = await compareLists({ provider, failsAtPage: 2, failure: 'throttled' });
    expect(finding.text).toContain('compared 2,000 entries of Amazon SES');
  });
});

test.each([
  [-1, 'not-permitted', false, 'warning'],
  [0, 'not-permitted', false, 'warning'],
  [-1, 'no-credentials', false, 'warning'],
  // The SMTP interface needs no credentials of the API.
  [-1, 'no-credentials', true, 'ok'],
  [-1, 'not-permitted', true, 'warning'],
] as const)(
  'no page from the index %i can be read (%s, SMTP interface: %s): %s',
  async (failsAtPage, failure, usesSmtpInterface, result) => {
    const { finding } = await compareLists({
      failsAtPage,
      failure,
      usesSmtpInterface,
      ownEntries: [createOwnEntry('a@example.com')],
    });
    expect(finding.level).toBe(result);
  },
);
