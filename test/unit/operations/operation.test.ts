import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { SecretError } from '../../../src/domains/secret.ts';
import { createInvalid, ERROR_CODES, ok } from '../../../src/operations/errors.ts';
import { readInput } from '../../../src/operations/input.ts';
import { defineOperation, perform } from '../../../src/operations/operation.ts';
import { createStringEnum } from '../../../src/operations/schemas.ts';
import {
  createOperationRoute,
  createRouteInput,
  readRequestInput,
  toResponse,
} from '../../../src/operator/operation-route.ts';
import { OPERATION_ROUTES } from '../../../src/operator/operation-routes.ts';
import { StoreError } from '../../../src/store/error.ts';
import { createOperationRig } from './operation-rig.ts';

const SCHEMA = Type.Object({
  name: Type.String({ maxLength: 5 }),
  reason: createStringEnum(['bounce', 'manual'], { default: 'manual' }),
  limit: Type.Integer({ minimum: 1, maximum: 10, default: 5 }),
  subdomains: Type.Optional(Type.Boolean()),
});

async function createContext() {
  return (await createOperationRig()).context;
}

describe('the input of an operation', () => {
  test('has the types of its schema, from strings and from JSON values', () => {
    const typedInput = { name: 'acme', reason: 'bounce', limit: 7, subdomains: true };
    expect(readInput(SCHEMA, { name: 'acme', reason: 'bounce', limit: '7', subdomains: 'true' })).toEqual(
      ok(typedInput),
    );
    expect(readInput(SCHEMA, typedInput)).toEqual(ok(typedInput));
    expect(readInput(SCHEMA, { name: 'acme' })).toEqual(ok({ name: 'acme', reason: 'manual', limit: 5 }));
    expect(readInput(SCHEMA, { name: 12 })).toMatchObject({ ok: true, value: { name: '12' } });
  });

  test.each([
    [{}, 'name'],
    [{ name: '' }, 'name'],
    [{ name: 'longer' }, 'name'],
    [{ name: ['acme'] }, 'name'],
    [{ name: 'acme', reason: 'boune' }, 'reason'],
    [{ name: 'acme', limit: '0' }, 'limit'],
    [{ name: 'acme', limit: 11 }, 'limit'],
    [{ name: 'acme', limit: '1e1' }, 'limit'],
    [{ name: 'acme', limit: 1.5 }, 'limit'],
    [{ name: 'acme', limit: '99999999999999999999' }, 'limit'],
    [{ name: 'acme', subdomains: 'yes' }, 'subdomains'],
    [{ name: 'acme', color: 'red' }, null],
    [{ name: 'acme', constructor: 'x' }, null],
  ])('%j is invalid, and the member at fault is named', (rawInput, field) => {
    expect(readInput(SCHEMA, rawInput)).toMatchObject({ ok: false, error: { code: 'invalid', field } });
  });
});

describe('an operation', () => {
  const failingOperation = defineOperation({
    name: 'test.fail',
    id: 'failTest',
    summary: 'Fail',
    makesChange: true,
    role: 'operator',
    readsContent: false,
    input: Type.Object({ as: createStringEnum(['store', 'secret', 'bug', 'warning']) }),
    result: Type.Object({ done: Type.Boolean() }),
    errors: [],
    async run({ as }, { warn }) {
      if (as === 'store') throw new StoreError('the store does not answer: postgres://u:secret-word@db/p');
      if (as === 'secret') throw new SecretError('the secret has changed; restore it');
      if (as === 'bug') throw new TypeError('a bug');
      warn('almost', 'It almost failed.');
      return ok({ done: true });
    },
  });

  test('returns unavailable if the store does not answer and a conflict for a lost secret, and throws any other exception', async () => {
    const context = await createContext();
    const storeFault = await perform(failingOperation, { as: 'store' }, context);
    expect(storeFault).toMatchObject({
      ok: false,
      error: { code: 'unavailable', message: 'the store does not answer: postgres://u:********@db/p' },
    });
    // A repeated request also fails, so the status is not 503.
    const secretFault = await perform(failingOperation, { as: 'secret' }, context);
    expect(secretFault).toMatchObject({
      ok: false,
      error: { code: 'conflict', message: 'the secret has changed; restore it' },
    });
    await expect(perform(failingOperation, { as: 'bug' }, context)).rejects.toThrow(TypeError);
  });

  test('returns its warnings with the result, and the route adds them to the answer', async () => {
    const performResult = await perform(failingOperation, { as: 'warning' }, await createContext());
    const warnings = [{ code: 'almost', message: 'It almost failed.' }];
    expect(performResult).toEqual({ ok: true, value: { done: true }, warnings });
    const route = createOperationRoute('POST', '/tests', 'Tests', failingOperation);
    expect(toResponse(route, performResult)).toEqual({ status: 200, body: { done: true, warnings } });
  });

  test('that fails is answered with the status of its error code and the name of the parameter', async () => {
    const route = createOperationRoute('POST', '/tests', 'Tests', failingOperation);
    for (const [code, { status }] of Object.entries(ERROR_CODES)) {
      const expectedError = code === 'invalid' ? createInvalid('as', 'wrong').error : { field: 'as', message: 'wrong' };
      const error = { ...expectedError, code: code as keyof typeof ERROR_CODES };
      expect(toResponse(route, { ok: false, error, warnings: [] })).toEqual({
        status,
        body: { result: 'error', code, field: 'as', message: code === 'invalid' ? 'as: wrong' : 'wrong' },
      });
    }
  });
});

test('a route accepts a parameter only in its documented location in the request', () => {
  const route = OPERATION_ROUTES.find(({ operation: { id } }) => id === 'addSuppression');
  if (route === undefined) throw new Error('the route is missing');
  const params = { account: 'acme' };
  const validRequest = readRequestInput(createRouteInput(route), {
    params,
    query: {},
    body: { address: 'ada@example.com' },
  });
  expect(validRequest).toEqual({ ok: true, members: { account: 'acme', address: 'ada@example.com' } });
  for (const parts of [
    { params, query: { address: 'ada@example.com' }, body: {} },
    { params, query: {}, body: { account: 'other', address: 'ada@example.com' } },
    { params, query: {}, body: { address: 'ada@example.com', adress: 'eve@example.com' } },
    { params, query: {}, body: [] },
    { params, query: {}, body: { address: 'ada\u0000@example.com' } },
  ])
    expect(readRequestInput(createRouteInput(route), parts)).toMatchObject({ ok: false, body: { code: 'invalid' } });
});
