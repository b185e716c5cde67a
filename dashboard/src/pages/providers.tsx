/**
 * The page Providers: the relay in use, and for each provider in use the events URL to register at the provider and the
 * state of its events.
 */
import { Anchor, Code } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { ProviderEntry, ProviderList } from '../../../src/operations/installation.ts';
import { get } from '../api/client';
import { Card, Entry } from '../parts/card';
import { Copyable } from '../parts/copyable';
import { formatCount } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { Remedy } from '../parts/remedy';
import { StatusBadge, type Tone } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';

const POLL_INTERVAL_MS = 10_000;

type ProviderEvents = NonNullable<ProviderEntry['events']>;

const RESULT_TONES: Readonly<Record<ProviderEvents['result'], Tone>> = {
  ok: 'success',
  warning: 'warning',
  failure: 'error',
};

export function ProvidersPage() {
  const providerList = useQuery({
    queryKey: ['providers'],
    queryFn: () => get<ProviderList>('/providers'),
    refetchInterval: POLL_INTERVAL_MS,
  });
  return (
    <>
      <PageHead title="Providers" />
      {providerList.isPending ? <Loading /> : null}
      {providerList.isError ? <ErrorAlert error={providerList.error} retry={providerList.refetch} /> : null}
      {providerList.data === undefined ? null : <ProvidersContent list={providerList.data} />}
    </>
  );
}

function ProvidersContent({ list: { transport, providers } }: { readonly list: ProviderList }) {
  const usedProviders = providers.flatMap((provider) =>
    provider.events === null ? [] : [{ ...provider, events: provider.events }],
  );
  const otherProviders = providers.filter(({ events }) => events === null);
  return (
    <div className="stack">
      <Card title="Relay">
        <dl className="record">
          <Entry name="Transport">{transport.kind}</Entry>
          {transport.host === null ? null : (
            <Entry name={transport.kind === 'ses' ? 'Region' : 'Host'}>
              <Code>{transport.host}</Code>
            </Entry>
          )}
          <Entry name="Profile">{describeProfile(transport)}</Entry>
        </dl>
      </Card>
      {usedProviders.map((provider) => (
        <UsedProvider key={provider.name} provider={provider} />
      ))}
      <Card title={usedProviders.length === 0 ? 'Supported providers' : 'Other supported providers'}>
        <p className="card-intro">
          To send through a provider, set <Code>POSTRIDER_TRANSPORT</Code> to its relay and restart the service. The
          pages of the manual have the steps.
        </p>
        <ul className="plain provider-list">
          {otherProviders.map(({ name, title, guide }) => (
            <li key={name} className="two-lines">
              <b>{title}</b>
              <code>{guide}</code>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  );
}

function describeProfile({ kind, provider }: ProviderList['transport']): string {
  if (provider !== null) return provider;
  return kind === 'capture'
    ? 'none: messages are kept in the inbox and are sent to no recipient'
    : 'none: the relay belongs to no known provider';
}

interface UsedProviderProps {
  readonly provider: ProviderEntry & { readonly events: ProviderEvents };
}

function UsedProvider({ provider: { title, isRelay, events, guide } }: UsedProviderProps) {
  const { isSetUp, url, setting, lastEventAt, refused, result, detail, remedy } = events;
  return (
    <Card
      title={title}
      badge={
        <StatusBadge tone={RESULT_TONES[result]}>{result === 'ok' ? 'events ok' : `events: ${result}`}</StatusBadge>
      }
    >
      <div className="card-intro wrap">
        <TextWithCode text={detail} />
        {remedy === null ? null : <Remedy text={remedy} />}
      </div>
      <dl className="record">
        <Entry name="Relay">{isRelay ? 'messages are sent through this provider' : 'not used'}</Entry>
        <Entry name="Events URL">
          {url === null ? (
            <>
              not known; set <Code>POSTRIDER_FEEDBACK_URL</Code>
            </>
          ) : (
            <Copyable value={url} label="the events URL" />
          )}
        </Entry>
        <Entry name="Secret">
          {isSetUp ? (
            'configured'
          ) : (
            <>
              not configured; set <TextWithCode text={setting} />
            </>
          )}
        </Entry>
        <Entry name="Last event">{lastEventAt === null ? 'none yet' : <RelativeTime at={lastEventAt} />}</Entry>
        <Entry name="Refused">
          {refused.length === 0 ? (
            'none since the start'
          ) : (
            <ul className="plain">
              {refused.map(({ reason, count, lastAt }) => (
                <li key={reason}>
                  {reason}: {formatCount(count, 'request')}, the last <RelativeTime at={lastAt} />
                </li>
              ))}
            </ul>
          )}
        </Entry>
        <Entry name="Steps">
          {guide};{' '}
          <Anchor component={Link} href="/feedback">
            reports that were not understood
          </Anchor>
        </Entry>
      </dl>
    </Card>
  );
}
