import { parentPort } from 'node:worker_threads';
import { packReports } from '../../model/feedback.ts';
import { findProvider } from '../../providers/providers.ts';
import { serveJobs } from '../thread-reader.ts';
import { type PackedBody, readBody } from './body.ts';
import type { BodyJob } from './body-reader.ts';

const MAX_PART_REPORTS = 64;

function readJob({ request, context, secrets }: BodyJob): PackedBody {
  const format = findProvider(context.provider)?.events;
  if (format === null || format === undefined) throw new Error(`${context.provider} has no events`);
  const { buffer, byteOffset, byteLength } = request.body;
  const completeRequest = { ...request, body: Buffer.from(buffer, byteOffset, byteLength) };
  if (secrets !== null) {
    const parsedSecrets = format.createAuthenticator(secrets);
    if (!parsedSecrets.ok) throw new Error(parsedSecrets.fault);
    const authentication = parsedSecrets.secret(completeRequest, context.now);
    if (authentication.kind === 'refused') return { kind: 'unauthenticated', reason: authentication.reason };
  }
  const result = readBody(format, completeRequest, context);
  if (result.kind === 'broken') return result;
  const { reports, ...others } = result;
  const partStarts = Array.from(
    { length: Math.ceil(reports.length / MAX_PART_REPORTS) },
    (_, n) => n * MAX_PART_REPORTS,
  );
  return { ...others, parts: partStarts.map((at) => packReports(reports.slice(at, at + MAX_PART_REPORTS))) };
}

serveJobs(parentPort, readJob);
