/** What the operations on suppression lists answer with. Free of Node, so that the dashboard takes its types from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, SuppressionListEntry, suppressionMembers } from '../schemas.ts';

export const SuppressionEntry = Type.Object({ address: Type.String(), ...suppressionMembers });
export type SuppressionEntry = Static<typeof SuppressionEntry>;

export const AddedSuppression = Type.Object({
  address: Type.String(),
  added: Type.Boolean({ description: 'False: it was on the list.' }),
});
export type AddedSuppression = Static<typeof AddedSuppression>;

/** An address with all lists that it is on. */
export const SuppressedAddress = Type.Object({
  address: Type.String(),
  suppressed: Type.Boolean(),
  lists: Type.Array(SuppressionListEntry),
});
export type SuppressedAddress = Static<typeof SuppressedAddress>;

export const SuppressionPage = Type.Object({
  suppressions: Type.Array(SuppressionEntry),
  next: nullable(Type.String({ description: '`after` of the next page.' })),
});
export type SuppressionPage = Static<typeof SuppressionPage>;

const ImportCounts = {
  read: Type.Integer({ description: 'Rows read.' }),
  added: Type.Integer({ description: 'Addresses that were new.' }),
  known: Type.Integer({ description: 'Addresses that were on the list.' }),
};

/** How far an import is. */
export const ImportProgress = Type.Object({
  ...ImportCounts,
  skipped: Type.Integer({ description: 'Rows that hold no address.' }),
  bytes: Type.Integer({ description: 'Bytes read.' }),
  total: Type.Integer({ description: 'Bytes of the file.' }),
});
export type ImportProgress = Static<typeof ImportProgress>;

/** A row that was skipped. */
export const SkippedRow = Type.Object({
  line: Type.Integer({
    description: 'The line of the row, from 1; the first one where a quote makes one row of several lines.',
  }),
  lastLine: Type.Optional(Type.Integer({ description: 'The last line, where the row has several.' })),
  reason: Type.String(),
});
export type SkippedRow = Static<typeof SkippedRow>;

/** What an import came to: `read` is `added`, `known` and `skippedCount` together. */
export const ImportResult = Type.Object({
  ...ImportCounts,
  skipped: Type.Array(SkippedRow, { description: 'The first hundred rows that were skipped.' }),
  skippedCount: Type.Integer({ description: 'How many rows were skipped.' }),
});
export type ImportResult = Static<typeof ImportResult>;
