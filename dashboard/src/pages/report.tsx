/** One feedback report that was not understood, as it was received. */
import { Anchor, Stack, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { ReportDetails } from '../../../src/operations/feedback/schemas.ts';
import { path } from '../api/client';
import { useReport } from '../feedback/queries';
import { Callout } from '../parts/callout';
import { LoadError } from '../parts/load-error';
import { PageHead } from '../parts/page-head';
import { Loading } from '../parts/page-states';
import { formatTime } from '../parts/time';
import { toPrintableText, UntrustedBlock } from '../parts/untrusted-text';
import type { PageProps } from './index';

export function ReportPage({ parameters }: PageProps) {
  const id = parameters.id ?? '';
  const report = useReport(id);
  return (
    <>
      <PageHead title={`Report ${id}`} parent={{ href: '/feedback', text: 'Feedback' }} />
      {report.data !== undefined ? (
        <Report report={report.data} />
      ) : report.isError ? (
        <LoadError
          error={report.error}
          retry={report.refetch}
          title="No report has this number"
          href="/feedback"
          link="Show all reports"
        />
      ) : (
        <Loading />
      )}
    </>
  );
}

function Report({ report: { at, source, message, reason, summary, raw } }: { readonly report: ReportDetails }) {
  return (
    <Stack gap="md">
      <Callout tone="warning" title="Not understood">
        {toPrintableText(reason)}
      </Callout>
      <dl className="facts head">
        <Fact name="summary">{toPrintableText(summary)}</Fact>
        <Fact name="received">{formatTime(at)}</Fact>
        <Fact name="source">{source}</Fact>
        <Fact name="message">
          {message === null ? (
            'none is named'
          ) : (
            <Anchor component={Link} href={path`/messages/${message}`} inherit>
              {message}
            </Anchor>
          )}
        </Fact>
      </dl>
      <section aria-labelledby="text">
        <Title order={2} size="h4" id="text" mb="xs">
          Text
        </Title>
        {raw === '' ? <Text c="dimmed">The report is empty.</Text> : <UntrustedBlock text={raw} />}
      </section>
    </Stack>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
