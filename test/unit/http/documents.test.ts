import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createErrorBody, ERROR_CODES, ERRORS, formatErrorMessage, getErrorEntry } from '../../../src/http/errors.ts';
import { createOpenApiDocument } from '../../../src/http/openapi.ts';

const root = new URL('../../../', import.meta.url);
const readText = (name: string) => readFileSync(new URL(name, root), 'utf8');

test('docs/errors.md and the error registry have the same entries', () => {
  const rows = readText('docs/errors.md')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| code '))
    .map((line) => line.slice(2, -2).split(' | '));
  const documentedErrors = Object.fromEntries(
    rows.map(([code = '', status, message, headers = '', condition, remedy]) => [
      code,
      {
        status: Number(status),
        message,
        headers: headers === '–' ? [] : headers.replaceAll('`', '').split(', '),
        condition,
        remedy,
      },
    ]),
  );
  const registry = Object.fromEntries(
    ERROR_CODES.map((code) => {
      const { status, message, headers = [], condition, remedy } = getErrorEntry(code);
      return [code, { status, message, headers: [...headers], condition, remedy }];
    }),
  );
  expect(documentedErrors).toEqual(registry);
  expect(rows.map(([code]) => code)).toEqual([...ERROR_CODES]);
});

test('openapi.json is equal to the generated document', () => {
  expect(JSON.parse(readText('openapi.json'))).toEqual(createOpenApiDocument());
});

test('the OpenAPI document contains the title, the version, the operation, the security scheme, and an example for each status', () => {
  const document = JSON.parse(JSON.stringify(createOpenApiDocument()));
  expect(document.openapi).toBe('3.1.0');
  expect(document.info).toMatchObject({ title: 'Transactional Email Sending Service', version: '1.0.0' });
  const operation = document.paths['/api/v1/send-mail'].post;
  expect(operation.operationId).toBe('sendMail');
  expect(document.components.securitySchemes.apiKey).toMatchObject({
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
  });
  const statuses = new Set(
    ERROR_CODES.filter((code) => !['not-found', 'method-not-allowed', 'not-ready'].includes(code)).map(
      (code) => ERRORS[code].status,
    ),
  );
  expect(Object.keys(operation.responses).map(Number)).toEqual([201, ...[...statuses].sort()]);
  for (const response of Object.values<{ content: Record<string, object> }>(operation.responses)) {
    const content = response.content['application/json'] ?? {};
    expect('example' in content || 'examples' in content).toBe(true);
  }
});

test('every reference in the OpenAPI document resolves', () => {
  const document: unknown = JSON.parse(JSON.stringify(createOpenApiDocument()));
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1] ?? '');
  expect(references.length).toBeGreaterThan(10);
  for (const reference of references) {
    let value: unknown = document;
    for (const step of reference.split('/'))
      value = typeof value === 'object' && value !== null ? Reflect.get(value, step) : undefined;
    expect(value, reference).toBeDefined();
  }
});

test('a detail with special characters is inserted unchanged in place of the ellipsis', () => {
  expect(formatErrorMessage('missing-fields', "$& $' to")).toBe("Missing required fields: $& $' to");
  expect(JSON.parse(createErrorBody('invalid-field', 'a"b\n').toString())).toEqual({
    result: 'error',
    message: 'Invalid a"b\n',
  });
});
