import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { getDefaultEhloName, parseTransport } from '../../../src/config/transport-url.ts';

const BASE_SETTING = {
  kind: 'smtp',
  auth: null,
  connections: 20,
  verifyCertificate: true,
  name: getDefaultEhloName(),
  provider: null,
  relayParameters: {},
} as const;

const POSTMARK = { provider: 'postmark', connections: 10 };
const relay = (host: string, port: number, tls: string, changes: object = {}) => ({
  ...{ ...BASE_SETTING, host, port, tls },
  ...changes,
});

describe('POSTRIDER_TRANSPORT', () => {
  it.each<[string, object]>([
    ['capture:', { kind: 'capture' }],
    ['smtp://relay.example', relay('relay.example', 25, 'offered')],
    ['SMTP://relay.example/', relay('relay.example', 25, 'offered')],
    ['smtps://relay.example', relay('relay.example', 465, 'implicit')],
    ['smtp://127.0.0.1:2525?tls=never', relay('127.0.0.1', 2525, 'never')],
    ['smtp://[::1]:2525?tls=required', relay('::1', 2525, 'required')],
    ['smtp://[::1]', relay('::1', 25, 'offered')],
    [
      'smtp://me%40example.com:p%3A%2F%40ss@relay.example:587?tls=required&verify=no&connections=7&name=out.example.com',
      relay('relay.example', 587, 'required', {
        ...{ auth: { user: 'me@example.com', pass: 'p:/@ss' }, connections: 7 },
        ...{ verifyCertificate: false, name: 'out.example.com' },
      }),
    ],
    [
      'smtps://u:a?b/c#d@relay.example?verify=no',
      relay('relay.example', 465, 'implicit', { verifyCertificate: false, auth: { user: 'u', pass: 'a?b/c#d' } }),
    ],
    [
      'smtp://smtp.postmarkapp.com:587?stream=receipts_1',
      relay('smtp.postmarkapp.com', 587, 'offered', { ...POSTMARK, relayParameters: { stream: 'receipts_1' } }),
    ],
    [
      'smtp://Email-SMTP.eu-west-1.amazonaws.com?configuration-set=news',
      relay('Email-SMTP.eu-west-1.amazonaws.com', 25, 'offered', {
        ...{ provider: 'ses', relayParameters: { 'configuration-set': 'news' } },
      }),
    ],
    [
      'smtp://127.0.0.1:2525?stream=outbound&provider=postmark&connections=40',
      relay('127.0.0.1', 2525, 'offered', { ...POSTMARK, connections: 40, relayParameters: { stream: 'outbound' } }),
    ],
    [
      'smtp://smtp.postmarkapp.com?provider=postal',
      relay('smtp.postmarkapp.com', 25, 'offered', { provider: 'postal' }),
    ],
    ['ses://eu-west-1', { kind: 'ses', region: 'eu-west-1', endpoint: null, configurationSet: null }],
    [
      'ses://us-gov-west-1?configuration-set=news_1&endpoint=http%3A%2F%2F127.0.0.1%3A8005',
      { kind: 'ses', region: 'us-gov-west-1', endpoint: 'http://127.0.0.1:8005', configurationSet: 'news_1' },
    ],
    [
      'ses://eu-west-1?endpoint=http://127.0.0.1:8005',
      { kind: 'ses', region: 'eu-west-1', endpoint: 'http://127.0.0.1:8005', configurationSet: null },
    ],
  ])('the URL %s is parsed', (text, setting) => expect(parseTransport(text)).toEqual({ ok: true, value: setting }));

  it.each([
    ['smpt://relay.example', 'did you mean smtp?'],
    ['smtp:/relay.example', 'needs // after the scheme'],
    ['http://relay.example', 'is unknown'],
    ['capture', 'needs a colon'],
    ['capture:./inbox', 'has text after the colon'],
    ['ses:eu-west-1', 'needs // after the scheme'],
    ['ses://', 'names no region'],
    ['ses://EU', 'names no region'],
    ['ses://key:secret@eu-west-1', 'must not contain credentials'],
    ['ses://eu-west-1?endpont=http://x', '(did you mean endpoint?)'],
    ['ses://eu-west-1?endpoint=ftp://x', 'endpoint must be an http or https URL'],
    ['ses://eu-west-1?configuration-set=a%20b', 'configuration-set must be a name'],
    ['ses://eu-west-1?configuration-set=a&configuration-set=b', 'twice'],
    ['mx:', 'not supported by this version'],
    ['smtp://', 'has no host'],
    ['smtp://re lay.example', 'space or control character'],
    ['smtp://relay.example\r\nRCPT TO', 'space or control character'],
    ['smtp://-relay.example', 'no valid host'],
    ['smtp://[::1', 'no valid host'],
    ['smtp://relay.example:0', 'no port from 1 to 65535'],
    ['smtp://relay.example:65536', 'no port from 1 to 65535'],
    ['smtp://relay.example:', 'no port from 1 to 65535'],
    ['smtp://relay.example/path', 'has a path'],
    ['smtp://relay.example#x', 'has a #'],
    ['smtp://user@relay.example', 'without a password'],
    ['smtp://:p@relay.example', 'empty user name or password'],
    ['smtp://u:50%@relay.example', 'not percent-encoded'],
    ['smtp://u:p%0d%0aQUIT@relay.example', 'NUL or line break'],
    ['smtp://relay.example?tsl=required', 'did you mean tls?'],
    ['smtp://relay.example?tls=requird', 'tls must be required or never'],
    ['smtps://relay.example?tls=required', 'always uses TLS'],
    ['smtp://relay.example?connections=0', 'from 1 to 1000'],
    ['smtp://relay.example?connections=1001', 'from 1 to 1000'],
    ['smtp://relay.example?tls=required&verify=off', 'verify must be yes or no'],
    ['smtp://relay.example?verify=no', 'only with ?tls=required or smtps://'],
    ['smtp://relay.example?name=a%0D%0AMAIL', 'name must be a host name'],
    ['smtp://relay.example?tls=never&tls=required', 'twice'],
    ['smtp://relay.example?provider=postmrk', 'provider is not known (did you mean postmark?)'],
    ['smtp://relay.example?provider=constructor', 'provider is not known'],
    ['smtp://relay.example?provider=postal&provider=ses', 'twice'],
    ['smtp://relay.example?stream=outbound', 'the unknown parameter "stream"; the parameters are tls,'],
    ['smtp://smtp.postmarkapp.com?configuration-set=a', 'the unknown parameter "configuration-set"'],
    ['smtp://smtp.postmarkapp.com?sream=a', 'did you mean stream?'],
    ['smtp://smtp.postmarkapp.com?provider=postal&stream=a', 'the unknown parameter "stream"'],
    ['smtp://smtp.postmarkapp.com?stream=a%0D%0AX-A:%20b', 'stream must be a name of at most 64 letters'],
    ['smtp://email-smtp.eu-west-1.amazonaws.com?configuration-set=a%20b', 'configuration-set must be a name'],
  ])('%j is refused in one line: %s', (text, part) => {
    const parseResult = parseTransport(text);
    if (parseResult.ok) throw new Error('expected an error');
    expect(parseResult.fault).toContain(part);
    expect(parseResult.fault).not.toMatch(/[\r\n]/);
  });

  it('a percent-encoded user name and password may contain any character except NUL and line breaks', () => {
    const text = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((value) => !/[\0\r\n]/.test(value));
    fc.assert(
      fc.property(text, text, (user, pass) => {
        const encodedLogin = [user, pass].map(encodeURIComponent).join(':');
        const parseResult = parseTransport(`smtp://${encodedLogin}@relay.example:587`);
        expect(parseResult).toEqual({
          ok: true,
          value: relay('relay.example', 587, 'offered', { auth: { user, pass } }),
        });
      }),
    );
  });
});
