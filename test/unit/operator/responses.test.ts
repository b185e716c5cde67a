/** Causes each documented response of each route over HTTP, and checks it against the OpenAPI document. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import { describeSettings, loadSettings } from '../../../src/config/load.ts';
import { SettingsError } from '../../../src/config/settings.ts';
import { type Service, startService } from '../../../src/main.ts';
import { isDashboardRoute } from '../../../src/operator/dashboard.ts';
import { FILE_ROUTES } from '../../../src/operator/list-files.ts';
import { OPERATION_ROUTES } from '../../../src/operator/operation-routes.ts';
import type { Store } from '../../../src/store/contract.ts';
import { StoreError } from '../../../src/store/error.ts';
import { openStore } from '../../../src/store/open.ts';
import { startDns } from '../../rig/dns.ts';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { submitAccepted } from '../../rig/service.ts';
import { signIn } from '../../rig/session.ts';
import {
  type ApiDocument,
  createResponseCheck,
  createTarget,
  type DocumentedOperation,
  type RequestOptions,
  sendRequest,
} from './response-check.ts';
import { createSteps, UNREACHABLE_ERRORS } from './response-steps.ts';

const PASSWORD = 'correct horse battery';
const BASIC_HEADERS = { Authorization: `Basic ${Buffer.from(`any:${PASSWORD}`).toString('base64')}` };
const WRONG_TOKEN = { Authorization: 'Bearer po_wrong' };
const WRONG_PASSWORD = { Authorization: `Basic ${Buffer.from('any:wrong').toString('base64')}` };
const OTHER_ORIGIN = { Origin: 'https://elsewhere.example' };
/** Client addresses that are refused after too many wrong tokens or passwords. */
const TOKEN_GUESSER_ADDRESS = '127.0.0.2';
const PASSWORD_GUESSER_ADDRESS = '127.0.0.3';
const MAX_BODY_BYTES = 65_536;

interface RunningService {
  readonly service: Service;
  readonly url: string;
  readonly store: Store;
  readonly routes: readonly string[];
  /**
   * While `storeUnavailable` is true, the store does not respond. While `settingsUnreadable` is true, the settings
   * cannot be read.
   */
  readonly simulatedFailures: { storeUnavailable: boolean; settingsUnreadable: boolean };
}

async function startTestService(variables: Readonly<Record<string, string>>): Promise<RunningService> {
  const simulatedFailures = { storeUnavailable: false, settingsUnreadable: false };
  const environment = {
    POSTRIDER_DATABASE: `sqlite:${join(createTemporaryFolder(), 'postrider.db')}`,
    POSTRIDER_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_LISTEN: '127.0.0.1:0',
    POSTRIDER_OPERATOR_PASSWORD: PASSWORD,
    POSTRIDER_LOG: 'silent',
    ...variables,
  };
  const routes: string[] = [];
  const recordRoutes = (message: unknown) => {
    const { fastify } = message as { readonly fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const routeMethod of [method].flat()) routes.push(`${routeMethod} ${url}`);
    });
  };
  let store: Store | null = null;
  subscribe('fastify.initialization', recordRoutes);
  const service = await startService(loadSettings(environment, null), {
    openStore: async ({ database }) => {
      store = await openStore(database, { exclusive: true });
      return withFailures(store, () => simulatedFailures.storeUnavailable);
    },
    operatorApi: {
      version: '1.2.3',
      describeSettings: () => {
        if (simulatedFailures.settingsUnreadable) throw new SettingsError('POSTRIDER_LISTEN: "x" is not an address');
        return describeSettings(environment, null);
      },
    },
  });
  onTestFinished(() => service.stop());
  if (store === null || service.operatorUrl === null) throw new Error('the service has not started');
  // The first request creates the routes.
  await sendRequest(service.operatorUrl, 'GET', '/healthz');
  unsubscribe('fastify.initialization', recordRoutes);
  return { service, url: service.operatorUrl, store, routes, simulatedFailures };
}

/** Returns a store whose methods reject while `isUnavailable` returns true. */
function withFailures(store: Store, isUnavailable: () => boolean): Store {
  const methods = Object.entries(store).map(([name, member]) => [
    name,
    typeof member !== 'function' || name === 'close'
      ? member
      : (...args: readonly unknown[]) =>
          isUnavailable()
            ? Promise.reject(new StoreError('the database does not respond'))
            : (member as (...memberArgs: readonly unknown[]) => unknown)(...args),
  ]);
  return Object.fromEntries(methods) as Store;
}

