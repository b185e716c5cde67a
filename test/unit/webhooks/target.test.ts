import { describe, expect, it, vi } from 'vitest';
import { type AddressLookup, parseTargetUrl, resolveTarget } from '../../../src/model/webhook-target.ts';
import { maskTargetUrl } from '../../../src/printing/escape.ts';

const getCode = (text: string, targets: 'public' | 'any' = 'public') => {
  const result = parseTargetUrl(text, targets);
  return result.ok ? 'ok' : result.code;
};

describe('the URL of an endpoint', () => {
  it('is accepted with https and a name or a public address', () => {
    const urls = ['https://app.example.com/hooks?a=1', 'https://8.8.8.8/', 'https://[2606:4700::1111]:8443/x'];
    expect(urls.map((url) => getCode(url))).toEqual(['ok', 'ok', 'ok']);
  });

  it('is refused without https, and accepted with http only if POSTRIDER_WEBHOOK_TARGETS is any', () => {
    expect(getCode('http://app.example.com/')).toBe('not-https');
    expect(getCode('http://app.example.com/', 'any')).toBe('ok');
    for (const url of ['ftp://x.test/', 'file:///etc/passwd', 'javascript:alert(1)', 'unix:/run/x', 'gopher://x/'])
      for (const targets of ['public', 'any'] as const)
        expect(['not-https', 'invalid-url']).toContain(getCode(url, targets));
  });

  it('is always refused with credentials, a fragment, spaces or line breaks', () => {
    for (const targets of ['public', 'any'] as const) {
      expect(getCode('https://user:password@app.example.com/', targets)).toBe('credentials');
      expect(getCode('https://user@app.example.com/', targets)).toBe('credentials');
      expect(getCode('https://:p@app.example.com/', targets)).toBe('credentials');
      expect(getCode('https://app.example.com/#part', targets)).toBe('fragment');
      expect(getCode('https://app.example.com/a b', targets)).toBe('invalid-url');
      expect(getCode('https://app.example\n.com/', targets)).toBe('invalid-url');
      expect(getCode('app.example.com/hooks', targets)).toBe('invalid-url');
      expect(getCode('', targets)).toBe('invalid-url');
      expect(getCode('https://app.example.com:0/', targets)).toBe('invalid-url');
      expect(getCode('https://app.example.com:65536/', targets)).toBe('invalid-url');
      expect(getCode('https://[fe80::1%25eth0]/', targets)).toBe('invalid-url');
      expect(getCode('https://[fe80::1%eth0]/', targets)).toBe('invalid-url');
      expect(getCode('https://999.1.1.1/', targets)).toBe('invalid-url');
      expect(getCode(`https://app.example.com/${'x'.repeat(3000)}`, targets)).toBe('invalid-url');
    }
  });

  it('is refused with every spelling of an address that is not public', () => {
    const hosts = [
      ...'127.0.0.1 127.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.0.0.1.'.split(' '),
      ...'１２７.0.0.1 127。0。0。1 %31%32%37.0.0.1 0 0.0.0.0 10.1.2.3 100.64.0.1 169.254.169.254'.split(' '),
      ...'0xA9FEA9FE 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1'.split(' '),
      ...'198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 255.255.255.255 [::] [::1]'.split(' '),
      ...'[0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] [::ffff:7f00:1]'.split(' '),
      ...'[0:0:0:0:0:ffff:10.0.0.1] [::ffff:8.8.8.8] [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1]'.split(' '),
      ...'[64:ff9b::a9fe:a9fe] [64:ff9b::] [64:ff9b:1::8.8.8.8] [100::1] [100:0:0:1::1]'.split(' '),
      ...'[2001::7f00:1] [2001:0:808:808::80ff:fffe] [2001:2::1] [2001:10::1] [2001:db8::1]'.split(' '),
      ...'[2002:7f00:1::] [2002:a00:1::1] [2002:808:808::1] [3fff::1] [5f00::1] [fc00::1]'.split(' '),
      ...'[fd12:3456::1] [fe80::1] [febf::1] [fec0::1] [ff02::1] [4000::1]'.split(' '),
    ];
    const acceptedHosts = hosts.filter((host) => getCode(`https://${host}/`) !== 'address-not-public');
    expect(acceptedHosts).toEqual([]);
    expect(hosts.filter((host) => getCode(`https://${host}/`, 'any') !== 'ok')).toEqual([]);
  });

  it('is accepted with the special addresses that IANA lists as globally reachable, and with a public NAT64 address', () => {
    const hosts = ['192.0.0.9', '192.31.196.1', '192.175.48.6', '[2001:1::1]', '[2001:20::1]', '[2620:4f:8000::1]'];
    expect([...hosts, '[64:ff9b::8.8.8.8]'].filter((host) => getCode(`https://${host}/`) !== 'ok')).toEqual([]);
  });
});

