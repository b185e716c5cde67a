import { expect, test } from 'vitest';
import type { Change, LeasedMail } from '../../../src/model/message.ts';
import { LEASE_MS } from '../../../src/queue/dispatcher.ts';
import { createScreening } from '../../../src/queue/screening.ts';
import { virtualClock } from '../../rig/clock.ts';
import { newMail } from '../../rig/mail.ts';
import { START } from '../../rig/queue.ts';

const change = (suppress: Change['suppress']): Change => ({
  to: 'bounced',
  dueAt: null,
  event: { at: START, verb: 'bounced', by: 'n', detail: null, attempt: null },
  suppress,
});

function screened(answer: boolean) {
  const clock = virtualClock(START);
  const asked: string[] = [];
  const screening = createScreening(clock, async ({ id }) => {
    asked.push(id);
    return answer;
  });
  const leased = (to = 'rita@example.com', accountId = 1): LeasedMail => ({
    ...newMail({ to, accountId }),
    attempts: 1,
    lease: { owner: 'n', until: clock.now() + LEASE_MS },
  });
  return { clock, asked, screening, leased };
}

test('a recipient this node has just suppressed is not sent another message, whatever the case of letters', () => {
  const { screening, leased } = screened(true);
  expect(screening.wanted(leased())).toBe(true);
  screening.note(leased('Rita@example.com'), change('bounce'));
  expect(screening.wanted(leased())).toBe(false);
  expect(screening.wanted(leased('max@example.com'))).toBe(true);
  expect(screening.wanted(leased('rita@example.com', 2))).toBe(true);
});

test('a bounce that suppresses nobody holds nothing back', () => {
  const { screening, leased } = screened(true);
  screening.note(leased(), change(null));
  expect(screening.wanted(leased())).toBe(true);
});

test('what has waited for a second is asked of the store, which also knows what others have suppressed', async () => {
  for (const answer of [true, false]) {
    const { clock, asked, screening, leased } = screened(answer);
    const mail = leased();
    expect(screening.wanted(mail)).toBe(true);
    await clock.advance(1_000);
    expect(await screening.wanted(mail)).toBe(answer);
    expect(asked).toEqual([mail.id]);
  }
});

test('after a while the store alone decides, so that a suppression taken back counts no longer', async () => {
  const { clock, screening, leased } = screened(true);
  screening.note(leased(), change('bounce'));
  await clock.advance(5_000);
  expect(screening.wanted(leased())).toBe(true);
});

test('what was suppressed just now is not forgotten because many were long ago', async () => {
  const { clock, screening, leased } = screened(true);
  for (let n = 0; n < 9_999; n += 1) screening.note(leased(`n${n}@example.com`), change('bounce'));
  await clock.advance(5_000);
  screening.note(leased(), change('bounce'));
  screening.note(leased('max@example.com'), change('bounce'));
  expect(screening.wanted(leased())).toBe(false);
});
