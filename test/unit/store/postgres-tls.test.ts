import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createTemporaryFolder } from '../../rig/folder.ts';
import { createAuthority, startTlsServer } from '../../rig/postgres-tls.ts';
import { tryToOpen } from '../../rig/stores.ts';

test('over TLS, only a server with a trusted certificate is used, and opening the store on any other server fails at once with a one-line error', async () => {
  const { authority, clientCertificate, server, url } = await startTlsServer();
  const foreignAuthority = await createAuthority('Another authority');
  const folder = createTemporaryFolder();
  const writeFile = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const root = writeFile('ca.pem', authority.cert);
  const foreignRoot = writeFile('others.pem', foreignAuthority.cert);
  const [cert, key] = [
    writeFile('client.pem', clientCertificate.cert),
    writeFile('client.key', clientCertificate.private),
  ];
  const foreignKey = writeFile('foreign.key', foreignAuthority.private);
  const brokenFile = writeFile('broken.pem', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  const fullVerification = { sslmode: 'verify-full', sslrootcert: root };

  // The user `certified` has no password.
  const certifiedUrl = new URL(await url({ ...fullVerification, sslcert: cert, sslkey: key }));
  certifiedUrl.username = 'certified';
  certifiedUrl.password = '';
  for (const acceptedParameters of [
    await url(fullVerification),
    await url({
      ...fullVerification,
      sslrootcert: writeFile('both.pem', `${foreignAuthority.cert}\n${authority.cert}`),
    }),
    await url({ sslmode: 'verify-ca', sslrootcert: root }, '127.0.0.1'),
    await url({ sslmode: 'require', sslrootcert: root }, '127.0.0.1'),
    certifiedUrl.href,
  ])
    expect([acceptedParameters, await tryToOpen(acceptedParameters)]).toEqual([acceptedParameters, 'it opened']);

  const urlWithoutCertificate = new URL(certifiedUrl);
  urlWithoutCertificate.search = new URLSearchParams(fullVerification).toString();
  const port = String(server.port);
  const urlWithSeveralHosts = (await url({ ...fullVerification, sslrootcert: foreignRoot })).replace(
    `localhost:${port}`,
    `localhost:${port},127.0.0.1:${port}`,
  );
  const tlsFailurePattern = /^StoreError: PostgreSQL \S+: the TLS connection failed \(.+\)\. .*add sslrootcert=FILE\.$/;
  for (const [refusedParameters, fault] of [
    [await url({ ...fullVerification, sslrootcert: foreignRoot }), tlsFailurePattern],
    [await url({ sslmode: 'verify-full' }), tlsFailurePattern],
    [await url({ sslmode: 'require', sslrootcert: foreignRoot }), tlsFailurePattern],
    [await url(fullVerification, '127.0.0.1'), tlsFailurePattern],
    [
      urlWithSeveralHosts,
      /^StoreError: PostgreSQL localhost\S+: the TLS .* PostgreSQL 127\S+: the TLS connection failed/,
    ],
    [urlWithoutCertificate.href, /^StoreError: PostgreSQL \S+: the server refuses the user or the password \(/],
    [
      await url({ ...fullVerification, sslrootcert: `${folder}/none` }),
      /: sslrootcert=\S+ cannot be read \(ENOENT\)\. Give/,
    ],
    [await url({ ...fullVerification, sslrootcert: key }), /: sslrootcert=\S+ contains no certificate\. Give the path/],
    [
      await url({ ...fullVerification, sslrootcert: brokenFile }),
      /: sslrootcert=\S+ contains an invalid certificate \(/,
    ],
    [
      await url({ ...fullVerification, sslcert: cert, sslkey: foreignKey }),
      /: sslkey=\S+ is not the private key of the certificate in sslcert\. Give/,
    ],
    [await url({ ...fullVerification, sslcert: cert, sslkey: cert }), /: sslkey=\S+ is not a usable private key \(/],
  ] as const) {
    const openResult = await tryToOpen(refusedParameters);
    expect([refusedParameters, openResult]).toEqual([refusedParameters, expect.stringMatching(fault)]);
    expect(openResult).not.toMatch(/[\r\n]/);
  }
});
