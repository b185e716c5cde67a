/**
 * Sends a file up and hears how far it is: bytes on their way there, then lines of NDJSON while the service works on them. Through
 * XMLHttpRequest, since a fetch tells nothing of what it has sent. Fails with an ApiError.
 */

import type { ImportProgress, ImportResult } from '../../../src/operations/suppressions/schemas.ts';
import { ApiError, errorOf, url } from './client';
import { sessionHeader } from './secret';

export type UploadStep =
  | { readonly kind: 'sending'; readonly sent: number; readonly size: number }
  | { readonly kind: 'adding'; readonly progress: ImportProgress };

export interface Upload {
  readonly result: Promise<ImportResult>;
  /** Breaks it off; what has not arrived whole adds nothing. */
  readonly abort: () => void;
}

export function upload(at: string, file: Blob, told: (step: UploadStep) => void): Upload {
  const request = new XMLHttpRequest();
  const { promise, resolve, reject } = Promise.withResolvers<ImportResult>();
  let read = 0;
  const lines = () => {
    const text = request.responseText;
    const end = text.lastIndexOf('\n') + 1;
    const whole = text.slice(read, end).split('\n');
    read = end;
    return whole.filter((line) => line !== '').map((line) => JSON.parse(line) as Line);
  };
  const hear = () => {
    if (request.status !== 200) return;
    for (const line of lines()) {
      if (!('result' in line)) told({ kind: 'adding', progress: line });
      else if (line.result === 'ok') resolve(line);
      else reject(new ApiError(409, line.message));
    }
  };
  request.upload.addEventListener('progress', ({ loaded, total }) =>
    told({ kind: 'sending', sent: loaded, size: total }),
  );
  request.addEventListener('progress', hear);
  request.addEventListener('load', () => {
    hear();
    // Settled already where the last line was the result.
    reject(request.status === 200 ? new ApiError(0, LOST) : errorOf(request.status, request.responseText));
  });
  request.addEventListener('error', () => reject(new ApiError(0, LOST)));
  request.addEventListener('abort', () => reject(new ApiError(0, 'The upload was broken off; nothing was added.')));
  request.open('POST', url(at));
  request.setRequestHeader('Content-Type', 'text/csv');
  for (const [name, value] of Object.entries(sessionHeader())) request.setRequestHeader(name, value);
  request.send(file);
  return { result: promise, abort: () => request.abort() };
}

type Line =
  | ImportProgress
  | ({ readonly result: 'ok' } & ImportResult)
  | { readonly result: 'error'; readonly message: string };

const LOST =
  'The connection was lost. A file that had not arrived whole has added nothing; one that had goes on being added, unless the service was stopped: the audit log tells; importing it again adds the rest.';
