import { userInfo } from 'node:os';
import { describe, expect, test } from 'vitest';
import { isDatabaseUrl, parseDatabaseUrl } from '../../../src/config/database-url.ts';

const BASE_SETTING = {
  kind: 'postgres',
  hosts: [{ host: 'db.example', port: 5432 }],
  user: 'me',
  password: null,
  database: 'mail',
  tls: 'preferred',
  tlsFiles: { rootCert: null, cert: null, key: null },
  schema: null,
  options: null,
  pooler: null,
  tracksStatements: false,
  direct: null,
} as const;

describe('POSTRIDER_DATABASE as a PostgreSQL URL', () => {
  test.each([
    ['postgres://me@db.example/mail', BASE_SETTING],
    ['POSTGRESQL://me@db.example/mail', BASE_SETTING],
    ['postgres://db.example/mail', { ...BASE_SETTING, user: userInfo().username }],
    ['postgres:///mail', { ...BASE_SETTING, user: userInfo().username, hosts: [{ host: '127.0.0.1', port: 5432 }] }],
    [
      'postgres://me:s3cret@db.example:6432/mail',
      { ...BASE_SETTING, password: 's3cret', hosts: [{ host: 'db.example', port: 6432 }] },
    ],
    [
      'postgres://m%40e:p%3A%2F%40%25@db.example/ma%20il',
      { ...BASE_SETTING, user: 'm@e', password: 'p:/@%', database: 'ma il' },
    ],
    ['postgres://me:a:b@c@db.example/mail', { ...BASE_SETTING, password: 'a:b@c' }],
    ['postgres://me@[::1]:5433/mail', { ...BASE_SETTING, hosts: [{ host: '::1', port: 5433 }] }],
    ['postgres://me@[::1]/mail', { ...BASE_SETTING, hosts: [{ host: '::1', port: 5432 }] }],
    [
      'postgres://me@a.example,b.example:5433,[::1]/mail?target_session_attrs=read-write',
      {
        ...BASE_SETTING,
        hosts: [
          { host: 'a.example', port: 5432 },
          { host: 'b.example', port: 5433 },
          { host: '::1', port: 5432 },
        ],
      },
    ],
    [
      'postgres://me@/mail?host=/run/postgresql',
      { ...BASE_SETTING, hosts: [{ host: '/run/postgresql', port: 5432 }], tls: 'never' },
    ],
    [
      'postgres://me@%2Frun%2Fpostgresql/mail',
      { ...BASE_SETTING, hosts: [{ host: '/run/postgresql', port: 5432 }], tls: 'never' },
    ],
    ['postgres://me@db.example/mail?sslmode=disable', { ...BASE_SETTING, tls: 'never' }],
    ['postgres://me@db.example/mail?sslmode=require', { ...BASE_SETTING, tls: 'required' }],
    ['postgres://me@db.example/mail?sslmode=verify-full', { ...BASE_SETTING, tls: 'verified' }],
    ['postgres://me@db.example/mail?sslmode=verify-ca', { ...BASE_SETTING, tls: 'verified-chain' }],
    [
      'postgres://me@db.example/mail?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslcert=me.pem&sslkey=me.key',
      { ...BASE_SETTING, tls: 'verified', tlsFiles: { rootCert: '/etc/ca.pem', cert: 'me.pem', key: 'me.key' } },
    ],
    [
      'postgres://me@db.example/mail?sslmode=require&sslrootcert=ca.pem',
      { ...BASE_SETTING, tls: 'verified-chain', tlsFiles: { rootCert: 'ca.pem', cert: null, key: null } },
    ],
    ['postgres://me@db.example/mail?schema=my_mail', { ...BASE_SETTING, schema: 'my_mail' }],
    ['postgres://me@db.example/mail?pooler=transaction', { ...BASE_SETTING, pooler: 'transaction' }],
    [
      'postgres://me@db.example/mail?pooler=transaction&prepared=yes',
      { ...BASE_SETTING, pooler: 'transaction', tracksStatements: true },
    ],
    ['postgres://me@db.example/mail?prepared=no', BASE_SETTING],
    [
      'postgres://me@db.example/mail?options=-c%20search_path%3Dpost',
      { ...BASE_SETTING, options: '-c search_path=post' },
    ],
  ])('the URL %s is parsed', (text, setting) => {
    expect(isDatabaseUrl(text)).toBe(true);
    expect(parseDatabaseUrl(text)).toEqual({ ok: true, value: setting });
  });

  test.each([
    ['postgres:mail', 'needs // after the colon'],
    ['postgres://db.example', 'names no database'],
    ['postgres://db.example/a/b', 'names no database'],
    ['postgres://db.example:65536/mail', 'port is not a number from 1 to 65535'],
    ['postgres://db.example:/mail', 'port is not a number from 1 to 65535'],
    ['postgres://db example/mail', 'is not a host name or address'],
    ['postgres://me:100%@db.example/mail', 'write %25'],
    ['postgres://db.example/mail?ssl=true', 'unknown parameter ssl'],
    ['postgres://db.example/mail?sslmod=require', 'did you mean sslmode?'],
    ['postgres://db.example/mail?sslmode=yes', 'sslmode must be one of'],
    ['postgres://db.example/mail?sslrootcert=ca.pem', 'sslrootcert needs sslmode=verify-full'],
    ['postgres://db.example/mail?sslmode=require&sslrootcert=', 'sslrootcert is empty'],
    ['postgres://db.example/mail?sslmode=require&sslcert=me.pem', 'set both, or remove both'],
    ['postgres://db.example/mail?sslmode=disable&sslcert=me.pem&sslkey=me.key', 'sslcert needs TLS'],
    ['postgres://db.example/mail?prepared=yes', 'prepared=yes needs pooler=transaction'],
    ['postgres://db.example/mail?pooler=transaction&prepared=on', 'prepared must be yes or no'],
    ['postgres://db.example/mail?pooler=session', 'pooler must be transaction'],
    ['postgres://db.example/mail?pooler=transaction&options=-cjit%3Doff', 'refuses options; set them with ALTER ROLE'],
    ['postgres://db.example/mail?schema=a,b', 'schema must be one name'],
    ['postgres://db.example/mail?schema=a&options=-csearch_path%3Db', 'remove one of them'],
    ['postgres://db.example/mail?target_session_attrs=standby', 'Postrider writes'],
  ])('the URL %s is refused with a one-line error', (text, errorText) => {
    const parseResult = parseDatabaseUrl(text);
    const fault = parseResult.ok ? '' : parseResult.fault;
    expect(fault).toContain(errorText);
    expect(fault).not.toMatch(/[\r\n]/);
  });
});
