/**
 * The schemas of the results of the operations on suppression lists. The file imports no module of Node, because the
 * dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { SUPPRESSION_REASONS } from '../../model/suppression.ts';
import { createNullable, createStringEnum, SuppressionListEntry, suppressionMembers } from '../schemas.ts';
import { EXCLUSIONS } from './export-formats.ts';

export const SuppressionEntry = Type.Object({ address: Type.String(), ...suppressionMembers });
export type SuppressionEntry = Static<typeof SuppressionEntry>;

export const AddedSuppression = Type.Object({
  address: Type.String(),
  added: Type.Boolean({ description: 'False if the address was already on the list.' }),
});
export type AddedSuppression = Static<typeof AddedSuppression>;

export const RemovedSuppression = Type.Object({
  address: Type.String(),
  removed: Type.Boolean({
    description: 'False if the address was only on the list of the provider.',
  }),
  provider: createNullable(
    createStringEnum(['removed', 'absent'], {
      description:
        'The result at Amazon SES; `absent`: the address was not on the list of Amazon SES. Null without `provider`.',
    }),
  ),
});
export type RemovedSuppression = Static<typeof RemovedSuppression>;

/** An address with its entries in all suppression lists. */
export const SuppressedAddress = Type.Object({
  address: Type.String(),
  suppressed: Type.Boolean(),
  lists: Type.Array(SuppressionListEntry),
});
export type SuppressedAddress = Static<typeof SuppressedAddress>;

export const SuppressionPage = Type.Object({
  suppressions: Type.Array(SuppressionEntry),
  next: createNullable(
    Type.String({
      description:
        '`after` of the next page. A request with a filter examines at most 20,000 entries of the list, so its page may have fewer entries than `limit`, or none, although `next` is set.',
    }),
  ),
});
export type SuppressionPage = Static<typeof SuppressionPage>;

const ImportCounts = {
  read: Type.Integer({ description: 'Rows read.' }),
  added: Type.Integer({ description: 'Addresses that were added.' }),
  known: Type.Integer({ description: 'Addresses that were already on the list.' }),
};

/** The progress of an import. */
export const ImportProgress = Type.Object({
  ...ImportCounts,
  skipped: Type.Integer({ description: 'Rows that were skipped.' }),
  bytes: Type.Integer({ description: 'Bytes read.' }),
  total: Type.Integer({ description: 'The size of the file in bytes.' }),
});
export type ImportProgress = Static<typeof ImportProgress>;

/** A row that was skipped. */
export const SkippedRow = Type.Object({
  line: Type.Integer({
    description: 'The line of the row, from 1; the first line of a row with several lines.',
  }),
  lastLine: Type.Optional(Type.Integer({ description: 'The last line of a row with several lines.' })),
  record: Type.Optional(Type.Integer({ description: 'The number of the record in a JSON list, from 1.' })),
  reason: Type.String(),
});
export type SkippedRow = Static<typeof SkippedRow>;

/** The result of an import: `read` is the sum of `added`, `known` and `skippedCount`, except in a dry run. */
export const ImportResult = Type.Object({
  ...ImportCounts,
  skipped: Type.Array(SkippedRow, { description: 'The first 100 invalid rows.' }),
  skippedCount: Type.Integer({ description: 'The number of skipped rows: the invalid rows and the excluded rows.' }),
  excluded: Type.Array(
    Type.Object({
      kind: createStringEnum(EXCLUSIONS, {
        description:
          '`block`: a refusal because of content, policy or reputation. `soft-bounce`: a temporary failure. `reactivated`: removed from the list of the provider. `one-category`: unsubscribed from one category of messages. `not-suppressed`: no failure.',
      }),
      count: Type.Integer(),
    }),
    { description: 'The valid rows that suppress no recipient, by kind.' },
  ),
  reasons: Type.Array(Type.Object({ reason: createStringEnum(SUPPRESSION_REASONS), count: Type.Integer() }), {
    description: 'The rows with an address to suppress, by reason.',
  }),
  format: createNullable(
    Type.String({
      description:
        'The recognized export of a provider, such as `bounces of Mailgun`; null if the list is not such an export.',
    }),
  ),
  dryRun: Type.Boolean({
    description: 'True if the request set `dryRun`: the file was only read and counted, and no address was added.',
  }),
});
export type ImportResult = Static<typeof ImportResult>;
