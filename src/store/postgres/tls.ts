/** The TLS options of a server connection. If a file cannot be used, a ConfigurationFault names its parameter. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ConnectionOptions, createSecureContext } from 'node:tls';
import type { PostgresSetting } from '../../config/settings.ts';
import { ConfigurationFault, getDetail, getErrorCode, toOneLine } from './fault.ts';

const PEM_BEGIN = '-----BEGIN CERTIFICATE-----';
const PEM_END = '-----END CERTIFICATE-----';

export function readTlsOptions(
  mode: PostgresSetting['tls'],
  { rootCert, cert, key }: PostgresSetting['tlsFiles'],
): ConnectionOptions {
  return {
    rejectUnauthorized: mode === 'verified' || mode === 'verified-chain',
    ...(mode === 'verified-chain' ? { checkServerIdentity: () => undefined } : {}),
    ...(rootCert === null ? {} : { ca: readCertificates('sslrootcert', rootCert) }),
    ...(cert === null || key === null ? {} : readClientCertificate(cert, key)),
  };
}

function readClientCertificate(certPath: string, keyPath: string): ConnectionOptions {
  const cert = readCertificates('sslcert', certPath).join('\n');
  const key = readPem('sslkey', keyPath);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const problem =
      getErrorCode(error) === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
        ? 'is not the private key of the certificate in sslcert'
        : `is not a usable private key (${getErrorCode(error) || getDetail(error)})`;
    const remedy = 'Give a PEM file with the private key of the certificate in sslcert, without a passphrase';
    throw createFault('sslkey', keyPath, `${problem}. ${remedy}`);
  }
  return { cert, key };
}

/** Throws if the file contains no certificate, because Node would ignore the file and then trust no certificate. */
function readCertificates(parameter: string, path: string): string[] {
  const parts = readPem(parameter, path).split(PEM_BEGIN).slice(1);
  const certificates = parts.map((part) => `${PEM_BEGIN}${part.split(PEM_END)[0]}${PEM_END}\n`);
  const remedy = 'Give the path of a PEM file';
  if (certificates.length === 0) throw createFault(parameter, path, `contains no certificate. ${remedy}`);
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch (error) {
    const problem = `contains an invalid certificate (${getErrorCode(error) || getDetail(error)})`;
    throw createFault(parameter, path, `${problem}. ${remedy}`);
  }
  return certificates;
}

function readPem(parameter: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw createFault(parameter, path, `cannot be read (${getErrorCode(error)}). Give the path of a readable PEM file`);
  }
}

function createFault(parameter: string, path: string, problem: string): ConfigurationFault {
  return new ConfigurationFault(`POSTRIDER_DATABASE: ${parameter}=${toOneLine(path)} ${problem}.`);
}
