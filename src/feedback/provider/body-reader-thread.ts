/**
 * The entry point of the threads that read bodies of provider events. body-reader.ts starts each thread with this file.
 * No module imports this file.
 */
import { parentPort } from 'node:worker_threads';
import { type PackedReports, packReports } from '../../model/packed-reports.ts';
import { findProvider } from '../../providers/providers.ts';
import type { ThreadReply } from '../thread-reader.ts';
import { type PackedBody, readBody } from './body.ts';
import type { BodyJob } from './body-reader.ts';

/** The number of reports in one part. A part is recorded in one transaction. */
const MAX_PART_REPORTS = 64;

function readJob({ request, context, secrets }: BodyJob): PackedBody {
  const format = findProvider(context.provider)?.events;
  if (format === null || format === undefined) throw new Error(`${context.provider} has no events`);
  const { body } = request;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const completeRequest = { ...request, body: bytes };
  if (secrets !== null) {
    const parsedSecrets = format.createAuthenticator(secrets);
    if (!parsedSecrets.ok) throw new Error(parsedSecrets.fault);
    const authentication = parsedSecrets.secret(completeRequest, context.now);
    if (authentication.kind === 'refused') return { kind: 'unauthenticated', reason: authentication.reason };
  }
  const result = readBody(format, completeRequest, context);
  if (result.kind === 'broken') return result;
  const { reports, ...others } = result;
  const parts: PackedReports[] = [];
  for (let at = 0; at < reports.length; at += MAX_PART_REPORTS)
    parts.push(packReports(reports.slice(at, at + MAX_PART_REPORTS)));
  return { ...others, parts };
}

if (parentPort !== null) {
  const port = parentPort;
  port.on('message', (job: BodyJob) => {
    try {
      port.postMessage({ kind: 'read', value: readJob(job) } satisfies ThreadReply<PackedBody>);
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      port.postMessage({ kind: 'failed', fault } satisfies ThreadReply<PackedBody>);
    }
  });
  port.postMessage({ kind: 'ready' } satisfies ThreadReply<PackedBody>);
}
