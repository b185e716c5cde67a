/** 200 only after the commit of all events that match a message; else the provider sends the request again. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../clock.ts';
import type { PublishOf } from '../../model/events.ts';
import type { FeedbackReport } from '../../model/feedback.ts';
import { BROKEN_HTTP_REASON } from '../../model/node.ts';
import type { Authenticate } from '../../providers/authentication.ts';
import type { ProviderRequest } from '../../providers/event-reader.ts';
import { isNestedTooDeep, MAX_DEPTH } from '../../providers/json.ts';
import type { EventFormat, EventProviderName } from '../../providers/provider.ts';
import { type EventRequests, type EventRoute, type HttpResponse, NOT_FOUND } from '../http-listener.ts';
import type { FeedbackIntake, RecordCounts } from '../intake.ts';
import { type BodyContext, readBody } from './body.ts';
import { type BodyReader, MAX_INLINE_BYTES } from './body-reader.ts';

/** Providers send up to 1,000 events in one request. */
const MAX_BODY_BYTES = 10_000_000;

export interface ProviderReceiverParts {
  readonly provider: EventProviderName;
  readonly format: Omit<EventFormat, 'secretForm' | 'secretExample' | 'createAuthenticator'>;
  readonly authenticate: Authenticate;
  readonly getSecrets: () => readonly string[];
  readonly url: string | null;
  readonly usesReferences: boolean;
  readonly countFailure: (request: IncomingMessage) => boolean;
  readonly clock: Clock;
  readonly bodyReader: Pick<BodyReader, 'read'>;
  readonly intake: Pick<FeedbackIntake, 'recordReport' | 'recordParts'>;
  readonly publish: PublishOf<'report.refused' | 'report.unrelated'>;
  readonly onError: (operation: string, error: unknown) => void;
}

type Refusal = 'unauthenticated' | 'broken' | 'too-large' | 'busy' | 'unread' | 'store';

const TEST_RESPONSE: HttpResponse = { status: 200, message: 'the test of the URL has succeeded' };
const NO_BODY = Buffer.alloc(0);
const MAX_TEST_BYTES = 4_096;

