/** test/unit/operator/responses.test.ts performs every operation over HTTP. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { createContext } from '../../../src/cli/context.ts';
import { buildProgram } from '../../../src/cli/main.ts';
import { getOperations } from '../../../src/cli/operation-command.ts';
import { AUDITED_NOUNS } from '../../../src/model/audit.ts';
import { getInputMembers, isRequired } from '../../../src/operations/input.ts';
import type { DownloadOperation, UploadOperation } from '../../../src/operations/operation.ts';
import { createApiDocument } from '../../../src/operator/api-document.ts';
import { FILE_ROUTES } from '../../../src/operator/list-files.ts';
import { listPathParameters, type OperationRoute } from '../../../src/operator/operation-route.ts';
import { OPERATION_ROUTES } from '../../../src/operator/operation-routes.ts';
import { TICKET_NAME } from '../../../src/operator/schemas.ts';
import { listFiles, ROOT } from '../../house/source.ts';

/** Why an operation has no command, by the name of the operation. */
const WITHOUT_COMMAND: Readonly<Record<string, string>> = {
  'message.test': '`postrider send` submits a message through the public listener of a running service',
};
/** Why an operation has two commands, by the name of the operation. */
const TWO_COMMANDS: Readonly<Record<string, string>> = {
  'suppression.export': '`suppression list` prints what `suppression export` writes as CSV',
};
/** Why an operation has no route, by the name of the operation. */
const WITHOUT_ROUTE: Readonly<Record<string, string>> = {
  'message.list': 'GET /messages searches messages, and lists all messages if the query has no search text',
};

type Operation = OperationRoute['operation'] | UploadOperation | DownloadOperation;

function isOperation(value: unknown): value is Operation {
  return typeof value === 'object' && value !== null && 'run' in value && 'input' in value && 'result' in value;
}

async function listExportedOperations(): Promise<readonly Operation[]> {
  const modules = await Promise.all(
    listFiles('src/operations', '.ts').map(
      (file) => import(pathToFileURL(join(ROOT, file)).href) as Promise<Readonly<Record<string, unknown>>>,
    ),
  );
  return modules.flatMap((module) => Object.values(module).filter(isOperation));
}

function listMethods(operation: Operation): readonly string[] {
  return [
    ...OPERATION_ROUTES.filter((route) => route.operation === operation),
    ...FILE_ROUTES.filter((route) => route.operation === operation),
  ].map(({ method }) => method);
}

function listCommands(program: Command): readonly Command[] {
  return program.commands.flatMap((command) => [command, ...listCommands(command)]);
}

const OPERATIONS = await listExportedOperations();
const COMMANDS = listCommands(await buildProgram(createContext(process), () => undefined));
const NAMED_OPERATIONS = OPERATIONS.map((operation) => [operation.name, operation] as const);

interface DescribedOperation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: {
    readonly content: {
      readonly 'application/json'?: {
        readonly schema: { readonly properties: object; readonly required?: readonly string[] };
      };
    };
  };
}

const { paths } = JSON.parse(createApiDocument('0', '/api/v1')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
};

test('the operations are found, and their names and ids are unique', () => {
  expect(OPERATIONS.length).toBeGreaterThanOrEqual(OPERATION_ROUTES.length + FILE_ROUTES.length);
  expect(new Set(OPERATIONS.map(({ name }) => name)).size).toBe(OPERATIONS.length);
  expect(new Set(OPERATIONS.map(({ id }) => id)).size).toBe(OPERATIONS.length);
  for (const { id, name } of OPERATIONS) {
    expect(id).toMatch(/^[a-z]+[A-Za-z]+$/);
    expect(name).toMatch(/^[a-z]+\.[a-z-]+$/);
  }
});

describe('every operation', () => {
  test.each(NAMED_OPERATIONS)('%s has one command, or a reason to have none or two', (name, operation) => {
    const commands = COMMANDS.filter((command) => getOperations(command).some((one) => one.name === operation.name));
    const count = name in WITHOUT_COMMAND ? 0 : name in TWO_COMMANDS ? 2 : 1;
    expect([name, commands.length]).toEqual([name, count]);
  });

  test.each(NAMED_OPERATIONS)('%s has one route, or a reason to have none', (name, operation) => {
    const routes = listMethods(operation);
    expect([name, routes.length]).toEqual([name, name in WITHOUT_ROUTE ? 0 : 1]);
  });

  test('has a noun that the filter of the audit log offers, if the operation changes something', () => {
    const nouns = OPERATIONS.filter(({ makesChange: changes }) => changes).map(({ name }) => name.split('.')[0] ?? '');
    expect([...new Set(nouns)].sort()).toEqual([...AUDITED_NOUNS].sort());
  });

  test.each(NAMED_OPERATIONS)('%s changes nothing by GET', (name, operation) => {
    for (const method of listMethods(operation)) {
      expect([name, operation.makesChange && method === 'GET']).toEqual([name, false]);
    }
  });
});

// test/unit/operator/responses.test.ts compares the results with the document.
test.each(
  [...OPERATION_ROUTES, ...FILE_ROUTES.map((route) => ({ presetMembers: {}, ...route }))].map(
    (route) => [route.operation.name, route] as const,
  ),
)('the document of the operator API has the input of %s', (_name, { method, path, operation, presetMembers }) => {
  const description = paths[`/api/v1${path}`]?.[method.toLowerCase()];
  if (description === undefined) throw new Error(`${method} ${path} is not in the document`);
  expect(description.operationId).toBe(operation.id);
  const body = description.requestBody?.content['application/json']?.schema;
  const parameters = description.parameters.filter(({ name }) => name !== TICKET_NAME);
  const describedMembers = [...parameters.map(({ name }) => name), ...Object.keys(body?.properties ?? {})];
  const requiredMembers = [
    ...parameters.filter((one) => one.required).map(({ name }) => name),
    ...(body?.required ?? []),
  ];
  const members = Object.keys(getInputMembers(operation.input)).filter((name) => !Object.hasOwn(presetMembers, name));
  expect(describedMembers.sort()).toEqual([...members].sort());
  expect(requiredMembers.sort()).toEqual(members.filter((name) => isRequired(operation.input, name)).sort());
  const pathParameters = parameters.filter((one) => one.in === 'path').map(({ name }) => name);
  expect(pathParameters).toEqual(listPathParameters(path));
});
