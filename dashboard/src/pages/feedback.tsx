/** The list of feedback reports that were not understood, newest first. */
import { Link, useLocation } from 'wouter';
import type { ReportSummary } from '../../../src/operations/feedback.ts';
import { path } from '../api/client';
import { useUrlState } from '../api/url-state';
import { REPORT_PAGE_SIZE, useReports } from '../feedback/queries';
import { KeyHints } from '../parts/key-hint';
import { ListHead, ListRow } from '../parts/list-row';
import { MessageLink } from '../parts/message-link';
import { NewRowsButton } from '../parts/new-rows-button';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { findOlderPageStart, OlderPages, toListPage } from '../parts/page-turner';
import { RelativeTime } from '../parts/relative-time';
import { useSteadyRows } from '../parts/steady-rows';
import { toPrintableText } from '../parts/untrusted-text';
import { useRowKeys } from '../parts/use-row-keys';

export function FeedbackPage() {
  const [urlState] = useUrlState();
  const [, navigate] = useLocation();
  const before = urlState.get('before') ?? '';
  const reportQuery = useReports(before);
  const listPage = toListPage(reportQuery.data, REPORT_PAGE_SIZE);
  const latestReports = reportQuery.isSuccess && !reportQuery.isPlaceholderData ? listPage.rows : undefined;
  const { rows, newCount, showNew } = useSteadyRows(latestReports, before);
  // While another page of the list loads, the rows of the current page remain on the screen.
  const reports = reportQuery.isPlaceholderData ? listPage.rows : rows;
  const olderPageStart = findOlderPageStart(listPage, reports);
  const openReport = (id: string) => navigate(path`/feedback/${id}`);
  const currentId = useRowKeys({ ids: reports.map(({ id }) => String(id)), onOpen: openReport });
  return (
    <>
      <PageHead title="Feedback" />
      <div className="filters">
        <p className="page-intro">
          Bounces, complaints and provider events that were not understood, or that name no known message. They change
          no message and suppress no recipient.
        </p>
        {reports.length === 0 ? null : <KeyHints openLabel="open" search={null} />}
      </div>
      {reportQuery.isPending ? <Loading /> : null}
      {reportQuery.isError ? <ErrorAlert error={reportQuery.error} retry={reportQuery.refetch} /> : null}
      {reportQuery.isSuccess && reports.length === 0 ? (
        <EmptyState title={before === '' ? 'Every report was understood' : 'No older reports'}>
          A report that cannot be read appears here with its text, so that you can decide what it means.
        </EmptyState>
      ) : null}
      <NewRowsButton count={newCount} noun="report" onShow={showNew} />
      {reports.length === 0 ? null : (
        <div className="card flush">
          <table className="list">
            <caption className="unseen">Reports that were not understood, newest first</caption>
            <ListHead columns={['Report and reason', 'Message', 'Source', 'Received']} />
            <tbody>
              {reports.map((report) => (
                <ReportRow
                  key={report.id}
                  report={report}
                  isCurrent={currentId === String(report.id)}
                  onOpen={() => openReport(String(report.id))}
                />
              ))}
            </tbody>
          </table>
          <OlderPages olderPageStart={olderPageStart} isLoading={reportQuery.isPlaceholderData} />
        </div>
      )}
    </>
  );
}

interface ReportRowProps {
  readonly report: ReportSummary;
  readonly isCurrent: boolean;
  readonly onOpen: () => void;
}

function ReportRow({ report: { id, at, source, message, reason, summary }, isCurrent, onOpen }: ReportRowProps) {
  return (
    <ListRow id={String(id)} isCurrent={isCurrent} onOpen={onOpen}>
      <td className="fill">
        <div className="two-lines">
          <Link href={path`/feedback/${id}`}>{summary.trim() === '' ? `Report ${id}` : toPrintableText(summary)}</Link>
          <span>{toPrintableText(reason)}</span>
        </div>
      </td>
      <td>{message === null ? <span className="muted">no message is named</span> : <MessageLink id={message} />}</td>
      <td data-label="Source">{source}</td>
      <td className="nowrap" data-label="Received">
        <RelativeTime at={at} />
      </td>
    </ListRow>
  );
}
