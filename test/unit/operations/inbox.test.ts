import { describe, expect, test } from 'vitest';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import type { Inbox, InboxEntry } from '../../../src/model/inbox.ts';
import { listInbox, parseCapturedMessage, showInbox } from '../../../src/operations/inbox.ts';
import { addInboxRule, listInboxRules } from '../../../src/operations/inbox-rules.ts';
import { perform } from '../../../src/operations/operation.ts';
import { createCapturedSource } from '../../rig/captured-message.ts';
import { createOperationRig } from './operation-rig.ts';

const ids = [3, 2, 1].map((n) => `0192a3b4-c5d6-7e8f-9012-34567890000${n}`);
const [NEWEST_ID = '', MIDDLE_ID = '', OLDEST_ID = ''] = ids;
const HOSTILE_TEXT = '</script><script>alert(1)</script>"\'&\u2028\ud83d\ude00';

const SOURCE = createCapturedSource('<html><p>x</p></html>');
const INBOX_ENTRY = {
  to: 'ada@example.com',
  from: 'shop@example.org',
  returnPath: 'b-1@bounces.example.org',
  subject: HOSTILE_TEXT,
};
const entries: readonly InboxEntry[] = ids.map((id) => ({ id, at: 1_700_000_000_000, ...INBOX_ENTRY }));
const inbox: Inbox = {
  list: async (limit, before = null) => entries.filter(({ id }) => before === null || id < before).slice(0, limit),
  findEntry: async (id) => entries.find((candidate) => candidate.id === id) ?? null,
  findSource: async (id) => (ids.includes(id) ? SOURCE : null),
};
const AT = '2023-11-14T22:13:20.000Z';

const list = (input: Readonly<Record<string, unknown>>, currentInbox: Inbox | null = inbox) =>
  perform(listInbox, input, { inbox: currentInbox, readEntity });
const showMessage = (id: string, currentInbox: Inbox | null = inbox) =>
  perform(showInbox, { id }, { inbox: currentInbox, readEntity });

describe('the list', () => {
  test('is returned page by page, newest message first', async () => {
    const listIds = (pageIds: readonly string[], next: string | null) => ({
      ok: true,
      value: { messages: pageIds.map((id) => ({ id, at: AT, ...INBOX_ENTRY })), next },
    });
    expect(await list({ limit: '2' })).toMatchObject(listIds([NEWEST_ID, MIDDLE_ID], MIDDLE_ID));
    expect(await list({ limit: '2', before: MIDDLE_ID })).toMatchObject(listIds([OLDEST_ID], null));
    expect(await list({})).toMatchObject(listIds(ids, null));
    expect(await list({}, { ...inbox, list: async () => [] })).toMatchObject(listIds([], null));
  });

  test('with a search returns the matching messages, and the next page continues after the messages already searched', async () => {
    const subjects = new Map([
      [NEWEST_ID, 'Your receipt'],
      [MIDDLE_ID, 'Reset your password'],
      [OLDEST_ID, 'RECEIPT 7'],
    ]);
    const searchedEntries = entries.map((entry) => ({ ...entry, subject: subjects.get(entry.id) ?? '' }));
    const searchedInbox = { ...inbox, list: async (limit: number) => searchedEntries.slice(0, limit) };
    const search = async (input: Readonly<Record<string, unknown>>, from: Inbox = searchedInbox) => {
      const result = await list(input, from);
      return result.ok ? [result.value.messages.map(({ id }) => id), result.value.next] : result.error;
    };
    expect(await search({ search: ' Receipt' })).toEqual([[NEWEST_ID, OLDEST_ID], null]);
    expect(await search({ search: 'receipt', limit: 1 })).toEqual([[NEWEST_ID], NEWEST_ID]);
    expect(await search({ search: 'ADA@' })).toEqual([ids, null]);
    expect(await search({ search: 'nothing' })).toEqual([[], null]);
    const fullList = Array.from({ length: 1_000 }, () => ({ ...entries[0], subject: 'x' }) as InboxEntry);
    expect(await search({ search: 'nothing' }, { ...inbox, list: async () => fullList })).toEqual([[], NEWEST_ID]);
  });
});

