import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Static, TObject, TSchema } from 'typebox';
import { expect, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { describeSettings, loadSettings } from '../../../src/config/load.ts';
import { readEntity } from '../../../src/feedback/read/entity.ts';
import type { ServiceEvent } from '../../../src/model/events.ts';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import {
  type DownloadOperation,
  type Operation,
  type OperationResult,
  perform,
  performDownload,
  performUpload,
  type ServiceContext,
  type UploadOperation,
} from '../../../src/operations/operation.ts';
import { createImportScheduler } from '../../../src/operations/suppression-files.ts';
import { createAuditedStore } from '../../../src/operator/audited-store.ts';
import type { Store } from '../../../src/store/contract.ts';
import { createCaptureInbox } from '../../../src/transports/capture.ts';
import { createAttemptOverRoute, createInstallation } from '../../../src/wiring/installation.ts';
import { startDns } from '../../rig/dns.ts';
import { CREDENTIALS, type SesFake, startSesFake } from '../../rig/ses-fake.ts';
import { createCommandRig } from '../cli/command-rig.ts';
import { closeSchema } from '../operator/response-check.ts';

const TEST_MESSAGE_ID = '01936f2e-7c4b-7a10-9b1e-5d0c3a9f4e21';

export interface OperationRig {
  readonly folder: string;
  readonly context: ServiceContext;
  readonly store: Store;
  readonly events: readonly ServiceEvent[];
  now: number;
  /**
   * Performs an operation. Fails if the result does not match its schema, or if the operation does not declare the
   * error code.
   */
  perform<I extends TObject, R extends TSchema>(
    operation: Operation<I, R, ServiceContext>,
    rawInput: Readonly<Record<string, unknown>>,
  ): Promise<OperationResult<Static<R>>>;
  /** Performs an operation like `perform` and returns its value. Fails if the result is an error. */
  performSuccessfully<I extends TObject, R extends TSchema>(
    operation: Operation<I, R, ServiceContext>,
    rawInput: Readonly<Record<string, unknown>>,
  ): Promise<Static<R>>;
  upload(operation: UploadOperation, rawInput: Readonly<Record<string, unknown>>, text: string): Promise<unknown>;
  download(operation: DownloadOperation, rawInput: Readonly<Record<string, unknown>>): Promise<readonly unknown[]>;
  listAudit(): Promise<readonly string[]>;
}

export async function createOperationRig(environment: Readonly<Record<string, string>> = {}): Promise<OperationRig> {
  const { folder, store } = await createCommandRig(environment);
  const variables = { POSTRIDER_DATABASE: `sqlite:${join(folder, 'postrider.db')}`, ...environment };
  const settings = loadSettings(variables, null);
  const actor = 'cli:tester';
  const clock = { ...systemClock, now: () => rig.now };
  const events: ServiceEvent[] = [];
  const auditedStore = createAuditedStore(store, actor, clock.now);
  const rig: OperationRig = {
    folder,
    store,
    events,
    context: {
      actor,
      scope: 'all',
      clock,
      machineClock: systemClock,
      settings,
      random: randomBytes,
      status: null,
      publish: (event) => events.push(event),
      store: auditedStore,
      installation: createInstallation(settings, systemClock, (work) => work(auditedStore)),
      describeSettings: () => describeSettings(variables, null),
      showProgress: () => undefined,
      inbox: createCaptureInbox(join(folder, 'inbox')),
      readEntity,
      publicListener: {
        getUrl: () => 'http://127.0.0.1:8080/api/v1/send-mail',
        post: async () => ({ status: 201, headers: [], body: JSON.stringify({ result: { id: TEST_MESSAGE_ID } }) }),
      },
      imports: createImportScheduler(auditedStore, clock),
      attemptOverRoute: createAttemptOverRoute(settings, systemClock),
    },
    now: Date.UTC(2030, 0, 1),
    async perform(operation, rawInput) {
      const performResult = await perform(operation, rawInput, rig.context);
      if (performResult.ok) {
        expectShape(operation.name, operation.result, performResult.value);
      } else {
        expect([...operation.errors, 'invalid', 'unavailable']).toContain(performResult.error.code);
      }
      return performResult;
    },
    async performSuccessfully(operation, rawInput) {
      const performResult = await rig.perform(operation, rawInput);
      if (!performResult.ok) throw new Error(performResult.error.message);
      return performResult.value;
    },
    async upload(operation, rawInput, text) {
      async function* generateBytes() {
        yield Buffer.from(text);
      }
      const open = async () => ({ bytes: generateBytes(), reread: null, close: async () => undefined });
      const progressReports: unknown[] = [];
      const observer = {
        onRowsRead: () => undefined,
        onProgress: (progressReport: unknown) => progressReports.push(progressReport),
      };
      const performResult = await performUpload(operation, rawInput, { name: 'the file', open }, rig.context, observer);
      if (!performResult.ok) throw new Error(performResult.error.message);
      expect(progressReports.length).toBeGreaterThan(0);
      for (const progressReport of progressReports) expectShape(operation.name, operation.progress, progressReport);
      expectShape(operation.name, operation.result, performResult.value);
      return performResult.value;
    },
    async download(operation, rawInput) {
      const performResult = await performDownload(operation, rawInput, rig.context);
      if (!performResult.ok) throw new Error(performResult.error.message);
      const pages: unknown[] = [];
      for await (const page of performResult.value) {
        expectShape(operation.name, operation.result, page);
        pages.push(page);
      }
      return pages;
    },
    async listAudit() {
      const entries = await store.listAudit(null, 200);
      return entries.map(({ actor, action, target }) => `${actor} ${action} ${target}`).reverse();
    },
  };
  return rig;
}

/** The compiled schemas; a compilation takes much longer than a check. */
const validators = new Map<TSchema, ValidateFunction>();

function expectShape(name: string, schema: TSchema, value: unknown): void {
  const isValid =
    validators.get(schema) ??
    new Ajv2020({ strict: false, validateFormats: false }).compile(JSON.parse(JSON.stringify(closeSchema(schema, {}))));
  validators.set(schema, isValid);
  const validate = isValid(JSON.parse(JSON.stringify(value)));
  expect([name, validate, isValid.errors]).toEqual([name, true, null]);
}

/** Like `createOperationRig`, with a DNS server whose zone is empty. */
export async function createRigWithDns(environment: Readonly<Record<string, string>> = {}) {
  const dns = await startDns();
  onTestFinished(() => dns.close());
  const rig = await createOperationRig({ POSTRIDER_DNS: `127.0.0.1:${dns.port}`, ...environment });
  const publishRecords = ({ records }: Pick<DomainDetails, 'records'>) => {
    for (const { type, name, value } of records) if (type === 'TXT') dns.zone[name] = { TXT: [value] };
  };
  return { rig, dns, publishRecords };
}

/** Starts a fake of Amazon SES, and sets its credentials until the end of the test. */
export async function startSes(): Promise<SesFake> {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
  const fake = await startSesFake();
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await fake.close();
  });
  return fake;
}
