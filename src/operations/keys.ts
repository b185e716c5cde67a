import type { Static } from 'typebox';
import { createFault, createParseResult, parseDuration, quote } from '../config/units.ts';
import type { ApiKey } from '../model/account.ts';
import { generateApiKey, parseApiKey } from '../model/credentials.ts';
import { formatIsoTime, formatIsoTimeOrNull } from '../printing/text.ts';
import { createAccountNotFound, createConflict, createNotFound, type ErrorResult, ok } from './errors.ts';
import { changes, defineOperation, reads } from './operation.ts';
import { AccountName, createExpiry, createParsed, parseVisibleText, Time, Type } from './schemas.ts';

const KEY_ID = { description: 'The id of the key, such as `key_12`.' };
const KeyId = Type.String(KEY_ID);
const NewKey = Type.String('The key. It is not shown again.');

const KeyPrefix = Type.String('The first characters of the key.');

export const KeyEntry = Type.Object({
  id: KeyId,
  account: Type.String(),
  name: Type.String(),
  prefix: KeyPrefix,
  state: Type.Enum(['active', 'expired', 'revoked']),
  created: Time,
  expires: Type.Nullable(Time),
  revoked: Type.Nullable(Time),
  lastUsed: Type.Nullable(Time),
});
export type KeyEntry = Static<typeof KeyEntry>;

export const CreatedKey = Type.Object({ id: KeyId, key: NewKey, expires: Type.Nullable(Time) });
export type CreatedKey = Static<typeof CreatedKey>;

export const ImportedKey = Type.Object({ id: KeyId, prefix: KeyPrefix, expires: Type.Nullable(Time) });

/** The replaced key remains valid until `until`. */
export const RotatedKey = Type.Object({ id: KeyId, key: NewKey, replaces: KeyId, until: Time });
export type RotatedKey = Static<typeof RotatedKey>;

const KeyName = createParsed(
  { default: 'default', description: 'A label of the key; the default is `default`.' },
  (text) => parseVisibleText(text),
);
const KeyNumber = createParsed(KEY_ID, (text) => {
  const digits = text.startsWith('key_') ? text.slice(4) : text;
  return /^[1-9]\d{0,14}$/.test(digits)
    ? createParseResult(Number(digits))
    : createFault(`${quote(text)} is not a key id such as key_12; \`postrider key list ACCOUNT\` lists keys`);
});

export const createKey = defineOperation({
  name: 'key.create',
  id: 'createKey',
  summary: 'Create a key of an account; it is shown once',
  ...changes('operator'),
  input: Type.Object({ account: AccountName, name: KeyName, expires: createExpiry('key') }),
  result: CreatedKey,
  errors: ['not-found', 'conflict'],
  async run({ account, name, expires: expiresAt = null }, { store, clock, random }) {
    const { key, prefix, hash } = generateApiKey(random);
    const createResult = await store.createKey(account, { name, prefix, hash, expiresAt }, clock.now());
    switch (createResult.kind) {
      case 'done':
        return ok({ id: formatKeyId(createResult.value.id), key, expires: formatIsoTimeOrNull(expiresAt) });
      case 'missing':
        return createAccountNotFound(account);
      case 'exists':
        return createKeyConflict();
    }
  },
});

export const importKey = defineOperation({
  name: 'key.import',
  id: 'importKey',
  summary: 'Import a key of an account that was generated elsewhere',
  ...changes('operator'),
  input: Type.Object({
    account: AccountName,
    key: createParsed(
      {
        description:
          'The key: `pr_` and 43 random characters of base64url. Only its SHA-256 is stored, and the key is never shown.',
        minLength: 0,
      },
      (text) => {
        const parsed = parseApiKey(text);
        // The text is not quoted, because it may be a secret of another kind.
        return parsed === null
          ? createFault('the text is not an API key: `pr_` and 43 characters of base64url')
          : createParseResult(parsed);
      },
    ),
    name: KeyName,
    expires: createExpiry('key'),
  }),
  result: ImportedKey,
  errors: ['not-found', 'conflict'],
  async run({ account, key: { prefix, hash }, name, expires: expiresAt = null }, { store, clock }) {
    const importResult = await store.importKey(account, { name, prefix, hash, expiresAt }, clock.now());
    switch (importResult.kind) {
      case 'done':
        return ok({ id: formatKeyId(importResult.value.id), prefix, expires: formatIsoTimeOrNull(expiresAt) });
      case 'missing':
        return createAccountNotFound(account);
      case 'exists':
        return createConflict('key', `the key ${prefix}… is already stored, perhaps revoked; import another key`);
    }
  },
});

