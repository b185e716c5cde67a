/** Which mail goes out signed, which unsigned, and which waits. */
import { expect, test } from 'vitest';
import { DomainDirectory } from '../../../src/domains/directory.ts';
import { outgoing } from '../../../src/domains/outgoing.ts';
import { GRACE_MS, type SendingDomain } from '../../../src/model/domain.ts';
import type { LeasedMail } from '../../../src/model/message.ts';
import { sendingDomain } from './sending-domain.ts';

const MAIL: LeasedMail = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  accountId: 1,
  to: 'ada@example.com',
  from: 'shop@example.org',
  subject: 'Your order',
  message: 'Thank you.',
  acceptedAt: 0,
  attempts: 1,
  lease: { owner: 'node', until: 1 },
};
const AUTHENTICATED = sendingDomain({ status: 'authenticated', checkedAt: 1, authenticatedAt: 1 });
const LOST: SendingDomain = { ...AUTHENTICATED, status: 'failing', failingSince: 1, checkedAt: 1 + GRACE_MS };

function sending(domain: SendingDomain | null, mustSign: boolean) {
  const domains = new DomainDirectory({ clock: { now: () => 0 }, publish: () => undefined });
  domains.apply({ domains: domain === null ? [] : [domain], removed: [] });
  const alarms: string[] = [];
  const prepare = outgoing({
    domains,
    mustSign,
    returnPath: null,
    signer: {
      sign: async (data, _bodyAt, keys) =>
        Buffer.concat([Buffer.from(`Signed-By: ${keys.map(({ selector }) => selector).join()}\r\n`), data]),
    },
    failed: (error) => alarms.push(String(error)),
  });
  const signedBy = async () => {
    const [, by] = /^Signed-By: (.*)\r\n/.exec((await prepare(MAIL)).data.toString('latin1')) ?? [];
    return by ?? null;
  };
  return { signedBy, alarms };
}

test('an authenticated domain’s mail is signed with the keys whose records are there', async () => {
  expect(await sending(AUTHENTICATED, true).signedBy()).toBe('pr20261121aaaaa');
  const published = ['pr20261121aaaaa', 'pr20261121aaaae'];
  expect(await sending({ ...AUTHENTICATED, published }, true).signedBy()).toBe(published.join());
});

test.each([
  [
    'that lost its records',
    LOST,
    'the domain example.org is not authenticated any more; `postrider domain verify example.org`',
  ],
  ['that is pending', sendingDomain(), 'the account has no authenticated domain example.org; `postrider domain list`'],
  ['that is gone', null, 'the account has no authenticated domain example.org; `postrider domain list`'],
])(
  'where senders must be authenticated, mail of a domain %s waits and an operator is told',
  async (_name, domain, why) => {
    const { signedBy, alarms } = sending(domain, true);
    await expect(signedBy).rejects.toThrow(why);
    expect(alarms).toEqual([expect.stringContaining(why)]);
  },
);

test.each([
  ['that lost its records is signed with the keys it has', LOST, 'pr20261121aaaaa'],
  ['that is pending goes unsigned', sendingDomain(), null],
  ['that is nobody’s goes unsigned', null, null],
  ['of another account goes unsigned', { ...AUTHENTICATED, accountId: 2 }, null],
])('where any sender may send, mail of a domain %s', async (_name, domain, by) => {
  const { signedBy, alarms } = sending(domain, false);
  expect(await signedBy()).toBe(by);
  expect(alarms).toEqual([]);
});
