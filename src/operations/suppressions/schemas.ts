/** What the operations on suppression lists answer with. Free of Node, so that the dashboard takes its types from here. */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { nullable, SuppressedOn, suppressionMembers } from '../schemas.ts';

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
  lists: Type.Array(SuppressedOn),
});
export type SuppressedAddress = Static<typeof SuppressedAddress>;

export const SuppressionPage = Type.Object({
  suppressions: Type.Array(SuppressionEntry),
  next: nullable(Type.String({ description: '`after` of the next page.' })),
});
export type SuppressionPage = Static<typeof SuppressionPage>;