/** Submits messages that reach most states, two of them captured, and stores a feedback report. */
async function submitMessages({ service, url, store }: RunningService, token: string) {
  const submit = (to: string, message = 'Hello.') =>
    submitAccepted(service.publicUrl ?? '', service.firstKey ?? '', { to, message });
  const capturedIds = [await submit('ada@example.com', '<html><p>Hello.</p></html>'), await submit('bob@example.com')];
  const submitSimulated = (name: string) => submit(`${name}@simulator.postrider.test`);
  const completedIds = [
    await submitSimulated('bounce'),
    await submitSimulated('complaint'),
    await submitSimulated('suppressed'),
  ];
  const queuedIds = [await submitSimulated('defer'), await submitSimulated('defer')];
  await store.recordFeedback([
    {
      messageRef: { reference: 'nowhere' },
      events: [{ kind: 'unknown', reason: 'there is no report in it' }],
      source: 'smtp',
      at: Date.now(),
      digest: '0'.repeat(64),
      summary: 'from nobody',
      raw: Buffer.from('hello'),
      isFinal: true,
    },
  ]);
  const readState = async (id: string) => {
    const { text } = await sendRequest(url, 'GET', `/api/v1/messages/${id}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    const { state, attempts } = JSON.parse(text) as { readonly state: string; readonly attempts: readonly unknown[] };
    return `${state} ${attempts.length}`;
  };
  await expect
    .poll(() => Promise.all([...capturedIds, ...completedIds, ...queuedIds].map(readState)))
    .toEqual(['delivered 1', 'delivered 1', 'bounced 1', 'complained 1', 'suppressed 0', 'queued 1', 'queued 1']);
  const [html = '', plain = ''] = capturedIds;
  const [firstId = '', secondId = ''] = queuedIds;
  return {
    capturedIds: [html, plain],
    queuedIds: [firstId, secondId],
    completedIds: [...capturedIds, ...completedIds],
  } as const;
}

/** No token makes or lists tokens. */
const ADMIN_OPERATIONS: readonly string[] = ['createToken', 'listTokens', 'revokeToken'];

test('every route is in the OpenAPI document, and every response matches the document', async () => {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const rig = await startTestService({ POSTRIDER_DNS: `127.0.0.1:${dns.port}`, POSTRIDER_WEBHOOK_TARGETS: 'any' });
  const { url, simulatedFailures } = rig;
  const tokenResponse = await sendRequest(url, 'POST', '/api/v1/tokens', {
    headers: BASIC_HEADERS,
    body: { name: 'test' },
  });
  const { token } = JSON.parse(tokenResponse.text) as { readonly token: string };
  const bearerHeaders = { Authorization: `Bearer ${token}` };
  const document = JSON.parse((await sendRequest(url, 'GET', '/api/v1/openapi.json')).text) as ApiDocument;
  const check = createResponseCheck(document);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const byId = new Map(operations.map((entry) => [entry.operation.operationId, entry]));

  // The registered routes are the documented routes.
  const documentedRoutes = operations.map(
    ({ method, path }) => `${method} ${path.replaceAll('{', ':').replaceAll('}', '')}`,
  );
  const registeredRoutes = rig.routes.filter((route) => !isDashboardRoute(route.split(' ')[1]));
  expect(registeredRoutes.filter((route) => !route.startsWith('HEAD ')).sort()).toEqual(documentedRoutes.sort());
  expect(
    registeredRoutes.filter(
      (route) => route.startsWith('HEAD ') && !documentedRoutes.includes(route.replace('HEAD', 'GET')),
    ),
  ).toEqual([]);

  const responseCounts = new Map<string, number>();
  /** Responses that do not match the document. They are reported together at the end. */
  const failures: string[] = [];
  const successfulOptions = new Map<string, RequestOptions>();
  const requestOperation = async (operationId: string, options: RequestOptions, method?: string): Promise<number> => {
    const documentedOperation = byId.get(operationId);
    if (documentedOperation === undefined) throw new Error(`there is no ${operationId} in the document`);
    const response = await sendRequest(
      url,
      method ?? documentedOperation.method,
      createTarget(documentedOperation.path, options),
      options,
    );
    check(documentedOperation.operation, response, method === 'HEAD');
    const answer = `${operationId} ${response.status}`;
    responseCounts.set(answer, (responseCounts.get(answer) ?? 0) + 1);
    return response.status;
  };
  const expectStatus = async (
    operationId: string,
    status: number,
    options: RequestOptions,
    method?: string,
  ): Promise<void> => {
    try {
      const actualStatus = await requestOperation(operationId, options, method);
      if (actualStatus !== status)
        failures.push(
          `${operationId}: expected status ${status}, received ${actualStatus} for ${JSON.stringify(options)}`,
        );
    } catch (error) {
      failures.push(String(error));
    }
  };
  const selectCredentials = (operation: DocumentedOperation) =>
    operation.security?.some((requirement) => 'password' in requirement) === true ||
    ADMIN_OPERATIONS.includes(operation.operationId)
      ? BASIC_HEADERS
      : bearerHeaders;
  const withCredentials = (operation: DocumentedOperation, options: RequestOptions): RequestOptions => ({
    ...options,
    headers: { ...(options.headers?.Cookie === undefined ? selectCredentials(operation) : {}), ...options.headers },
  });

  const session = await signIn(url, { password: PASSWORD });
  const steps = createSteps({
    ...(await submitMessages(rig, token)),
    session: { ...session, Origin: url },
    password: PASSWORD,
  });
  const findNewestEntry = async () => (await rig.store.listAudit(null, 1))[0]?.id;
  const auditedIds = new Set<string>();
  for (const [operationId, status, options] of steps) {
    const operation = byId.get(operationId)?.operation;
    if (operation === undefined) throw new Error(`there is no ${operationId} in the document`);
    const authenticatedOptions = withCredentials(operation, options);
    // This change is made after the subscription, so it causes an event.
    const changeList = () => void expectStatus('addSuppression', 200, successfulOptions.get('addSuppression') ?? {});
    const entryBefore = await findNewestEntry();
    await expectStatus(
      operationId,
      status,
      operationId === 'subscribeToChanges'
        ? { ...authenticatedOptions, onFirstBytes: changeList }
        : authenticatedOptions,
    );
    if ((await findNewestEntry()) !== entryBefore && operationId !== 'subscribeToChanges') auditedIds.add(operationId);
    if (status < 300 && !successfulOptions.has(operationId)) successfulOptions.set(operationId, authenticatedOptions);
    if (byId.get(operationId)?.method === 'GET' && !['subscribeToChanges', 'runDoctor'].includes(operationId))
      await expectStatus(operationId, status, authenticatedOptions, 'HEAD');
  }
  simulatedFailures.settingsUnreadable = true;
  await expectStatus('showConfig', 409, { headers: bearerHeaders });
  simulatedFailures.settingsUnreadable = false;

  // Without the capture transport, the inbox routes return 404, and no inbox rule can be added.
  const relay = await startTestService({ POSTRIDER_TRANSPORT: 'smtp://127.0.0.1:1', POSTRIDER_ROLES: 'operator' });
  const rule = { body: { match: 'rule.example', code: 451 } };
  for (const [operationId, status, options] of [
    ...['listInbox', 'showInbox', 'showInboxSource', 'showInboxHtml'].map((id) => [id, 404, {}] as const),
    ['addInboxRule', 409, rule] as const,
  ]) {
    const { method, path, operation } = byId.get(operationId) ?? {};
    if (method === undefined || path === undefined || operation === undefined)
      throw new Error(`there is no ${operationId} in the document`);
    const headers = { ...BASIC_HEADERS, ...(method === 'GET' ? {} : { Origin: relay.url }) };
    const response = await sendRequest(relay.url, method, createTarget(path, {}), { ...options, headers });
    check(operation, response);
    expect(response.status).toBe(status);
    responseCounts.set(`${operationId} ${status}`, 1);
  }
  // A node without the role `api` has no public listener.
  const testMessageRoute = byId.get('sendTestMessage');
  if (testMessageRoute === undefined) throw new Error('there is no sendTestMessage in the document');
  const testResponse = await sendRequest(relay.url, 'POST', testMessageRoute.path, {
    headers: BASIC_HEADERS,
    body: { account: 'default' },
  });
  check(testMessageRoute.operation, testResponse);
  expect(testResponse.status).toBe(409);
  responseCounts.set('sendTestMessage 409', 1);

  // These errors occur before an operation runs. The test causes each error on each route that documents the error.
  for (let n = 0; n < 10; n += 1) {
    await sendRequest(url, 'GET', '/api/v1/session', { localAddress: TOKEN_GUESSER_ADDRESS, headers: WRONG_TOKEN });
    await sendRequest(url, 'GET', '/metrics', { localAddress: PASSWORD_GUESSER_ADDRESS, headers: WRONG_PASSWORD });
  }
  const withoutHeaders = ({ headers: _headers, ...options }: RequestOptions): RequestOptions => options;
  for (const { operation } of operations) {
    const { operationId, responses } = operation;
    const options = successfulOptions.get(operationId);
    if (options === undefined) throw new Error(`response-steps.ts has no successful step for ${operationId}`);
    const usesPassword = selectCredentials(operation) === BASIC_HEADERS || operationId === 'signIn';
    const invalidOptions: Readonly<Record<number, RequestOptions>> = {
      400: { ...options, hostHeaderCount: 2 },
      401: withoutHeaders(options),
      403: { ...options, headers: { ...options.headers, ...OTHER_ORIGIN } },
      413: { ...options, body: { text: 'x'.repeat(MAX_BODY_BYTES) } },
      415: { ...options, body: 'x', headers: { ...options.headers, 'Content-Type': 'application/xml' } },
      429: usesPassword
        ? { ...options, localAddress: PASSWORD_GUESSER_ADDRESS, headers: WRONG_PASSWORD }
        : { ...options, localAddress: TOKEN_GUESSER_ADDRESS, headers: WRONG_TOKEN },
    };
    for (const [text, options] of Object.entries(invalidOptions)) {
      const status = Number(text);
      if (responses[status] === undefined || (status >= 401 && responseCounts.has(`${operationId} ${status}`)))
        continue;
      await expectStatus(operationId, status, options);
    }
  }
  // An unknown member in a request is an error. The API routes that sign out or return a document ignore unknown
  // members.
  for (const { method, path, operation } of operations) {
    const { operationId } = operation;
    if (!path.startsWith('/api/') || ['signOut', 'showOperatorDocument', 'readPublicDocument'].includes(operationId))
      continue;
    const isInQuery = method === 'GET' || method === 'DELETE' || operationId === 'importSuppressions';
    const unknownMember = isInQuery ? { query: { unknownMember: 'x' } } : { body: { unknownMember: 'x' } };
    await expectStatus(operationId, 400, { ...successfulOptions.get(operationId), ...unknownMember });
  }
  // While the store does not respond, the test sends two requests to each operation: first with a token or a session,
  // which the store must check, and then with the password, so that only the operation uses the store.
  for (const { operation } of operations) {
    const { operationId, responses } = operation;
    if (responses['503'] === undefined) continue;
    const options = successfulOptions.get(operationId) ?? {};
    // If the store does not respond, routes outside the API accept a token that was valid at its last lookup. The
    // unknown token has never been looked up.
    const unknownToken = { Authorization: 'Bearer po_unknown' };
    const headers =
      operationId === 'signOut'
        ? { ...session }
        : selectCredentials(operation) === BASIC_HEADERS
          ? unknownToken
          : bearerHeaders;
    simulatedFailures.storeUnavailable = true;
    await expectStatus(operationId, 503, { ...options, headers: { ...options.headers, ...headers } });
    if (operationId !== 'subscribeToChanges' && operationId !== 'runDoctor')
      await requestOperation(operationId, { ...options, headers: { ...options.headers, ...BASIC_HEADERS } }).catch(
        (error: unknown) => failures.push(String(error)),
      );
    simulatedFailures.storeUnavailable = false;
  }

  expect(failures).toEqual([]);
  const changingIds = [...OPERATION_ROUTES, ...FILE_ROUTES].flatMap(({ operation: { id, makesChange } }) =>
    makesChange ? [id] : [],
  );
  expect([...auditedIds].filter((id) => !changingIds.includes(id))).toEqual([]);
  // DNS has no records, so the check changes nothing.
  expect(changingIds.filter((id) => !auditedIds.has(id))).toEqual(['verifyDomain']);
  const documentedStatuses = operations.flatMap(({ operation: { operationId, responses } }) =>
    Object.keys(responses)
      .filter((status) => status !== 'default')
      .map((status) => `${operationId} ${status}`),
  );
  expect(documentedStatuses.filter((answer) => !responseCounts.has(answer)).sort()).toEqual(
    Object.keys(UNREACHABLE_ERRORS).sort(),
  );
});
