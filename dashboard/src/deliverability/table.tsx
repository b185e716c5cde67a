/**
 * The table of figures, with one row per mailbox provider, domain or account. Each figure shows the change from the
 * previous period. A click on a row selects the row for the chart.
 */
import { Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type {
  ComparedFigures,
  Deliverability,
  DeliverabilityFigures,
  DeliverabilityTableRow,
} from '../../../src/operations/deliverability.ts';
import { type Change, ChangeText, compareCounts, compareDurations, compareShares, formatShare } from '../parts/change';
import { ListRow } from '../parts/list-row';
import { formatNumber, formatPercent } from '../parts/number';
import { formatDuration } from '../parts/time';
import { buildMessagesUrl, GROUPINGS, type PageState, type Sort } from './state';

const COLUMNS: readonly { readonly sort: Sort; readonly label: string }[] = [
  { sort: 'accepted', label: 'Accepted' },
  { sort: 'delivered', label: 'Delivered' },
  { sort: 'deferred', label: 'Deferred' },
  { sort: 'bounced', label: 'Bounced' },
  { sort: 'complained', label: 'Complaints' },
  { sort: 'p50', label: 'p50' },
  { sort: 'p99', label: 'p99' },
];

interface FiguresTableProps {
  readonly state: PageState;
  readonly figures: Deliverability;
  readonly onSelect: (key: string | null) => void;
  readonly onSort: (sort: Sort) => void;
}

export function FiguresTable({ state, figures, onSelect, onSort }: FiguresTableProps) {
  const { by, sort } = state;
  const { rows, other, total } = figures;
  const noun = GROUPINGS.find(({ value }) => value === by)?.noun ?? by;
  const sortedRows = rows.toSorted((a, b) => (readSortValue(b, sort) ?? -1) - (readSortValue(a, sort) ?? -1));
  return (
    <table className="list">
      <thead>
        <tr>
          <th scope="col">{noun}</th>
          {COLUMNS.map((column) => (
            <th
              key={column.sort}
              scope="col"
              className="end"
              {...(column.sort === sort ? { 'aria-sort': 'descending' as const } : {})}
            >
              <button type="button" className="sort-button" onClick={() => onSort(column.sort)}>
                {column.label}
                {column.sort === sort ? <span aria-hidden="true"> ↓</span> : null}
              </button>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sortedRows.map((row) => (
          <ListRow
            key={row.key}
            id={row.key}
            isCurrent={false}
            isSelected={row.key === state.key}
            onOpen={() => onSelect(row.key === state.key ? null : row.key)}
          >
            <td className="fill figure">
              <div className="two-lines">
                <Anchor
                  component="button"
                  type="button"
                  className="row-name"
                  aria-pressed={row.key === state.key}
                  onClick={() => onSelect(row.key === state.key ? null : row.key)}
                >
                  {row.name}
                </Anchor>
                <RowLinks row={row} state={state} />
              </div>
            </td>
            <FigureCells figures={row} periods={figures} lockThresholds={row.lockThresholds} />
          </ListRow>
        ))}
        {isEmpty(other) ? null : (
          <tr>
            <td className="fill figure muted">All others</td>
            <FigureCells figures={other} periods={figures} lockThresholds={null} />
          </tr>
        )}
        <tr className="figure-sum">
          <td className="fill figure">Total</td>
          <FigureCells figures={total} periods={figures} lockThresholds={null} />
        </tr>
      </tbody>
    </table>
  );
}

function isEmpty({ accepted, ended, deferred, complained, previous }: ComparedFigures): boolean {
  return accepted + ended + deferred + complained + previous.accepted + previous.ended === 0;
}

function readSortValue(figures: DeliverabilityFigures, sort: Sort): number | null {
  switch (sort) {
    case 'accepted':
      return figures.accepted;
    case 'delivered':
      return figures.deliveredRate;
    case 'deferred':
      return figures.deferralRate;
    case 'bounced':
      return figures.bounceRate;
    case 'complained':
      return figures.complaintRate;
    case 'p50':
    case 'p99':
      return figures.latencyMs?.[sort] ?? null;
  }
}

/**
 * Links to the messages of a row. For an account or a sending domain, also links to the figures by mailbox provider.
 * For an account, also links to the limits.
 */
function RowLinks({
  row: { key, bounced },
  state,
}: {
  readonly row: DeliverabilityTableRow;
  readonly state: PageState;
}) {
  const { by, range } = state;
  const links: { readonly text: string; readonly href: string }[] = [];
  const messagesUrl = buildMessagesUrl(state, key);
  if (messagesUrl !== null) links.push({ text: 'Messages', href: messagesUrl });
  const bouncesUrl = buildMessagesUrl(state, key, 'bounced');
  if (bouncesUrl !== null && bounced > 0) links.push({ text: 'Bounced', href: bouncesUrl });
  if (by === 'account') {
    links.push({
      text: 'Providers',
      href: `/deliverability?${new URLSearchParams({ account: key, range }).toString()}`,
    });
    links.push({ text: 'Limits', href: `/accounts/${encodeURIComponent(key)}` });
  }
  if (by === 'sending-domain') {
    const query = new URLSearchParams({ sendingDomain: key, range }).toString();
    links.push({ text: 'Providers', href: `/deliverability?${query}` });
  }
  if (links.length === 0) return null;
  return (
    <span className="row-links">
      {links.map(({ text, href }) => (
        <Link key={text} href={href}>
          {text}
        </Link>
      ))}
    </span>
  );
}

type Periods = Pick<Deliverability, 'from' | 'until' | 'previousFrom'>;

interface FigureCellsProps {
  readonly figures: ComparedFigures;
  readonly periods: Periods;
  readonly lockThresholds: DeliverabilityTableRow['lockThresholds'];
}

function FigureCells({ figures, periods, lockThresholds }: FigureCellsProps) {
  const { accepted, previous, deferred, ended, bounced, bounces, complained } = figures;
  return (
    <>
      <Figure label="Accepted" value={formatNumber(accepted)} change={compareAccepted(figures, periods)} />
      <ShareFigure
        label="Delivered"
        rate={figures.deliveredRate}
        previousRate={previous.deliveredRate}
        isHigherBetter
        note={figures.confirmed === 0 ? null : `${formatNumber(figures.confirmed)} confirmed`}
      />
      <ShareFigure
        label="Deferred"
        rate={figures.deferralRate}
        previousRate={previous.deferralRate}
        title={`${formatNumber(deferred)} deferred attempts`}
      />
      <ShareFigure
        label="Bounced"
        rate={figures.bounceRate}
        previousRate={previous.bounceRate}
        note={
          <>
            {bounced === 0 ? null : <div>{describeBounces(bounces)}</div>}
            <LockThreshold
              rate={ended === 0 ? null : bounces.hard / ended}
              threshold={lockThresholds?.bounceRate ?? null}
              kind=" hard"
            />
          </>
        }
      />
      <ShareFigure
        label="Complaints"
        rate={figures.complaintRate}
        previousRate={previous.complaintRate}
        title={`${formatNumber(complained)} complaints`}
        note={<LockThreshold rate={figures.complaintRate} threshold={lockThresholds?.complaintRate ?? null} kind="" />}
      />
      {(['p50', 'p99'] as const).map((percentile) => (
        <Figure
          key={percentile}
          label={percentile}
          value={figures.latencyMs === null ? '–' : formatDuration(figures.latencyMs[percentile])}
          change={compareDurations(figures.latencyMs?.[percentile] ?? null, previous.latencyMs?.[percentile] ?? null)}
          note={
            figures.confirmationMs === null ? null : `confirmed ${formatDuration(figures.confirmationMs[percentile])}`
          }
        />
      ))}
    </>
  );
}

/**
 * Compares the numbers of accepted messages per unit of time. The last interval of the range is incomplete, so the
 * range is shorter than the previous period.
 */
function compareAccepted({ accepted, previous }: ComparedFigures, { from, until, previousFrom }: Periods) {
  if (previous.accepted === 0) return null;
  const elapsedMs = Date.parse(until) - Date.parse(from);
  const previousMs = Date.parse(from) - Date.parse(previousFrom);
  return compareCounts(accepted / elapsedMs, previous.accepted / previousMs);
}

/** Returns the number of bounces of each class, such as `12 hard, 3 block`. */
function describeBounces(bounces: DeliverabilityFigures['bounces']): string {
  return (['hard', 'soft', 'block'] as const)
    .filter((name) => bounces[name] > 0)
    .map((name) => `${formatNumber(bounces[name])} ${name}`)
    .join(', ');
}

/** The share of the threshold from which a rate is shown as a warning. `account show` uses the same share. */
const WARNING_SHARE = 0.5;

interface LockThresholdProps {
  readonly rate: number | null;
  /** The rate at which the account is locked; 1 disables the lock. Null if the row is not an account. */
  readonly threshold: number | null;
  /** The class of bounces that the threshold counts, with a leading space; empty for complaints. */
  readonly kind: string;
}

function LockThreshold({ rate, threshold, kind }: LockThresholdProps) {
  if (threshold === null || threshold >= 1) return null;
  const thresholdShare = threshold === 0 ? 1 : (rate ?? 0) / threshold;
  const tone = thresholdShare >= 1 ? 'worse' : thresholdShare >= WARNING_SHARE ? 'warning' : '';
  return (
    <span className={`delta ${tone}`}>
      locks at {formatPercent(threshold)}
      {kind}
    </span>
  );
}

interface FigureProps {
  readonly label: string;
  readonly value: string;
  readonly change: Change | null;
  readonly title?: string;
  readonly note?: ReactNode;
}

function Figure({ label, value, change, title, note = null }: FigureProps) {
  return (
    <td className="end figure" data-label={label} {...(title === undefined ? {} : { title })}>
      <div>{value}</div>
      {change === null ? null : (
        <div className="figure-change">
          <ChangeText change={change} />
        </div>
      )}
      {note === null ? null : <div className="figure-change">{note}</div>}
    </td>
  );
}

interface ShareFigureProps extends Pick<FigureProps, 'label' | 'title' | 'note'> {
  readonly rate: number | null;
  readonly previousRate: number | null;
  readonly isHigherBetter?: boolean;
}

function ShareFigure({ rate, previousRate, isHigherBetter = false, ...figure }: ShareFigureProps) {
  const [percent, previousPercent] = [toPercent(rate), toPercent(previousRate)];
  return (
    <Figure
      {...figure}
      value={percent === null ? '–' : `${formatShare(percent)} %`}
      change={compareShares(percent, previousPercent, isHigherBetter)}
    />
  );
}

/** Converts a rate to percent. Late reports can cause a rate greater than 1, which is shown as 100 %. */
function toPercent(rate: number | null): number | null {
  return rate === null ? null : Math.min(100, 100 * rate);
}
