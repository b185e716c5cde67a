/** API keys, with which clients send. A key is in the result of the operation that makes it, and nowhere else. */

import { isoTime, isoTimeOrNull, parseDuration, parseTimestamp, quote } from '../config/units.ts';
import type { ApiKey } from '../model/account.ts';
import { newApiKey } from '../model/credentials.ts';
import { Type } from '../model/schema.ts';
import { noAccount } from './accounts.ts';
import { conflict, type Failed, invalid, memberResult, notFound, ok, type Result } from './errors.ts';
import { CreatedKey, KeyEntry, KeyId, RotatedKey } from './keys/schemas.ts';
import { parseVisibleText } from './labels.ts';
import { operation } from './operation.ts';
import { AccountName, Time } from './schemas.ts';

/** Makes a key, which works on every node from the moment that this returns. */
export const createKey = operation({
  name: 'key.create',
  id: 'createKey',
  summary: 'Make a key of an account; it is shown only now',
  changes: true,
  input: Type.Object({
    account: AccountName,
    name: Type.String({ default: 'default', description: 'To tell keys apart; `default` unless given.' }),
    expires: Type.Optional(Type.String({ description: 'Date (UTC) or `90d`; never unless given.' })),
  }),
  result: CreatedKey,
  errors: ['not-found', 'conflict'],
  async run({ account, name, expires }, { store, clock, random }) {
    const text = parseVisibleText('name', name);
    if (!text.ok) return text;
    const now = clock.now();
    const expiresAt = expires === undefined ? ok(null) : memberResult('expires', parseTimestamp(expires, now, 'ahead'));
    if (!expiresAt.ok) return expiresAt;
    const { key, prefix, hash } = newApiKey(random);
    const made = await store.createKey(account, { name, prefix, hash, expiresAt: expiresAt.value }, now);
    switch (made.kind) {
      case 'done':
        return ok({ id: keyName(made.value.id), key, expires: isoTimeOrNull(expiresAt.value) });
      case 'missing':
        return noAccount(account);
      case 'exists':
        return knownKey();
    }
  },
});

/** All keys of an account, revoked and expired ones too, in the order in which they were made. */
export const listKeys = operation({
  name: 'key.list',
  id: 'listKeys',
  summary: 'List the keys of an account',
  changes: false,
  input: Type.Object({ account: AccountName }),
  result: Type.Array(KeyEntry),
  errors: ['not-found'],
  async run({ account }, { store, clock }) {
    const keys = await store.listKeys(account);
    if (keys.kind !== 'done') return noAccount(account);
    const now = clock.now();
    return ok(keys.value.map((key) => keyEntry(key, account, now)));
  },
});

/** Revokes a key for good. Every node refuses it within a second. */
export const revokeKey = operation({
  name: 'key.revoke',
  id: 'revokeKey',
  summary: 'Refuse a key from now on',
  changes: true,
  input: Type.Object({ key: KeyId }),
  result: Type.Object({ id: KeyId, prefix: Type.String(), revoked: Time }),
  errors: ['not-found'],
  async run({ key: text }, { store, clock }) {
    const id = keyNumber(text);
    if (!id.ok) return id;
    const now = clock.now();
    const revoked = await store.revokeKey(id.value, now);
    if (revoked.kind !== 'done') return noKey(id.value);
    const { prefix, revokedAt } = revoked.value;
    return ok({ id: keyName(id.value), prefix, revoked: isoTime(revokedAt ?? now) });
  },
});

/** Makes a key with the name and the end of another one, which works until the grace time is over. */
export const rotateKey = operation({
  name: 'key.rotate',
  id: 'rotateKey',
  summary: 'Make a key that replaces another one; it is shown only now',
  changes: true,
  input: Type.Object({
    key: KeyId,
    grace: Type.String({ default: '24h', description: 'How long the old key still works; `24h` unless given.' }),
  }),
  result: RotatedKey,
  errors: ['not-found', 'conflict'],
  async run({ key: text, grace }, { store, clock, random }) {
    const id = keyNumber(text);
    if (!id.ok) return id;
    const graceMs = memberResult('grace', parseDuration(grace));
    if (!graceMs.ok) return graceMs;
    const now = clock.now();
    const until = now + graceMs.value;
    const { key, prefix, hash } = newApiKey(random);
    const made = await store.rotateKey(id.value, { prefix, hash }, until, now);
    switch (made.kind) {
      case 'done':
        return ok({ id: keyName(made.value.id), key, replaces: keyName(id.value), until: isoTime(until) });
      case 'missing':
        return noKey(id.value);
      case 'exists':
        return knownKey();
    }
  },
});

/** The id of a key as people see it. */
function keyName(id: number): string {
  return `key_${id}`;
}

/** `key_12` or `12`. */
function keyNumber(text: string): Result<number> {
  const digits = text.startsWith('key_') ? text.slice(4) : text;
  if (/^[1-9]\d{0,14}$/.test(digits)) return ok(Number(digits));
  return invalid('key', `${quote(text)} is not a key id such as key_12; \`postrider key list ACCOUNT\` shows them`);
}

function noKey(id: number): Failed {
  const message = `there is no working key ${keyName(id)}; \`postrider key list ACCOUNT\` shows what there is`;
  return notFound('key', message);
}

/** 256 random bits that are there already. */
function knownKey(): Failed {
  return conflict(null, 'the store has that key already; try again');
}

function stateOf({ revokedAt, expiresAt }: ApiKey, now: number): KeyEntry['state'] {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active';
}

function keyEntry(key: ApiKey, account: string, now: number): KeyEntry {
  return {
    id: keyName(key.id),
    account,
    name: key.name,
    prefix: key.prefix,
    state: stateOf(key, now),
    created: isoTime(key.createdAt),
    expires: isoTimeOrNull(key.expiresAt),
    revoked: isoTimeOrNull(key.revokedAt),
    lastUsed: isoTimeOrNull(key.lastUsedAt),
  };
}
