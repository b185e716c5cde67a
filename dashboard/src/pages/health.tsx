/** The health of the installation: the open problems, and the checks of `doctor` with their remedies. */
import { Button, Text, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Findings } from '../../../src/operations/doctor.ts';
import type { Overview } from '../../../src/operations/overview.ts';
import { get } from '../api/client';
import { FindingList } from '../health/finding-list';
import { RunningChecks } from '../health/running-checks';
import { formatCount } from '../parts/number';
import { AttentionList } from '../parts/overview-health';
import { PageHead } from '../parts/page-head';
import { ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';

const HEALTH_KEY = ['health'];

/** The findings of a run of the checks, and the time at which the run ended. */
interface Run {
  readonly findings: Findings;
  readonly at: string;
}

/** The timeout of the request that runs the checks. The checks take up to one minute. */
const MAX_CHECK_MS = 120_000;

export function HealthPage() {
  const queryClient = useQueryClient();
  const [startedAt, setStartedAt] = useState(() => Date.now());
  // The checks use the relay and may take a minute, so the page does not repeat them automatically.
  const run = useQuery({
    queryKey: HEALTH_KEY,
    queryFn: async (): Promise<Run> => {
      setStartedAt(Date.now());
      const findings = await get<Findings>('/doctor', {}, MAX_CHECK_MS);
      return { findings, at: new Date().toISOString() };
    },
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const overview = useQuery({
    queryKey: ['overview', '1h'],
    queryFn: () => get<Overview>('/overview', { range: '1h' }),
  });
  return (
    <>
      <PageHead title="Health">
        <Button loading={run.isFetching} onClick={() => void queryClient.invalidateQueries({ queryKey: HEALTH_KEY })}>
          Run checks again
        </Button>
      </PageHead>
      {overview.data === undefined || overview.data.attention.length === 0 ? null : (
        <section aria-labelledby="open-problems" style={{ marginBottom: 20 }}>
          <Title order={2} size="h4" mb="xs" id="open-problems">
            {formatCount(overview.data.attention.length, 'open problem')}
          </Title>
          <AttentionList attention={overview.data.attention} />
        </section>
      )}
      <div role="status">
        {run.isFetching ? (
          <RunningChecks startedAt={startedAt} />
        ) : run.data === undefined ? null : (
          <Text size="sm" c="dimmed" mb="md">
            Checked <RelativeTime at={run.data.at} /> from this node, as <code>postrider doctor</code> does
          </Text>
        )}
      </div>
      {run.isError ? <ErrorAlert error={run.error} retry={run.refetch} /> : null}
      {run.isPending ? <Loading /> : null}
      {run.data === undefined ? null : <FindingList findings={run.data.findings} />}
    </>
  );
}
