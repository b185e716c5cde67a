/** The routes that are operations on files: what the document says of them, and where the members of their input stand. */
import type { TSchema } from 'typebox';
import { ERROR_CODES } from '../operations/errors.ts';
import type { DownloadOperation, UploadOperation } from '../operations/file-operation.ts';
import { exportSuppressions, importSuppressions } from '../operations/suppression-files.ts';
import { describeParameters, type RouteInput, withWarnings } from './operation-route.ts';
import { BODY_ERRORS, type RouteDescription, SIGNED_IN_ERRORS, type Success } from './route-description.ts';
import { ErrorBody, TICKET_PARAMETER } from './schemas.ts';

interface FileRoute extends RouteDescription {
  readonly operation: UploadOperation | DownloadOperation;
  /** The members of the input are in path and query; the body is the file. */
  readonly routeInput: RouteInput;
}

export const IMPORT_ROUTE = fileRoute('POST', '/accounts/{account}/suppressions/import', importSuppressions, {
  takes: importSuppressions.takes,
  type: 'application/x-ndjson',
  item: {
    description: 'Each line is one of these: progress, then the result or an error.',
    oneOf: [importSuppressions.progress, resultLine(importSuppressions.result), ErrorBody],
  },
  notes:
    'The body is CSV in UTF-8, up to 200 MB: what export writes, plain lists of addresses, exports of Postmark, SES and SendGrid. The answer begins when the file has arrived whole and is a list: lines of progress, then one line with the result or the error.',
});
export const EXPORT_ROUTE = fileRoute('GET', '/accounts/{account}/suppressions/export', exportSuppressions, {
  type: exportSuppressions.gives,
  schema: { type: 'string', description: `CSV; its first line is \`${exportSuppressions.header.trim()}\`.` },
  notes: 'The columns are `address`, `reason`, `at`, `source`.',
});

export const FILE_ROUTES: readonly FileRoute[] = [IMPORT_ROUTE, EXPORT_ROUTE];

function fileRoute(
  method: 'POST' | 'GET',
  path: string,
  performs: FileRoute['operation'],
  { takes, notes, ...success }: Pick<RouteDescription, 'takes' | 'notes'> & Partial<Success>,
): FileRoute {
  const { id, summary, input, errors } = performs;
  const members = { path, preset: {}, input, elsewhere: 'query' } as const;
  return {
    method,
    path,
    group: 'Suppressions',
    operationId: id,
    summary,
    parameters: [...describeParameters(members), ...(method === 'GET' ? [TICKET_PARAMETER] : [])],
    success: [{ schema: { type: 'string' }, ...success }],
    errors: [
      ...SIGNED_IN_ERRORS,
      ...(method === 'GET' ? [] : BODY_ERRORS),
      ...errors.map((code) => ERROR_CODES[code].status),
    ],
    ...(takes === undefined ? {} : { takes }),
    ...(notes === undefined ? {} : { notes }),
    operation: performs,
    routeInput: members,
  };
}

/** The result of an upload as its line has it: with the member that tells it from progress, and warnings where there are any. */
function resultLine(result: TSchema): object {
  const { required, properties, ...rest } = withWarnings(result) as {
    readonly required?: readonly string[];
    readonly properties?: object;
  };
  return { ...rest, required: ['result', ...(required ?? [])], properties: { result: { const: 'ok' }, ...properties } };
}
