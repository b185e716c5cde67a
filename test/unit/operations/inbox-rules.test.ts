/** Tests the operations on the rules of the inbox: refused input, the reported effect, and the required transport. */
import { describe, expect, test } from 'vitest';
import { addInboxRule, listInboxRules, removeInboxRule } from '../../../src/operations/inbox-rules.ts';
import { addSuppression } from '../../../src/operations/suppressions.ts';
import { createMessageIdAt } from '../../rig/messages.ts';
import { createOperationRig } from './operation-rig.ts';

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

  test('names the suppression lists that contain its last recipient', async () => {
    const rig = await createOperationRig();
    await rig.performSuccessfully(addInboxRule, { match: 'Ada@example.com', code: 550, enhanced: '5.1.1' });
    const request = { messageId: createMessageIdAt(rig.now), recipient: 'ada@example.com', domain: 'example.com' };
    await rig.store.consumeInboxRules([request], rig.now);
    await rig.performSuccessfully(addSuppression, { account: 'acme', address: 'ada@example.com', reason: 'bounce' });
    expect(await rig.performSuccessfully(listInboxRules, {})).toMatchObject([
      {
        status: 'used',
        used: 1,
        lastUse: { message: request.messageId, recipient: 'ada@example.com', suppressed: ['acme'] },
      },
    ]);
  });

  test('cannot be added without the transport capture:, but can be listed and removed', async () => {
    const rig = await createOperationRig({ POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1' });
    const rule = { match: 'example.com', code: 451 };
    expect(await rig.perform(addInboxRule, rule)).toMatchObject({
      ok: false,
      error: { code: 'conflict', field: null },
    });
    const answer = { kind: 'disconnect' } as const;
    await rig.store.addInboxRule({ match: 'example.com', answer, times: 1, expiresAt: rig.now + 1 }, rig.now);
    expect(await rig.performSuccessfully(listInboxRules, {})).toHaveLength(1);
    expect(await rig.performSuccessfully(removeInboxRule, { id: 1 })).toEqual({ id: 1, match: 'example.com' });
    expect(await rig.perform(removeInboxRule, { id: 1 })).toMatchObject({ ok: false, error: { code: 'not-found' } });
  });
});
