import { describe, expect, test } from 'vitest';
import { addInboxRule, listInboxRules } from '../../../src/operations/inbox-rules.ts';
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
});