export function createProviderRoute(parts: ProviderReceiverParts): EventRoute {
  const { provider, format, authenticate, url, clock, publish, onError } = parts;
  const { authenticatesByHeader = false, storeFailureStatus = 503 } = format;

  function refuse(refusal: Refusal, status: number, message: string): HttpResponse {
    publish({ type: 'report.refused', at: clock.now(), reason: `${provider}-${refusal}` });
    return { status, message };
  }

  async function receive(request: IncomingMessage, requests: EventRequests): Promise<HttpResponse | null> {
    const headRequest = { method: 'POST', headers: readHeaders(request), body: NO_BODY, url } as const;
    if (authenticatesByHeader) {
      const refusal = checkAuthentication(request, headRequest);
      if (refusal !== null) return refusal;
      requests.markAuthenticated(request);
    }
    // Size limit and signature apply to the bytes as they were sent.
    if (hasContentEncoding(request))
      return refuse('broken', 415, 'the request has a Content-Encoding; send the body without an encoding');
    const bytes = await requests.readBody(request, MAX_BODY_BYTES, authenticatesByHeader ? provider : null);
    switch (bytes) {
      case 'aborted':
        return null;
      case 'too-large':
        return refuse('too-large', 413, `the body has more than ${MAX_BODY_BYTES} bytes`);
      case 'share':
      case 'full':
      case 'slow':
        return refuse('busy', storeFailureStatus, 'too many requests are being received; send the events again');
      case 'late':
        publish({ type: 'report.refused', at: clock.now(), reason: BROKEN_HTTP_REASON });
        return { status: storeFailureStatus, message: 'the body did not arrive in time; send the events again' };
    }
    const completeRequest = { ...headRequest, body: bytes };
    if (format.isEndpointTest?.(completeRequest) === true) return TEST_RESPONSE;
    if (format.parsesBodyToAuthenticate === true && isNestedTooDeep(bytes))
      return refuse('broken', 400, `the body is nested deeper than ${MAX_DEPTH} levels`);
    const markAuthenticated = () => requests.markAuthenticated(request);
    const isReadInline = bytes.length <= MAX_INLINE_BYTES;
    if (!isReadInline && format.parsesBodyToAuthenticate === true)
      return readBodyOnThread(completeRequest, request, markAuthenticated, parts.getSecrets());
    const refusal = authenticatesByHeader ? null : checkAuthentication(request, completeRequest);
    if (refusal !== null) return refusal;
    markAuthenticated();
    return isReadInline
      ? readBodyInline(completeRequest)
      : readBodyOnThread(completeRequest, request, markAuthenticated, null);
  }

  function checkAuthentication(incoming: IncomingMessage, request: ProviderRequest): HttpResponse | null {
    const authentication = authenticate(request, clock.now());
    return authentication.kind === 'refused' ? refuseUnauthenticated(incoming, authentication.reason) : null;
  }

  /** Only after a failed check: behind a proxy, whoever guesses shares the address of the provider. */
  function refuseUnauthenticated(incoming: IncomingMessage, reason: string): HttpResponse {
    return parts.countFailure(incoming)
      ? refuse(
          'unauthenticated',
          429,
          'too many requests are not authenticated; correct the secret, then wait a minute',
        )
      : refuse('unauthenticated', 401, reason);
  }

  async function readBodyInline(request: ProviderRequest): Promise<HttpResponse> {
    const body = readBody(format, request, createContext());
    if (body.kind === 'broken') return refuse('broken', 400, body.reason);
    return createResponse(await recordReports([...body.reports, ...body.keyReports]), body);
  }

  async function readBodyOnThread(
    request: ProviderRequest,
    incoming: IncomingMessage,
    markAuthenticated: () => void,
    secrets: readonly string[] | null,
  ): Promise<HttpResponse> {
    const refuseTemporarily = (refusal: Refusal, reason: string) =>
      refuse(refusal, storeFailureStatus, `${reason}; send the events again`);
    const context = createContext();
    const result = await parts.bodyReader.read(request, context, secrets).catch((error: unknown) => {
      onError(`${provider} events`, error);
      return { kind: 'busy' } as const;
    });
    if (result.kind === 'busy') return refuseTemporarily('busy', 'the body cannot be read now');
    // It can succeed later, on a less busy machine.
    if (result.kind === 'too-expensive')
      return refuseTemporarily('unread', 'reading the body exceeded the time limit or the memory limit');
    const body = result.value;
    if (body.kind === 'unauthenticated') return refuseUnauthenticated(incoming, body.reason);
    if (body.kind === 'failed')
      return refuseTemporarily('unread', 'reading the body failed because of a defect in Postrider');
    markAuthenticated();
    if (body.kind === 'broken') return refuse('broken', 400, body.reason);
    const counts = await parts.intake.recordParts(body.parts, { source: provider, at: context.now });
    const keyCounts = await recordReports(body.keyReports);
    return createResponse({ ...counts, failures: [...counts.failures, ...keyCounts.failures] }, body);
  }

  function createContext(): BodyContext {
    return { provider, now: clock.now(), usesReferences: parts.usesReferences };
  }

  async function recordReports(reports: readonly FeedbackReport[]): Promise<RecordCounts> {
    const failures: unknown[] = [];
    const counts = { recordedCount: 0, unmatchedCount: 0 };
    const record = async (report: FeedbackReport): Promise<void> => {
      try {
        const result = await parts.intake.recordReport(report);
        if (report.events.length > 0) counts[result === 'unmatched' ? 'unmatchedCount' : 'recordedCount'] += 1;
      } catch (error) {
        failures.push(error);
      }
    };
    await Promise.all(reports.map(record));
    return { ...counts, failures };
  }

  function createResponse(
    { recordedCount, unmatchedCount, failures }: RecordCounts,
    { ignored, broken }: { readonly ignored: number; readonly broken: number },
  ): HttpResponse {
    if (failures.length > 0) {
      onError(`${provider} events`, failures[0]);
      return refuse('store', storeFailureStatus, 'the store failed; send the events again');
    }
    const now = clock.now();
    if (broken > 0) publish({ type: 'report.refused', at: now, reason: `${provider}-broken`, count: broken });
    if (ignored > 0) publish({ type: 'report.unrelated', at: now, count: ignored });
    const counts = [
      [recordedCount, 'recorded'],
      [unmatchedCount, 'without a message of this installation to the same recipient'],
      [ignored, 'ignored'],
      [broken, 'not in the format of the provider'],
    ] as const;
    const texts = counts.flatMap(([count, text]) =>
      count === 0 ? [] : [`${count} event${count === 1 ? '' : 's'} ${text}`],
    );
    return { status: 200, message: texts.length === 0 ? 'the request contains no event' : texts.join(', ') };
  }

  return async (request, requests) => {
    switch (request.method) {
      case 'GET':
      case 'HEAD':
        return createGetResponse(provider);
      case 'POST':
        return receive(request, requests).catch((error: unknown) => {
          onError(`${provider} events`, error);
          return refuse('unread', storeFailureStatus, 'an internal error occurred; send the events again');
        });
      default:
        return { status: 405, message: 'the method must be POST', allow: 'GET, HEAD, POST' };
    }
  };
}

export interface TestRouteParts {
  readonly provider: EventProviderName;
  readonly isEndpointTest: NonNullable<EventFormat['isEndpointTest']>;
  readonly url: string | null;
}

/** While the secret is not set: 200 for GET, HEAD and the test of the URL, 404 for everything else. */
export function createTestRoute({ provider, isEndpointTest, url }: TestRouteParts): EventRoute {
  return async (request, requests) => {
    if (request.method === 'GET' || request.method === 'HEAD') return createGetResponse(provider);
    if (request.method !== 'POST') return NOT_FOUND;
    const body = await requests.readBody(request, MAX_TEST_BYTES, null);
    if (body === 'aborted') return null;
    if (typeof body === 'string') return NOT_FOUND;
    return isEndpointTest({ method: 'POST', headers: readHeaders(request), body, url }) ? TEST_RESPONSE : NOT_FOUND;
  };
}

/** Some providers request the URL when an operator registers it. */
function createGetResponse(provider: EventProviderName): HttpResponse {
  return { status: 200, message: `the endpoint for events of ${provider}` };
}

function hasContentEncoding({ headers }: IncomingMessage): boolean {
  const encoding = headers['content-encoding'] ?? '';
  return encoding !== '' && encoding.toLowerCase() !== 'identity';
}

function readHeaders({ headers }: IncomingMessage): ProviderRequest['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}
