/** Formats errors as one printable line without secrets. Pure. */
import { maskSecrets, toPrintable } from './escape.ts';

/** The description of a listener error contains a remedy. */
export function describeError(error: unknown): string {
  return toPrintable(maskSecrets(joinLines(getErrorMessage(error))));
}

export function joinLines(text: string): string {
  const lines = text.split(/[\r\n]/).map((line) => line.trim());
  return lines.filter((line) => line !== '').join(' ');
}

function getErrorMessage(error: unknown): string {
  if (!(error instanceof Error)) return `unexpected fault: ${String(error)}`;
  if (error.name === 'CommandFailure' || error.name === 'SettingsError' || error.name === 'StoreError')
    return error.message;
  if ('code' in error && typeof error.code === 'string') {
    const listener = 'address' in error && 'port' in error ? `${String(error.address)}:${String(error.port)}` : null;
    if (listener !== null) return describeListenerError(error.code, listener);
    return error.message === '' ? error.code : error.message;
  }
  return error.message === '' ? `unexpected fault: ${error.name}` : error.message;
}

function describeListenerError(code: string, listener: string): string {
  const settings = 'POSTRIDER_LISTEN or POSTRIDER_OPERATOR_LISTEN';
  switch (code) {
    case 'EADDRINUSE':
      return `${listener} is in use by another program; stop that program, or set another port in ${settings}`;
    case 'EACCES':
      return `this user may not listen on ${listener}; set a port of 1024 or higher in ${settings}`;
    case 'EADDRNOTAVAIL':
      return `${listener} is not an address of this machine; set another address in ${settings}`;
    default:
      return `cannot listen on ${listener} (${code}); set another address in ${settings}`;
  }
}
