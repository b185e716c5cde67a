/** One domain: the records to publish, each with its state, and what is done to it. */
import { Anchor, Group, Text, Title } from '@mantine/core';
import { Link } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domains/schemas.ts';
import { path } from '../api/client';
import { DomainActions } from '../domains/domain-actions';
import { DomainMark, foundText } from '../domains/domain-mark';
import { useDomain } from '../domains/queries';
import { RecordCard } from '../domains/record-card';
import { Absent } from '../parts/absent';
import { Notice } from '../parts/notice';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/states';
import { exact, When } from '../parts/when';
import type { PageProps } from './index';

export function DomainPage({ parameters, session }: PageProps) {
  const name = parameters.name ?? '';
  const domain = useDomain(name);
  return (
    <>
      <PageHead title={name} />
      {domain.data !== undefined ? (
        <Shown domain={domain.data} transport={session.transport} />
      ) : domain.isError ? (
        <Absent
          error={domain.error}
          retry={domain.refetch}
          title="No account has this domain"
          href="/domains"
          link="See all domains"
        />
      ) : (
        <Loading />
      )}
    </>
  );
}

function Shown({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  return (
    <>
      <Group mb="md" gap="md">
        <DomainMark status={domain.status} />
        {domain.unicode === domain.domain ? null : <Text className="wrap">{domain.unicode}</Text>}
        <Text>
          of account{' '}
          <Anchor component={Link} underline="always" href={path`/accounts/${domain.account}`} className="wrap">
            {domain.account}
          </Anchor>
        </Text>
        <Text c="dimmed">Subdomains {domain.subdomains ? 'may send too' : 'may not send'}</Text>
        <Text c="dimmed" role="status">
          {domain.checked === null ? (
            'Never looked up'
          ) : (
            <>
              Looked up <When at={domain.checked} />: {foundText(domain)}
            </>
          )}
        </Text>
      </Group>
      <Standing domain={domain} />
      <DomainActions domain={domain} transport={transport} />
      <Rotation domain={domain} />
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

/** What its state means for its mail. */
function Standing({ domain: { status, graceEnds, failingSince, sends } }: { readonly domain: DomainDetails }) {
  if (status === 'pending') {
    return (
      <Notice tone="waiting" title="Not authenticated yet">
        Mail from it is refused, unless all senders are allowed. Publish the records below, then verify.
      </Notice>
    );
  }
  if (status !== 'failing' || graceEnds === null || failingSince === null) return null;
  return (
    <Notice tone="bad" title="Its DKIM record is gone">
      Since {exact(failingSince)}.{' '}
      {sends ? (
        <>
          Mail from it is still taken, and refused from {exact(graceEnds)} on (<When at={graceEnds} />) if it is not
          back.
        </>
      ) : (
        'Mail from it is refused until it is back.'
      )}
    </Notice>
  );
}

/** Where a rotation of the keys stands. */
function Rotation({ domain: { keys } }: { readonly domain: DomainDetails }) {
  const staged = keys.filter(({ state }) => state === 'staged');
  const retires = keys.flatMap(({ state, retires: at }) => (state === 'retiring' && at !== null ? [at] : [])).sort();
  const last = retires.at(-1);
  if (staged.length > 0) {
    return (
      <Notice tone="news" title="New keys are staged">
        1. Publish the records marked staged and leave the others. 2. Verify. As soon as they are found the new keys
        sign, and those of now retire.
      </Notice>
    );
  }
  if (last === undefined) return null;
  return (
    <Notice tone="news" title="Keys of before are retiring">
      Leave the records marked retiring in DNS until {exact(last)}: mail signed with them is still under way.
    </Notice>
  );
}
