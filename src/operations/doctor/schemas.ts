/**
 * The schemas of the findings of `doctor` in commands and the API. The file imports no module of Node, because the
 * dashboard imports the types.
 */
import type { Static } from 'typebox';
import { Type } from '../../model/schema.ts';
import { createNullable, createStringEnum } from '../schemas.ts';

/** The result of each check. */
export const Findings = Type.Array(
  Type.Object({
    check: Type.String({ description: 'The name of the check, such as `transport` or `domain example.com`.' }),
    result: createStringEnum(['ok', 'warning', 'failure']),
    detail: Type.String({ description: 'The result, in one line.' }),
    remedy: createNullable(Type.String({ description: 'The remedy, or null.' })),
  }),
);
export type Findings = Static<typeof Findings>;
