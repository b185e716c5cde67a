/** The routes of operations on files. */
import type { TSchema } from 'typebox';
import { ERROR_CODES } from '../operations/errors.ts';
import { exportMessages } from '../operations/message-search.ts';
import type { DownloadOperation, UploadOperation } from '../operations/operation.ts';
import { exportSuppressions, importSuppressions } from '../operations/suppression-files.ts';
import { addWarningsToSchema, describeParameters, type RouteInput } from './operation-route.ts';
import { AUTHENTICATION_ERRORS, BODY_ERRORS, type RouteDescription, type Success } from './route-description.ts';
import { ErrorBody } from './schemas.ts';

interface FileRoute extends RouteDescription {
  readonly operation: UploadOperation | DownloadOperation;
  /** The body is the file. */
  readonly routeInput: RouteInput;
}

export const IMPORT_ROUTE = createFileRoute(
  'POST',
  '/accounts/{account}/suppressions/import',
  'Suppressions',
  importSuppressions,
  {
    requestType: importSuppressions.uploadType,
    type: 'application/x-ndjson',
    item: {
      description: 'Each line is a progress report, the result or an error.',
      oneOf: [importSuppressions.progress, createResultLineSchema(importSuppressions.result), ErrorBody],
    },
    notes:
      'The body is CSV or JSON in UTF-8, or CSV in UTF-16, up to 200 MB: an export of Postrider, Postmark, SendGrid, Mailgun, Amazon SES, Brevo, Resend or Mailjet, or a list of addresses. The content determines the format; the media type may also be `application/json`. The response starts after the complete file has been received and validated. The response contains progress lines, then one line with the result or the error.',
  },
);
export const EXPORT_ROUTE = createFileRoute(
  'GET',
  '/accounts/{account}/suppressions/export',
  'Suppressions',
  exportSuppressions,
  {
    type: exportSuppressions.downloadType,
    schema: { type: 'string', description: `CSV; the first line is \`${exportSuppressions.header.trim()}\`.` },
    notes: 'The columns are `address`, `reason`, `at`, `source`.',
  },
);

export const MESSAGE_EXPORT_ROUTE = createFileRoute('GET', '/messages/export', 'Messages', exportMessages, {
  type: exportMessages.downloadType,
  schema: { type: 'string', description: `CSV; the first line is \`${exportMessages.header.trim()}\`.` },
  notes:
    'The response is streamed. A cell that a spreadsheet would evaluate as a formula begins with an apostrophe. If the export ends before the last message, the last row has only one cell, which states where the export ended.',
});

export const FILE_ROUTES: readonly FileRoute[] = [IMPORT_ROUTE, EXPORT_ROUTE, MESSAGE_EXPORT_ROUTE];

function createFileRoute(
  method: 'POST' | 'GET',
  path: string,
  group: RouteDescription['group'],
  operation: FileRoute['operation'],
  { requestType, notes, ...success }: Pick<RouteDescription, 'requestType' | 'notes'> & Partial<Success>,
): FileRoute {
  const { id, summary, input, errors } = operation;
  const routeInput = { path, presetMembers: {}, input, nonPathLocation: 'query' } as const;
  return {
    method,
    path,
    group,
    operationId: id,
    summary,
    parameters: describeParameters(routeInput),
    success: [{ schema: { type: 'string' }, ...success }],
    errors: [
      ...AUTHENTICATION_ERRORS,
      ...(method === 'GET' ? [] : BODY_ERRORS),
      ...errors.map((code) => ERROR_CODES[code].status),
    ],
    ...(requestType === undefined ? {} : { requestType }),
    ...(notes === undefined ? {} : { notes }),
    operation,
    routeInput,
  };
}

/** With the member `result` and the warnings. */
function createResultLineSchema(result: TSchema): object {
  const { required, properties, ...otherKeywords } = addWarningsToSchema(result) as {
    readonly required?: readonly string[];
    readonly properties?: object;
  };
  return {
    ...otherKeywords,
    required: ['result', ...(required ?? [])],
    properties: { result: { const: 'ok' }, ...properties },
  };
}
