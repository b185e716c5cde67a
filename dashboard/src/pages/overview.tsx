/** The overview: problems, tiles, outcomes over time, queue, and health. */
import { Button, SegmentedControl } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useSearchParams } from 'wouter';
import type { Setup } from '../../../src/operations/installation.ts';
import type { Overview } from '../../../src/operations/overview.ts';
import type { Range } from '../../../src/statistics/figures.ts';
import { get } from '../api/client';
import { PeriodNote } from '../parts/change';
import { formatCount } from '../parts/number';
import { OutcomesChart, OverviewDetails } from '../parts/overview-figures';
import { OverviewAttention, OverviewHealth } from '../parts/overview-health';
import { OverviewQueue } from '../parts/overview-queue';
import { OverviewTiles } from '../parts/overview-tiles';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { useSetup, useSetupHidden } from '../setup/queries';
import { SetupCard } from '../setup/setup-card';
import type { PageProps } from './index';

const RANGES: readonly { readonly value: Range; readonly label: string; readonly phrase: string }[] = [
  { value: '1h', label: '1 h', phrase: 'hour' },
  { value: '24h', label: '24 h', phrase: '24 hours' },
  { value: '7d', label: '7 d', phrase: '7 days' },
  { value: '30d', label: '30 d', phrase: '30 days' },
];
const DEFAULT_RANGE: Range = '24h';
/** The refetch interval. Ages and figures also change without a live update. */
const REFRESH_INTERVAL_MS = 10_000;

export function OverviewPage({ session }: PageProps) {
  const [parameters, setParameters] = useSearchParams();
  const range = RANGES.find(({ value }) => value === parameters.get('range'))?.value ?? DEFAULT_RANGE;
  const overview = useQuery({
    queryKey: ['overview', range],
    queryFn: () => get<Overview>('/overview', { range }),
    refetchInterval: REFRESH_INTERVAL_MS,
    placeholderData: keepPreviousData,
  });
  const setup = useSetup();
  const [isSetupHidden, setSetupHidden] = useSetupHidden();
  // The setup checklist is expanded if the installation has never accepted a message, or if the operator clicked the
  // button that shows the checklist.
  const [isExpanded, setExpanded] = useState(false);
  if (!isExpanded && overview.data?.everAccepted === false) setExpanded(true);
  // The problems and the figures must be visible without scrolling. If there are problems, a button in the header
  // replaces the collapsed checklist.
  const hasProblems = (overview.data?.attention.length ?? 0) > 0;
  const isSetupInHeader = isSetupHidden || (!isExpanded && hasProblems);
  const showSetup = () => {
    setSetupHidden(false);
    setExpanded(true);
  };
  const openStepCount = setup.data?.openCount ?? 0;
  return (
    <>
      <PageHead title="Overview">
        {isSetupInHeader && openStepCount > 0 ? (
          <Button variant="subtle" onClick={showSetup}>
            Setup: {formatCount(openStepCount, 'open step')}
          </Button>
        ) : null}
        <SegmentedControl
          aria-label="Time range of the figures"
          data={RANGES.map(({ value, label }) => ({ value, label }))}
          value={range}
          onChange={(value) => setParameters(value === DEFAULT_RANGE ? {} : { range: value })}
        />
      </PageHead>
      {overview.isPending || (setup.isPending && !overview.isError) ? <Loading /> : null}
      {overview.isError ? <ErrorAlert error={overview.error} retry={() => overview.refetch()} /> : null}
      {/* The page waits for both queries, so that the checklist does not appear later and move the figures. */}
      {overview.data === undefined || setup.isPending ? null : (
        <OverviewContent overview={overview.data}>
          {setup.data === undefined || isSetupInHeader ? null : (
            <SetupSection
              setup={setup.data}
              session={session}
              isCollapsed={!isExpanded}
              onHide={() => setSetupHidden(true)}
            />
          )}
        </OverviewContent>
      )}
    </>
  );
}

interface SetupSectionProps extends Pick<PageProps, 'session'> {
  readonly setup: Setup;
  readonly isCollapsed: boolean;
  readonly onHide: () => void;
}

/**
 * Shows the checklist while a step is open. If the last step is completed while the page is open, the checklist remains
 * until the operator closes the checklist.
 */
function SetupSection({ setup, session, isCollapsed, onHide }: SetupSectionProps) {
  const [wasOpen, setWasOpen] = useState(false);
  const [isClosed, setIsClosed] = useState(false);
  if (!setup.isComplete && !wasOpen) setWasOpen(true);
  if (setup.isComplete && (!wasOpen || isClosed)) return null;
  return (
    <SetupCard
      setup={setup}
      session={session}
      isCollapsed={isCollapsed}
      onHide={setup.isComplete ? () => setIsClosed(true) : onHide}
    />
  );
}

/** `children` is the checklist, which is shown below the problems. */
function OverviewContent({ overview, children }: { readonly overview: Overview; readonly children: ReactNode }) {
  const { everAccepted, attention, queue, health, range } = overview;
  const phrase = RANGES.find(({ value }) => value === range)?.phrase ?? range;
  return (
    <div className="stack">
      <OverviewAttention attention={attention} />
      {children}
      {everAccepted ? <OverviewTiles overview={overview} period={phrase} /> : null}
      {everAccepted ? (
        <p className="period-note">
          <PeriodNote {...overview} />
        </p>
      ) : null}
      <div className="columns overview">
        {everAccepted ? (
          <OutcomesChart overview={overview} />
        ) : (
          <EmptyState title="No messages">
            Charts of accepted, delivered and bounced messages appear here after the first message.
          </EmptyState>
        )}
        <div className="stack">
          <OverviewQueue queue={queue} />
          <OverviewHealth health={health} />
        </div>
      </div>
      {everAccepted ? <OverviewDetails overview={overview} /> : null}
    </div>
  );
}
