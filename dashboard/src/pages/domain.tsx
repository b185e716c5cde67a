/** The domain page: the DNS records to publish, the state of each record, and the actions on the domain. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { formatZone } from '../../../src/domains/zone-file';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { path } from '../api/client';
import { AlignmentCard } from '../domains/alignment-card';
import { DomainActions } from '../domains/domain-actions';
import { DomainBadge, formatFoundRecords, KeyBadge, PURPOSE_LABELS } from '../domains/domain-badge';
import { DomainSettings } from '../domains/domain-settings';
import { useDomain } from '../domains/queries';
import { RecentFigures } from '../domains/recent-figures';
import { CopyTextButton, RecordTable } from '../domains/record-table';
import { Callout } from '../parts/callout';
import { Card, Fact } from '../parts/card';
import { LoadError } from '../parts/load-error';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { formatTime } from '../parts/time';
import type { PageProps } from './index';

const LIST_LINK = { href: '/domains', text: 'Domains' };

export function DomainPage({ parameters, session }: PageProps) {
  const name = parameters.name ?? '';
  const domain = useDomain(name);
  if (domain.data !== undefined) return <DomainContent domain={domain.data} transport={session.transport} />;
  return (
    <>
      <PageHead title={name} parent={LIST_LINK} />
      {domain.isError ? (
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

function DomainContent({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  return (
    <>
      <PageHead
        title={domain.domain}
        parent={LIST_LINK}
        badge={<DomainBadge status={domain.status} />}
        secondary={
          <span className="sentence" role="status">
            account{' '}
            <Anchor component={Link} href={path`/accounts/${domain.account}`} inherit className="wrap">
              {domain.account}
            </Anchor>{' '}
            ·{' '}
            {domain.checked === null ? (
              'not checked yet'
            ) : (
              <>
                checked <RelativeTime at={domain.checked} />: {formatFoundRecords(domain)}
              </>
            )}
          </span>
        }
      >
        <DomainActions domain={domain} />
      </PageHead>
      <StatusNote domain={domain} />
      <MissingRecords domain={domain} />
      <Rotation domain={domain} />
      <ReturnPathNote domain={domain} />
      <div className="stack">
        <RecordTable domain={domain} />
        <div className="columns thirds">
          <AlignmentCard alignment={domain.alignment} />
          <Keys domain={domain} />
          <RecentFigures domain={domain.domain} />
        </div>
        <DomainSettings domain={domain} transport={transport} />
      </div>
    </>
  );
}

function Keys({ domain: { keys } }: { readonly domain: DomainDetails }) {
  return (
    <Card title="Keys">
      {keys.map(({ selector, algorithm, state, retires }) => (
        <Fact key={selector} name={<code className="wrap">{selector}</code>}>
          {algorithm === 'rsa' ? 'RSA' : 'Ed25519'}{' '}
          {retires === null ? null : <span className="muted">until {formatTime(retires)} </span>}
          <KeyBadge state={state} />
        </Fact>
      ))}
    </Card>
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
      Missing since {formatTime(failingSince)}.{' '}
      {sends ? (
        <>
          Messages are still accepted. They are refused from {formatTime(graceEnds)} on (<RelativeTime at={graceEnds} />
          ) if the record is still missing.
        </>
      ) : (
        'Messages are refused until the record is found again.'
      )}
    </Callout>
  );
}

/**
 * Names the missing and wrong records of an authenticated domain. For a domain that is not authenticated,
 * StatusNote explains the problem.
 */
function MissingRecords({ domain: { status, records } }: { readonly domain: DomainDetails }) {
  const missingRecords = records.filter(
    ({ found, type }) => (found === 'missing' || found === 'wrong') && type !== 'SES',
  );
  const [firstRecord] = missingRecords;
  if (status !== 'authenticated' || firstRecord === undefined) return null;
  const purposes = [...new Set(missingRecords.map(({ purpose }) => PURPOSE_LABELS[purpose]))].join(', ');
  return (
    <Callout
      tone="warning"
      title={
        missingRecords.length === 1
          ? `One record is ${firstRecord.found}: ${purposes}`
          : `${missingRecords.length} records are missing or wrong: ${purposes}`
      }
      action={
        <CopyTextButton
          value={formatZone(missingRecords)}
          label={missingRecords.length === 1 ? 'Copy record' : 'Copy records'}
        />
      }
    >
      Messages of the domain are signed and accepted. Publish the records marked below, then verify the domain.
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
  const stagedKeys = keys.filter(({ state }) => state === 'staged');
  const retireTimes = keys
    .flatMap(({ state, retires: at }) => (state === 'retiring' && at !== null ? [at] : []))
    .sort();
  const lastRetireAt = retireTimes.at(-1);
  if (stagedKeys.length > 0) {
    return (
      <Callout tone="info" title="New keys are staged">
        1. Publish the records marked staged; do not change the other records. 2. Verify the domain. Once the records
        are found, the service signs with the new keys, and the current keys retire.
      </Callout>
    );
  }
  if (lastRetireAt === undefined) return null;
  return (
    <Callout tone="info" title="Previous keys are retiring">
      Leave the records marked retiring in DNS until {formatTime(lastRetireAt)}. Messages signed with these keys may
      still arrive.
    </Callout>
  );
}
