/**
 * The entry point of the thread that reads large bodies of provider events. body-reader.ts starts the thread with this file. No
 * module imports this file.
 */
import { serialize } from 'node:v8';
import { parentPort } from 'node:worker_threads';
import { findProvider } from '../../providers/providers.ts';
import type { ThreadReply } from '../thread-reader.ts';
import { readBody, type SerializedBody } from './body.ts';
import type { BodyJob } from './body-reader.ts';

/** The number of reports in one part. The main thread takes less than 10 ms to deserialize a part. */
const MAX_PART_REPORTS = 256;

function read({ request, context }: BodyJob): SerializedBody {
  const format = findProvider(context.provider)?.events;
  if (format === null || format === undefined) throw new Error(`${context.provider} has no events`);
  const { body } = request;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const result = readBody(format, { ...request, body: bytes }, context);
  if (result.kind === 'broken') return result;
  const { kind, reports, ignored, broken } = result;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < reports.length; at += MAX_PART_REPORTS)
    parts.push(serialize(reports.slice(at, at + MAX_PART_REPORTS)));
  return { kind, parts, ignored, broken };
}

if (parentPort !== null) {
  const port = parentPort;
  port.on('message', (job: BodyJob) => {
    try {
      port.postMessage({ kind: 'read', value: read(job) } satisfies ThreadReply<SerializedBody>);
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      port.postMessage({ kind: 'failed', fault } satisfies ThreadReply<SerializedBody>);
    }
  });
  port.postMessage({ kind: 'ready' } satisfies ThreadReply<SerializedBody>);
}
