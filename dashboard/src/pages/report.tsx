/** One feedback report that was not understood, as it was received. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import type { ReportDetails } from '../../../src/operations/feedback.ts';
import { path } from '../api/client';
import { useReport } from '../feedback/queries';
import { Callout } from '../parts/callout';
import { Card, Entry } from '../parts/card';
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
    <div className="stack">
      <Callout tone="warning" title="Not understood">
        {toPrintableText(reason)}
      </Callout>
      <div className="columns">
        <Card title="Text">
          {raw === '' ? <span className="muted">The report is empty.</span> : <UntrustedBlock text={raw} />}
        </Card>
        <Card title="Details">
          <dl className="record">
            <Entry name="Summary">{toPrintableText(summary)}</Entry>
            <Entry name="Received">{formatTime(at)}</Entry>
            <Entry name="Source">{source}</Entry>
            <Entry name="Message">
              {message === null ? (
                'none is named'
              ) : (
                <Anchor component={Link} href={path`/messages/${message}`} inherit>
                  {message}
                </Anchor>
              )}
            </Entry>
          </dl>
        </Card>
      </div>
    </div>
  );
}