export const listKeys = defineOperation({
  name: 'key.list',
  id: 'listKeys',
  summary: 'List the keys of an account',
  ...reads('viewer'),
  input: Type.Object({ account: AccountName }),
  result: Type.Array(KeyEntry),
  errors: ['not-found'],
  async run({ account }, { store, clock }) {
    const listResult = await store.listKeys(account);
    if (listResult.kind !== 'done') return createAccountNotFound(account);
    const now = clock.now();
    return ok(listResult.value.map((key) => toKeyEntry(key, account, now)));
  },
});

export const revokeKey = defineOperation({
  name: 'key.revoke',
  id: 'revokeKey',
  summary: 'Revoke a key',
  ...changes('operator'),
  input: Type.Object({ key: KeyNumber }),
  result: Type.Object({ id: KeyId, prefix: Type.String(), revoked: Time }),
  errors: ['not-found'],
  async run({ key: id }, { store, clock }) {
    const now = clock.now();
    const revokeResult = await store.revokeKey(id, now);
    if (revokeResult.kind !== 'done') return createKeyNotFound(id);
    const { prefix, revokedAt } = revokeResult.value;
    return ok({ id: formatKeyId(id), prefix, revoked: formatIsoTime(revokedAt ?? now) });
  },
});

export const rotateKey = defineOperation({
  name: 'key.rotate',
  id: 'rotateKey',
  summary: 'Create a key that replaces another key; the new key is shown once',
  ...changes('operator'),
  input: Type.Object({
    key: KeyNumber,
    grace: createParsed(
      { default: '24h', description: 'The time for which the old key remains valid; the default is `24h`.' },
      parseDuration,
    ),
  }),
  result: RotatedKey,
  errors: ['not-found', 'conflict'],
  async run({ key: id, grace: graceMs }, { store, clock, random }) {
    const now = clock.now();
    const until = now + graceMs;
    const { key, prefix, hash } = generateApiKey(random);
    const createResult = await store.rotateKey(id, { prefix, hash }, until, now);
    switch (createResult.kind) {
      case 'done':
        return ok({
          id: formatKeyId(createResult.value.id),
          key,
          replaces: formatKeyId(id),
          until: formatIsoTime(until),
        });
      case 'missing':
        return createKeyNotFound(id);
      case 'exists':
        return createKeyConflict();
    }
  },
});

function formatKeyId(id: number): string {
  return `key_${id}`;
}

function createKeyNotFound(id: number): ErrorResult {
  const message = `there is no valid key ${formatKeyId(id)}; \`postrider key list ACCOUNT\` lists keys`;
  return createNotFound('key', message);
}

/** With 256 random bits this is not expected. */
function createKeyConflict(): ErrorResult {
  return createConflict(null, 'the generated key already exists; run the command again');
}

function getKeyState({ revokedAt, expiresAt }: ApiKey, now: number): KeyEntry['state'] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active';
}

function toKeyEntry(key: ApiKey, account: string, now: number): KeyEntry {
  return {
    id: formatKeyId(key.id),
    account,
    name: key.name,
    prefix: key.prefix,
    state: getKeyState(key, now),
    created: formatIsoTime(key.createdAt),
    expires: formatIsoTimeOrNull(key.expiresAt),
    revoked: formatIsoTimeOrNull(key.revokedAt),
    lastUsed: formatIsoTimeOrNull(key.lastUsedAt),
  };
}
