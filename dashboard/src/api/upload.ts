/**
 * Uploads a file and reports progress: first the bytes sent, then the progress of the import, which the service sends
 * as NDJSON. Uses XMLHttpRequest, because fetch does not report the bytes sent. Fails with an ApiError.
 */

import type { ImportProgress, ImportResult } from '../../../src/operations/suppressions.ts';
import { ApiError, buildApiUrl, toApiError } from './client';
import { getSessionHeader } from './session-secret';

export type UploadStep =
  | { readonly kind: 'sending'; readonly sent: number; readonly size: number }
  | { readonly kind: 'adding'; readonly progress: ImportProgress };

export interface Upload {
  readonly result: Promise<ImportResult>;
  /** Stops the upload. If the file has not arrived completely, no address is added. */
  readonly abort: () => void;
}

export function uploadFile(apiPath: string, file: Blob, onStep: (step: UploadStep) => void): Upload {
  const request = new XMLHttpRequest();
  const { promise, resolve, reject } = Promise.withResolvers<ImportResult>();
  let readLength = 0;
  const readNewLines = () => {
    const text = request.responseText;
    const end = text.lastIndexOf('\n') + 1;
    const newLines = text.slice(readLength, end).split('\n');
    readLength = end;
    return newLines.filter((line) => line !== '').map((line) => JSON.parse(line) as ProgressLine);
  };
  const readProgress = () => {
    if (request.status !== 200) return;
    for (const line of readNewLines()) {
      if (!('result' in line)) onStep({ kind: 'adding', progress: line });
      else if (line.result === 'ok') resolve(line);
      else reject(new ApiError(409, line.message));
    }
  };
  request.upload.addEventListener('progress', ({ loaded, total }) =>
    onStep({ kind: 'sending', sent: loaded, size: total }),
  );
  request.addEventListener('progress', readProgress);
  request.addEventListener('load', () => {
    readProgress();
    // This call has no effect if the last line was the result, because the promise is already settled.
    reject(
      request.status === 200 ? new ApiError(0, CONNECTION_LOST_TEXT) : toApiError(request.status, request.responseText),
    );
  });
  request.addEventListener('error', () => reject(new ApiError(0, CONNECTION_LOST_TEXT)));
  request.addEventListener('abort', () => reject(new ApiError(0, 'The upload was stopped. No address was added.')));
  request.open('POST', buildApiUrl(apiPath));
  request.setRequestHeader('Content-Type', 'text/csv');
  for (const [name, value] of Object.entries(getSessionHeader())) request.setRequestHeader(name, value);
  request.send(file);
  return { result: promise, abort: () => request.abort() };
}

type ProgressLine =
  | ImportProgress
  | ({ readonly result: 'ok' } & ImportResult)
  | { readonly result: 'error'; readonly message: string };

const CONNECTION_LOST_TEXT =
  'The connection was lost. If the service received the complete file, the import continues. Otherwise no address was added. The audit log shows the result. You can safely import the file again.';
