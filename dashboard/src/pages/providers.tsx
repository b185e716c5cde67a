/** The providers: the relay in use, and for each provider in use the URL to register and the state of its events. */
import { Anchor, Code, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ProviderEntry, ProviderList } from '../../../src/operations/providers/schemas.ts';
import { get } from '../api/client';
import { Copyable } from '../parts/copyable';
import { formatCount } from '../parts/number';
import { PageHead } from '../parts/page-head';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge, type Tone } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';

const POLL_INTERVAL_MS = 10_000;

type ProviderEvents = NonNullable<ProviderEntry['events']>;

const TONES: Readonly<Record<ProviderEvents['result'], Tone>> = { ok: 'success', warning: 'warning', failure: 'error' };

export function ProvidersPage() {
  const list = useQuery({
    queryKey: ['providers'],
    queryFn: () => get<ProviderList>('/providers'),
    refetchInterval: POLL_INTERVAL_MS,
  });
  return (
    <>
      <PageHead title="Providers" />
      {list.isPending ? <Loading /> : null}
      {list.isError ? <ErrorAlert error={list.error} retry={list.refetch} /> : null}
      {list.data === undefined ? null : <Content list={list.data} />}
    </>
  );
}

function Content({ list: { transport, providers } }: { readonly list: ProviderList }) {
  const used = providers.flatMap((provider) =>
    provider.events === null ? [] : [{ ...provider, events: provider.events }],
  );
  const others = providers.filter(({ events }) => events === null);
  return (
    <Stack gap="md">
      <Paper withBorder p="md" component="section" aria-labelledby="relay">
        <Title order={2} size="h4" id="relay" mb="xs">
          Relay
        </Title>
        <dl className="record">
          <Fact name="Transport">{transport.kind}</Fact>
          {transport.host === null ? null : (
            <Fact name={transport.kind === 'ses' ? 'Region' : 'Host'}>
              <Code>{transport.host}</Code>
            </Fact>
          )}
          <Fact name="Profile">{describeProfile(transport)}</Fact>
        </dl>
      </Paper>
      {used.map((provider) => (
        <UsedProvider key={provider.name} provider={provider} />
      ))}
      <Paper withBorder p="md" component="section" aria-labelledby="others">
        <Title order={2} size="h4" id="others" mb="xs">
          {used.length === 0 ? 'Supported providers' : 'Other supported providers'}
        </Title>
        <Text size="sm" c="dimmed" mb="xs">
          To send through a provider, set <Code>POSTRIDER_TRANSPORT</Code> to its relay and restart the service. The
          pages of the manual have the steps.
        </Text>
        <ul className="plain provider-list">
          {others.map(({ name, title, guide }) => (
            <li key={name}>
              <Text size="sm" fw={600}>
                {title}
              </Text>
              <Text size="sm" c="dimmed" className="wrap">
                {guide}
              </Text>
            </li>
          ))}
        </ul>
      </Paper>
    </Stack>
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

function UsedProvider({ provider: { name, title, isRelay, events, guide } }: UsedProviderProps) {
  const { isSetUp, url, setting, lastEventAt, refused, result, detail, remedy } = events;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby={`provider-${name}`}>
      <Stack gap="sm">
        <Group gap="sm">
          <Title order={2} size="h4" id={`provider-${name}`}>
            {title}
          </Title>
          <StatusBadge tone={TONES[result]}>{result === 'ok' ? 'events ok' : `events: ${result}`}</StatusBadge>
        </Group>
        <div>
          <Text size="sm" className="wrap">
            <TextWithCode text={detail} />
          </Text>
          {remedy === null ? null : (
            <Text size="sm" c="dimmed" className="wrap">
              → <TextWithCode text={remedy} />
            </Text>
          )}
        </div>
        <dl className="record">
          <Fact name="Relay">{isRelay ? 'messages are sent through this provider' : 'not used'}</Fact>
          <Fact name="Events URL">
            {url === null ? (
              <>
                not known; set <Code>POSTRIDER_FEEDBACK_URL</Code>
              </>
            ) : (
              <Copyable value={url} label="the events URL" />
            )}
          </Fact>
          <Fact name="Secret">
            {isSetUp ? (
              'configured'
            ) : (
              <>
                not configured; set <TextWithCode text={setting} />
              </>
            )}
          </Fact>
          <Fact name="Last event">{lastEventAt === null ? 'none yet' : <RelativeTime at={lastEventAt} />}</Fact>
          <Fact name="Refused">
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
          </Fact>
          <Fact name="Steps">
            {guide};{' '}
            <Anchor component={Link} href="/feedback">
              reports that were not understood
            </Anchor>
          </Fact>
        </dl>
      </Stack>
    </Paper>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
