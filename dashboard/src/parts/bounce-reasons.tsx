/**
 * The number of bounced messages in the range for each failure category, the most frequent category first. Each row is
 * a link to the messages of the category.
 */
import { Link } from 'wouter';
import type { Overview } from '../../../src/operations/overview.ts';
import { Card } from './card';
import { formatNumber } from './number';

const MAX_ROWS = 6;

const CATEGORY_NAMES: Readonly<Record<Overview['totals']['bounces'][number]['category'], string>> = {
  'mailbox-unknown': 'Mailbox unknown',
  'mailbox-disabled': 'Mailbox disabled',
  'mailbox-full': 'Mailbox full',
  domain: 'Domain',
  policy: 'Policy block',
  reputation: 'Reputation block',
  content: 'Content',
  size: 'Size',
  auth: 'Authentication',
  network: 'Network',
  throttled: 'Throttled',
  quota: 'Sending quota',
  greylisted: 'Greylisted',
  unknown: 'Unknown',
};

export function BounceReasons({ overview: { totals, range } }: { readonly overview: Overview }) {
  const counts = new Map<keyof typeof CATEGORY_NAMES, number>();
  for (const { category, count } of totals.bounces) counts.set(category, (counts.get(category) ?? 0) + count);
  const rows = [...counts].toSorted((left, right) => right[1] - left[1]).slice(0, MAX_ROWS);
  const maxCount = rows[0]?.[1] ?? 1;
  return (
    <Card
      title="Why messages bounced"
      {...(totals.bounced === 0
        ? {}
        : { link: { href: `/messages?state=bounced&since=${range}`, text: `All ${formatNumber(totals.bounced)}` } })}
    >
      {rows.length === 0 ? <span className="muted">No message bounced.</span> : null}
      {rows.map(([category, count]) => (
        <Link key={category} className="bar-row" href={`/messages?state=bounced&category=${category}&since=${range}`}>
          <span>{CATEGORY_NAMES[category]}</span>
          <span className="bar tone-bounced">
            <i style={{ width: `${(100 * count) / maxCount}%` }} />
          </span>
          <span>{formatNumber(count)}</span>
        </Link>
      ))}
    </Card>
  );
}
