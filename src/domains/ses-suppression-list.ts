/**
 * The account-level suppression list of Amazon SES. SES accepts a message to such an address and does not send it. The
 * list applies to all programs of the AWS account, so only an operator changes it. A failed call resolves to a failure.
 */
import type { Settings } from '../config/settings.ts';
import { formatSesError } from './ses-identity.ts';

/** A region of null means the region of the environment (AWS_REGION). */
export interface SesApiSetting {
  readonly region: string | null;
  readonly endpoint: string | null;
}

export type SesSuppressionReason = 'BOUNCE' | 'COMPLAINT';

export interface SesSuppressionPage {
  readonly entries: readonly { readonly address: string; readonly reason: SesSuppressionReason }[];
  /** Null after the last page. */
  readonly nextPosition: string | null;
}

/** `not-permitted`: a permission is missing. `unavailable`: no response, or an internal error. */
export type SesFailureCode =
  | 'no-credentials'
  | 'no-region'
  | 'credentials-refused'
  | 'not-permitted'
  | 'throttled'
  | 'unavailable'
  | 'refused';

export interface SesFailure {
  readonly code: SesFailureCode;
  readonly reason: string;
  readonly remedy: string;
}

export type SesResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly failure: SesFailure };

export interface SesSuppressionList {
  /** False if the address was not on the list. */
  remove(address: string): Promise<SesResult<boolean>>;
  /** At most `MAX_PAGE_ENTRIES` entries, in the order of the provider. */
  readPage(position: string | null): Promise<SesResult<SesSuppressionPage>>;
  /** Empty if SES does not use the list. */
  readReasons(): Promise<SesResult<ReadonlySet<SesSuppressionReason>>>;
  close(): void;
}

export const MAX_PAGE_ENTRIES = 1_000;
const RESPONSE_TIMEOUT_MS = 10_000;

/** One for each region; empty if no route is Amazon SES. */
export function listSesApiSettings(routes: Settings['routes']): readonly SesApiSetting[] {
  const settings = routes.flatMap(({ transport }) => getSesApiSetting(transport) ?? []);
  return settings.filter(({ region }, index) => settings.findIndex((other) => other.region === region) === index);
}

function getSesApiSetting(transport: Settings['transport']): SesApiSetting | null {
  switch (transport.kind) {
    case 'capture':
      return null;
    case 'ses':
      return { region: transport.region, endpoint: transport.endpoint };
    case 'smtp':
      return transport.provider === 'ses' ? { region: findRegion(transport.host), endpoint: null } : null;
  }
}

/** As in `email-smtp.eu-west-1.amazonaws.com`. */
function findRegion(host: string): string | null {
  const labels = host.toLowerCase().split('.');
  const index = labels.findIndex((label) => label === 'email-smtp' || label === 'email-smtp-fips');
  return index === -1 ? null : (labels[index + 1] ?? null);
}

export async function openSesSuppressionList({ region, endpoint }: SesApiSetting): Promise<SesSuppressionList> {
  const sdk = await import('@aws-sdk/client-sesv2');
  const client = new sdk.SESv2Client({
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
    maxAttempts: 2,
  });

  async function run<T>(
    permission: string,
    call: (options: { readonly abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<SesResult<T>> {
    try {
      await client.config.region();
    } catch {
      return { kind: 'failed', failure: NO_REGION_FAILURE };
    }
    try {
      return { kind: 'done', value: await call({ abortSignal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) }) };
    } catch (error) {
      return { kind: 'failed', failure: toFailure(error, permission) };
    }
  }

  return {
    remove: (address) =>
      run('ses:DeleteSuppressedDestination', async (options) => {
        try {
          await client.send(new sdk.DeleteSuppressedDestinationCommand({ EmailAddress: address }), options);
          return true;
        } catch (error) {
          if (error instanceof sdk.NotFoundException) return false;
          throw error;
        }
      }),
    readPage: (position) =>
      run('ses:ListSuppressedDestinations', async (options) => {
        const command = new sdk.ListSuppressedDestinationsCommand({
          PageSize: MAX_PAGE_ENTRIES,
          ...(position === null ? {} : { NextToken: position }),
        });
        const { SuppressedDestinationSummaries: summaries = [], NextToken: nextPosition } = await client.send(
          command,
          options,
        );
        const entries = summaries.flatMap(({ EmailAddress: address, Reason: reason }) =>
          address === undefined ? [] : [{ address, reason: reason === 'COMPLAINT' ? 'COMPLAINT' : 'BOUNCE' } as const],
        );
        return { entries, nextPosition: nextPosition ?? null };
      }),
    readReasons: () =>
      run('ses:GetAccount', async (options) => {
        const { SuppressionAttributes: attributes } = await client.send(new sdk.GetAccountCommand({}), options);
        return new Set(attributes?.SuppressedReasons ?? []);
      }),
    close: () => client.destroy(),
  };
}

const NO_REGION_FAILURE: SesFailure = {
  code: 'no-region',
  reason: 'the region of Amazon SES is unknown, because POSTRIDER_TRANSPORT does not contain it',
  remedy: 'set AWS_REGION',
};

const CREDENTIALS_REMEDY =
  'provide the service with credentials for the API of Amazon SES (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the role of the machine)';

const PERMISSION_ERROR_NAMES = ['AccessDeniedException', 'AccessDenied'];
const CREDENTIALS_ERROR_NAMES = ['CredentialsProviderError', 'TokenProviderError', 'ProviderError'];
const THROTTLING_ERROR_NAMES = ['TooManyRequestsException', 'ThrottlingException', 'Throttling'];

function toFailure(error: unknown, permission: string): SesFailure {
  const { name, $metadata } = Object(error) as {
    readonly name?: unknown;
    readonly $metadata?: { readonly httpStatusCode?: unknown };
  };
  const reason = formatSesError(error);
  const status = typeof $metadata?.httpStatusCode === 'number' ? $metadata.httpStatusCode : null;
  const hasName = (names: readonly string[]) => typeof name === 'string' && names.includes(name);
  if (hasName(CREDENTIALS_ERROR_NAMES))
    return {
      code: 'no-credentials',
      reason: 'no credentials for the API of Amazon SES were found',
      remedy: CREDENTIALS_REMEDY,
    };
  if (hasName(PERMISSION_ERROR_NAMES))
    return {
      code: 'not-permitted',
      reason: `the credentials of the service do not have the permission ${permission}`,
      remedy: `add ${permission} to the IAM policy of the service (docs/providers/ses.md)`,
    };
  if (hasName(THROTTLING_ERROR_NAMES) || status === 429)
    return { code: 'throttled', reason, remedy: 'try again in a minute' };
  if (status === null || status >= 500)
    return {
      code: 'unavailable',
      reason: `Amazon SES did not answer (${reason})`,
      remedy: 'check the region and the network, and try again',
    };
  if (status === 401 || status === 403)
    return {
      code: 'credentials-refused',
      reason: `Amazon SES refused the credentials (${reason})`,
      remedy: CREDENTIALS_REMEDY,
    };
  return {
    code: 'refused',
    reason: `Amazon SES refused the request (${reason})`,
    remedy: 'use the console of Amazon SES',
  };
}