describe('a URL in a message', () => {
  it('is shown as it was entered, with credentials and the query masked', () => {
    const texts = {
      '127.0.0.1:9000': '127.0.0.1:9000',
      'app.example.com/hooks': 'app.example.com/hooks',
      'https:/app.example.com': 'https:/app.example.com',
      'https://[fe80::1%25eth0]/': 'https://[fe80::1%25eth0]/',
      'https://app.example.com/@team/hook': 'https://app.example.com/@team/hook',
      'https://user:secret-word@app.example.com/': 'https://********@app.example.com/',
      'https://user:secret-word/@app.example.com/': 'https://********@app.example.com/',
      'user:secret-word@app.example.com': '********@app.example.com',
      'https://app.example.com/?key=secret-word': 'https://app.example.com/?********',
      'https://app.example.com:99999/?key=secret-word#x': 'https://app.example.com:99999/?********',
    };
    expect(Object.fromEntries(Object.keys(texts).map((text) => [text, maskTargetUrl(text)]))).toEqual(texts);
    expect(maskTargetUrl(`https://app.example.com/${'x'.repeat(3_000)}`)).toHaveLength(201);
  });
});

describe('the resolution of a target', () => {
  const resolveUrl = (lookup: AddressLookup, targets: 'public' | 'any' = 'public', text = 'https://app.test/') => {
    const url = parseTargetUrl(text, targets);
    if (!url.ok) throw new Error(url.fault);
    const lookUp = vi.fn(async () => lookup);
    return resolveTarget(url.value, targets, lookUp).then((result) => ({ result, lookUp }));
  };

  it('looks up the name once and returns every address', async () => {
    const { result, lookUp } = await resolveUrl({ kind: 'found', values: ['8.8.8.8', '2606:4700::1111'] });
    expect(result).toEqual({ ok: true, value: ['8.8.8.8', '2606:4700::1111'] });
    expect(lookUp.mock.calls).toEqual([['app.test']]);
  });

  it('is refused if one of the addresses is not public', async () => {
    for (const privateAddress of ['127.0.0.1', '::ffff:10.0.0.1', 'fd00::1', '64:ff9b::7f00:1']) {
      const { result } = await resolveUrl({ kind: 'found', values: ['8.8.8.8', privateAddress] });
      expect(result).toMatchObject({ ok: false, code: 'address-not-public' });
      expect((await resolveUrl({ kind: 'found', values: [privateAddress] }, 'any')).result.ok).toBe(true);
    }
  });

  it('distinguishes a name without an address from a failed lookup', async () => {
    expect((await resolveUrl({ kind: 'none' })).result).toMatchObject({ ok: false, code: 'name-not-found' });
    const failedResult = await resolveUrl({ kind: 'failed', reason: 'timeout' });
    expect(failedResult.result).toMatchObject({ ok: false, code: 'dns-failed' });
  });

  it('needs no lookup if the host of the URL is an address', async () => {
    const { result, lookUp } = await resolveUrl({ kind: 'none' }, 'public', 'https://[2606:4700::1111]/');
    expect(result).toEqual({ ok: true, value: ['2606:4700::1111'] });
    expect(lookUp).not.toHaveBeenCalled();
  });
});
