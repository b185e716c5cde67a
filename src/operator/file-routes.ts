/** The routes of list-files.ts as data for the document: suppression lists as CSV files, up and down. */
import type { Described, Parameter } from './routes.ts';

const LIST: Parameter = {
  name: 'account',
  in: 'path',
  type: 'string',
  required: true,
  about: 'The account’s name, or `*` for the list of the whole service.',
};

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
    answer: 'application/x-ndjson',
    notes:
      'The body is CSV in UTF-8, up to 200 MB: what export writes, plain lists of addresses, exports of Postmark, SES and SendGrid. The answer begins when the file has arrived whole and is a list: lines of progress `{"read","added","known","skipped","bytes","total"}`, then one line `{"result":"ok","read","added","known","skipped":[{"line","reason"}],"skippedCount"}` with the first hundred rows that were skipped, or `{"result":"error","message"}`.',
  },
  {
    method: 'GET',
    path: '/accounts/{account}/suppressions/export',
    operation: 'exportSuppressions',
    group: 'Suppressions',
    summary: 'A whole list as CSV, which import reads',
    parameters: [LIST],
    answer: 'text/csv',
    notes: 'The columns are `address`, `reason`, `at`, `source`.',
  },
];
