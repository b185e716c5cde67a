/**
 * A leased mail request as it goes out: composed, with the envelope sender of the return path, signed for its domain. The
 * same bytes on every attempt, unless the keys that sign were changed in between. Rejects where it cannot be signed though it must be: it is then deferred, never unsigned.
 */

import { compose } from '../message/compose.ts';
import { returnPathToken } from '../message/return-path.ts';
import { parseAddress } from '../model/address.ts';
import type { LeasedMail } from '../model/message.ts';
import type { OutgoingMessage } from '../transports/transport.ts';
import type { DomainDirectory } from './directory.ts';
import type { Signer } from './signer.ts';

/** The last field of Feedback-ID: who sends (Gmail's form, 5 to 15 characters). */
const SENDER_ID = 'postrider';

export interface OutgoingParts {
  readonly domains: Pick<DomainDirectory, 'signing'>;
  readonly signer: Signer;
  /**
   * True where senders must be authenticated: mail of a domain that no longer is waits. Where false, mail of a domain that
   * never was goes unsigned, and mail of one that was and lost it is signed by the keys it has: never unsigned.
   */
  readonly mustSign: boolean;
  /** Told of mail that could not be signed and therefore waits; wants an operator. */
  readonly failed: (error: unknown) => void;
  /** Domain and key of return paths, or null: the envelope sender is the From address. */
  readonly returnPath: { readonly domain: string; readonly key: Buffer } | null;
}

/** Makes the queue's `prepare`. */
export function outgoing({
  domains,
  signer,
  mustSign,
  failed,
  returnPath,
}: OutgoingParts): (mail: LeasedMail) => OutgoingMessage | Promise<OutgoingMessage> {
  return function prepare(mail) {
    const domain = parseAddress(mail.from)?.domain ?? '';
    const signing = domains.signing(mail.accountId, domain);
    // Only signed mail carries it: Gmail counts a Feedback-ID for the domain that signed it.
    const feedback = { name: 'Feedback-ID', value: `transactional:${mail.accountId}:${domain}:${SENDER_ID}` };
    const { data, bodyAt, envelopeFrom, envelopeTo, smtputf8 } = compose(mail, signing === null ? [] : [feedback]);
    const from =
      returnPath === null
        ? envelopeFrom
        : `${returnPathToken(returnPath.key, mail.id, mail.acceptedAt)}@${returnPath.domain}`;
    const message = (bytes: Buffer): OutgoingMessage => ({
      id: mail.id,
      envelope: { from, to: envelopeTo, smtputf8 },
      data: bytes,
    });
    if (mustSign && signing?.maySend !== true) {
      const why =
        signing === null
          ? `the account has no authenticated domain ${domain}; \`postrider domain list\` shows those there are`
          : `the domain ${domain} is not authenticated any more; \`postrider domain verify ${domain}\` says why`;
      const waits = new Error(why);
      failed(waits);
      throw waits;
    }
    if (signing === null) return message(data);
    const keys = signing.keys.map(({ selector, algorithm, sealed }) => ({
      domain: signing.domain,
      selector,
      algorithm,
      sealed,
    }));
    return signer.sign(data, bodyAt, keys, mail.acceptedAt).then(message, (error: unknown) => {
      failed(error);
      throw error;
    });
  };
}
