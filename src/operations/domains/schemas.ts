/**
 * The schemas of the results of the operations on sending domains. The file imports no module of Node, because the
 * dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum, Time } from '../schemas.ts';

const KeyState = createStringEnum(['staged', 'active', 'retiring']);

/** A DNS record with the result of the last check. */
const RECORD_MEMBERS = {
  purpose: createStringEnum(['dkim', 'spf', 'dmarc', 'return-path', 'provider']),
  type: createStringEnum(['TXT', 'CNAME', 'MX', 'SES'], {
    description: '`SES` is not a DNS record; it is the state of the identity at Amazon SES.',
  }),
  name: Type.String({ description: 'Fully qualified, without a trailing dot.' }),
  value: Type.String(),
  found: createStringEnum(['found', 'missing', 'wrong', 'unknown'], {
    description: 'The result of the last check that DNS answered; `unknown` before the first such check.',
  }),
};

/** A record to publish, with its purpose and the details of the last check. */
export const DomainRecord = Type.Object({
  ...RECORD_MEMBERS,
  observed: Type.Array(Type.String(), {
    description: 'The values of the existing records at this name that have the same purpose.',
  }),
  detail: createNullable(
    Type.String({ description: 'The observed value, the expected value and the remedy, in one line.' }),
  ),
  about: Type.String({ description: 'The purpose of the record in words.' }),
  key: createNullable(KeyState),
});
export type DomainRecord = Static<typeof DomainRecord>;

/** The DMARC alignment of messages of the domain by one method: DKIM, SPF, or DMARC as a whole. */
export const DomainAlignment = Type.Object({
  method: createStringEnum(['dkim', 'spf', 'dmarc']),
  state: createStringEnum(['pass', 'warning', 'fail', 'unknown', 'not-needed'], {
    description:
      '`pass`: aligned; `dmarc`: a policy is published, and DKIM or SPF aligns. `warning`: as `pass`, with a consequence that `found` names. `unknown`: not checked. `not-needed`: not aligned, and DKIM is sufficient.',
  }),
  found: Type.String({ description: 'The result of the last check. SPF records are not evaluated.' }),
  expected: Type.String({ description: 'What alignment requires.' }),
});
export type DomainAlignment = Static<typeof DomainAlignment>;

const DETAIL_MEMBERS = {
  domain: Type.String({ description: 'The domain name in A-labels.' }),
  unicode: Type.String({ description: 'The domain name in U-labels.' }),
  account: Type.String({ description: 'The account that may send from the domain.' }),
  status: createStringEnum(['pending', 'authenticated', 'failing']),
  subdomains: Type.Boolean({ description: 'Subdomains of the domain may send too.' }),
  returnPath: createNullable(
    Type.Object(
      {
        name: Type.String({ description: 'The name in A-labels.' }),
        state: createStringEnum(['used', 'unverified', 'replaced', 'no-listener'], {
          description:
            '`used`: messages use the return path. `unverified`: its records have not been found. `replaced`: the provider replaces the envelope sender. `no-listener`: POSTRIDER_RETURN_PATH_DOMAIN is not set. In every state but `used`, messages do not use it.',
        }),
        detail: Type.String({ description: 'The state in one line.' }),
      },
      { description: 'The return path of the domain; null if its messages use POSTRIDER_RETURN_PATH_DOMAIN.' },
    ),
  ),
  created: Time,
  checked: createNullable(Time),
  authenticated: createNullable(Time),
  failingSince: createNullable(Time),
  graceEnds: createNullable(
    Type.String({
      format: 'date-time',
      description: 'The time until which messages are accepted although the DKIM record is missing.',
    }),
  ),
  sends: Type.Boolean({ description: 'True if messages from the domain are accepted now.' }),
  keys: Type.Array(
    Type.Object({
      selector: Type.String(),
      algorithm: createStringEnum(['rsa', 'ed25519']),
      state: KeyState,
      retires: createNullable(Time),
    }),
  ),
  records: Type.Array(DomainRecord),
  alignment: Type.Array(DomainAlignment, {
    description: 'DKIM, SPF and DMARC, in this order (RFC 7489 section 3.1).',
  }),
};

export const DomainDetails = Type.Object(DETAIL_MEMBERS);
export type DomainDetails = Static<typeof DomainDetails>;

/** A domain after a check, with the change of the status and the reason why the check fails. */
export const VerifiedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  change: createNullable(
    createStringEnum(['authenticated', 'lost', 'blocked', 'recovered'], {
      description: 'The change of the status by this check; null if the status did not change.',
    }),
  ),
  returnPathChange: createNullable(
    createStringEnum(['verified', 'lost'], {
      description: 'The change of the return path by this check; null if it did not change.',
    }),
  ),
  fault: createNullable(
    Type.String({
      description:
        'The reason why the domain is not authenticated or the provider does not accept it; null if the check passes.',
    }),
  ),
});
export type VerifiedDomain = Static<typeof VerifiedDomain>;

/** A domain after a rotation began or was cancelled. */
export const RotatedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  removedRecords: Type.Array(Type.String(), {
    description: 'Names of the records of the removed keys; they may be deleted from DNS.',
  }),
});
export type RotatedDomain = Static<typeof RotatedDomain>;

/** A domain that was removed. */
export const RemovedDomain = Type.Object({
  domain: Type.String(),
  status: createStringEnum(['removed']),
  records: Type.Array(Type.Object(RECORD_MEMBERS)),
  removedRecords: Type.Array(Type.String(), {
    description: 'Names of the DKIM records; they may be deleted from DNS.',
  }),
  keepRecordsUntil: createNullable(
    Type.String({
      format: 'date-time',
      description:
        'The time from which the DKIM records may be deleted from DNS; if null, keep them for 3 days after the last message.',
    }),
  ),
  remainingIdentity: createNullable(
    Type.String({ description: 'The identity that remains at Amazon SES; null if no identity remains.' }),
  ),
});
export type RemovedDomain = Static<typeof RemovedDomain>;
