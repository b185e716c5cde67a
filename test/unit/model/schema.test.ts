import { Type as TypeBox } from 'typebox';
import { expect, test } from 'vitest';
import { Type } from '../../../src/model/schema.ts';

function createExample(type: typeof Type): object {
  const nullable = type.Union([type.String({ minLength: 1 }), type.Null()], { description: 'a text' });
  const innerSchema = type.Object({ at: type.Optional(type.Integer({ minimum: 0, description: 'ms' })) });
  return type.Object(
    {
      kind: type.Literal('error'),
      count: type.Literal(3),
      on: type.Boolean({ default: false }),
      share: type.Number({ maximum: 1 }),
      reason: type.Unsafe<'a'>({ type: 'string', enum: ['a'] }),
      before: type.Optional(type.Unknown({ description: 'anything' })),
      nothing: type.Null({ description: 'none' }),
      nullable,
      list: type.Array(innerSchema, { maxItems: 2 }),
      optional: type.Optional(nullable),
    },
    { additionalProperties: false, description: 'all of it' },
  );
}

test('a schema has the same JSON as the schema of the library, with members in the same order', () => {
  expect(JSON.stringify(createExample(Type))).toBe(JSON.stringify(createExample(TypeBox)));
});

test('Optional does not change the schema that is passed to it', () => {
  const text = Type.String();
  Type.Optional(text);
  expect(Type.Object({ text })).toMatchObject({ required: ['text'] });
});
