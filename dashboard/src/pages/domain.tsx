/** The page of a domain: the DNS records to publish with their states, and the actions on it. */
import { Anchor, Group, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domains/schemas.ts';
import { path } from '../api/client';
import { DomainActions } from '../domains/domain-actions';
import { DomainBadge, formatFoundRecords } from '../domains/domain-badge';
import { useDomain } from '../domains/queries';
import { RecordCard } from '../domains/record-card';
import { Callout } from '../parts/callout';
import { LoadError } from '../parts/load-error';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatUtc } from '../parts/time';
import type { PageProps } from './index';

export function DomainPage({ parameters, session }: PageProps) {
  const name = parameters.name ?? '';
  const domain = useDomain(name);
  return (
    <>
      <PageHead title={name} />
      {domain.data !== undefined ? (
        <Content domain={domain.data} transport={session.transport} />
      ) : domain.isError ? (
        <LoadError
          error={domain.error}
          retry={domain.refetch}
          title="No account has this domain"
          href="/domains"
          link="Show all domains"
        />
      ) : (
        <Loading />
      )}
    </>
  );
}

function Content({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  return (
    <>
      <Group mb="md" gap="md">
        <DomainBadge status={domain.status} />
        {domain.unicode === domain.domain ? null : <Text className="wrap">{domain.unicode}</Text>}
        <Text>
          of account{' '}
          <Anchor component={Link} underline="always" href={path`/accounts/${domain.account}`} className="wrap">
            {domain.account}
          </Anchor>
        </Text>
        <Text c="dimmed">Subdomains {domain.subdomains ? 'allowed' : 'not allowed'}</Text>
        <Text c="dimmed" role="status">
          {domain.checked === null ? (
            'Not checked yet'
          ) : (
            <>
              Checked <RelativeTime at={domain.checked} />: {formatFoundRecords(domain)}
            </>
          )}
        </Text>
      </Group>
      <StatusNote domain={domain} />
      <DomainActions domain={domain} transport={transport} />
      <Rotation domain={domain} />
      <ReturnPathNote domain={domain} />
      <Title order={2} size="h4" mb="sm">
        Records to publish
      </Title>
      <ul className="cards">
        {domain.records.map((record) => (
          <RecordCard key={`${record.type} ${record.name} ${record.value}`} record={record} />
        ))}
      </ul>
    </>
  );
}

/** Explains what the status means for messages of the domain. */
function StatusNote({ domain: { status, graceEnds, failingSince, sends } }: { readonly domain: DomainDetails }) {
  if (status === 'pending') {
    return (
      <Callout tone="warning" title="Not authenticated">
        Messages from this domain are refused, unless the service allows all senders. Publish the records below, then
        verify the domain.
      </Callout>
    );
  }
  if (status !== 'failing' || graceEnds === null || failingSince === null) return null;
  return (
    <Callout tone="error" title="DKIM record not found">
      Missing since {formatUtc(failingSince)}.{' '}
      {sends ? (
        <>
          Messages are still accepted. They are refused from {formatUtc(graceEnds)} on (<RelativeTime at={graceEnds} />)
          if the record is still missing.
        </>
      ) : (
        'Messages are refused until the record is found again.'
      )}
    </Callout>
  );
}

/** Shows whether messages use the return path of the domain, and the reason. */
function ReturnPathNote({ domain: { returnPath } }: { readonly domain: DomainDetails }) {
  if (returnPath === null) return null;
  const { name, state, detail } = returnPath;
  return (
    <Callout tone={state === 'used' ? 'info' : 'warning'} title={`Return path ${name}`}>
      {`${detail.charAt(0).toUpperCase()}${detail.slice(1)}.`}
    </Callout>
  );
}

/** Shows the state of a key rotation. */
function Rotation({ domain: { keys } }: { readonly domain: DomainDetails }) {
  const staged = keys.filter(({ state }) => state === 'staged');
  const retires = keys.flatMap(({ state, retires: at }) => (state === 'retiring' && at !== null ? [at] : [])).sort();
  const lastRetireAt = retires.at(-1);
  if (staged.length > 0) {
    return (
      <Callout tone="info" title="New keys are staged">
        1. Publish the records marked staged; do not change the other records. 2. Verify the domain. Once the records
        are found, the new keys sign and the current keys retire.
      </Callout>
    );
  }
  if (lastRetireAt === undefined) return null;
  return (
    <Callout tone="info" title="Previous keys are retiring">
      Leave the records marked retiring in DNS until {formatUtc(lastRetireAt)}. Messages signed with these keys may
      still arrive.
    </Callout>
  );
}