describe('one message', () => {
  test('has its decoded header fields in order, its text, and whether it has HTML', async () => {
    expect(await showMessage(OLDEST_ID)).toMatchObject({
      ok: true,
      value: {
        id: OLDEST_ID,
        at: AT,
        ...INBOX_ENTRY,
        headers: [
          { name: 'Return-Path', value: '<shop@example.org>' },
          { name: 'Delivered-To', value: 'ada@example.com' },
          { name: 'Subject', value: 'Grüße ! and\tmore' },
          { name: 'X-Raw', value: '<b>é</b>' },
          { name: 'Content-Type', value: 'multipart/alternative; boundary=b' },
        ],
        text: 'Grüße <b>x</b>\n',
        html: true,
        bytes: SOURCE.length,
      },
    });
  });
});

describe('reading', () => {
  const MIB = 1_048_576;
  const CONTENT_TYPE_FIELD = 'Content-Type: text/plain\r\n';
  test('a long text is returned completely', () => {
    const text = 'né '.repeat(MIB / 3);
    expect(parseCapturedMessage(Buffer.from(`${CONTENT_TYPE_FIELD}\r\n${text}`), readEntity).text).toBe(text);
  });

  test('an attachment is not read as the text of the message', () => {
    const attachment =
      'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: Attachment; filename=x\r\n\r\nno\r\n--b\r\n\r\nyes\r\n--b--';
    expect(parseCapturedMessage(Buffer.from(attachment), readEntity).text).toBe('yes\n');
  });
});

describe('a rule of the inbox', () => {
  test.each([
    [{ match: 'ada', code: 451 }, 'match'],
    [{ match: 'ada@', code: 451 }, 'match'],
    [{ match: 'ada@localhost', code: 451 }, 'match'],
    [{ match: 'bounce@simulator.postrider.test', code: 451 }, 'match'],
    [{ match: '@simulator.postrider.test', code: 451 }, 'match'],
    [{ match: 'example.com' }, 'code'],
    [{ match: 'example.com', code: 250 }, 'code'],
    [{ match: 'example.com', code: 560 }, 'code'],
    [{ match: 'example.com', code: 499 }, 'code'],
    [{ match: 'example.com', code: 451, enhanced: '5.1.1' }, 'enhanced'],
    [{ match: 'example.com', code: 451, enhanced: '4.1' }, 'enhanced'],
    [{ match: 'example.com', code: 451, text: 'two\r\nlines' }, 'text'],
    [{ match: 'example.com', code: 451, text: 'x'.repeat(201) }, 'text'],
    [{ match: 'example.com', code: 451, delay: '5s' }, 'delay'],
    [{ match: 'example.com', answer: 'delay' }, 'delay'],
    [{ match: 'example.com', answer: 'delay', delay: '6m' }, 'delay'],
    [{ match: 'example.com', answer: 'disconnect', code: 451 }, 'code'],
    [{ match: 'example.com', code: 451, times: 0 }, 'times'],
    [{ match: 'example.com', code: 451, expires: '31d' }, 'expires'],
    [{ match: 'example.com', code: 451, expires: '2029-12-31' }, 'expires'],
  ])('%o is refused because of %s', async (input, field) => {
    const rig = await createOperationRig();
    expect(await rig.perform(addInboxRule, input)).toMatchObject({ ok: false, error: { code: 'invalid', field } });
    expect(await rig.performSuccessfully(listInboxRules, {})).toEqual([]);
  });

  test.each([
    [
      { code: 451, enhanced: '4.3.0' },
      { outcome: 'deferred', suppresses: false },
    ],
    [
      { code: 550, enhanced: '5.1.1' },
      { outcome: 'bounced', category: 'mailbox-unknown', suppresses: true },
    ],
    [
      { code: 550, enhanced: '5.7.1' },
      { outcome: 'bounced', suppresses: false },
    ],
    [
      { answer: 'delay', delay: '5s' },
      { outcome: 'delivered', category: null, suppresses: false },
    ],
    [{ answer: 'disconnect' }, { outcome: 'deferred', suppresses: false }],
    [{ answer: 'unanswered' }, { outcome: 'unanswered', suppresses: false }],
  ])('with %o reports the effect %o when it is added', async (input, effect) => {
    const rig = await createOperationRig();
    expect(await rig.performSuccessfully(addInboxRule, { match: ' @Example.COM', ...input })).toMatchObject({
      ...{ match: 'example.com', effect, status: 'active', times: 1, used: 0, lastUse: null },
      expires: '2030-01-02T00:00:00.000Z',
    });
  });
});
