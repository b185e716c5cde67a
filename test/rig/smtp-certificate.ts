import { generate } from 'selfsigned';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

const certificates = new Map<string, Promise<Certificate>>();

export function getCertificate(name = 'localhost'): Promise<Certificate> {
  let certificate = certificates.get(name);
  if (certificate === undefined) {
    certificate = createCertificate(name);
    certificates.set(name, certificate);
  }
  return certificate;
}

async function createCertificate(name: string): Promise<Certificate> {
  const pems = await generate([{ name: 'commonName', value: name }], {
    algorithm: 'sha256',
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [{ type: 2, value: name }, ...(name === 'localhost' ? [{ type: 7 as const, ip: '127.0.0.1' }] : [])],
      },
    ],
  });
  return { key: pems.private, cert: pems.cert };
}
