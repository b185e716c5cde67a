/** The routes of list-files.ts as data for the document: suppression lists as CSV files, up and down. */
import { Type } from '../model/schema.ts';
import { BODY_ERRORS, type Described, LIST, SIGNED_IN_ERRORS } from './described.ts';
import { TICKET_PARAMETER } from './schemas.ts';

export const FILE_ROUTES: readonly Described[] = [
  {
    method: 'POST',
    path: '/accounts/{account}/suppressions/import',
    operation: 'importSuppressions',
    group: 'Suppressions',
    summary: 'Put the addresses of a CSV file on a list; a file that cannot be read to its end adds nothing',
    parameters: [
      LIST,
      {
        name: 'reason',
        in: 'query',
        type: 'string',
        about: 'Of rows that name none: `bounce`, `complaint` or `manual`; `manual` unless given.',
      },
    ],
    takes: 'text/csv',
    success: [{ type: 'application/x-ndjson', schema: Type.String() }],
    errors: [...SIGNED_IN_ERRORS, ...BODY_ERRORS, 404],
    notes:
      'The body is CSV in UTF-8, up to 200 MB: what export writes, plain lists of addresses, exports of Postmark, SES and SendGrid. The answer begins when the file has arrived whole and is a list: lines of progress `{"read","added","known","skipped","bytes","total"}`, then one line `{"result":"ok","read","added","known","skipped":[{"line","reason"}],"skippedCount"}` with the first hundred rows that were skipped, or `{"result":"error","message"}`.',
  },
  {
    method: 'GET',
    path: '/accounts/{account}/suppressions/export',
    operation: 'exportSuppressions',
    group: 'Suppressions',
    summary: 'A whole list as CSV, which import reads',
    parameters: [LIST, TICKET_PARAMETER],
    success: [{ type: 'text/csv', schema: Type.String() }],
    errors: [...SIGNED_IN_ERRORS, 404],
    notes: 'The columns are `address`, `reason`, `at`, `source`.',
  },
];

/** A line of the answer to an import: rows read, of them added, known before and skipped, and bytes of all. */
export interface LoadProgress {
  readonly read: number;
  readonly added: number;
  readonly known: number;
  readonly skipped: number;
  readonly bytes: number;
  readonly total: number;
}

/** The last line. */
export interface LoadResult {
  readonly result: 'ok';
  readonly read: number;
  readonly added: number;
  readonly known: number;
  /** The first hundred of them. */
  readonly skipped: readonly { readonly line: number; readonly reason: string }[];
  readonly skippedCount: number;
}

/** The last line of an import that broke off. */
export interface LoadFault {
  readonly result: 'error';
  readonly message: string;
}
