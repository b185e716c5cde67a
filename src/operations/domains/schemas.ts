/** What the operations on sending domains answer with. Free of Node, so that the dashboard takes its types from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, oneOf, Time } from '../schemas.ts';

const KeyState = oneOf(['staged', 'active', 'retiring']);

/** What a record is, and what the last check found of it. */
const RECORD_MEMBERS = {
  purpose: oneOf(['dkim', 'spf', 'dmarc', 'return-path', 'provider']),
  type: oneOf(['TXT', 'CNAME', 'MX', 'SES'], {
    description: '`SES` is not a record but the state of the identity at Amazon SES.',
  }),
  name: Type.String({ description: 'Fully qualified, without the last dot.' }),
  value: Type.String(),
  found: oneOf(['found', 'missing', 'wrong', 'unknown'], {
    description: 'Of the last check that was answered; `unknown` before the first.',
  }),
};

/** A record to publish, and what is to be said of it. */
export const DomainRecord = Type.Object({
  ...RECORD_MEMBERS,
  observed: Type.Array(Type.String(), { description: 'What DNS has at that name, as far as it bears on the purpose.' }),
  detail: nullable(Type.String({ description: 'What was seen, what was expected and what to do, in one line.' })),
  about: Type.String({ description: 'What the record is for.' }),
  key: nullable(KeyState),
});
export type DomainRecord = Static<typeof DomainRecord>;

const DETAIL_MEMBERS = {
  domain: Type.String({ description: 'In A-labels.' }),
  unicode: Type.String({ description: 'For people.' }),
  account: Type.String({ description: 'The account that may send from it.' }),
  status: oneOf(['pending', 'authenticated', 'failing']),
  subdomains: Type.Boolean({ description: 'Its subdomains may send too.' }),
  created: Time,
  checked: nullable(Time),
  authenticated: nullable(Time),
  failingSince: nullable(Time),
  graceEnds: nullable(
    Type.String({ format: 'date-time', description: 'Until when it sends although its DKIM record is gone.' }),
  ),
  sends: Type.Boolean({ description: 'Messages from it are accepted now.' }),
  keys: Type.Array(
    Type.Object({
      selector: Type.String(),
      algorithm: oneOf(['rsa', 'ed25519']),
      state: KeyState,
      retires: nullable(Time),
    }),
  ),
  records: Type.Array(DomainRecord),
};

export const DomainDetails = Type.Object(DETAIL_MEMBERS);
export type DomainDetails = Static<typeof DomainDetails>;

/** After a check: what it changed, and why it does not pass. */
export const VerifiedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  change: nullable(
    oneOf(['authenticated', 'lost', 'blocked', 'recovered'], {
      description: 'What this check changed; null: nothing.',
    }),
  ),
  fault: nullable(
    Type.String({ description: 'Why the domain is not authenticated, or not accepted by the provider; null: it is.' }),
  ),
});
export type VerifiedDomain = Static<typeof VerifiedDomain>;

/** After a rotation began or was cancelled. */
export const RotatedDomain = Type.Object({
  ...DETAIL_MEMBERS,
  removedRecords: Type.Array(Type.String(), {
    description: 'Names of the records of the keys that were dropped, which may be taken out of DNS.',
  }),
});
export type RotatedDomain = Static<typeof RotatedDomain>;

/** A domain that was removed. */
export const RemovedDomain = Type.Object({
  domain: Type.String(),
  status: oneOf(['removed']),
  records: Type.Array(Type.Object(RECORD_MEMBERS)),
  removedRecords: Type.Array(Type.String(), {
    description: 'Names of the DKIM records, which may be taken out of DNS.',
  }),
  keepRecordsUntil: nullable(
    Type.String({
      format: 'date-time',
      description: 'When the DKIM records may be taken out of DNS; null: 3 days after the last message.',
    }),
  ),
  remainingIdentity: nullable(
    Type.String({ description: 'The identity that stays at Amazon SES; null where none does.' }),
  ),
});
export type RemovedDomain = Static<typeof RemovedDomain>;
