/**
 * The Deliverability page: figures by mailbox provider, recipient domain, account or sending domain, compared with the
 * previous period, and a list of the notable changes.
 */
import { Button, SegmentedControl } from '@mantine/core';
import { IconChartBar } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import type { Deliverability } from '../../../src/operations/deliverability.ts';
import { useAccounts } from '../accounts/queries';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { Changes } from '../deliverability/changes';
import { RowChart } from '../deliverability/chart';
import { GROUPINGS, type PageState, RANGES, readState, type Sort } from '../deliverability/state';
import { FiguresTable } from '../deliverability/table';
import { FilterChip, FilterChoice } from '../parts/filter-chip';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

/** The refetch interval. The figures also change without a live update, when an interval of the chart ends. */
const REFRESH_INTERVAL_MS = 30_000;
const DEFAULT_SORT: Sort = 'accepted';

export function DeliverabilityPage() {
  const [parameters, setUrlState] = useUrlState();
  const state = readState(parameters);
  const { by, range, account, sendingDomain, key } = state;
  const figures = useQuery({
    queryKey: ['deliverability', by, range, account, sendingDomain, key],
    queryFn: () =>
      get<Deliverability>('/deliverability', {
        by,
        range,
        account: account ?? undefined,
        sendingDomain: sendingDomain ?? undefined,
        key: key ?? undefined,
      }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  const selectRow = (newKey: string | null) => setUrlState({ key: newKey });
  return (
    <>
      <PageHead title="Deliverability">
        <SegmentedControl
          aria-label="Time range of the figures"
          data={RANGES.map(({ value, label }) => ({ value, label }))}
          value={range}
          onChange={(value) => setUrlState({ range: value === '24h' ? null : value })}
        />
      </PageHead>
      <div className="filters">
        <SegmentedControl
          aria-label="Figures by"
          className="groupings"
          data={GROUPINGS.map(({ value, label }) => ({ value, label }))}
          value={by}
          onChange={(value) => setUrlState({ by: value === 'provider' ? null : value, key: null, sendingDomain: null })}
        />
        <AccountFilter account={account} onChange={(name) => setUrlState({ account: name, key: null })} />
        {sendingDomain === null ? null : (
          <FilterChip
            label="Sending domain"
            value={sendingDomain}
            onClear={() => setUrlState({ sendingDomain: null, key: null })}
          >
            Only messages from {sendingDomain} are counted.
          </FilterChip>
        )}
      </div>
      {figures.isPending ? <Loading /> : null}
      {figures.isError ? <ErrorAlert error={figures.error} retry={() => figures.refetch()} /> : null}
      {figures.data === undefined ? null : (
        <DeliverabilityContent
          state={state}
          figures={figures.data}
          onSelect={selectRow}
          onSort={(sort) => setUrlState({ sort: sort === DEFAULT_SORT ? null : sort })}
          onLongerRange={() => setUrlState({ range: '30d' })}
        />
      )}
    </>
  );
}

interface AccountFilterProps {
  readonly account: string | null;
  readonly onChange: (name: string | null) => void;
}

function AccountFilter({ account, onChange }: AccountFilterProps) {
  const accounts = useAccounts();
  const names = (accounts.data ?? []).map(({ name }) => name);
  const options = account === null || names.includes(account) ? names : [...names, account];
  return (
    <FilterChip label="Account" value={account ?? ''} onClear={() => onChange(null)}>
      <FilterChoice
        label="Account"
        anyLabel="All accounts"
        options={options.map((name) => ({ value: name, label: name }))}
        value={account ?? ''}
        onChange={(name) => onChange(name === '' ? null : name)}
      />
    </FilterChip>
  );
}

interface ContentProps {
  readonly state: PageState;
  readonly figures: Deliverability;
  readonly onSelect: (key: string | null) => void;
  readonly onSort: (sort: Sort) => void;
  readonly onLongerRange: () => void;
}

function DeliverabilityContent({ state, figures, onSelect, onSort, onLongerRange }: ContentProps) {
  const chart = useRef<HTMLDivElement>(null);
  const { range, key, by } = state;
  const { rows, total, changes, points, from, until, previousFrom } = figures;
  const { phrase = range, step = '' } = RANGES.find(({ value }) => value === range) ?? {};
  const isEmpty = total.accepted + total.ended + total.deferred + total.previous.accepted === 0;
  if (isEmpty) {
    return (
      <EmptyState
        title={`No messages in the last ${phrase}`}
        Icon={IconChartBar}
        {...(range === '30d'
          ? {}
          : {
              nextStep: (
                <Button variant="default" onClick={onLongerRange}>
                  Show the last 30 days
                </Button>
              ),
            })}
      >
        The figures of accepted, delivered, deferred and bounced messages appear here after the first message.
      </EmptyState>
    );
  }
  const periods = { from, until, previousFrom, previousUntil: from };
  const selectRow = (newKey: string | null) => {
    onSelect(newKey);
    if (newKey !== null) chart.current?.scrollIntoView({ block: 'nearest' });
  };
  const name = key === null ? 'All messages' : (rows.find((row) => row.key === key)?.name ?? key);
  return (
    <div className="stack">
      <Changes changes={changes} periods={periods} onSelect={selectRow} />
      <section className="card flush" aria-label="Figures">
        <FiguresTable state={state} figures={figures} onSelect={selectRow} onSort={onSort} />
        <div className="list-foot">
          <span className="sentence">
            {by === 'account'
              ? 'The service locks an account based on its bounce and complaint rates of the last 7 days. The account page shows the numbers of bounces and complaints.'
              : 'The second line of a figure is its change from the previous period. Accepted messages are compared per hour. Select a row to see its figures over time.'}
          </span>
        </div>
      </section>
      <div ref={chart}>
        <RowChart name={name} step={step} points={points} />
      </div>
    </div>
  );
}
