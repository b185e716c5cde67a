/**
 * Checks that the provider accepts messages of the size that POSTRIDER_MAX_REQUEST allows. A message that exceeds the
 * limit of the provider is refused and ends as `bounced`.
 */
import type { RelayProfile } from '../providers/provider.ts';
import { createOkFinding, createWarning, type Finding } from './finding.ts';

const BYTES_PER_MIB = 1_048_576;

export interface MessageSizeParts {
  /** The display name of the provider. */
  readonly title: string;
  /** The documented maximum size of a message. */
  readonly maxMessageBytes: NonNullable<RelayProfile['maxMessageBytes']>;
  /**
   * POSTRIDER_MAX_REQUEST. A message is larger than its request, because the message also contains header fields and
   * its content may be encoded.
   */
  readonly maxRequestBytes: number;
}

export function checkMessageSize({ title, maxMessageBytes, maxRequestBytes }: MessageSizeParts): Finding {
  const limitText = `the relay of ${title} accepts messages of up to ${formatMib(maxMessageBytes)}`;
  if (maxRequestBytes < maxMessageBytes) return createOkFinding('message size', limitText);
  return createWarning(
    'message size',
    `POSTRIDER_MAX_REQUEST allows requests of up to ${formatMib(maxRequestBytes)}, but ${limitText}; larger messages bounce`,
    `set POSTRIDER_MAX_REQUEST to less than ${formatMib(maxMessageBytes)}, unless ${title} has raised the limit of the account`,
  );
}

function formatMib(bytes: number): string {
  return `${Math.round((bytes / BYTES_PER_MIB) * 10) / 10} MiB`;
}
