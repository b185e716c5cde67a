/** A list of domains: state, found and missing records, time of the last check. */
import { Link, useLocation } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { path } from '../api/client';
import { ListHead, ListRow } from '../parts/list-row';
import { RelativeTime } from '../parts/relative-time';
import { useRowKeys } from '../parts/use-row-keys';
import { DomainBadge, formatFoundRecords, PURPOSE_LABELS } from './domain-badge';

interface DomainTableProps {
  readonly domains: readonly DomainDetails[];
  /** True if all domains belong to one account. The table then omits the name of the account. */
  readonly oneAccount?: boolean;
}

export function DomainTable({ domains, oneAccount = false }: DomainTableProps) {
  const [, navigate] = useLocation();
  const openDomain = (name: string) => navigate(path`/domains/${name}`);
  const currentDomain = useRowKeys({ ids: domains.map(({ domain }) => domain), onOpen: openDomain });
  return (
    <div className="card flush">
      <table className="list">
        <caption className="unseen">Domains</caption>
        <ListHead columns={['State', oneAccount ? 'Domain' : 'Domain and account', 'Records', 'Last check']} />
        <tbody>
          {domains.map((domain) => (
            <ListRow
              key={domain.domain}
              id={domain.domain}
              isCurrent={currentDomain === domain.domain}
              onOpen={() => openDomain(domain.domain)}
            >
              <DomainCells domain={domain} oneAccount={oneAccount} />
            </ListRow>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function DomainCells({ domain, oneAccount }: { readonly domain: DomainDetails; readonly oneAccount: boolean }) {
  const { domain: name, unicode, account, status, subdomains, checked } = domain;
  const additions = [...(unicode === name ? [] : [unicode]), ...(subdomains ? ['with subdomains'] : [])];
  return (
    <>
      <td>
        <DomainBadge status={status} />
      </td>
      <td className="fill">
        <div className="two-lines">
          <Link href={path`/domains/${name}`}>{name}</Link>
          <span>
            {oneAccount ? null : (
              <>
                account{' '}
                <Link href={path`/accounts/${account}`} className="row-link wrap">
                  {account}
                </Link>
              </>
            )}
            {additions.length === 0 ? '' : `${oneAccount ? '' : ' · '}${additions.join(' · ')}`}
          </span>
        </div>
      </td>
      <td className="fill">
        <div className="two-lines">
          <span>{formatFoundRecords(domain)}</span>
          <span>{describeProblem(domain)}</span>
        </div>
      </td>
      <td className="nowrap" data-label="Checked">
        {checked === null ? 'never' : <RelativeTime at={checked} />}
      </td>
    </>
  );
}

/** Names the missing and the wrong records, and the consequence for messages. Empty if all records were found. */
function describeProblem({ records, sends, status, graceEnds }: DomainDetails): string {
  const listPurposes = (state: 'missing' | 'wrong') => {
    const purposes = [
      ...new Set(records.filter(({ found }) => found === state).map(({ purpose }) => PURPOSE_LABELS[purpose])),
    ];
    return purposes.length === 0 ? [] : [`${state}: ${purposes.join(', ')}`];
  };
  const consequence =
    !sends && status !== 'pending'
      ? ['messages are refused']
      : graceEnds === null
        ? []
        : ['messages are still accepted'];
  return [...listPurposes('missing'), ...listPurposes('wrong'), ...consequence].join(' · ');
}
